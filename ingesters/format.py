"""What a session format is to tracemill: how its files are told, and what reads them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tracemill.ingesters.reading.source_file import SourceFile
from tracemill.records.ingest_report import IngestReport
from tracemill.records.trace import Trace

Record = Mapping[str, Any]
RowReader = Callable[[Any, str, IngestReport, Path | None], Iterable[Trace | None]]
"""A row, the name of its file, the report on it and the file if it is on this machine → its traces; None,
and counted, for what gives none."""


class KindSeen(NamedTuple):
    """A kind of record or of part of one, with its keys. `known` says whether the reader knows the kind,
    None where it has no list of kinds; `known_keys` are the keys that it knows of it, None without a list."""

    kind: str
    keys: Iterable[str]
    known: bool | None = None
    known_keys: frozenset[str] | None = None


def _kinds(record: Record) -> Iterator[KindSeen]:
    """What a record calls itself, of a format without a list of kinds."""
    named = (record.get(key) for key in ("type", "kind", "action", "observation", "role"))
    yield KindSeen(next((name for name in named if isinstance(name, str) and name), ""), record.keys())


def _nothing(_: Any) -> None:
    return None


def _no_files(_: Path) -> Iterable[str]:
    return ()


@dataclass(frozen=True, slots=True)
class Format:
    """One session format, as its folder gives it to the registry.

    `name` is the source of its traces. `version` is raised whenever the same files give other traces: they
    are read again then. `dialects` are the forms its files have, each told apart when a file is looked at.

    `detect` tells the dialect of one JSON object, None where it is of another format; formats are asked in
    the order of the registry. `read` gives the traces of one source and fills the report meanwhile; it may
    raise SourceError where the whole cannot be read. Import what is large inside of it.
    """

    name: str
    version: int
    dialects: tuple[str, ...]
    detect: Callable[[Record], str | None]
    read: Callable[[Path, str, IngestReport], Iterator[Trace]]
    detect_list: Callable[[Sequence[Record]], str | None] = _nothing
    """The dialect of a bare list by its first objects, where `detect` knows none of them."""
    detect_columns: Callable[[Record], str | None] | None = None
    """The dialect of a table by a row of empty cells; `detect` where it is not given."""
    detect_head: Callable[[bytes], str | None] = _nothing
    """The dialect by the first bytes of a file of one JSON object, where they are enough."""
    detect_item: Callable[[Record], str | None] = _nothing
    """The dialect of a file of one JSON object by the first object in its `trajectory`."""
    folder_signs: frozenset[str] = frozenset()
    """Names one of which lies in every folder that is a session."""
    detect_folder: Callable[[Path], str | None] = _nothing
    """The dialect of a folder that is one session."""
    row_reader: Callable[[str], RowReader | None] = _nothing
    """What reads a row of a dialect whose files hold a run a row; None for other dialects."""
    preview_columns: Callable[[Sequence[str]], "PreviewColumns | None"] = _nothing
    """Which columns of a table tell the facts of its rows; all of them are read where this is not given."""
    beside: Callable[[Path], Iterable[str]] = _no_files
    """Paths that are read with a source though they lie beside it, and may come or change later."""
    without_claimed: Callable[[list[SourceFile]], list[SourceFile]] = list
    """The sources without those that are read as a part of another one."""
    growing: frozenset[str] = frozenset()
    """Dialects whose files are added to while a session goes on."""
    origin_names_session: bool = False
    """Whether the name of a file is the name of its session."""
    kinds: Callable[[Record], Iterable[KindSeen]] = _kinds
    """The kinds that a record holds, and which of them and of their keys are known: for a census."""


@dataclass(frozen=True, slots=True)
class PreviewColumns:
    """The columns (of nested ones, the leaves) that tell the facts of a row, what stands in for a row's other
    columns, and whether its steps are known by them."""

    leaves: tuple[str, ...]
    rest: Mapping[str, Any]
    steps_known: bool
