"""What each command of the command line does, in terms of the stages."""

import json
import logging
import os
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from tracemill.flows.run_state.closing_table import closing_table_rows, print_closing
from tracemill.flows.run_state.run_records import DEFAULT_WORKSPACE
from tracemill.flows.run_state.run_summary import ReleaseOutcome, Summary
from tracemill.flows.run_state.stale_labels import stale_labels_text
from tracemill.flows.runtime.orphan_servers import end_leftover_servers, tag_possible_orphan_servers
from tracemill.records.errors import ConfigError
from tracemill.records.printable import printable
from tracemill.records.storage.workspace import Workspace

if TYPE_CHECKING:
    from pathlib import Path

    from tracemill.flows.config.run_settings import RunSettings
    from tracemill.flows.ingest.ingest_run import IngestOrder

AT_CAP_CODE = 4
"""Exit code of a command whose run had spent its cap before."""


def _say(rows: list[tuple[str, str]], title: str, record: dict[str, Any], as_json: bool) -> None:
    if as_json:
        sys.stdout.write(json.dumps(record) + "\n")
        return
    from rich.console import Console

    width = None if sys.stdout.isatty() else 100
    print_closing(Console(width=width, highlight=False), rows, title)


def quiet_prefect() -> None:
    """Prefect without telemetry and with warnings only; set before it is imported, and only where the
    user has not set it otherwise."""
    os.environ.setdefault("DO_NOT_TRACK", "1")
    os.environ.setdefault("PREFECT_SERVER_ANALYTICS_ENABLED", "false")
    os.environ.setdefault("PREFECT_LOGGING_LEVEL", "CRITICAL")
    os.environ.setdefault("PREFECT_LOGGING_TO_API_ENABLED", "false")
    os.environ.setdefault("PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS", "180")
    for worker in ("EventsWorker", "APILogWorker"):  # outside that level; told at exit
        logging.getLogger(worker).setLevel(logging.CRITICAL)
    for name in ("NO_PROXY", "no_proxy"):  # its server is on this machine, whatever the proxy
        given = [os.environ[name]] if os.environ.get(name) else []
        os.environ[name] = ",".join([*given, "127.0.0.1", "localhost"])


def run_all(settings: "RunSettings", as_json: bool, yes: bool = False, new_run: bool = False) -> None:
    """`tracemill run`: every stage, as a Prefect flow in this process; `yes` accepts what would leave
    this machine, `new_run` takes up no unfinished run. Raises KeyboardInterrupt where it was interrupted,
    whatever came of that in the flow engine: a Ctrl-C reaches its server too, and an engine that cannot
    report any more fails."""
    from tracemill.flows.preflight import run_preflight

    ready = run_preflight(settings)
    end_leftover_servers()
    tag_possible_orphan_servers()
    quiet_prefect()
    from tracemill.flows.run_flow import harvest_prepared

    try:
        record = harvest_prepared(ready, yes, new_run)
    except Exception as error:
        if was_interrupted(error):
            raise KeyboardInterrupt from None
        raise
    rows = record_rows(record)
    _say(rows, f"tracemill run {record['run_id']}", record, as_json)
    _require_an_answer(settings, Summary.from_json(record["summary"]))
    _require_a_checkpoint(record)
    _require_room(record)


def was_interrupted(error: BaseException | None) -> bool:
    """Whether the error came up while an interrupt was on its way out."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, KeyboardInterrupt):
            return True
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return False


def record_rows(record: dict[str, Any]) -> list[tuple[str, str]]:
    """The closing table of a run's record."""
    release = ReleaseOutcome(**record["release"])
    rows = closing_table_rows(
        Summary.from_json(record["summary"]), record["cap_usd"], record["teachers"], release
    )
    if found := record.get("training"):
        from tracemill.flows.training.training_run import training_table_rows

        rows += training_table_rows(found)
    return rows


def train_only(settings: "RunSettings", release: str | None, as_json: bool) -> None:
    """`tracemill train`: a release into a checkpoint."""
    from tracemill.flows.training.training_run import figures, train_on, training_table_rows

    found = figures(train_on(settings, release))
    _say(training_table_rows(found), f"tracemill train {found['release']}", found, as_json)
    _warn_of_training(found)


