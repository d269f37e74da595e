"""Build what a run prints at its end: a short table in plain words, and what to do next.

What was made comes first, with what stopped it; then what its use depends on (terms, privacy), what it cost
and was made of, and what is missing and why. All figures are in `record_table.record_rows`.
"""

import shlex
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tracemill.flows.record_table import record_rows
from tracemill.flows.run_state.closing_table import count_lines
from tracemill.flows.run_state.closing_words import count_deciding, in_plain_words
from tracemill.flows.run_state.run_summary import ReleaseOutcome, Summary

MOST_LINES = 25
"""Lines of the table, its title among them, where nothing went wrong."""
FEWEST_HELD_OUT = 20
"""Rows of the split `validation` from which on a difference between two models can show."""
_MOST_REASONS = 4
_KINDS = {
    "teachers": "teachers preferred another action",
    "hindsight": "self-repairs: a failed action, and what fixed it",
    "user": "edits that the user rejected",
    "revised_edit": "edits that were revised after a failed check",
    "repeated_read": "repeated reads",
    "siblings": "runs of one task: one solved it, one did not",
    "judge": "disputes that the judge settled",
    "verified": "disputes that execution settled",
}
"""What a label source is called in the table."""
_WHERE_NEEDED = (
    "selection",
    "skipped sessions",
    "failed calls",
    "label warnings",
    "stale answers",
    "stopped",
)
_ON_WARNINGS = "add a teacher of another model family, or raise `threshold` in [agreement]"
_DISPUTED = {"too_few_votes", "one_family"}


