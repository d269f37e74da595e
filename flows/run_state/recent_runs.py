"""Say what the last runs of a workspace came to, from their own records."""

import fcntl
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from tracemill.flows.run_state.run_records import AT_CAP, RUNNING, STOPPED, read_run_records
from tracemill.records.printable import printable
from tracemill.records.storage.workspace import Workspace

if TYPE_CHECKING:
    from rich.console import Console

_HARVESTS = frozenset({"run", "harvest"})
_COLUMNS = ("began", "took", "new traces", "pairs", "USD", "release", "ended")


@dataclass(frozen=True, slots=True)
class RecentRun:
    """A run that read and asked: `new_traces` more than the previous run, all `pairs` that it made.

    The figures of an unfinished run are None.
    """

    run_id: str
    started_at: str
    """`YYYY-MM-DDTHH:MM:SSZ`."""
    seconds: float | None
    """From its start, or from where it was resumed, to its end."""
    new_traces: int | None
    pairs: int | None
    spent_usd: float | None
    release: str
    """The version that was written, else why none was."""
    ended: str


def recent_runs(work: Workspace, most: int) -> list[RecentRun]:
    """Return the last `most` runs, the newest first."""
    if most <= 0:
        return []
    harvests, written = _read(work, most)
    return [
        _describe(work, record, before, written.get(record["run_id"], ""))
        for record, before in pairwise([*harvests, None])
        if record is not None
    ][:most]


def _read(work: Workspace, most: int) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Return the harvests, one more than `most`, and the versions that later commands wrote."""
    harvests: list[dict[str, Any]] = []
    written: dict[str, str] = {}
    later = ""
    for run_id, record in read_run_records(work):
        if record.get("command") == "release":
            later = later or str((record.get("summary") or {}).get("version") or "")
        if record.get("command") in _HARVESTS:
            harvests.append({**record, "run_id": run_id})
            written[run_id], later = later, ""
        if len(harvests) > most:
            break
    return harvests, written


def _describe(
    work: Workspace, record: dict[str, Any], before: dict[str, Any] | None, written: str
) -> RecentRun:
    figures = record.get("summary") or {}
    counts = figures.get("summary") or {}
    earlier = ((before or {}).get("summary") or {}).get("summary") or {}
    began = _time(record.get("resumed_at")) or _time(record.get("started_at"))
    ended = _time(record.get("ended_at"))
    return RecentRun(
        run_id=record["run_id"],
        started_at=str(record.get("started_at", "")),
        seconds=(ended - began).total_seconds() if began and ended else None,
        new_traces=max(0, counts.get("traces", 0) - earlier.get("traces", 0)) if counts else None,
        pairs=sum((counts.get("pairs") or {}).values()) if counts else None,
        spent_usd=float(counts.get("spent_usd", 0.0)) if counts else None,
        release=_release(figures.get("release")) or written or "none",
        ended=_ended(work, record, counts, figures.get("training")),
    )


def _time(text: object) -> datetime | None:
    with suppress(TypeError, ValueError):
        return datetime.fromisoformat(str(text))
    return None


def _release(release: Any) -> str:
    """Return the version that a run wrote, `unchanged`, or "" if its record has none."""
    if not isinstance(release, dict) or not release.get("version"):
        return ""
    return str(release["version"]) if release.get("created") else "unchanged"


def _ended(work: Workspace, record: dict[str, Any], counts: dict[str, Any], training: Any) -> str:
    """Return the end of a run in words, with its faults."""
    status = record.get("status")
    if status == RUNNING:
        if isinstance(error := record.get("error"), dict):
            return "refused" if error.get("refused") else "stopped by an error"
        return "running" if is_locked(work) else "interrupted: the next run goes on with it"
    said = {AT_CAP: "at its cap", STOPPED: "stopped early"}.get(str(status), "finished")
    if outages := counts.get("outages"):
        said += f", {len(outages)} of the teachers given up"
    if isinstance(training, dict) and training.get("failed"):
        said += ", training failed"
    return said


def is_locked(work: Workspace) -> bool:
    """Return whether a process is running on the workspace."""
    try:
        with (work.root / ".run-lock").open("rb") as handle:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def print_recent_runs(console: "Console", runs: Sequence[RecentRun]) -> None:
    """Print a line for each run, the newest first."""
    from rich.box import SIMPLE
    from rich.table import Table
    from rich.text import Text

    table = Table(title="last runs", title_justify="left", box=SIMPLE)
    for name in _COLUMNS:
        table.add_column(name, justify="right" if name in _COLUMNS[1:5] else "left", overflow="fold")
    for run in runs:
        when = run.started_at.replace("T", " ")[:16]
        usd = "" if run.spent_usd is None else f"{run.spent_usd:,.4f}"
        figures = (_took(run.seconds), _count(run.new_traces), _count(run.pairs), usd)
        table.add_row(*(Text(printable(each)) for each in (when, *figures, run.release, run.ended)))
    console.print(table)


def _count(number: int | None) -> str:
    return "" if number is None else f"{number:,}"


def _took(seconds: float | None) -> str:
    if seconds is None:
        return ""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"
