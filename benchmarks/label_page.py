"""The tables of `docs/label_tables.md`, from the reports of `tracemill evaluate`."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

RULES_OF_ALL = ("folded k=2", "canonical k=2", "default k=2", "default k=3")
MOST_ROWS = 12
WAYS = ("random", "gate, cold", "gate, trained offline", "oracle")


def number(value: float | None, digits: int = 3) -> str:
    """Format a share without its leading zero; a dash for None."""
    if value is None:
        return "-"
    text = f"{value:.{digits}f}"
    return text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text


def table(head: Sequence[str], rows: Iterator[Sequence[str]] | Sequence[Sequence[str]]) -> list[str]:
    """Build a Markdown table; no lines if it has no rows."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}", *lines, ""] if lines else []


def labels(found: Mapping[str, Any]) -> list[str]:
    """Build the table of rules, by voters and teachers.

    `exact` equals `folded` except for whitespace.
    """

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
    """Build the tables of the gate: its curves and its totals."""
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
        [voters, str(each["totals"]["passes"]), *_totals(each["totals"])] for voters, each in _voters(found)
    ]
    head = ("voters", "passes", "over the truth", "p10 to p90", "plain", "interval holds it")
    return lines + table(head, totals)


def _voters(found: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for voters in ("two families", "any family"):
        each = found["gate"].get(voters)
        if each and each["ways"]:
            yield voters, each


def _totals(each: Mapping[str, float]) -> list[str]:
    spread = f"{number(each['p10'], 2)} to {number(each['p90'], 2)}"
    return [number(each["ratio"], 2), spread, number(each["weighted_mean"], 2), f"{each['covered']:.0%}"]


def savings(found: Mapping[str, Any]) -> list[str]:
    """Build the table of what early stopping and the gate save, without a cache."""
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
    """Build the table of how often two models did the same in a state."""
    levels = ("exact", "canonical", "effect", "intent", "class")
    rows = [
        [row["one"], row["other"], f"{row['meetings']:,}", *(number(row[level]) for level in levels)]
        for row in found["agreement"][:MOST_ROWS]
    ]
    return table(("one", "other", "meetings", *levels), rows)


def kinds(found: Mapping[str, Any]) -> list[str]:
    """Build the table of pairs as one dataset, before and after the caps of a release."""
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
    """Build the sections of a report: gate figures and savings if it has a gate, else labels."""
    if found["gate"]:
        return [*gate(found), *savings(found)]
    lines = labels(found) if found["table"]["rewarded"] else []
    if found["table"]["half"] == "all":
        lines += [*savings(found), *operations(found), *families(found)]
        lines += kinds(found) if found["kinds"]["runs"] else []
    return lines