def short_rows(record: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the short table of a run's record as (name, figures), empty rows left out."""
    summary = Summary.from_json(record["summary"])
    release = ReleaseOutcome(**record["release"]) if record["release"] else None
    full = dict(record_rows(record))
    needed = {name: full.get(name, "") for name in _WHERE_NEEDED}
    if needed["failed calls"] == "none":
        needed["failed calls"] = ""
    if needed["label warnings"]:
        needed["label warnings"] += f"\n{_ON_WARNINGS}"
    cost = full["spent / cap"].replace(" / ", " of at most ", 1) if record["teachers"] else "nothing"
    rows = [
        *(_made(summary, release) if release else ()),
        ("what to change", what_to_change(record)),
        *((name, needed[name]) for name in ("stopped", "failed calls")),
        *((name, full.get(name, "")) for name in ("hub", "training", "decision")),
        ("terms", _terms(release) if release else ""),
        ("privacy check", release.gate if release else ""),
        ("redacted", _first_lines(full["redacted"])),
        ("cost", cost),
        ("asked", _asked(summary, record["teachers"])),
        ("read", _read(summary)),
        *((name, needed[name]) for name in ("selection", "skipped sessions")),
        ("no pair", _no_pair(summary)),
        ("dropped", count_lines(release.dropped, _MOST_REASONS) if release else ""),
        ("validation", _few_held_out(release) if release else ""),
        *((name, needed[name]) for name in ("label warnings", "stale answers")),
        ("not read", _not_read(summary)),
        ("warnings", _warnings(summary.flags)),
    ]
    return [(name, text) for name, text in rows if text]


def closing_lines(record: dict[str, Any], workspace: Path, program: str = "tracemill") -> list[str]:
    """Return the lines below the table: the release's place, how to load it, and the next command.

    `program` is the beginning of the next command.
    """
    release = ReleaseOutcome(**record["release"]) if record["release"] else None
    lines: list[str] = []
    if release is not None and release.path is not None:
        config = "dpo" if release.rows else next(iter(release.labels), "dpo")
        lines += [f"dataset  {release.path}", f"         load_dataset({release.path!r}, {config!r})"]
        if (report := Path(release.path) / "report.html").is_file():
            lines.append(f"report   {report}")
    lines.append(f"next     {program} {_next(record, workspace, release)}")
    if not record["teachers"] and release is not None and release.rows:
        lines.append(f"then     {program} {_estimate(shlex.quote(str(workspace)))}")
    return lines


def _next(record: dict[str, Any], workspace: Path, release: ReleaseOutcome | None) -> str:
    place = shlex.quote(str(workspace))
    if release is not None and release.rows:
        return f"status -w {place} --pairs 3"
    if record["teachers"] or not record["summary"]["states"]:
        return f"status -w {place}"
    return _estimate(place)


def _estimate(place: str) -> str:
    return f"estimate --preset open --max-usd 10 -w {place}   # what teachers would cost; asks nobody"


def _made(summary: Summary, release: ReleaseOutcome) -> list[tuple[str, str]]:
    if release.path is None:
        return [("made", f"no release: {release.note or 'no pair was found'}")]
    labels = sum(release.labels.values())
    said = f"{release.rows:,} {'pair' if release.rows == 1 else 'pairs'}"
    said += f" and {labels:,} labelled actions" if labels else ""
    new = (
        f"version {release.version}" if release.created else f"nothing new: version {release.version} stands"
    )
    sources: Counter[str] = Counter()
    for kind, count in release.kept.items():
        source = kind.partition(":")[0]
        sources[_KINDS.get(source, source)] += count
    lines = [f"{said}, {new}", count_lines(dict(sources)), release.note]
    if len(release.splits) > 1:
        lines.insert(1, ", ".join(f"{count:,} {name}" for name, count in release.splits.items()))
    rows = [("made", "\n".join(filter(None, lines)))]
    if release.kept:
        either, _ = count_deciding(release.kept)
        rows.append(("deciding pairs", f"{either:,} of them: a side edits, runs tests or finishes"))
    return rows


def _few_held_out(release: ReleaseOutcome) -> str:
    """Return advice if the held-out split is too small to measure a model on, else ""."""
    count = release.splits.get("validation", 0)
    if not 0 < count < FEWEST_HELD_OUT:
        return ""
    rows = "row is" if count == 1 else "rows are"
    return f"{count} {rows} too few to measure on: read more sessions, or raise `validation` in [release]"


def _read(summary: Summary) -> str:
    files = f"of {summary.files:,} files" if summary.files else "that were read before"
    read = f"{summary.states:,} steps in {summary.traces:,} sessions {files}"
    if len(summary.sources) < 2:
        return read
    sources = sorted(summary.sources.items(), key=lambda item: (-item[1], item[0]))
    kinds = [f"{count:,} {name}" for name, count in sources[:_MOST_REASONS]]
    more = "" if len(kinds) == len(sources) else ", ..."
    return f"{read} ({', '.join(kinds)}{more})"


def _asked(summary: Summary, teachers: list[str]) -> str:
    if not teachers:
        return "nobody: nothing was sent"
    left = sum(summary.not_asked.values())
    cached = f", {summary.reused:,} of them answered before" if summary.reused else ""
    said = f"{summary.asked:,} questions to {len(teachers)} teachers{cached}"
    return f"{said}; {left:,} were not needed" if left else said


def _no_pair(summary: Summary) -> str:
    reasons = Counter(in_plain_words({k: n for k, n in summary.verdicts.items() if k != "pair"}))
    if repairs := sum(summary.hindsight_skips.values()):
        reasons["failed actions without a fix to learn from"] += repairs
    return count_lines(dict(reasons), _MOST_REASONS)


def _terms(release: ReleaseOutcome) -> str:
    count, rows = sum(release.terms.values()), release.all_rows
    return f"vendors' terms restrict training on {count:,} of {rows:,} rows: see the card" if count else ""


def _warnings(flags: Counter[str]) -> str:
    return f"{flags.total():,} on the files that were read (-v lists them)" if flags else ""


def _not_read(summary: Summary) -> str:
    records = summary.skipped.total() + summary.unknown.total()
    files = summary.unread.total()
    parts = [f"{count:,} {name}" for count, name in ((files, "files"), (records, "records")) if count]
    return f"{' and '.join(parts)} (-v says why)" if parts else ""


def _first_lines(text: str) -> str:
    lines = text.splitlines()
    more = [f"{len(lines) - _MOST_REASONS} more kinds (-v lists them)"] if len(lines) > _MOST_REASONS else []
    return "\n".join([*lines[:_MOST_REASONS], *more])


def what_to_change(record: dict[str, Any]) -> str:
    """Return an option or setting to change if a run gave no rows, else ""."""
    release = record["release"]
    if release is None or release["path"] is not None:
        return ""
    summary = Summary.from_json(record["summary"])
    if not summary.states:
        return _no_session(summary.left_out)
    if summary.pairs or release["siblings"]:
        return ""  # the reason above names the operator and its setting
    if not record["teachers"]:
        return (
            "no failed action was fixed, and nobody was asked: `--preset open --max-usd 10` asks teachers,"
            " as do `[[teachers]]` in a configuration"
        )
    if sum(summary.failures.values()) >= summary.asked:
        return "no teacher answered: `tracemill doctor --live` tries each of them once"
    return _no_agreement(summary.verdicts)


def _no_session(left_out: Mapping[str, int]) -> str:
    if left_out:
        return (
            "every session was left out: see `skipped sessions`; `--min-age 0` takes those that were just"
            " written to, `--project`, `--since` and `--until` choose"
        )
    return "no session was found: give a folder of sessions, such as `--claude-code ~/.claude/projects`"


def _no_agreement(verdicts: Mapping[str, int]) -> str:
    most = max(verdicts, key=lambda name: verdicts[name], default="")
    if most in _DISPUTED:
        return (
            "too few votes: lower `threshold` or `min_families` of `[agreement]`, or add a teacher of"
            " another model family"
        )
    if most == "agrees_with_student":
        return "the teachers mostly do what the agent did: read sessions of a weaker agent, or more of them"
    return "the teachers rarely agree: add a teacher, or a `judge` that settles disputes"
