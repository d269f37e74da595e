"""Record the runs of a workspace: ids, whether they ended, and a manifest of each stage.

A run that asked all its questions is over: the next call is a new run with a new cap. A run that was killed,
or that stopped before, is taken up again under its own id, so that what it spent counts against its cap.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from tracemill.flows.run_state.code_version import code_version
from tracemill.records.errors import PrivacyError, TracemillError, WorkspaceBusyError, WorkspaceError
from tracemill.records.storage.atomic_files import read_json_file, write_json
from tracemill.records.storage.working_copy import RUN_LOCK
from tracemill.records.storage.workspace import Workspace

MANIFEST_SCHEMA = 1
RUNNING, FINISHED, AT_CAP, STOPPED = "running", "finished", "at cap", "stopped"
HINT_ROWS = Path("trainings") / "hints"
"""Folder of a workspace with the hint rows of trainings that are not finished."""
STATE_ROWS = Path("trainings") / "states"
"""The same with the states that teachers answered in."""
DEFAULT_WORKSPACE = Path("tracemill-workspace")
"""Where none is given, in the folder a command is called in."""


def releases_beside_run_records(root: Path | None) -> Path:
    """Return the folder of a workspace's releases.

    Without a workspace it is the one in this folder; neither need exist.
    """
    return (root or DEFAULT_WORKSPACE).expanduser() / "releases"


def read_workspace(root: Path | None) -> Workspace:
    """Open a workspace, or the one in this folder, only to read it. Raises WorkspaceError without one."""
    return Workspace.open(root or DEFAULT_WORKSPACE, create=False, writes=False)


def utc_now() -> str:
    """Return the time as `YYYY-MM-DDTHH:MM:SSZ`."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def today() -> str:
    """Return the day as `YYYY-MM-DD`, UTC."""
    return datetime.now(UTC).strftime("%Y-%m-%d")


def new_run_id() -> str:
    """Return `<UTC time to the microsecond>Z-<8 random hex>`.

    It is unique, and names of runs sort by their start.
    """
    return f"{datetime.now(UTC).strftime('%Y%m%dT%H%M%S.%f')}Z-{os.urandom(4).hex()}"


@contextmanager
def sole_writer(work: Workspace) -> Iterator[None]:
    """Hold the workspace's lock for a whole run; at its end a working copy is uploaded to its URL.

    Raises WorkspaceBusyError if another process, on any machine, is running on the workspace.
    """
    with (work.root / RUN_LOCK).open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise WorkspaceBusyError(
                f"another tracemill is running on {work.root}", "one at a time", "wait for it"
            ) from None
        if work.copy is None:
            yield
            return
        with work.copy.hold("run", wait=False):
            work.copy.require_unchanged()
            try:
                yield
            finally:
                work.copy.push()


class StartedRun(NamedTuple):
    """A new or resumed run.

    `stopped` is True if it left questions unanswered, `stopped_at_usd` is the cap if that was the reason.
    """

    run_id: str
    resumed: bool = False
    stopped_at_usd: float | None = None
    stopped: bool = False

    def closed(self, cap_usd: float | None) -> str:
        """Return why the run asks nothing under this cap, "" if it may ask."""
        if self.stopped_at_usd is None or cap_usd is None or cap_usd > self.stopped_at_usd:
            return ""
        return (
            f"run {self.run_id} stopped at its cap of ${self.stopped_at_usd:.4f} before, so nothing was "
            "asked: raise the cap to ask the rest, or begin a run with a cap of its own with --fresh"
        )


def start_run(
    work: Workspace, fingerprint: str, command: str = "run", new_run: bool = False, scheduled: bool = False
) -> StartedRun:
    """Resume the unfinished run of a command and fingerprint, or start one.

    With `new_run` one is always started. A `scheduled` run does not resume an earlier one: each scheduled
    time has its own cap.
    """
    unfinished = None if new_run else unfinished_run(work, fingerprint, command)
    if unfinished and not (scheduled and unfinished.stopped):
        record = _record_of(work, unfinished.run_id)
        record.pop("error", None)
        _write_record(work, unfinished.run_id, record | {"resumed_at": utc_now()}, put=False)
        return unfinished
    run_id = new_run_id()
    write_json(
        work.run_dir(run_id) / "run.json",
        {
            "schema": MANIFEST_SCHEMA,
            "run_id": run_id,
            "command": command,
            "fingerprint": fingerprint,
            "status": RUNNING,
            "started_at": utc_now(),
        },
    )
    work.push()
    return StartedRun(run_id)


def unfinished_run(work: Workspace, fingerprint: str, command: str) -> StartedRun | None:
    """Return the run that this command resumes, None if the last one of the fingerprint ended."""
    for run_id, record in read_run_records(work):
        if record.get("command") != command or record.get("fingerprint") != fingerprint:
            continue
        if record.get("status") == RUNNING:
            return StartedRun(run_id, resumed=True)
        if record.get("status") == AT_CAP:
            return StartedRun(run_id, True, float(record["summary"]["cap_usd"]), stopped=True)
        if record.get("status") == STOPPED:
            return StartedRun(run_id, True, stopped=True)
        return None
    return None


