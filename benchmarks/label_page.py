"""The tables of `docs/label_tables.md`, from the reports of `tracemill evaluate`."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

RULES_OF_ALL = ("folded k=2", "canonical k=2", "default k=2", "default k=3", "weighted")
MOST_ROWS = 12
WAYS = (
    "random",
    "gate, cold",
    "gate and value, cold",
    "gate, trained offline",
    "gate and value, offline",
    "oracle",
)
STOPS = ("lossless", "tiered", "value, cold", "value, offline")


def number(value: float | None, digits: int = 3) -> str:
    """A share without its leading zero; a dash where there is none."""
    if value is None:
        return "-"
    text = f"{value:.{digits}f}"
    return text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text


def table(head: Sequence[str], rows: Iterator[Sequence[str]] | Sequence[Sequence[str]]) -> list[str]:
    """A table in Markdown, nothing where it has no row."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}", *lines, ""] if lines else []


def labels(found: Mapping[str, Any]) -> list[str]:
    """The rules, by who votes and which teachers; `exact` gives what `folded` gives but for blanks."""

    def rows() -> Iterator[list[str]]:
        for kind in ("stronger teachers", "all draws"):
            for row in found["rules"]:
                each = row[kind]
                left_out = row["rule"].startswith("exact") or (
                    kind == "all draws" and row["rule"] not in RULES_OF_ALL
                )
                if not each["draws"] or left_out:
                    continue
                good, bad, tie = (each[f"all_{name}"] for name in ("good", "bad", "tie"))
                every = good + bad + tie + each["all_unscored"]
                added = (
                    f"{number(good / (good + bad))}, {number(good / (good + bad + tie))}"
                    if good + bad
                    else "-"
                )
                yield [
                    kind.split()[0],
                    row["voters"],
                    row["rule"],
                    str(each["draws"]),
                    f"{each['pairs']:g}",
                    number(each["precision"]),
                    number(each["precision_p10"]),
                    _interval(each["precision_interval"]),
                    number(each["useful"]),
                    number(each["useful_p10"]),
                    _interval(each["useful_interval"]),
                    f"{added} of {every:,}",
                ]

    head = [
        "teachers",
        "voters",
        "rule",
        "draws",
        "pairs",
        "precision",
        "p10",
        "95 %",
        "useful",
        "p10",
        "95 %",
        "all pairs added up",
    ]
    return table(head, rows())


def _interval(ends: Sequence[float] | None) -> str:
    return f"{number(ends[0])} to {number(ends[1])}" if ends and None not in ends else "-"


def gate(found: Mapping[str, Any]) -> list[str]:
    """The curves of the gate, its totals and what stopping between teachers saves, by who votes."""
    lines: list[str] = []
    shares: list[float] = []

    def rows() -> Iterator[list[str]]:
        for voters, each in _voters(found):
            shares[:] = each["shares"]
            for way in WAYS:
                row = each["ways"][way]
                cost = " / ".join(number(row["usd_at_recall"][at], 2) for at in ("0.9", "0.95"))
                recalls = (number(value, 2) for value in row["recall"][1:])
                yield [
                    voters,
                    str(each["draws"]),
                    way,
                    *recalls,
                    number(row["area"]),
                    number(row["of_gap"], 2),
                    cost,
                ]

    made = list(rows())
    head = [
        "voters",
        "draws",
        "way",
        *(f"{share:.0%}" for share in shares[1:]),
        "area",
        "of gap",
        "USD at 90 / 95 %",
    ]
    lines += table(head, made)
    cold = [
        [
            voters,
            *(_interval(each["ways"]["gate, cold"]["recall_interval"][share]) for share in ("0.2", "0.3")),
        ]
        for voters, each in _voters(found)
    ]
    lines += table(("gate, cold, 95 % over tasks", "at 20 %", "at 30 %"), cold)
    totals = [
        [voters, way, str(each[key]["passes"]), *_totals(each[key])]
        for voters, each in _voters(found)
        for way, key in (("gate", "totals"), ("gate and value", "totals_value"))
    ]
    head = ("voters", "totals of", "passes", "over the truth", "p10 to p90", "plain", "interval holds it")
    lines += table(head, totals)
    stops = [
        [voters, *(_stop(each["between"]["ways"][stop]) for stop in STOPS), *_least(each["between"]["curve"])]
        for voters, each in _voters(found)
    ]
    return lines + table(("cheaper, of tiered, correct kept", *STOPS, "USD at 90 %", "95 %", "98 %"), stops)


