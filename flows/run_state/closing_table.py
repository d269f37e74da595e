"""The closing table of a run."""

from collections import Counter
from typing import TYPE_CHECKING, Any

from tracemill.flows.run_state.run_summary import ReleaseOutcome, Summary
from tracemill.flows.run_state.stale_labels import stale_labels_text
from tracemill.records.printable import printable, printable_lines

if TYPE_CHECKING:
    from rich.console import Console


def _counts(counter: dict[str, int], most: int = 12) -> str:
    """A line a kind, the most frequent first; what does not fit is summed up, never left out."""
    items = sorted(counter.items(), key=lambda item: (-item[1], item[0]))
    lines = [f"{count:>7,}  {printable(name)}" for name, count in items[:most]]
    if rest := items[most:]:
        lines.append(f"{sum(count for _, count in rest):>7,}  of {len(rest)} more kinds")
    return "\n".join(lines)


def _money(value: float) -> str:
    return f"${value:,.4f}" if value < 100 else f"${value:,.2f}"


def closing_table_rows(
    summary: Summary, cap_usd: float | None, teachers: list[str], release: ReleaseOutcome
) -> list[tuple[str, str]]:
    """The closing table as (what, figures), in the order of the data flow; without what there is nothing to
    say of."""
    rows = [
        *_read_rows(summary),
        *_asked_rows(summary, cap_usd, teachers),
        *_pair_rows(summary, release),
        *_release_rows(release),
        ("stopped", summary.stopped or ""),
    ]
    return [(what, figures) for what, figures in rows if figures]


def _read_rows(summary: Summary) -> list[tuple[str, str]]:
    return [
        ("files read", _files(summary)),
        ("traces", f"{summary.traces:,} in {summary.contexts:,} contexts"),
        ("selection", "\n".join(map(printable, summary.unmatched))),
        ("sessions left out", _counts(dict(summary.left_out))),
        ("states", f"{summary.states:,}"),
        ("records passed over", _counts(dict(summary.skipped)) or "none"),
        ("unknown kinds", _counts(dict(summary.unknown))),
        ("worth knowing", _counts(dict(summary.flags)) or "nothing"),
        ("redacted", _counts(dict(summary.redactions)) or "nothing found"),
    ]


def _asked_rows(summary: Summary, cap_usd: float | None, teachers: list[str]) -> list[tuple[str, str]]:
    return [
        ("teachers", ", ".join(teachers) or "none: nothing was sent"),
        ("questions asked", _asked(summary)),
        ("not asked", _counts(dict(summary.not_asked)) or "-"),
        ("gate", _gate(summary.gate) if summary.gate else ""),
        ("calls", f"{summary.calls:,} sent, {summary.reused:,} answered from the ledger"),
        ("failed calls", _failures(summary)),
        ("spent / cap", _spent(summary, cap_usd)),
        ("teachers' standing", "\n".join(closing_table_reliability(summary.standing))),
    ]


def _pair_rows(summary: Summary, release: ReleaseOutcome) -> list[tuple[str, str]]:
    made = {**summary.pairs, **release.siblings}
    return [
        ("votes", _counts(dict(summary.verdicts)) or "-"),
        ("no hindsight pair", _counts(dict(summary.hindsight_skips)) or "-"),
        ("no other pair", _counts(dict(summary.pair_skips))),
        ("no sibling pair", _counts(release.no_sibling)),
        ("pairs made", _counts(made) or "none"),
        ("dropped", _counts(release.dropped) or "none"),
        ("pairs released", _released(made, release)),
        ("labels released", _counts(release.labels)),
        ("no label", _counts(release.labels_dropped)),
        ("label warnings", "\n".join(map(printable, release.warnings))),
        ("splits", "\n".join(f"{count:>7,}  {name}" for name, count in release.splits.items())),
    ]


