"""Show a run in Prefect: its name, its tags, progress, closing table, report and assets.

A server that does not answer costs what it would have shown, never the run. It may be remote, so it is given
counts, names of releases and addresses at the Hub: no folder, no project and no text of a session.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from prefect.artifacts import (
    create_link_artifact,
    create_markdown_artifact,
    create_progress_artifact,
    create_table_artifact,
    update_progress_artifact,
)
from prefect.assets import Asset, AssetProperties, add_asset_metadata, materialize
from prefect.cache_policies import NO_CACHE
from prefect.logging import get_run_logger

from tracemill.data_cards.model.report_model import read_figures
from tracemill.flows.config.run_settings import RunSettings
from tracemill.flows.release.release_due import last_version
from tracemill.flows.run_state.run_records import run_number, today
from tracemill.flows.run_state.run_summary import ReleaseOutcome
from tracemill.flows.runtime.progress import ProgressMeter, observe_progress
from tracemill.records.storage.workspace import Workspace

_HIDDEN = {"selection", "skipped sessions", "release", "training", "hub"}
"""Rows of a closing table that may name folders and projects."""


def name_harvest(settings: RunSettings) -> str:
    """Return the name of a new harvest, such as `traces 2026-11-22 #3`."""
    day = today()
    number = 1 + run_number(Workspace(settings.workspace), day)
    return f"{settings.release.name} {day} #{number}"


def artifact_key(settings: RunSettings, what: str) -> str:
    """Return the key of an artifact, of lower-case letters, digits and dashes."""
    return re.sub(r"[^a-z0-9]+", "-", f"{settings.release.name}-{what}").strip("-")


def pairs_asset(settings: RunSettings) -> Asset:
    """Return the asset of the pairs of a workspace."""
    return Asset(
        key=f"tracemill://{settings.release.name}/pairs",
        properties=AssetProperties(name=f"{settings.release.name}: pairs of the workspace"),
    )


def release_asset(settings: RunSettings) -> Asset:
    """Return the asset of a release: the dataset of the Hub, if it goes there."""
    name, hub = settings.release.name, settings.release.hub
    if hub is None:
        properties = AssetProperties(name=f"{name}: releases of the workspace")
        return Asset(key=f"tracemill://{name}/releases", properties=properties)
    return Asset(key=f"hf://datasets/{hub}", properties=AssetProperties(name=hub, url=hub_url(hub)))


def hub_url(repository: str, version: str | None = None) -> str:
    """Return the URL of a dataset on the Hub, or of one of its versions."""
    from huggingface_hub import constants

    page = f"{constants.ENDPOINT}/datasets/{repository}"
    return f"{page}/tree/{version}" if version else page


def quietly(show: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a function that writes to the Prefect server; on failure return None and log the error's type."""
    try:
        return show(*args, **kwargs)
    except Exception as error:
        get_run_logger().warning(
            "an artifact could not be written to the Prefect server: %s", type(error).__name__
        )
        return None


@contextmanager
def progress_artifact(settings: RunSettings) -> Iterator[None]:
    """Keep a progress artifact up to date during the block: percent of the current stage."""
    key = artifact_key(settings, "progress")
    made = quietly(create_progress_artifact, 0.0, key=key, description="starting")
    if made is None:
        yield
        return
    with observe_progress(partial(_update_progress, made)):
        yield
    quietly(update_progress_artifact, made, 100.0, description="finished")


def _update_progress(artifact_id: Any, meter: ProgressMeter) -> None:
    percent = min(100.0, 100.0 * meter.done / meter.total) if meter.total else 0.0
    said = f"{meter.stage} {meter.done}/{meter.total}"
    with suppress(Exception):  # a server that does not answer
        update_progress_artifact(artifact_id, percent, description=said)


def show_closing_table(settings: RunSettings, rows: Sequence[tuple[str, str]], title: str) -> None:
    """Show a closing table as a table artifact, without the rows that name folders or projects."""
    table = [{"what": what, "figures": figures} for what, figures in rows if what not in _HIDDEN]
    key = artifact_key(settings, "closing-table")
    quietly(create_table_artifact, table, key=key, description=title)


def show_release(settings: RunSettings, release: ReleaseOutcome) -> None:
    """Show the report of a release as a markdown artifact, and a link to it at the Hub."""
    work = Workspace(settings.workspace)
    last = last_version(work, settings.release.name)
    if last is None or release.version is None:
        return
    lines = [f"# {settings.release.name}@{release.version}", "", f"{release.rows:,} pairs"]
    lines += ["", "| split | rows |", "|---|---|"]
    lines += [f"| {name} | {count:,} |" for name, count in release.splits.items()]
    if release.created and (figures := read_figures(last.folder)) is not None:
        lines += ["", "| stage | count |", "|---|---|"]
        lines += [f"| {stage.name} | {stage.count:,} {stage.unit} |" for stage in figures.funnel]
        lines += ["", f"spent ${figures.money.spend_usd:,.4f}, ${figures.money.usd_per_pair:,.4f} a pair"]
    if release.note:
        lines += ["", release.note]
    hub = settings.release.hub
    if hub is not None and release.pushed:
        url, text = hub_url(hub, release.version), f"{hub}@{release.version}"
        lines += ["", f"[{text}]({url})"]
        quietly(create_link_artifact, url, link_text=text, key=artifact_key(settings, "hub"))
    quietly(create_markdown_artifact, "\n".join(lines), key=artifact_key(settings, "report"))


def materialize_asset(asset: Asset, metadata: dict[str, Any], made_of: Sequence[Asset] = ()) -> None:
    """Report new content of an asset to Prefect, with its figures."""

    @materialize(
        asset,
        by="tracemill",
        name="asset",
        asset_deps=list(made_of),
        cache_policy=NO_CACHE,
        persist_result=False,
    )
    def record() -> None:
        add_asset_metadata(asset, metadata)

    quietly(record)