def _voters(found: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for voters in ("two families", "any family"):
        each = found["gate"].get(voters)
        if each and each["ways"]:
            yield voters, each


def _totals(each: Mapping[str, float]) -> list[str]:
    spread = f"{number(each['p10'], 2)} to {number(each['p90'], 2)}"
    return [number(each["ratio"], 2), spread, number(each["weighted_mean"], 2), f"{each['covered']:.0%}"]


def _stop(way: Mapping[str, float]) -> str:
    return f"{1 / way['of_all']:.2f}, {number(way['of_tiered'], 2)}, {number(way['recall'], 2)}"


def _least(curve: Mapping[str, float | None]) -> list[str]:
    return [number(curve[at], 2) for at in ("0.9", "0.95", "0.98")]


def savings(found: Mapping[str, Any]) -> list[str]:
    """What early stopping and the gate save, without a cache."""
    rows = [
        [
            row["stop"],
            row["gate"],
            f"{row['calls']:,}",
            f"{row['cheaper']:.2f}",
            number(row["pairs_kept"]),
            number(row["good_kept"]) if row["good"] else "-",
        ]
        for row in found["savings"]
        if not row["cache"]
    ]
    return table(("early stopping", "gate", "calls", "cheaper", "pairs kept", "correct kept"), rows)


def operations(found: Mapping[str, Any]) -> list[str]:
    """Pairs of two families by what is chosen and what rejected, the most frequent."""
    names = ("chosen", "rejected", "pairs", "good", "tie", "bad", "unscored")
    rows = found["pairs_by_operation"].get("two families", [])[:MOST_ROWS]
    return table(
        names, [[f"{row[n]:,}" if isinstance(row[n], int) else row[n] for n in names] for row in rows]
    )


def families(found: Mapping[str, Any]) -> list[str]:
    """How often two models of a state did the same."""
    rungs = ("exact", "canonical", "effect", "intent", "class")
    rows = [
        [row["one"], row["other"], f"{row['meetings']:,}", *(number(row[rung]) for rung in rungs)]
        for row in found["agreement"][:MOST_ROWS]
    ]
    return table(("one", "other", "meetings", *rungs), rows)


def kinds(found: Mapping[str, Any]) -> list[str]:
    """The pairs as one dataset, before and after the caps of a release."""
    names = (
        "pairs",
        "deciding",
        "navigation",
        "edit",
        "create",
        "run_test",
        "finish",
        "search",
        "list",
        "read",
    )
    rows = [
        [voters, source, when, *(_count(row.get(name, 0)) for name in names)]
        for voters, both in found["kinds"].items()
        if isinstance(both, dict) and "before" in both
        for when in ("before", "after")
        for source, row in both[when].items()
    ]
    return table(("voters", "source", "caps", *names), rows)


def _count(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else number(value)


def sections(found: Mapping[str, Any]) -> list[str]:
    """What a report holds: with a gate its figures and what saves, else labels, and of all tasks the rest."""
    if found["gate"]:
        return [*gate(found), *savings(found)]
    lines = labels(found) if found["table"]["rewarded"] else []
    if found["table"]["half"] == "all":
        lines += [*savings(found), *operations(found), *families(found)]
        lines += kinds(found) if found["kinds"]["runs"] else []
    return lines