def _warn_of_training(found: dict[str, Any]) -> None:
    """Say on stderr what went wrong in a training that ended."""
    for line in found.get("warnings", ()):
        sys.stderr.write(f"tracemill: {line}\n")


def ingest_only(order: "IngestOrder", as_json: bool) -> None:
    """`tracemill ingest`: files into traces."""
    from tracemill.flows.ingest.ingest_run import IN_FILES, ingest_everything

    record = ingest_everything(order)
    totals: dict[str, Any] = {}
    for key, value in record["totals"].items():
        if key in IN_FILES:
            totals.setdefault("in the files", {})[key.replace("_", " ")] = value
        else:
            totals[key] = value
    rows = [(key.replace("_", " "), _plain(value)) for key, value in totals.items()]
    _say(rows, "tracemill ingest", record, as_json)


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return "\n".join(f"{count:>7,}  {printable(name)}" for name, count in value.items()) or "none"
    if isinstance(value, list):
        return "\n".join(map(printable, value))
    return f"{value:,}" if isinstance(value, int) else str(value)


def replay_only(settings: "RunSettings", as_json: bool, yes: bool = False, new_run: bool = False) -> None:
    """`tracemill replay`: the teachers' answers for the traces of the workspace."""
    from tracemill.flows.stages import replay_workspace

    record = replay_workspace(settings, yes, new_run=new_run)
    summary = Summary.from_json(record["summary"])
    release = ReleaseOutcome(None, None, 0, False, {}, {}, "not part of this command")
    keep = {
        "worth knowing",
        "sessions left out",
        "selection",
        "states",
        "teachers",
        "questions asked",
        "not asked",
        "calls",
        "failed calls",
        "spent / cap",
        "stopped",
    }
    rows = closing_table_rows(summary, record["cap_usd"], record["teachers"], release)
    _say([row for row in rows if row[0] in keep], "tracemill replay", record, as_json)
    _require_an_answer(settings, summary)
    _require_room(record)


def _require_an_answer(settings: "RunSettings", summary: Summary) -> None:
    """Ends the process with 1 where a teacher was given up, or questions were sent and none of them was
    answered, so that a schedule hears of an outage. Those that failed in an earlier run and failed again are
    none, where every other question of the run has its answer."""
    if summary.outages:
        from tracemill.teachers.replay.breaker import list_outages

        said = list_outages(summary.outages)
        sys.stderr.write(f"tracemill: teachers were given up, the same command asks them again: {said}\n")
        sys.exit(1)
    if not summary.calls or not summary.failed_now or summary.answered_now:
        return
    bare = sum(summary.failures.values()) >= summary.asked * settings.replay.samples
    if summary.failed_first or summary.left_over or bare:
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in summary.failed_now.most_common())
        sys.stderr.write(f"tracemill: teachers were asked and none answered ({kinds})\n")
        sys.exit(1)


def _require_room(record: dict[str, Any]) -> None:
    """Ends the process with 4 where the run had stopped at its cap before, so that nothing was asked."""
    if record["asked_nothing"]:
        sys.stderr.write(f"tracemill: {record['summary']['stopped']}\n")
        sys.exit(AT_CAP_CODE)


def _require_a_checkpoint(record: dict[str, Any]) -> None:
    """Says what went wrong in the training after a release, and ends the process with 1 where it failed,
    likewise."""
    training = record.get("training", {})
    _warn_of_training(training)
    if failed := training.get("failed"):
        path = record["release"]["path"]
        sys.stderr.write(
            f"tracemill: training failed, the release {path} stays: {printable(failed, 2_000)}\n"
        )
        sys.exit(1)


def estimate_only(settings: "RunSettings", refresh: bool, as_json: bool) -> None:
    """`tracemill estimate`: what a replay would cost; `refresh` reads prices from the servers first."""
    from tracemill.cli.estimate_output import estimate_rows
    from tracemill.flows.estimate.estimate_cost import estimate_cost

    found = estimate_cost(settings, refresh)
    _say(estimate_rows(found), "tracemill estimate", found.to_json(), as_json)


def handle_dry_run_command(settings: "RunSettings", as_json: bool) -> None:
    """`tracemill replay --dry-run`: the requests in a file."""
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
    _say(rows, "tracemill replay --dry-run", record, as_json)


