"""The value that defines a session format: how its files are detected, and what reads them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from tracemill.ingesters.reading.source_file import SourceFile
from tracemill.records.ingest_report import IngestReport
from tracemill.records.trace import Trace

Record = Mapping[str, Any]
RowReader = Callable[[Any, str, IngestReport, Path | None], Iterable[Trace | None]]
"""Row, name of its file, report, and the file if it is local → its traces; None for a counted skip."""


class RecordKind(NamedTuple):
    """A kind of record, or of part of one, with its keys.

    `known` says whether the reader supports the kind, None if it has no list of kinds. `known_keys` are the
    keys it knows of the kind, None if it has no list.
    """

    kind: str
    keys: Iterable[str]
    known: bool | None = None
    known_keys: frozenset[str] | None = None


def _kinds(record: Record) -> Iterator[RecordKind]:
    """Yield the type a record names, for formats without a list of kinds."""
    named = (record.get(key) for key in ("type", "kind", "action", "observation", "role"))
    yield RecordKind(next((name for name in named if isinstance(name, str) and name), ""), record.keys())


def _nothing(_: Any) -> None:
    return None


def lazy_function(place: str) -> Callable[..., Any]:
    """Return the function at `module:name`, whose module is imported when it is first called."""

    def call(*given: Any) -> Any:
        module, _, name = place.partition(":")
        return getattr(import_module(module), name)(*given)

    return call


@dataclass(frozen=True, slots=True)
class FormatInfo:
    """Information on a format that a list of formats prints.

    `of` names the programs and versions that write it, `recognised` how its files are recognised, `prompt`
    which parts of the agent's prompt it records, `page` its documentation page. `keys` are usual keys of
    its records: a file that no format recognises is compared with them.
    """

    of: str
    recognised: str
    prompt: str
    page: str
    keys: frozenset[str]


@dataclass(frozen=True, slots=True)
class SessionFormat:
    """A registered session format: how its files are recognised and read.

    `name` becomes the `source` of its traces. Raise `version` when the same files give other traces, so that
    they are read again. `dialects` are the variants of its files.

    `detect` returns the dialect of one JSON object, None for another format; formats are asked in the order
    of the registry. `read` yields the traces of one source and fills the report, which names the dialect; it
    may raise SourceError if the whole cannot be read. Name it by `lazy_function`, so that its modules are
    imported where a source is read.
    """

    name: str
    version: int
    dialects: tuple[str, ...]
    detect: Callable[[Record], str | None]
    read: Callable[[Path, IngestReport], Iterator[Trace]]
    detect_list: Callable[[Sequence[Record]], str | None] = _nothing
    """Returns the dialect of a bare list by its first objects, where `detect` knows none of them."""
    detect_opening: Callable[[Sequence[Record]], str | None] = _nothing
    """Returns the dialect of a bare list by one or more of its first objects, where they are enough."""
    detect_columns: Callable[[Record], str | None] | None = None
    """Returns the dialect of a table, given a row of empty cells; `detect` is used where this is None."""
    detect_head: Callable[[bytes], str | None] = _nothing
    """Returns the dialect of a file that begins with an object by its first bytes, where they are enough."""
    detect_beginning: Callable[[bytes], str | None] = _nothing
    """Returns the dialect of such a file by its first 64 KiB, where `detect_head` does not know it."""
    detect_item: Callable[[Record], str | None] = _nothing
    """Returns the dialect of a file of one JSON object by the first object in its `trajectory`."""
    detect_archive: Callable[[Sequence[str]], str | None] = _nothing
    """Returns the dialect of a zip archive by the names of its entries."""
    detect_database: Callable[[Path], str | None] = _nothing
    """Returns the dialect of a file that is an SQLite database."""
    detect_text: Callable[[bytes], str | None] = _nothing
    """Returns the dialect of a text that is not JSON by its first bytes."""
    folder_signs: frozenset[str] = frozenset()
    """Names of files and folders; every session folder holds at least one of them."""
    detect_folder: Callable[[Path], str | None] = _nothing
    """Returns the dialect of a folder that is one session."""
    row_reader: Callable[[str], RowReader | None] = _nothing
    """Returns the reader of a dialect's rows where its files hold one run a row, else None."""
    preview_columns: Callable[[Sequence[str]], "PreviewColumns | None"] = _nothing
    """Returns the columns of a table that a preview needs; None for all of them."""
    beside: Callable[[Path], Iterable[str]] = lambda path: ()
    """Returns paths that are read with a source though they lie beside it, and may come or change later."""
    without_claimed: Callable[[list[SourceFile]], list[SourceFile]] = list
    """Removes the sources that are read as a part of another one."""
    growing: frozenset[str] = frozenset()
    """Dialects whose files grow during a session."""
    origin_names_session: bool = False
    """Whether the name of a file is the name of its session."""
    facts: FormatInfo | None = None
    """What `tracemill formats list` prints of the format."""
    records: Callable[[Path, IngestReport], Iterator[Record]] | None = None
    """Yields the records of a file for a census, where it holds neither JSON nor a table."""
    kinds: Callable[[Record], Iterable[RecordKind]] = _kinds
    """Returns the kinds that a record holds, and which kinds and keys are known, for a census."""


@dataclass(frozen=True, slots=True)
class PreviewColumns:
    """Columns of a table for a preview.

    `leaves` are the columns to read (of nested ones, the leaves), `rest` the values that replace the others,
    and `steps_known` is True if the number of steps follows from them.
    """

    leaves: tuple[str, ...]
    rest: Mapping[str, Any]
    steps_known: bool
