"""`tracemill ingest`: from its flags to the order that is carried out."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tracemill.cli.commands import ingest_command
from tracemill.flows.ingest.ingest_order import IngestOptions
from tracemill.flows.run_state.run_records import DEFAULT_WORKSPACE
from tracemill.flows.sources.source_spec import order_of
from tracemill.records.errors import ConfigError


def ingest_asked(
    workspace: Path | None,
    sources: Mapping[str, Any],
    select: dict[str, Any],
    sample: Mapping[str, Mapping[str, int]],
    privacy: Path | None,
    forgotten: Sequence[Path],
    options: Mapping[str, Any],
    as_json: bool,
) -> None:
    """Run an ingest with these flags.

    `sources`, `select` and `sample` are tables of a configuration, `privacy` is a configuration with lists,
    `options` are further fields of `IngestOptions`.
    """
    if workspace is None and options.get("unredacted"):
        raise ConfigError("--unredacted is given without --workspace", "a separate folder for recorded text")
    settings, drawn = None, None
    if select or privacy:
        from tracemill.flows.config.run_settings import load_settings

        settings = load_settings(privacy, select)
    if asked := sample.get("sample", {}).get("max_traces"):
        from tracemill.flows.sources.sampling import SampleOptions

        drawn = SampleOptions(asked, sample["sample"].get("seed", 0))
    order = IngestOptions(
        order_of(**sources),
        workspace or DEFAULT_WORKSPACE,
        settings.select if settings and select else None,
        sample=drawn,
        privacy=settings.privacy if settings and privacy else None,
        forgotten=tuple(forgotten),
        **options,
    )
    ingest_command(order, as_json)