def handle_pairs_command(settings: "RunSettings", as_json: bool) -> None:
    """`tracemill pairs`: pairs of what the workspace holds."""
    from tracemill.flows.stages import run_pair_stage

    summary = run_pair_stage(settings)
    rows = [
        ("votes", _plain(dict(summary.verdicts))),
        ("pairs made", _plain(dict(summary.pairs))),
        ("no hindsight", _plain(dict(summary.hindsight_skips))),
    ]
    if summary.pair_skips:
        rows.append(("no other pair", _plain(dict(summary.pair_skips))))
    _say(rows, "tracemill pairs", summary.to_json(), as_json)


def normalize_only(settings: "RunSettings", as_json: bool) -> None:
    """`tracemill normalize`: what a release keeps and drops, by operator, and the rows of each split."""
    from tracemill.flows.stages import run_normalize_stage

    record = run_normalize_stage(settings)
    rows = [
        (item["operator"], f"{item['rows_in']:,} in, {item['dropped']:,} dropped")
        for item in record["operators"]
    ]
    rows.append(("kept", f"{record['kept']:,}"))
    rows += [(f"split {name}", f"{count:,}") for name, count in record["splits"].items()]
    if newer := stale_labels_text(record["newer_answers"]):
        rows.append(("left out", newer))
    _say(rows, f"tracemill normalize ({record['recipe']})", record, as_json)


def publish_only(
    settings: "RunSettings", asked: str | None, public: bool, accept_drift: bool, as_json: bool
) -> None:
    """`tracemill publish`: a release to the Hub. Raises ConfigError where no dataset is named."""
    from tracemill.flows.publish.publish_run import PublishOrder, publish_release

    if settings.release.hub is None:
        raise ConfigError("no dataset of the Hub is named", "--hub OWNER/NAME, or release.hub", "name one")
    done = publish_release(settings, asked, PublishOrder(settings.release.hub, public, accept_drift))
    record = {**asdict(done.pushed), "said": done.said, "gate": done.gate, "audit_commit": done.audit_commit}
    rows = [("hub", done.line()), ("publish gate", done.gate), ("worth knowing", "\n".join(done.said))]
    _say([row for row in rows if row[1]], "tracemill publish", record, as_json)


def handle_retract_command(
    settings: "RunSettings", release: str, hub: str | None, yes: bool, as_json: bool
) -> None:
    """`tracemill retract`: a published version taken back."""
    from tracemill.flows.publish.retract_run import RetractOrder, retract_release, retraction_rows

    done = retract_release(settings, RetractOrder(release, hub, yes))
    _say(
        retraction_rows(done), "tracemill retract", {"retracted": [each._asdict() for each in done]}, as_json
    )


def handle_releases_command(root: "Path | None", hub: str | None, as_json: bool) -> None:
    """`tracemill releases`: versions here and, with `hub`, there."""
    from tracemill.flows.publish.list_versions import list_releases, release_rows

    work = Workspace.open(root or DEFAULT_WORKSPACE, create=False, writes=False)
    lines = list_releases(work, hub)
    _say(release_rows(lines), "tracemill releases", {"releases": lines}, as_json)


def handle_diff_command(root: "Path | None", before: str, after: str, as_json: bool) -> None:
    """`tracemill diff`: what changed from one version to another."""
    from tracemill.flows.publish.list_versions import diff_listed_versions, listed_version_diff_rows

    work = Workspace.open(root or DEFAULT_WORKSPACE, create=False, writes=False)
    record = diff_listed_versions(work, before, after)
    _say(
        listed_version_diff_rows(record),
        f"tracemill diff {record['before']} {record['after']}",
        record,
        as_json,
    )


def release_only(settings: "RunSettings", as_json: bool) -> None:
    """`tracemill release`: the workspace's pairs as a versioned dataset."""
    from tracemill.flows.stages import release_workspace

    outcome = release_workspace(settings)
    rows = closing_table_rows(Summary(), None, [], outcome)
    keep = {
        "dropped",
        "pairs released",
        "labels released",
        "no label",
        "label warnings",
        "splits",
        "left out",
        "publish gate",
        "release",
    }
    _say([row for row in rows if row[0] in keep], "tracemill release", asdict(outcome), as_json)