def _release_rows(release: ReleaseOutcome) -> list[tuple[str, str]]:
    """Where it lies comes last: on the Hub, else here."""
    here, gate = ("release", _release_text(release)), ("publish gate", release.gate)
    newer = ("left out", stale_labels_text(release.newer_answers))
    return [newer, here, gate, ("hub", release.pushed)] if release.pushed else [newer, gate, here]


def closing_table_reliability(report: dict[str, Any]) -> list[str]:
    """`flows.labeling.teacher_standing.measured_reliability_report` as lines for people."""
    lines = []
    for name, each in report.items():
        told = (
            f"{each['standing']:>7.2f}  {name}, with the others at {each['agreed']} of {each['asked']} steps"
        )
        if each["weaker"]:
            told += ": weaker than the agents, its votes make bad labels"
        lines.append(told if each["told"] else f"{told} (too few to tell)")
    return lines


def _files(summary: Summary) -> str:
    changes = "".join(f"\n{count:>7,}  {what}" for what, count in summary.changes.most_common())
    return f"{summary.files:,}" + changes + _indent(summary.unread, "unread")


def _asked(summary: Summary) -> str:
    if not summary.explored_left:
        return f"{summary.asked:,}"
    return f"{summary.asked:,}\n{summary.explored_left:,} of {summary.explored:,} at explored steps left"


def _failures(summary: Summary) -> str:
    text = _counts(dict(summary.failures))
    if not text:
        return "none"
    from tracemill.records.reply import FINAL_FAILURES

    final = sorted(FINAL_FAILURES & summary.failures.keys())
    if len(final) == len(summary.failures):
        return f"{text}\nkept: the same requests would fail again"
    but = f", but not {' and '.join(final)}" if final else ""
    return f"{text}\nthe same command asks these again{but}"


def _spent(summary: Summary, cap_usd: float | None) -> str:
    if cap_usd is None:
        return f"{_money(summary.spent_usd)}, nobody is asked"
    text = f"{_money(summary.spent_usd)} / {_money(cap_usd)}"
    if summary.held_usd:
        text += f"\n{_money(summary.held_usd)} held for {summary.held_calls:,} calls that were cut off"
    if summary.unpriced_calls:
        calls = f"{summary.unpriced_calls:,} calls at their worst case: nobody said what they cost"
        text += f"\n{_money(summary.unpriced_usd)} of it for {calls}"
    return text


def _gate(report: dict[str, Any]) -> str:
    """`flows.labeling.gate_report` in lines."""
    asked, skipped = report["steps"]["ask"], report["steps"]["skip"]
    lines = [f"{report['policy']} ({report['version']})"]
    lines += [f"{count:>7,}  steps asked: {why}" for why, count in asked.items()]
    lines += [f"{count:>7,}  steps not asked: {why}" for why, count in skipped.items()]
    pairs = report["pairs"]
    if report["policy"] != "all" or pairs["asked"] < pairs["steps"]:
        lines.append(
            f"{pairs['counted']:,.0f} steps gave a pair; all would give about {pairs['estimate']:,.0f}"
            f" (95 %: {pairs['low']:,.0f} to {pairs['high']:,.0f})"
        )
    return "\n".join(lines)


def _released(made: dict[str, int], release: ReleaseOutcome) -> str:
    if made and made == release.kept:
        return "all of them"
    return _counts(release.kept) or "none"


def _indent(counter: Counter[str], word: str) -> str:
    return "".join(f"\n{count:>7,}  {word}: {printable(reason)}" for reason, count in counter.most_common())


def _release_text(release: ReleaseOutcome) -> str:
    if release.path is None:
        return release.note or "none"
    made = "written" if release.created else "unchanged since"
    return f"{release.path}\n{release.rows:,} rows, {made} version {release.version}"


def print_closing(console: "Console", rows: list[tuple[str, str]], title: str) -> None:
    """The closing table on a terminal, or as plain text where there is none."""
    from rich.box import SIMPLE
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left", show_header=False, box=SIMPLE)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for what, figures in rows:
        table.add_row(Text(printable(what)), Text(printable_lines(figures)))
    console.print(table)
