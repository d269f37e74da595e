"""Note what each teacher cost in the manifest of a run, and compare it in the next."""

from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any

from tracemill.flows.config.run_settings import RunSettings
from tracemill.flows.runtime.terminal import say_lines
from tracemill.records.errors import WorkspaceError
from tracemill.records.storage.atomic_files import read_json_file
from tracemill.records.storage.workspace import Workspace
from tracemill.teachers.pricing.price_book import PRICES, PriceBook

_STAGES = ("harvest", "replay")
_RUNS = 50
"""Runs looked back on at most."""


def open_book(work: Workspace) -> PriceBook:
    """Open the prices of a workspace.

    Before money is spent, price changes since the last run are printed, a line for each model; without a
    manifest, the changes since prices were last read.
    """
    return PriceBook(work.root / PRICES, lambda line: say_lines([line]), planned=_planned(work))


def price_history_for_manifest(
    settings: RunSettings,
    work: Workspace,
    environ: Mapping[str, str],
    read_now: Collection[tuple[str, str]],
) -> dict[str, dict[str, Any]]:
    """Return the catalogue entry of each teacher's model, by teacher.

    An entry has server, id, snapshot, date and prices, also those of each provider. It is today's entry if
    this run read it, which holds for the servers and ids in `read_now`; else that of the last run that did,
    whatever an estimate has read since. Teachers without a catalogue have none.
    """
    book, found, planned = PriceBook(work.root / PRICES), dict[str, dict[str, Any]](), _planned(work)
    for teacher in settings.models():
        if (server := teacher.catalogue_url(environ)) is not None:
            page = book.page(server, teacher.model)
            if (server, teacher.model) not in read_now:
                if (before := planned.get((server, teacher.model))) is not None:
                    found[teacher.name] = before
            elif page is not None:
                snapshot = page["entry"].get("canonical_slug")
                found[teacher.name] = {
                    "server": server,
                    "model": teacher.model,
                    "snapshot": snapshot,
                    **page,
                }
    return found


def _planned(work: Workspace) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the newest catalogue entry of each model among the manifests, by server and id."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for folder in sorted((work.root / "runs").glob("*"), reverse=True)[:_RUNS]:
        for stage in _STAGES:
            path = folder / f"{stage}.json"
            if not path.exists():
                continue
            with suppress(WorkspaceError, KeyError, TypeError, AttributeError):
                record = read_json_file(path)
                for page in record["prices"].values() if isinstance(record, dict) else ():
                    found.setdefault((page["server"], page["model"]), page)
    return found
