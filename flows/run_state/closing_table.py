"""Build the closing table of a run."""

import re
from collections import Counter
from collections.abc import Mapping
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from tracemill.flows.run_state.closing_words import count_deciding, in_plain_words
from tracemill.flows.run_state.run_summary import ReleaseOutcome, Summary
from tracemill.flows.run_state.stale_labels import stale_labels_text
from tracemill.records.printable import printable, printable_lines

if TYPE_CHECKING:
    from rich.console import Console

_MADE_UP_COST = {"all": " (simulated)", "some": " (partly simulated)"}
_COUNT = re.compile(r" *[\d,]+  ")
_STACKED_BELOW, _FEWEST_COLUMNS = 60, 16


def count_lines(counter: dict[str, int], most: int = 12) -> str:
    """Return a line per kind, the most frequent first; the last line sums up what does not fit."""
    items = sorted(counter.items(), key=lambda item: (-item[1], item[0]))
    lines = [f"{count:>7,}  {printable(name)}" for name, count in items[:most]]
    if rest := items[most:]:
        lines.append(f"{sum(count for _, count in rest):>7,}  others ({len(rest)} kinds)")
    return "\n".join(lines)


def _money(value: float) -> str:
    return f"${value:,.4f}" if value < 100 else f"${value:,.2f}"


def closing_table_rows(
    summary: Summary,
    cap_usd: float | None,
    teachers: list[str],
    release: ReleaseOutcome | None,
    simulated: str = "none",
) -> list[tuple[str, str]]:
    """Return the closing table as (name, figures), in pipeline order, empty rows left out.

    `release` is None if the run makes none. `simulated` says whether `all`, `some` or `none` of the
    teachers are simulated, so that their cost is too.
    """
    made = {**summary.pairs, **(release.siblings if release else {})}
    rows = [
        *_read_rows(summary),
        *_asked_rows(summary, cap_usd, teachers, simulated),
        *_pair_rows(summary, made, release.no_sibling if release else {}),
        *(_released_rows(made, release) if release else ()),
        *(_release_rows(release) if release else ()),
        ("stopped", summary.stopped or ""),
    ]
    return [(what, figures) for what, figures in rows if figures]


def _read_rows(summary: Summary) -> list[tuple[str, str]]:
    return [
        ("files read", _files(summary)),
        ("traces", _traces(summary)),
        ("selection", "\n".join(map(printable, summary.unmatched))),
        ("skipped sessions", count_lines(dict(summary.left_out))),
        ("steps", f"{summary.states:,} (points where a model was asked what to do next)"),
        ("skipped records", count_lines(dict(summary.skipped)) or "none"),
        ("unknown kinds", count_lines(dict(summary.unknown))),
        ("warnings", count_lines(dict(summary.flags)) or "none"),
        ("redacted", count_lines(dict(summary.redactions)) or "nothing found"),
    ]


def _asked_rows(
    summary: Summary, cap_usd: float | None, teachers: list[str], simulated: str
) -> list[tuple[str, str]]:
    return [
        ("teachers", ", ".join(teachers) or "none: nothing was sent"),
        ("questions asked", _asked(summary)),
        ("skipped questions", count_lines(in_plain_words(summary.not_asked)) or "none"),
        ("step selection", _step_selection(summary.gate) if summary.gate else ""),
        ("judge", summary.judge),
        ("calls", f"{summary.calls:,} sent, {summary.reused:,} cached"),
        ("failed calls", _failures(summary)),
        ("spent / cap", _spent(summary, cap_usd, simulated)),
    ]


def _pair_rows(
    summary: Summary, made: dict[str, int], no_sibling: Mapping[str, int]
) -> list[tuple[str, str]]:
    return [
        ("votes", count_lines(in_plain_words(summary.verdicts)) or "none"),
        (
            "self-repairs not used",
            count_lines(summary.hindsight_skips) or "none",
        ),
        ("other pairs not made", count_lines(dict(summary.pair_skips))),
        ("sibling runs not used", count_lines(dict(no_sibling))),
        ("pairs made", count_lines(in_plain_words(made)) or "none"),
    ]


def _released_rows(made: dict[str, int], release: ReleaseOutcome) -> list[tuple[str, str]]:
    return [
        ("dropped", count_lines(release.dropped) or "none"),
        ("pairs released", _released(made, release)),
        ("deciding pairs", _deciding(release.kept)),
        ("labels released", count_lines(release.labels)),
        ("labels not released", count_lines(release.labels_dropped)),
        ("label warnings", "\n".join(map(printable, release.warnings))),
        ("terms", _terms(release)),
        ("splits", "\n".join(f"{count:>7,}  {name}" for name, count in release.splits.items())),
    ]


def _terms(release: ReleaseOutcome) -> str:
    terms = release.terms.items()
    return "\n".join(f"{printable(said)} ({count:,} of {release.all_rows:,} rows)" for said, count in terms)


def _release_rows(release: ReleaseOutcome) -> list[tuple[str, str]]:
    """Return the rows on the release; its place comes last: the Hub, or a local folder."""
    here, gate = ("release", _release_text(release)), ("privacy check", release.gate)
    newer = ("stale answers", stale_labels_text(release.newer_answers))
    return [newer, here, gate, ("hub", release.pushed)] if release.pushed else [newer, gate, here]


