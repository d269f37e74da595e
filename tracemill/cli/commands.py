"""Run the stages of each command and print what came of them."""

import json
import logging
import os
import shlex
import shutil
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tracemill.flows.record_table import record_rows
from tracemill.flows.run_state.closing_table import closing_table_rows, count_lines, print_closing
from tracemill.flows.run_state.closing_words import in_plain_words
from tracemill.flows.run_state.run_records import DEFAULT_WORKSPACE
from tracemill.flows.run_state.run_summary import Summary
from tracemill.flows.run_state.stale_labels import stale_labels_text
from tracemill.flows.runtime.progress import is_progress_hidden, say_start
from tracemill.flows.short_table import closing_lines, short_rows
from tracemill.records.errors import ConfigError
from tracemill.records.printable import printable
from tracemill.records.storage.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracemill.flows.config.run_settings import RunSettings
    from tracemill.flows.ingest.ingest_order import IngestOptions

Verbosity = Literal["quiet", "normal", "verbose"]
_INGEST_ROWS = {
    "states": "steps",
    "left_out": "skipped sessions",
    "skipped": "skipped records",
    "flags": "warnings",
    "redactions": "redacted",
    "unread": "files not read",
}
"""Counts of `tracemill ingest` that have other names in the closing table."""
_NAMED_UNKNOWN = 3
"""Number of unknown files that `tracemill ingest` names."""
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
        _say_path(record["release"] and record["release"]["path"])
        return
    rows = record_rows(record) if verbosity == "verbose" else short_rows(record)
    say(rows, f"tracemill run {record['run_id']}", record, as_json)
    if not as_json:
        lines = closing_lines(record, settings.workspace, program_name())
        sys.stdout.write("".join(f"{printable(line)}\n" for line in lines))


def _say_path(path: str | None) -> None:
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
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, KeyboardInterrupt):
            return True
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return False


def warn_of_training(found: dict[str, Any]) -> None:
    """Print the warnings of a training on stderr."""
    for line in found.get("warnings", ()):
        sys.stderr.write(f"tracemill: {line}\n")


def ingest_command(order: "IngestOptions", as_json: bool) -> None:
    """Run `tracemill ingest`."""
    from tracemill.flows.ingest.ingest_run import IN_FILES, ingest_everything

    record = ingest_everything(order)
    totals: dict[str, Any] = {}
    for key, value in record["totals"].items():
        if key in IN_FILES:
            totals.setdefault("in the files", {})[key.replace("_", " ")] = value
        else:
            totals[key] = value
    rows = [(_INGEST_ROWS.get(key, key.replace("_", " ")), _plain(value)) for key, value in totals.items()]
    looked_at = [item for item in record["unread_files"] if item["looks_like"]]
    rows += [("looks like", f"{item['path']}: {item['looks_like']}") for item in looked_at[:_NAMED_UNKNOWN]]
    say(rows, "tracemill ingest", record, as_json)


def export_command(settings: "RunSettings", name: str, out: Path, as_json: bool) -> None:
    """Run `tracemill export`."""
    from tracemill.flows.export.export_run import export_traces

    record = export_traces(settings, name, out)
    rows = [(key.replace("_", " "), _plain(value)) for key, value in record.items()]
    say(rows, "tracemill export", record, as_json)
    if not as_json:
        sys.stdout.write(f"next     {program_name()} privacy scan {shlex.quote(str(out))}\n")


def _plain(value: Any) -> str:
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


def estimate_command(settings: "RunSettings", refresh: bool, as_json: bool) -> None:
    """Run `tracemill estimate`; `refresh` reads prices from the servers first."""
    from tracemill.cli.estimate_output import estimate_rows
    from tracemill.flows.estimate.estimate_cost import estimate_cost

    found = estimate_cost(settings, refresh)
    say(estimate_rows(found), "tracemill estimate", found.to_json(), as_json)


def judge_command(
    settings: "RunSettings", tables: "Sequence[Path]", cases: int, yes: bool, as_json: bool
) -> None:
    """Run `tracemill judge`; rows of the tables are sent, redacted, after consent."""
    import typer

    from tracemill.flows.consent.destinations import destination_of
    from tracemill.flows.estimate.measure_judge import judge_and_budget, measure_judge
    from tracemill.flows.labeling.judge_setup import FEWEST_KNOWN, NOT_MEASURED
    from tracemill.flows.runtime.terminal import say_lines

    asked, _ = judge_and_budget(settings)
    goes_to = destination_of(asked, os.environ)
    if goes_to is not None and not yes:
        names = ", ".join(table.name for table in tables)
        say_lines([f"This sends rows of {names}, redacted, to {goes_to.model} at {goes_to.origin}."])
        typer.confirm("Continue?", abort=True, err=True)
    found = measure_judge(settings, tables, cases)
    precision = found.precision
    known = precision.right + precision.wrong
    told = str(precision)
    if known < FEWEST_KNOWN:
        told = f"{NOT_MEASURED}\n{known} known cases; {FEWEST_KNOWN} are needed"
    rows = [
        ("judge", asked.model),
        ("precision", told),
        ("disagreements", f"{precision.asked:,} asked about, in both orders where the first says so"),
        (
            "prefers a teacher",
            f"{precision.right} right, {precision.wrong} wrong, {precision.ties} of equal reward",
        ),
        ("calls", f"{found.calls:,} sent, {found.cached:,} cached"),
        ("spent", f"${found.spent_usd:.4f}"),
    ]
    if found.stopped:
        rows.append(("stopped", found.stopped))
    record = asdict(found) | {"judge": asked.model, "measured": known >= FEWEST_KNOWN}
    say(rows, "tracemill judge", record, as_json)


