"""What a run counted, and the closing table made of it."""

from collections import Counter
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from records.printable import printable, printable_lines

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(slots=True)
class Summary:
    """Counts of a shard or of a whole run; `add` sums them. Money in USD."""

    files: int = 0
    traces: int = 0
    contexts: int = 0
    states: int = 0
    records: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    unread: Counter[str] = field(default_factory=Counter)
    flags: Counter[str] = field(default_factory=Counter)
    changes: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    matched: Counter[int] = field(default_factory=Counter)
    """How many traces each entry of the selection fits, by its place; for this process alone."""
    unmatched: list[str] = field(default_factory=list)
    """A line for each entry of the selection that fits none."""
    redactions: Counter[str] = field(default_factory=Counter)
    asked: int = 0
    not_asked: Counter[str] = field(default_factory=Counter)
    left_over: int = 0
    """Questions among those not asked that the next run asks: the cap was reached, a teacher was out."""
    calls: int = 0
    reused: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    spent_usd: float = 0.0
    held_usd: float = 0.0
    held_calls: int = 0
    verdicts: Counter[str] = field(default_factory=Counter)
    hindsight_skips: Counter[str] = field(default_factory=Counter)
    pairs: Counter[str] = field(default_factory=Counter)
    stopped: str | None = None

    def add(self, other: "Summary") -> None:
        """Add the counts of another shard; the first reason to stop stays."""
        for item in fields(self):
            mine, theirs = getattr(self, item.name), getattr(other, item.name)
            if item.name == "stopped":
                self.stopped = mine or theirs
            else:
                setattr(self, item.name, mine + theirs)

    def to_json(self) -> dict[str, Any]:
        """Plain values, counters by falling count."""
        return {
            item.name: dict(value.most_common()) if isinstance(value, Counter) else value
            for item in fields(self)
            if item.name != "matched"
            for value in [getattr(self, item.name)]
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "Summary":
        """The inverse of `to_json`."""
        made = cls()
        for item in fields(cls):
            given = value.get(item.name)
            if given is not None:
                old = getattr(made, item.name)
                setattr(made, item.name, Counter(given) if isinstance(old, Counter) else given)
        return made


@dataclass(frozen=True, slots=True)
class ReleaseOutcome:
    """Where the release lies, or why there is none."""

    path: str | None
    version: str | None
    rows: int
    created: bool
    dropped: dict[str, int]
    kept: dict[str, int]
    note: str = ""
    gate: str = ""
    """What the publish gate said, a line for people each."""


def _counts(counter: dict[str, int], most: int = 12) -> str:
    """A line a kind, the most frequent first; what does not fit is summed up, never left out."""
    items = sorted(counter.items(), key=lambda item: (-item[1], item[0]))
    lines = [f"{count:>7,}  {printable(name)}" for name, count in items[:most]]
    if rest := items[most:]:
        lines.append(f"{sum(count for _, count in rest):>7,}  of {len(rest)} more kinds")
    return "\n".join(lines)


def _money(value: float) -> str:
    return f"${value:,.4f}" if value < 100 else f"${value:,.2f}"


def closing_rows(
    summary: Summary, cap_usd: float | None, teachers: list[str], release: ReleaseOutcome
) -> list[tuple[str, str]]:
    """The closing table as (what, figures), in the order of the data flow."""
    rows = [
        ("files read", _files(summary)),
        ("traces", f"{summary.traces:,} in {summary.contexts:,} contexts"),
        ("states", f"{summary.states:,}"),
        ("records passed over", _counts(dict(summary.skipped)) or "none"),
        ("worth knowing", _counts(dict(summary.flags)) or "nothing"),
        ("redacted", _counts(dict(summary.redactions)) or "nothing found"),
        ("teachers", ", ".join(teachers) or "none: nothing was sent"),
        ("questions asked", f"{summary.asked:,}"),
        ("not asked", _counts(dict(summary.not_asked)) or "-"),
        ("calls", f"{summary.calls:,} sent, {summary.reused:,} answered from the ledger"),
        ("failed calls", _failures(summary)),
        ("spent / cap", _spent(summary, cap_usd)),
        ("votes", _counts(dict(summary.verdicts)) or "-"),
        ("no hindsight pair", _counts(dict(summary.hindsight_skips)) or "-"),
        ("pairs made", _counts(dict(summary.pairs)) or "none"),
        ("dropped", _counts(release.dropped) or "none"),
        ("pairs released", _released(dict(summary.pairs), release)),
        ("release", _release_text(release)),
    ]
    if summary.left_out:
        rows.insert(2, ("sessions left out", _counts(dict(summary.left_out))))
    if summary.unmatched:
        rows.insert(2, ("selection", "\n".join(map(printable, summary.unmatched))))
    if release.gate:
        rows.insert(-1, ("publish gate", release.gate))
    if summary.stopped:
        rows.append(("stopped", summary.stopped))
    return rows


def _files(summary: Summary) -> str:
    changes = "".join(f"\n{count:>7,}  {what}" for what, count in summary.changes.most_common())
    return f"{summary.files:,}" + changes + _indent(summary.unread, "unread")


def _failures(summary: Summary) -> str:
    text = _counts(dict(summary.failures))
    return f"{text}\nthe same command asks these again" if text else "none"


def _spent(summary: Summary, cap_usd: float | None) -> str:
    if cap_usd is None:
        return f"{_money(summary.spent_usd)}, nobody is asked"
    text = f"{_money(summary.spent_usd)} / {_money(cap_usd)}"
    if summary.held_usd:
        text += f"\n{_money(summary.held_usd)} held for {summary.held_calls:,} calls that were cut off"
    return text


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
