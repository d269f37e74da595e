"""Read files as texts; the kind of a file is detected by its content, not by its name."""

import io
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import IO, Any

from tracemill.privacy.core.secret_names import is_secret_name
from tracemill.privacy.publish_gate.decoded_texts import (
    StoredText,
    TextLocation,
    Trail,
    list_decoded_texts,
    load_decoded_json,
    resolve_references,
)
from tracemill.privacy.publish_gate.documents import Document, SkippedFiles, is_text, read_documents
from tracemill.privacy.publish_gate.markdown_tables import split_tables
from tracemill.privacy.publish_gate.strict_personal import is_personal_label
from tracemill.records.errors import SourceError
from tracemill.records.packed_json import unpack_json_text

_BATCH = 64  # rows of a Parquet file that are decoded at a time
_PIECE = 4_000_000  # characters of a plain text that are judged at a time
_WHOLE = 512_000_000  # bytes of a document that is decoded whole
_SKIPPED_NAMES = frozenset(("redaction.key", "scan.key", ".lock", ".run-lock"))
_SKIPPED_FOLDERS = frozenset((".git",))
_LINES = (".jsonl", ".ndjson")
_MARKDOWN = (".md", ".markdown")
_PAGE = (b"<!doctype html", b"<html")
_EMBEDDED = re.compile(
    r"(?P<tag><script\b[^>]{0,500}\btype=[\"']?application/(?:(?:ld\+)?json|(?P<packed>gzip))\b[^>]{0,500}>)"
    r"(?P<json>.*?)(?=</script)",
    re.S | re.I,
)
_NAME: Trail = (None, "(file name)")
_LEAST_NAME = 8  # characters of a name that is judged, as of a JSON key
_PARQUET, _SQLITE = b"PAR1", b"SQLite format 3\0"


def walk_text_files(path: Path, skipped: SkippedFiles) -> Iterator[Path]:
    """Yield the files of a folder in order of name, hidden ones too, or the one file given.

    Raises SourceError where there is none. A folder that cannot be read is named in `skipped`.
    """
    if not path.exists():
        raise SourceError(f"{path} is not there", "a file or folder")
    if not path.is_dir():
        yield path
        return
    try:
        entries = sorted(path.iterdir())
    except OSError as error:
        skipped.cannot(f"unreadable ({error.strerror})", str(path))
        return
    for entry in entries:
        if entry.is_symlink():
            skipped.passed_over["a link"] += 1
        elif entry.is_dir():
            if entry.name in _SKIPPED_FOLDERS:
                skipped.passed_over["a git folder"] += 1
            else:
                yield from walk_text_files(entry, skipped)
        elif entry.name in _SKIPPED_NAMES:
            skipped.passed_over["a key or lock of tracemill's own"] += 1
        elif entry.is_file():
            yield entry
        else:
            skipped.passed_over["a pipe, socket or device"] += 1


def read_file_texts(path: Path, shown: str, skipped: SkippedFiles) -> Iterator[StoredText]:
    """Yield every string of a file and of the members of an archive, and their names.

    `shown` is the file's name in places. What cannot be read is named in `skipped`. Raises SourceError for a
    socket, a device, and a pipe without a writer.
    """
    for document in read_documents(path, shown, skipped):
        if len(document.shown) >= _LEAST_NAME:
            yield StoredText(document.shown, "", TextLocation(document.shown), _NAME)
        yield from _of_document(document, skipped)


def _of_document(made: Document, skipped: SkippedFiles) -> Iterator[StoredText]:
    import pyarrow as pa

    head = made.head()
    try:
        if head.startswith(_PARQUET) or made.suffix == ".parquet":
            yield from _of_parquet(made.handle, made.shown)
        elif head.startswith(_SQLITE):
            yield from _of_sqlite(made, skipped)
        elif not is_text(head):
            skipped.cannot("binary", made.shown)
        elif made.suffix in _LINES or head.lstrip()[:1] in (b"{", b"["):
            yield from _of_json(made)
        elif head.lstrip()[:20].lower().startswith(_PAGE) and made.handle.seek(0, 2) <= _WHOLE:
            yield from _of_page(made)
        elif made.suffix in _MARKDOWN and made.handle.seek(0, 2) <= _WHOLE:
            yield from _of_markdown(made)
        else:
            yield from _of_text(made)
    except pa.ArrowException:
        skipped.cannot("broken Parquet", made.shown)
    except sqlite3.Error:
        skipped.cannot("broken SQLite", made.shown)
    except OSError as error:
        skipped.cannot(f"unreadable ({error.strerror or 'cut short'})", made.shown)


def _of_parquet(handle: IO[bytes], shown: str) -> Iterator[StoredText]:
    import pyarrow.parquet as pq

    row, file = 0, pq.ParquetFile(handle)
    yield from list_decoded_texts(_described(file.schema_arrow), TextLocation(shown), "", (None, "(schema)"))
    for batch in file.iter_batches(batch_size=_BATCH):
        for value in batch.to_pylist():
            yield from list_decoded_texts(value, TextLocation(shown, row=row))
            row += 1


def _described(schema: Any) -> list[Any]:
    """Return the names and the metadata of a schema and of all fields inside it."""
    found: list[Any] = [_decoded(schema.metadata)]
    fields = list(schema)
    while fields:
        each = fields.pop()
        found.append(_decoded(each.metadata))
        if len(each.name) >= _LEAST_NAME:
            found.append(each.name)
        fields += [each.type.field(index) for index in range(each.type.num_fields)]
    return [each for each in found if each]