def _traces(summary: Summary) -> str:
    sources = count_lines(dict(summary.sources)) if len(summary.sources) > 1 else ""
    return "\n".join(filter(None, (f"{summary.traces:,} in {summary.contexts:,} contexts", sources)))


def _files(summary: Summary) -> str:
    changes = "".join(f"\n{count:>7,}  {what}" for what, count in summary.changes.most_common())
    return f"{summary.files:,}" + changes + _indent(summary.unread, "unread")


def _asked(summary: Summary) -> str:
    if not summary.explored_left:
        return f"{summary.asked:,}"
    left = f"{summary.explored_left:,} of {summary.explored:,} for calibration not asked yet"
    return f"{summary.asked:,}\n{left}"


def _failures(summary: Summary) -> str:
    text = count_lines(dict(summary.failures))
    if not text:
        return "none"
    from tracemill.records.reply import FINAL_FAILURES

    final = sorted(FINAL_FAILURES & summary.failures.keys())
    if len(final) == len(summary.failures):
        return f"{text}\nkept: the same requests would fail again"
    but = f", but not {' and '.join(final)}" if final else ""
    return f"{text}\nthe same command asks these again{but}"


def _spent(summary: Summary, cap_usd: float | None, simulated: str) -> str:
    if cap_usd is None:
        return f"{_money(summary.spent_usd)}, no teachers"
    text = f"{_money(summary.spent_usd)} / {_money(cap_usd)}{_MADE_UP_COST.get(simulated, '')}"
    if summary.held_usd:
        text += f"\n{_money(summary.held_usd)} held for {summary.held_calls:,} interrupted calls"
    if summary.unpriced_calls:
        calls = f"{summary.unpriced_calls:,} calls at their worst case: the provider stated no cost"
        text += f"\n{_money(summary.unpriced_usd)} of it for {calls}"
    return text


def _step_selection(report: dict[str, Any]) -> str:
    """Format `flows.labeling.gate_report` as lines."""
    lines = ["all"] if report["share"] >= 1 else [f"{report['share']:.0%} of the full cost"]
    for what, counted in (("asked", report["steps"]["ask"]), ("not asked", report["steps"]["skip"])):
        for why, count in in_plain_words(counted).items():
            lines.append(f"{count:>7,}  steps {what}: {why}")
    pairs = report["pairs"]
    if report["share"] < 1 or pairs["asked"] < pairs["steps"]:
        lines.append(
            f"{pairs['counted']:,.0f} steps gave a pair; all would give about {pairs['estimate']:,.0f}"
            f" (95 %: {pairs['low']:,.0f} to {pairs['high']:,.0f})"
        )
    return "\n".join(lines)


def _released(made: dict[str, int], release: ReleaseOutcome) -> str:
    if made and made == release.kept:
        return "all"
    return count_lines(in_plain_words(release.kept)) or "none"


def _deciding(kept: dict[str, int]) -> str:
    if not kept:
        return ""
    either, chosen = count_deciding(kept)
    pairs = sum(kept.values())
    return f"{either:,} of {pairs:,} (a side edits, tests or finishes; the chosen one: {chosen:,})"


def _indent(counter: Counter[str], word: str) -> str:
    return "".join(f"\n{count:>7,}  {word}: {printable(reason)}" for reason, count in counter.most_common())


def _release_text(release: ReleaseOutcome) -> str:
    if release.path is None:
        return release.note or "none"
    rows = f"{release.rows:,} {'row' if release.rows == 1 else 'rows'}"
    made = "wrote" if release.created else "unchanged since"
    note = f"\n{release.note}" if release.note else ""
    return f"{release.path}\n{made} version {release.version} ({rows}){note}"


def print_closing(console: "Console", rows: list[tuple[str, str]], title: str) -> None:
    """Print the closing table; wrapped lines keep the indent of their own line.

    Below a width of 60 columns the figures are below their name.
    """
    from rich.text import Text

    names = [printable(name) for name, _ in rows]
    stacked = console.width < _STACKED_BELOW
    left = 4 if stacked else max(map(len, names), default=0) + 5
    console.print(Text(title, style="italic"), soft_wrap=True)
    console.print()
    for name, (_, figures) in zip(names, rows, strict=True):
        lines = _wrapped(printable_lines(figures), max(console.width - left - 2, _FEWEST_COLUMNS))
        head = Text("  ").append(name, style="bold")
        if stacked:
            console.print(head, soft_wrap=True)
        else:
            head.append(" " * (left - 2 - len(name)) + (lines.pop(0) if lines else ""))
            console.print(head, soft_wrap=True)
        for line in lines:
            console.print(Text(" " * left + line), soft_wrap=True)
    console.print()


def _wrapped(text: str, width: int) -> list[str]:
    """Return the lines of a text, each at most `width` wide if its words allow it.

    Continuation lines are indented to the words after a count.
    """
    wrapped: list[str] = []
    for line in text.splitlines():
        begin = _COUNT.match(line)
        indent = " " * (len(begin[0]) if begin else 2)
        wrapped += wrap(line, width, subsequent_indent=indent, break_on_hyphens=False, drop_whitespace=True)
    return wrapped
