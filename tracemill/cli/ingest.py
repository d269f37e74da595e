"""`tracemill ingest` on the command line."""

import gc
from pathlib import Path
from typing import Annotated, Any

import typer

from tracemill.cli.options import (
    DenyProject,
    Format,
    HubSources,
    Json,
    MinAge,
    PrivacyConfig,
    Project,
    QuietStage,
    Reredact,
    Sample,
    SampleSeed,
    Since,
    Until,
    WorkspaceOption,
)
from tracemill.cli.overrides import select_overrides, source_overrides
from tracemill.records.errors import ConfigError

_ROWS = {
    "states": "steps",
    "left_out": "skipped sessions",
    "skipped": "skipped records",
    "flags": "warnings",
    "redactions": "redacted",
    "unread": "files not read",
}
"""Counts that have other names in the closing table."""
_NAMED_UNKNOWN = 5
"""Number of unknown files that are named."""


def ingest(
    paths: Annotated[
        list[str] | None,
        typer.Argument(help="Session files, folders or URLs of Parquet files.", show_default=False),
    ] = None,
    hub: HubSources = None,
    form: Format = None,
    min_age: MinAge = None,
    sample: Sample = None,
    seed: SampleSeed = None,
    project: Project = None,
    deny_project: DenyProject = None,
    since: Since = None,
    until: Until = None,
    workspace: WorkspaceOption = None,
    privacy: PrivacyConfig = None,
    reredact: Reredact = False,
    unredacted: Annotated[
        bool, typer.Option("--unredacted", help="Keep text as recorded, in a folder of its own.")
    ] = False,
    forgotten: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="DIR", help="With --unredacted: omit sessions that this workspace forgot; repeatable."
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs",
            "-j",
            metavar="N",
            min=1,
            help="Maximum number of processes.",
            show_default="by size and processors",
        ),
    ] = None,
    quiet: QuietStage = False,
    json: Json = False,
) -> None:
    """Read sessions, redact them and store their traces."""
    gc.set_threshold(100_000, 50, 100)  # sessions make few cycles: saves a tenth of the CPU time
    from tracemill.cli.commands import plain_value, say
    from tracemill.flows.ingest.ingest_order import IngestOptions
    from tracemill.flows.ingest.ingest_run import IN_FILES, ingest_everything
    from tracemill.flows.run_state.run_records import DEFAULT_WORKSPACE
    from tracemill.flows.sources.source_spec import order_of
    from tracemill.ingesters.discover import NO_FORMAT

    if workspace is None and unredacted:
        raise ConfigError("--unredacted is given without --workspace", "a separate folder for recorded text")
    sources = order_of(**source_overrides(paths, hub, form, min_age))
    settings, drawn = None, None
    if (select := select_overrides(project, deny_project, since, until)) or privacy:
        from tracemill.flows.config.run_settings import load_settings

        settings = load_settings(privacy, select)
    if sample:
        from tracemill.flows.sources.sampling import SampleOptions

        drawn = SampleOptions(sample, seed or 0)
    record = ingest_everything(
        IngestOptions(
            sources,
            workspace or DEFAULT_WORKSPACE,
            settings.select if settings and select else None,
            unredacted,
            jobs,
            sample=drawn,
            privacy=settings.privacy if settings and privacy else None,
            forgotten=tuple(forgotten or ()),
            reredact=reredact,
        )
    )
    totals: dict[str, Any] = {}
    for key, value in record["totals"].items():
        if key in IN_FILES:
            totals.setdefault("in the files", {})[key.replace("_", " ")] = value
        else:
            totals[key] = value
    rows = [(_ROWS.get(key, key.replace("_", " ")), plain_value(value)) for key, value in totals.items()]
    looked_at = [item for item in record["unread_files"] if item["looks_like"]]
    rows += [("looks like", f"{item['path']}: {item['looks_like']}") for item in looked_at[:_NAMED_UNKNOWN]]
    if more := record["totals"]["unread"].get(NO_FORMAT, 0) - len(looked_at[:_NAMED_UNKNOWN]):
        rows.append(("", f"and {more:,} more of no known format: --json or `formats census` names them"))
    say(rows, "tracemill ingest", record, json)