def dry_run_command(settings: "RunSettings", as_json: bool) -> None:
    """Run `tracemill replay --dry-run`."""
    from tracemill.cli.estimate_output import estimate_later_text
    from tracemill.flows.estimate.dry_run import write_requests

    record = write_requests(settings)
    rows = [("requests", _plain(record["requests"])), ("written to", record["path"])]
    if long := {name: count for name, count in record["too_long"].items() if count}:
        rows.insert(1, ("longer than context", _plain(long)))
    if record["decided_later"]:
        rows.insert(1, ("decided later", estimate_later_text(record["decided_later"])))
    if record["send_nothing"]:
        rows.append(("send nothing", _plain(record["send_nothing"])))
    if record["not_shown"]:
        rows.append(("not shown", f"{_plain(record['not_shown'])}: requests in a form of their own"))
    say(rows, "tracemill replay --dry-run", record, as_json)


def label_command(settings: "RunSettings", as_json: bool) -> None:
    """Run `tracemill label`."""
    from tracemill.flows.workspace_commands import label_workspace

    summary = label_workspace(settings)
    rows = [
        ("votes", count_lines(in_plain_words(summary.verdicts)) or "none"),
        ("self-repairs not used", count_lines(summary.hindsight_skips) or "none"),
        ("pairs made", count_lines(in_plain_words(summary.pairs)) or "none"),
    ]
    if summary.pair_skips:
        rows.insert(2, ("other pairs not made", count_lines(dict(summary.pair_skips))))
    say(rows, "tracemill label", summary.to_json(), as_json)


def normalize_command(settings: "RunSettings", as_json: bool) -> None:
    """Run `tracemill dev normalize`."""
    from tracemill.flows.workspace_commands import preview_release

    record = preview_release(settings)
    rows = [
        (item["operator"], f"{item['rows_in']:,} in, {item['dropped']:,} dropped")
        for item in record["operators"]
    ]
    rows.append(("kept", f"{record['kept']:,}"))
    rows += [(f"split {name}", f"{count:,}") for name, count in record["splits"].items()]
    if newer := stale_labels_text(record["newer_answers"]):
        rows.append(("stale answers", newer))
    say(rows, f"tracemill dev normalize ({record['recipe']})", record, as_json)


def publish_command(
    settings: "RunSettings", asked: str | None, public: bool, accept_drift: bool, as_json: bool
) -> None:
    """Run `tracemill release publish`. Raises ConfigError if no dataset is named."""
    from tracemill.flows.publish.publish_run import PublishOptions, publish_release

    if settings.release.hub is None:
        raise ConfigError("no dataset of the Hub is named", do="give --hub OWNER/NAME or set release.hub")
    done = publish_release(settings, asked, PublishOptions(settings.release.hub, public, accept_drift))
    record = {**asdict(done.pushed), "said": done.said, "gate": done.gate, "audit_commit": done.audit_commit}
    rows = [("hub", done.line()), ("privacy check", done.gate), ("notes", "\n".join(done.said))]
    say([row for row in rows if row[1]], "tracemill release publish", record, as_json)


def retract_command(settings: "RunSettings", release: str, hub: str | None, yes: bool, as_json: bool) -> None:
    """Run `tracemill release retract`."""
    from tracemill.flows.publish.retract_run import RetractOptions, retract_release, retraction_rows

    done = retract_release(settings, RetractOptions(release, hub, yes))
    say(
        retraction_rows(done),
        "tracemill release retract",
        {"retracted": [each._asdict() for each in done]},
        as_json,
    )


def list_command(root: "Path | None", hub: str | None, as_json: bool) -> None:
    """Run `tracemill release list`."""
    from tracemill.flows.publish.list_versions import list_releases, release_rows

    work = Workspace.open(root or DEFAULT_WORKSPACE, create=False, writes=False)
    lines = list_releases(work, hub)
    say(release_rows(lines), "tracemill release list", {"releases": lines}, as_json)


def diff_command(root: "Path | None", before: str, after: str, as_json: bool) -> None:
    """Run `tracemill release diff`."""
    from tracemill.flows.publish.list_versions import diff_listed_versions, listed_version_diff_rows

    work = Workspace.open(root or DEFAULT_WORKSPACE, create=False, writes=False)
    record = diff_listed_versions(work, before, after)
    say(
        listed_version_diff_rows(record),
        f"tracemill release diff {record['before']} {record['after']}",
        record,
        as_json,
    )


def release_command(settings: "RunSettings", as_json: bool, quiet: bool = False) -> None:
    """Run `tracemill release write`; with `quiet` print only the path of the release."""
    from tracemill.flows.workspace_commands import release_workspace

    outcome = release_workspace(settings)
    if quiet and not as_json:
        _say_path(outcome.path)
        return
    rows = closing_table_rows(Summary(), None, [], outcome)
    keep = {
        "dropped",
        "pairs released",
        "deciding pairs",
        "labels released",
        "labels not released",
        "label warnings",
        "terms",
        "splits",
        "stale answers",
        "privacy check",
        "release",
    }
    say([row for row in rows if row[0] in keep], "tracemill release write", asdict(outcome), as_json)
