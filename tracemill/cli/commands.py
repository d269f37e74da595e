"""Run the stages of each command and print what came of them."""

import json
import logging
import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tracemill.flows.record_table import record_rows
from tracemill.flows.run_state.closing_table import closing_table_rows, print_closing
from tracemill.flows.run_state.run_summary import Summary
from tracemill.flows.runtime.progress import is_progress_hidden, say_start
from tracemill.flows.short_table import closing_lines, short_rows
from tracemill.records.errors import ConfigError, error_chain
from tracemill.records.printable import printable

if TYPE_CHECKING:
    from tracemill.flows.config.run_settings import RunSettings

Verbosity = Literal["quiet", "normal", "verbose"]
AT_CAP_CODE = 4
"""Exit code of a command whose run had spent its cap before."""


def say(rows: list[tuple[str, str]], title: str, record: dict[str, Any], as_json: bool) -> None:
    """Print rows under a title, or only the record as JSON."""
    if as_json:
        sys.stdout.write(json.dumps(record) + "\n")
    if as_json or is_progress_hidden():
        return
    from rich.console import Console

    width = None if sys.stdout.isatty() else 100
    print_closing(Console(width=width, highlight=False), rows, title)


def say_run(record: dict[str, Any], settings: "RunSettings", as_json: bool, verbosity: Verbosity) -> None:
    """Print the end of a run: its table, the release's place and the next command.

    With `-q` it is only the path of the release, with `-v` the table has every figure.
    """
    if verbosity == "quiet" and not as_json:
        say_path(record["release"] and record["release"]["path"])
        return
    rows = record_rows(record) if verbosity == "verbose" else short_rows(record)
    say(rows, f"tracemill run {record['run_id']}", record, as_json)
    if not as_json:
        lines = closing_lines(record, settings.workspace, program_name())
        sys.stdout.write("".join(f"{printable(line)}\n" for line in lines))


def say_path(path: str | None) -> None:
    """Print only the path of a release, if there is one."""
    if path is not None:
        sys.stdout.write(f"{path}\n")


def program_name() -> str:
    """Return the command of this program: `tracemill`, or the path it was called by if PATH lacks it."""
    called = sys.argv[0]
    if Path(called).name != "tracemill" or shutil.which("tracemill") is not None:
        return "tracemill"
    return shlex.quote(called)


def quiet_prefect() -> None:
    """Turn off Prefect's telemetry and logs before it is imported, unless the user has set them.

    The server that a run starts would log errors that its client retries, such as a locked database.
    """
    keep_prefect_to_itself()
    os.environ.setdefault("PREFECT_LOGGING_LEVEL", "CRITICAL")
    os.environ.setdefault("PREFECT_SERVER_LOGGING_LEVEL", "CRITICAL")
    os.environ.setdefault("PREFECT_INTERNAL_LOGGING_LEVEL", "CRITICAL")
    os.environ.setdefault("PREFECT_LOGGING_TO_API_ENABLED", "false")
    for worker in ("EventsWorker", "APILogWorker"):  # outside that level; they fail where a server is ending
        logging.getLogger(worker).setLevel(logging.CRITICAL + 1)


def require_prefect_home() -> None:
    """Create the folder of Prefect's records. Raises ConfigError if it cannot be written."""
    home = Path(os.environ.get("PREFECT_HOME") or "~/.prefect").expanduser()
    try:
        home.mkdir(parents=True, exist_ok=True)
        if os.access(home, os.W_OK):
            return
        why = "not writable"
    except OSError as error:
        why = str(error.strerror)
    raise ConfigError(
        f"{home} cannot be used ({why})", "a folder for Prefect's own records", "name one in PREFECT_HOME"
    )


def keep_prefect_to_itself() -> None:
    """Turn Prefect's telemetry off before it is imported, and reach its server past any proxy."""
    os.environ.setdefault("DO_NOT_TRACK", "1")
    os.environ.setdefault("PREFECT_SERVER_ANALYTICS_ENABLED", "false")
    for name in ("NO_PROXY", "no_proxy"):  # its server is on this machine, whatever the proxy
        given = [os.environ[name]] if os.environ.get(name) else []
        os.environ[name] = ",".join([*given, "127.0.0.1", "localhost"])