def _decoded(metadata: dict[bytes, bytes] | None) -> dict[str, str]:
    pairs = (metadata or {}).items()
    return {key.decode("utf-8", "replace"): value.decode("utf-8", "replace") for key, value in pairs}


def _of_sqlite(made: Document, skipped: SkippedFiles) -> Iterator[StoredText]:
    with closing(_base(made)) as base:
        base.text_factory = lambda data: data.decode("utf-8", "replace")
        query = "SELECT name, sql FROM sqlite_master WHERE type = 'table'"
        for table, made_by in sorted(base.execute(query).fetchall()):
            yield from list_decoded_texts(made_by, TextLocation(made.shown), "", (None, "(schema)"))
            quoted = table.replace('"', '""')
            rows = base.execute(f'SELECT * FROM "{quoted}"')
            names = [column[0] for column in rows.description]
            for number, row in enumerate(rows):
                value = dict(zip(names, (_plain(cell) for cell in row), strict=True))
                if any(isinstance(cell, bytes) for cell in value.values()):
                    skipped.cannot("binary values of SQLite", made.shown)
                yield from list_decoded_texts(value, TextLocation(made.shown, row=number), "", (None, table))


def _base(made: Document) -> sqlite3.Connection:
    """Open a SQLite database read-only; a member of an archive is opened in memory."""
    if made.path is None:
        base = sqlite3.connect(":memory:")
        base.deserialize(made.handle.read())
        return base
    log = made.path.with_name(f"{made.path.name}-wal")
    open_elsewhere = log.exists() and log.stat().st_size > 0
    mode = "mode=ro" if open_elsewhere else "immutable=1"  # makes no file beside it
    return sqlite3.connect(f"{made.path.resolve().as_uri()}?{mode}", uri=True)


def _plain(cell: Any) -> Any:
    """Return a cell that is stored as bytes and is text as text."""
    try:
        return cell.decode("utf-8") if isinstance(cell, bytes) else cell
    except UnicodeDecodeError:
        return cell


def _of_json(made: Document) -> Iterator[StoredText]:
    """Yield the texts of a JSON document or of JSON Lines; an invalid line is a text."""
    handle, size = made.handle, made.handle.seek(0, 2)
    handle.seek(0)
    first = handle.readline()
    lines = made.suffix in _LINES or handle.tell() == size
    handle.seek(0)
    if not lines and load_decoded_json(first) is None and size <= _WHOLE:
        text = handle.read().decode("utf-8", "replace")
        value = load_decoded_json(text)
        yield from _of_text(made) if value is None else _of_value(text, value, TextLocation(made.shown))
        return
    for number, line in enumerate(handle, start=1):
        text = line.decode("utf-8", "replace").rstrip("\n")
        yield from _of_value(text, load_decoded_json(text), TextLocation(made.shown, line=number))


def _of_value(text: str, value: Any, place: TextLocation) -> Iterator[StoredText]:
    """Yield the texts of a JSON value.

    An object or an array stays whole, so that its names count.
    """
    if isinstance(value, dict) and "nbformat" in value:
        yield from list_decoded_texts(_whole(value), place)
    elif isinstance(value, dict | list):
        yield StoredText(text.strip(), "", place, None)
    else:
        yield from list_decoded_texts(text if value is None else value, place)


def _whole(value: Any) -> Any:
    """Return a notebook's value with texts that are stored as lists of lines joined."""
    if isinstance(value, dict):
        return {key: _whole(item) for key, item in value.items()}
    if not isinstance(value, list):
        return value
    lines = all(isinstance(item, str) for item in value)
    return "".join(value) if lines else [_whole(item) for item in value]


def _of_page(made: Document) -> Iterator[StoredText]:
    """Yield the texts of an HTML page: embedded JSON unpacked and decoded, references resolved elsewhere."""
    made.handle.seek(0)
    page = made.handle.read().decode("utf-8", "replace")
    embedded: list[tuple[int, str, Any]] = []

    def without_json(found: re.Match[str]) -> str:
        text = unpack_json_text(found["json"], _WHOLE) if found["packed"] else found["json"]
        value = None if text is None else load_decoded_json(text)
        if text is None or value is None:
            return found[0]
        embedded.append((page.count("\n", 0, found.start("json")) + 1, text, value))
        return found["tag"] + "\n" * found["json"].count("\n")

    markup = _EMBEDDED.sub(without_json, page)
    for line, text, value in embedded:
        yield from _of_value(text, value, TextLocation(made.shown, line=line))
    yield from _pieces(io.BytesIO(resolve_references(markup).encode("utf-8", "replace")), made.shown)


def _of_markdown(made: Document) -> Iterator[StoredText]:
    """Yield the texts of a Markdown page: the cells of its tables, and the rest."""
    made.handle.seek(0)
    rest, cells = split_tables(made.handle.read().decode("utf-8", "replace"))
    yield from _pieces(io.BytesIO(rest.encode("utf-8", "replace")), made.shown)
    before = None
    for cell in cells:
        label = before.text if before and before.line == cell.line else ""
        private = is_secret_name(cell.heading) or is_personal_label(cell.heading)
        name = cell.heading if private else label
        yield StoredText(
            cell.text, name, TextLocation(made.shown, line=cell.line), (None, cell.heading or "(cell)")
        )
        before = cell


def _of_text(made: Document) -> Iterator[StoredText]:
    made.handle.seek(0)
    yield from _pieces(made.handle, made.shown)


def _pieces(handle: IO[bytes], shown: str) -> Iterator[StoredText]:
    line = 1
    while lines := handle.readlines(_PIECE):
        yield StoredText(b"".join(lines).decode("utf-8", "replace"), "", TextLocation(shown, line=line), None)
        line += len(lines)
