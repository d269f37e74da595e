"""Runs of a workspace: who they are, whether they ended, what each stage did.

A run that ended is over: the next call is a new run with a new cap. A run that was killed, or that stopped at
its cap, is taken up again under its own id, so that what it spent still counts against its cap.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from tracemill.flows.run_state.code_version import code_version
from tracemill.records.errors import WorkspaceError
from tracemill.records.storage.atomic_files import read_json_file, write_json
from tracemill.records.storage.workspace import Workspace

MANIFEST_SCHEMA = 1
RUNNING, FINISHED, AT_CAP = "running", "finished", "at cap"
DEFAULT_WORKSPACE = Path("tracemill-workspace")
"""Where none is given, in the folder a command is called in."""


def releases_beside_run_records(root: Path | None) -> Path:
    """Where the releases of a workspace lie, of the one in this folder where none is given; neither has to be
    there."""
    return (root or DEFAULT_WORKSPACE).expanduser() / "releases"


def utc_now() -> str:
    """The time as `YYYY-MM-DDTHH:MM:SSZ`."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def today() -> str:
    """The day as `YYYY-MM-DD`, UTC."""
    return datetime.now(UTC).strftime("%Y-%m-%d")


def new_run_id() -> str:
    """`<UTC time to the microsecond>Z-<8 random hex>`: no other process and no other moment has it, and the
    names of runs sort by when they began."""
    return f"{datetime.now(UTC).strftime('%Y%m%dT%H%M%S.%f')}Z-{os.urandom(4).hex()}"


@contextmanager
def sole_writer(work: Workspace) -> Iterator[None]:
    """Held for a whole run. Raises WorkspaceError where another process is running on the workspace."""
    with (work.root / ".run-lock").open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise WorkspaceError(
                f"another tracemill is running on {work.root}", "one at a time", "wait for it"
            ) from None
        yield


class StartedRun(NamedTuple):
    """A run that begins or goes on; `stopped_at_usd` is the cap at which it stopped, if it did."""

    run_id: str
    resumed: bool = False
    stopped_at_usd: float | None = None

    def closed(self, cap_usd: float | None) -> str:
        """Return why nothing is asked in it under this cap, "" where something may be."""
        if self.stopped_at_usd is None or cap_usd is None or cap_usd > self.stopped_at_usd:
            return ""
        return (
            f"run {self.run_id} stopped at its cap of ${self.stopped_at_usd:.4f} before, so nothing was "
            "asked: raise the cap to ask the rest, or begin a run with a cap of its own with --new-run"
        )


def start_run(
    work: Workspace, fingerprint: str, command: str = "run", new_run: bool = False, scheduled: bool = False
) -> StartedRun:
    """Take up the unfinished run of a command and fingerprint, or begin one; with `new_run` always begin one.
    A `scheduled` run does not go on with one that stopped at its cap: every time has a cap of its own."""
    unfinished = None if new_run else unfinished_run(work, fingerprint, command)
    if unfinished and not (scheduled and unfinished.stopped_at_usd is not None):
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
    return StartedRun(run_id)


def unfinished_run(work: Workspace, fingerprint: str, command: str) -> StartedRun | None:
    """Return the run that this command takes up, None where the last one of the fingerprint ended."""
    for run_id, record in _records(work):
        if record.get("command") != command or record.get("fingerprint") != fingerprint:
            continue
        if record.get("status") == RUNNING:
            return StartedRun(run_id, resumed=True)
        if record.get("status") == AT_CAP:
            return StartedRun(run_id, True, float(record["summary"]["cap_usd"]))
        return None
    return None


def begin_asking(work: Workspace, run_id: str, ledger_id: str) -> None:
    """Write down, before anything may be spent, which ledger says what the run spends."""
    path = work.run_dir(run_id) / "run.json"
    record = read_json_file(path)
    assert isinstance(record, dict)
    if record.get("ledger_id") != ledger_id:
        write_json(path, record | {"ledger_id": ledger_id})


def ledger_of(work: Workspace, run_id: str) -> str | None:
    """Id of the ledger that says what a run spent, None where it has asked nobody."""
    record = read_json_file(work.run_dir(run_id) / "run.json")
    return record.get("ledger_id") if isinstance(record, dict) else None


def end_run(work: Workspace, run_id: str, summary: dict[str, Any]) -> None:
    """Mark the run as ended with the figures of its closing table; one that is `at_cap` by them is taken up
    again."""
    path = work.run_dir(run_id) / "run.json"
    record = read_json_file(path)
    assert isinstance(record, dict)
    status = AT_CAP if summary.get("at_cap") else FINISHED
    record |= {"status": status, "ended_at": utc_now(), "summary": summary}
    write_json(path, record)


def last_run(work: Workspace) -> dict[str, Any] | None:
    """The record of the newest `tracemill run`, None where there was none."""
    return next((record for _, record in _records(work) if record.get("command") == "run"), None)


def _records(work: Workspace) -> Iterator[tuple[str, dict[str, Any]]]:
    """Id and record of each run, the newest first. One that cannot be read is left out: an old record
    must not stand in the way of a new run."""
    for path in sorted((work.root / "runs").glob("*/run.json"), reverse=True):
        with suppress(WorkspaceError):
            record = read_json_file(path)
            if isinstance(record, dict):
                yield path.parent.name, record


def write_manifest(
    work: Workspace, run_id: str, stage: str, content: dict[str, Any], private: bool = False
) -> Path:
    """What a stage read, wrote and counted, beside the run: `runs/<run_id>/<stage>.json`; with `private`
    readable by its owner alone."""
    path = work.run_dir(run_id) / f"{stage}.json"
    head = {"schema": MANIFEST_SCHEMA, "stage": stage, "written_at": utc_now(), "code": code_version()}
    write_json(path, head | content, private)
    return path