def run_command(
    settings: "RunSettings",
    as_json: bool,
    yes: bool = False,
    fresh: bool = False,
    verbosity: Verbosity = "normal",
) -> None:
    """Run `tracemill run`: every stage, as a Prefect flow in this process.

    `yes` skips the confirmation, `fresh` resumes no unfinished run. Raises KeyboardInterrupt where it was
    interrupted, whatever the flow engine made of that.
    """
    say_start("checking the configuration")
    from tracemill.flows.preflight import run_preflight

    ready = run_preflight(settings)
    require_prefect_home()
    say_start("starting the run")
    quiet_prefect()
    from prefect.settings import PREFECT_API_URL, temporary_settings

    from tracemill.flows.deployment.local_server import prefect_server
    from tracemill.flows.run_flow import run_prepared_as_flow

    try:
        with prefect_server(for_one_run=True) as url, temporary_settings({PREFECT_API_URL: url}):
            record = run_prepared_as_flow(ready, yes, fresh)
    except Exception as error:
        if was_interrupted(error):
            raise KeyboardInterrupt from None
        raise
    say_run(record, settings, as_json, verbosity)
    _require_an_answer(settings, Summary.from_json(record["summary"]))
    _require_a_checkpoint(record)
    _require_budget(record)


def was_interrupted(error: BaseException | None) -> bool:
    """Return whether the error was raised while an interrupt was handled."""
    return any(isinstance(each, KeyboardInterrupt) for each in error_chain(error))


def warn_of_training(found: dict[str, Any]) -> None:
    """Print the warnings of a training on stderr."""
    for line in found.get("warnings", ()):
        sys.stderr.write(f"tracemill: {line}\n")


def plain_value(value: Any) -> str:
    """Return a value of a record for a table: counts and lists over several lines."""
    if isinstance(value, dict):
        return "\n".join(f"{count:>7,}  {printable(name)}" for name, count in value.items()) or "none"
    if isinstance(value, list):
        return "\n".join(map(printable, value))
    return f"{value:,}" if isinstance(value, int) else str(value)


def replay_command(settings: "RunSettings", as_json: bool, yes: bool = False, fresh: bool = False) -> None:
    """Run `tracemill replay`."""
    from tracemill.flows.workspace_commands import replay_workspace

    record = replay_workspace(settings, yes, new_run=fresh)
    summary = Summary.from_json(record["summary"])
    keep = {
        "warnings",
        "skipped sessions",
        "selection",
        "steps",
        "teachers",
        "questions asked",
        "skipped questions",
        "calls",
        "failed calls",
        "spent / cap",
        "stopped",
    }
    rows = closing_table_rows(summary, record["cap_usd"], record["teachers"], None, record["simulated"])
    say([row for row in rows if row[0] in keep], "tracemill replay", record, as_json)
    _require_an_answer(settings, summary)
    _require_budget(record)


def _require_an_answer(settings: "RunSettings", summary: Summary) -> None:
    """Exit with 1 if a teacher was given up, or questions were sent and none was answered.

    This lets a schedule notice an outage. Questions that failed both in an earlier run and now do not count
    if every other question of the run has its answer.
    """
    if summary.outages:
        from tracemill.teachers.replay.breaker import list_outages

        said = list_outages(summary.outages)
        sys.stderr.write(f"tracemill: teachers given up; the same command asks them again: {said}\n")
        sys.exit(1)
    if not summary.calls or not summary.failed_now or summary.answered_now:
        return
    bare = sum(summary.failures.values()) >= summary.asked * settings.replay.samples
    if summary.failed_first or summary.left_over or bare:
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in summary.failed_now.most_common())
        why = f": {summary.stopped}" if summary.stopped else ""
        sys.stderr.write(f"tracemill: teachers were asked and none answered ({kinds}){why}\n")
        sys.exit(1)


def _require_budget(record: dict[str, Any]) -> None:
    """Exit with 4 if the run had stopped at its cap before, so that nothing was asked."""
    if record["asked_nothing"]:
        sys.stderr.write(f"tracemill: {record['summary']['stopped']}\n")
        sys.exit(AT_CAP_CODE)


def _require_a_checkpoint(record: dict[str, Any]) -> None:
    """Print the error of the training after a release; exit with 1 if it failed."""
    training = record.get("training", {})
    warn_of_training(training)
    if failed := training.get("failed"):
        path = record["release"]["path"]
        sys.stderr.write(
            f"tracemill: training failed, the release {path} stays: {printable(failed, 2_000)}\n"
        )
        sys.exit(1)
