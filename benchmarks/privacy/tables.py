"""The report as tables on the terminal and as plain JSON."""

from collections.abc import Iterable

from scores import CATEGORIES, HALVES, Alarms

_EXAMPLES = 3


def alarm_row(alarms: Alarms) -> dict[str, object]:
    """One corpus of ordinary text: size, false alarms per MB, those that claim a secret, by type."""
    return {
        "megabytes": round(alarms.megabytes, 2),
        "per_mb": alarms.per_mb,
        "secret_per_mb": alarms.secret_per_mb,
        "types": alarms.types(),
        "real_addresses_and_homes": alarms.real,
        "large_base64": alarms.blobs,
    }


def plain(result: dict, half: str) -> dict:
    """Return the figures without planted values or texts, and the kinds of one half only."""
    kept = {}
    for name, each in result["tools"].items():
        row = {key: value for key, value in each.items() if key not in ("missed", "false_alarms", "kinds")}
        if "kinds" in each:
            row["kinds"] = each["kinds"][half]
        kept[name] = row
    return result | {"tools": kept, "half": half}


def show(result: dict, half: str) -> None:
    """Print the report; kind by kind for one half."""
    kinds = result["kinds"]
    print(
        f"{result['planted']} values planted: {kinds['secret']} kinds of secrets, "
        f"{kinds['personal']} of personal data"
    )
    working = {n: t for n, t in result["tools"].items() if "problem" not in t}
    for name, tool in result["tools"].items():
        if "problem" in tool:
            print(f"{name}: NOT MEASURED, {tool['problem']}")
    _print_table("found", working, _recall_rows(working))
    _print_table("false alarms per MB", working, _alarm_rows(working))
    if any("mb_s" in tool for tool in working.values()):
        texts = next(iter(working.values()))["mb_s"]
        rows = [(text, [f"{t['mb_s'][text]:.2f}" for t in working.values()]) for text in texts]
        _print_table("MB/s of one core", working, rows)
    _show_sessions(result)
    names = sorted(next(iter(working.values()))["kinds"][half])
    _print_table(
        f"found, {half} half by kind",
        working,
        [(n, [_share(t["kinds"][half][n]) for t in working.values()]) for n in names],
    )
    if half == "tune":
        _show_missed(working)
    _show_alarms(working)


def _recall_rows(working: dict) -> list[tuple[str, list[str]]]:
    rows = [
        (f"{category}, {half} half", [_share(t["recall"][half][category]) for t in working.values()])
        for category in CATEGORIES
        for half in HALVES
    ]
    rows += [
        (
            f"{category}, {half} half, mean of kinds",
            [_share(t["recall_mean_of_kinds"][half][category]) for t in working.values()],
        )
        for category in CATEGORIES
        for half in HALVES
    ]
    for key, label in (
        ("recall_without_name", "of these without a telling name"),
        ("recall_no_format_no_name", "no format and no name (not counted above)"),
    ):
        rows += [(f"{label}, {half}", [_share(t[key][half]) for t in working.values()]) for half in HALVES]
    return rows


def _alarm_rows(working: dict) -> list[tuple[str, list[str]]]:
    corpora = next(iter(working.values()))["alarms"]
    return [
        (f"{name} ({row['megabytes']} MB)", [f"{t['alarms'][name]['per_mb']:.1f}" for t in working.values()])
        for name, row in corpora.items()
    ]


def _show_sessions(result: dict) -> None:
    if whole := result["whole_process"]:
        print(
            f"\nwhole processes, {whole['megabytes']:.1f} MB of sessions, MB per CPU second: "
            f"reading and redaction {whole['ingest_and_redact_mb_s']:.1f}, "
            f"`tracemill ingest` {whole['command_mb_s']:.1f}"
        )
    if changed := result["arguments"]:
        print(
            f"tool-call arguments changed: {changed['changed']} of {changed['calls']} "
            f"({changed['share']:.2%}), "
            f"{changed['for_secrets']} for a secret; by type {changed['types']}"
        )


def _show_missed(working: dict) -> None:
    print("\nmissed by tracemill, tune half")
    missed = [plant for plant in working["tracemill"]["missed"] if plant.kind.half == "tune"]
    for name in sorted({plant.kind.name for plant in missed}):
        places = [f"{p.setting}{'' if p.keyword else ' (no name)'}" for p in missed if p.kind.name == name]
        print(f"  {name}: {len(places)}, as in {'; '.join(places[:_EXAMPLES])}")


def _show_alarms(working: dict) -> None:
    print("\nfalse alarms of tracemill")
    for name, found in working["tracemill"]["false_alarms"].items():
        for change in found[:12]:
            print(f"  {name}: {change.type} for {change.old[:60]!r} in {change.line.strip()[:100]!r}")


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"


def _print_table(title: str, columns: Iterable[str], rows: list[tuple[str, list[str]]]) -> None:
    width = max([len(label) for label, _ in rows] + [len(title)])
    print(f"\n{title:<{width}}" + "".join(f"{column:>16}" for column in columns))
    for label, cells in rows:
        print(f"{label:<{width}}" + "".join(f"{cell:>16}" for cell in cells))
