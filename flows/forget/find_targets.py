"""Find the traces, answers, releases and files that hold what is to be forgotten."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from tracemill.data_cards.model.versions import versions_in_folder
from tracemill.flows.admission.glob_patterns import glob_folder_names
from tracemill.flows.admission.text_search import (
    PlaceholderSearch,
    TextNeedle,
    fold_searched_text,
    is_inside_placeholder,
    searched_batches,
    searched_rows,
)
from tracemill.flows.admission.trace_inventory import mask_home_folder, mask_user_placeholder
from tracemill.flows.sources.watermarks import FILE as MARKS
from tracemill.ingesters.registry import FORMATS
from tracemill.privacy.core.placeholder_keys import find_keyed_placeholders, workspace_key
from tracemill.records.errors import ConfigError
from tracemill.records.project import Project
from tracemill.records.storage.table_schemas import SCHEMAS
from tracemill.records.storage.workspace import Workspace, workspace_trace_ids
from tracemill.teachers.ledger.forget import trace_of_forgotten_answer
from tracemill.teachers.ledger.ledger import Ledger
from tracemill.teachers.pricing.price_book import PRICES

Kind = Literal["trace", "project", "value"]
KINDS: tuple[Kind, ...] = ("trace", "project", "value")
LEAST = 4
"""Characters of the shortest text that is looked for; a shorter one would be in everything."""

_WHO = ("trace_id", "parent_trace_id", "source", "project", "repository", "origin", "worked_in")


@dataclass(frozen=True, slots=True)
class KnownTrace:
    """A trace with the fields that a target is matched with."""

    trace_id: str
    parent: str | None
    name: str
    """Of its project, or else of its repository."""
    projects: tuple[Project, ...]
    """Every one it worked in, the first first."""
    origin: str | None
    """The session file, where it holds nothing but this session."""


@dataclass(frozen=True, slots=True)
class ForgetTargets:
    """The data that a target names. `needle` is the text to remove everywhere."""

    kind: Kind
    traces: frozenset[str] = frozenset()
    projects: frozenset[Project] = frozenset()
    needle: TextNeedle | None = None
    origins: frozenset[str] = frozenset()
    answers: int = 0
    files: tuple[Path, ...] = ()
    releases: tuple[Path, ...] = ()
    of: int = 0
    """Traces that the workspace holds."""
    replaced: int = 0
    """Traces that hold nothing but a placeholder of the text."""
    is_type: bool = False
    """The text is part of what placeholders are made of, such as `EMAIL`."""

    @property
    def is_wide(self) -> bool:
        """Return whether more than meant may match: most of the workspace, or part of placeholders."""
        return self.is_type or (self.kind != "trace" and 2 * len(self.traces) > self.of)

    def anything(self) -> bool:
        """Return whether there is something to remove."""
        return bool(self.traces or self.answers or self.files or self.releases)

    def holds(self, text: str) -> bool:
        """Return whether a text contains anything that must be removed."""
        return self.needle is not None and self.needle.within(text)


def find_target_traces(work: Workspace) -> dict[str, KnownTrace]:
    """Return every trace the workspace holds, by id."""
    found: dict[str, KnownTrace] = {}
    for shard in work.live("traces"):
        for batch in pq.ParquetFile(work.shard_path(shard)).iter_batches(64, columns=_WHO):
            for row in batch.to_pylist():
                found[row["trace_id"]] = _known(row)
    return found


def _known(row: dict[str, Any]) -> KnownTrace:
    alone = row["source"] in FORMATS and FORMATS.get(row["source"]).origin_names_session
    return KnownTrace(
        row["trace_id"],
        row["parent_trace_id"],
        mask_user_placeholder(row["project"] or row["repository"] or ""),
        tuple(Project(**project) for project in row["worked_in"]),
        row["origin"] if alone else None,
    )


def find_target(work: Workspace, ledger: Ledger | None, target: str, kind: str | None) -> ForgetTargets:
    """Find the traces that a target names: as trace, project or text, the first that matches, or `kind`.

    Raises ConfigError for an unknown kind and for a text too short to search for.
    """
    if kind is not None and kind not in KINDS:
        raise ConfigError(f"--as {kind}", f"one of {', '.join(KINDS)}")
    known = find_target_traces(work)
    if kind in (None, "trace") and (ids := _by_id(known, target)):
        return _completed(work, known, ForgetTargets("trace", ids))
    if kind in (None, "project") and (ids := _by_project(known, target)):
        projects = frozenset(project for trace_id in ids for project in known[trace_id].projects[:1])
        return _completed(work, known, ForgetTargets("project", ids, projects))
    if kind in (None, "value"):
        if len(fold_searched_text(target)) < LEAST:
            raise ConfigError(f"a text of {len(target)} characters", f"at least {LEAST}")
        return _by_value(work, ledger, known, target)
    return ForgetTargets("trace" if kind == "trace" else "project")


def _by_id(known: dict[str, KnownTrace], target: str) -> frozenset[str]:
    """Return the trace with that id, or of the session file with that name."""
    return frozenset(
        k.trace_id
        for k in known.values()
        if target == k.trace_id or (k.origin and target in (k.origin, Path(k.origin).stem))
    )


def _by_project(known: dict[str, KnownTrace], target: str) -> frozenset[str]:
    wanted, place = target.casefold(), mask_home_folder(target).rstrip("/\\").casefold()
    return frozenset(
        k.trace_id
        for k in known.values()
        if wanted in (k.name.casefold(), *(p.name.casefold() for p in k.projects[:1]))
        or any("/" in place and place in _folders(p.place) for p in k.projects[:1])
    )


def _folders(place: str) -> set[str]:
    return {folder.casefold() for folder in glob_folder_names(mask_home_folder(place))}


def _by_value(
    work: Workspace, ledger: Ledger | None, known: dict[str, KnownTrace], target: str
) -> ForgetTargets:
    needle, traces, replaced = TextNeedle.of(target), set[str](), set[str]()
    stand_ins = PlaceholderSearch(workspace_key(work.root / "redaction.key"), target)
    is_type = False
    for name in SCHEMAS:
        for shard in work.live(name):
            for trace_id, texts in searched_rows(work.shard_path(shard), partial(workspace_trace_ids, name)):
                if any(needle.within(text) for text in texts):
                    is_type = is_type or is_inside_placeholder(needle, texts)
                    traces.add(trace_id)
                elif stand_ins.within(texts, trace_id):
                    replaced.add(trace_id)
    answers = [text for _, text in ledger.texts() if needle.within(text)] if ledger else []
    traces |= {trace_of_forgotten_answer(text) for text in answers} & set(known)
    found = ForgetTargets(
        "value",
        frozenset(traces | replaced),
        needle=needle,
        answers=len(answers),
        replaced=len(replaced - traces),
        is_type=is_type and not find_keyed_placeholders(target),
    )
    return _completed(work, known, found)


def _completed(work: Workspace, known: dict[str, KnownTrace], found: ForgetTargets) -> ForgetTargets:
    """Add the subagents of the traces, and the files and releases that contain any of them."""
    traces = found.traces | {k.trace_id for k in known.values() if k.parent in found.traces}
    origins = frozenset(o for i in traces if i in known and (o := known[i].origin))
    grown = replace(found, traces=traces, origins=origins, of=len(known))
    texts = [*find_target_json_files(work), *work.root.glob(MARKS)] if found.needle else []
    files = [p for p in texts if found.needle and found.needle.within_bytes(p.read_bytes())]
    return replace(grown, files=tuple(files), releases=tuple(_releases_with(work, grown)))


def find_target_json_files(work: Workspace) -> Iterator[Path]:
    """List the JSON files of manifests, consents and accepted findings."""
    yield from sorted((work.root / "runs").rglob("*.json"))
    kept = {"workspace.json", "forgotten.json", PRICES}
    yield from (path for path in sorted(work.root.glob("*.json")) if path.name not in kept)


def _releases_with(work: Workspace, found: ForgetTargets) -> Iterator[Path]:
    for folder in sorted(work.releases_dir.glob("*")):
        if folder.is_dir():
            yield from (folder / v for v in versions_in_folder(folder) if _release_holds(folder / v, found))


def _release_holds(folder: Path, found: ForgetTargets) -> bool:
    files = [path for path in folder.rglob("*") if path.is_file()]
    tables = [path for path in files if path.suffix == ".parquet"]
    if any(_table_holds(table, found) for path in tables for table in searched_batches(path)):
        return True
    needle = found.needle
    return needle is not None and any(needle.within_bytes(p.read_bytes()) for p in files if p not in tables)


def _table_holds(table: pa.Table, found: ForgetTargets) -> bool:
    if found.needle is not None and found.needle.in_table(table):
        return True
    if "step_id" not in table.column_names:
        return False
    return not found.traces.isdisjoint(workspace_trace_ids("pairs", table))