def begin_asking(work: Workspace, run_id: str, ledger_id: str) -> None:
    """Record, before anything may be spent, the ledger that holds the run's spending."""
    record = _record_of(work, run_id)
    if record.get("ledger_id") != ledger_id:
        _write_record(work, run_id, record | {"ledger_id": ledger_id})


def ledger_of(work: Workspace, run_id: str) -> str | None:
    """Return the id of the ledger with a run's spending, None if the run has not asked."""
    record = read_json_file(work.run_dir(run_id) / "run.json")
    return record.get("ledger_id") if isinstance(record, dict) else None


@contextmanager
def started_run(
    work: Workspace, fingerprint: str, command: str = "run", new_run: bool = False, scheduled: bool = False
) -> Iterator[StartedRun]:
    """Start a run as `start_run`; an error that ends it is written into its record for `tracemill status`.

    That is the first line alone: further ones may hold excerpts of sessions. The run stays unfinished, so
    that the same command takes it up.
    """
    run = start_run(work, fingerprint, command, new_run, scheduled)
    try:
        yield run
    except TracemillError as error:
        said = {
            "type": type(error).__name__,
            "refused": isinstance(error, PrivacyError),
            "message": str(error).splitlines()[0].rstrip(":"),
        }
        with suppress(TracemillError, OSError):
            _write_record(work, run.run_id, _record_of(work, run.run_id) | {"error": said}, put=False)
        raise


def end_run(work: Workspace, run_id: str, summary: dict[str, Any]) -> None:
    """Mark the run as ended with the figures of its closing table.

    A run with `at_cap` or `unfinished` among them can be resumed.
    """
    status = AT_CAP if summary.get("at_cap") else STOPPED if summary.get("unfinished") else FINISHED
    ended = {"status": status, "ended_at": utc_now(), "summary": summary}
    _write_record(work, run_id, _record_of(work, run_id) | ended)


def add_to_record(work: Workspace, run_id: str, **parts: Any) -> None:
    """Add later results, such as its release, to the record of an ended run."""
    record = _record_of(work, run_id)
    _write_record(work, run_id, record | {"summary": record["summary"] | parts}, put=False)


def _record_of(work: Workspace, run_id: str) -> dict[str, Any]:
    record = read_json_file(path := work.run_dir(run_id) / "run.json")
    if not isinstance(record, dict):
        raise WorkspaceError(f"{path} is not the record of a run", "a JSON object")
    return record


def _write_record(work: Workspace, run_id: str, record: dict[str, Any], put: bool = True) -> None:
    """Write the record of a run; with `put` it is uploaded at once to the URL of a working copy."""
    write_json(work.run_dir(run_id) / "run.json", record)
    if put and work.copy is not None:
        work.copy.put(f"runs/{run_id}/run.json")


def run_number(work: Workspace, day: str) -> int:
    """Return the number of `tracemill run` commands and harvests on a day, `YYYY-MM-DD` in UTC."""
    return sum(
        record.get("command") == "run" and run_id.startswith(day.replace("-", ""))
        for run_id, record in read_run_records(work)
    )


def last_error(work: Workspace) -> tuple[str, dict[str, Any]] | None:
    """Return the command and error of the newest run if an error ended it, as `tracemill run ID`.

    None if it succeeded or is still running.
    """
    for run_id, record in read_run_records(work):
        error = record.get("error")
        if not isinstance(error, dict):
            return None
        return f"{record.get('command', 'run')} {run_id}", error
    return None


def last_run(work: Workspace) -> dict[str, Any] | None:
    """Return the record of the newest `tracemill run`, None if there was none."""
    return next((record for _, record in read_run_records(work) if record.get("command") == "run"), None)


def read_run_records(work: Workspace) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield id and record of each run, the newest first.

    Unreadable records are skipped: an old record must not block a new run.
    """
    for path in sorted((work.root / "runs").glob("*/run.json"), reverse=True):
        with suppress(WorkspaceError):
            record = read_json_file(path)
            if isinstance(record, dict):
                yield path.parent.name, record


def write_manifest(
    work: Workspace, run_id: str, stage: str, content: dict[str, Any], private: bool = False
) -> Path:
    """Write the input, output and counts of a stage to `runs/<run_id>/<stage>.json`.

    With `private` the file is readable by its owner alone.
    """
    path = work.run_dir(run_id) / f"{stage}.json"
    head = {"schema": MANIFEST_SCHEMA, "stage": stage, "written_at": utc_now(), "code": code_version()}
    write_json(path, head | content, private)
    return path
