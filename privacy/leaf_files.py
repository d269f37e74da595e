"""Files as texts: which kind a file is says its content, not its name."""

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from privacy.leaves import Place, Text, loads, strings_of
from records.errors import SourceError

_BATCH = 64  # rows of a Parquet file that are decoded at a time
_PIECE = 4_000_000  # characters of a plain text that are judged at a time
_WHOLE = 512_000_000  # bytes of a JSON document that is decoded whole
_SKIPPED_NAMES = frozenset(("redaction.key", "scan.key", ".lock", ".run-lock"))
_SKIPPED_FOLDERS = frozenset((".git",))
_LINES = (".jsonl", ".ndjson")
_PARQUET, _SQLITE = b"PAR1", b"SQLite format 3\0"


def files_under(path: Path, passed_over: Counter[str]) -> Iterator[Path]:
    """The files of a folder in the order of their names, hidden ones too; or the one file given.

    Raises SourceError where there is none, or it cannot be read.
    """
    if not path.exists():
        raise SourceError(f"{path} is not there", "a file or folder")
    if not path.is_dir():
        yield path
        return
    try:
        entries = sorted(path.iterdir())
    except OSError as error:
        raise SourceError(f"{path} cannot be read ({error.strerror})", "a readable folder") from None
    for entry in entries:
        if entry.is_symlink():
            passed_over["a link"] += 1
        elif entry.is_dir():
            if entry.name in _SKIPPED_FOLDERS:
                passed_over["a git folder"] += 1
            else:
                yield from files_under(entry, passed_over)
        elif entry.name in _SKIPPED_NAMES:
            passed_over["a key or lock of tracemill's own"] += 1
        elif entry.is_file():
            yield entry


def texts_of(path: Path, shown: str, passed_over: Counter[str]) -> Iterator[Text]:
    """Every string of a file; `shown` is its name in places. What cannot be decoded is counted.

    Raises SourceError where the file cannot be read, or is Parquet or SQLite and broken.
    """
    try:
        with path.open("rb") as handle:
            head = handle.read(8192)
        if head.startswith(_PARQUET):
            yield from _of_parquet(path, shown)
        elif head.startswith(_SQLITE):
            yield from _of_sqlite(path, shown)
        elif b"\0" in head:
            passed_over["binary"] += 1
        elif path.suffix in _LINES or head.lstrip()[:1] in (b"{", b"["):
            yield from _of_json(path, shown)
        else:
            yield from _of_text(path, shown)
    except (OSError, sqlite3.Error) as error:
        raise SourceError(f"{path} cannot be read ({type(error).__name__})", "a readable file") from None


def _of_parquet(path: Path, shown: str) -> Iterator[Text]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    row = 0
    try:
        for batch in pq.ParquetFile(path).iter_batches(batch_size=_BATCH):
            for value in batch.to_pylist():
                yield from strings_of(value, Place(shown, row=row))
                row += 1
    except pa.ArrowException:
        raise SourceError(f"{path} cannot be read as Parquet", "a whole file") from None


def _of_sqlite(path: Path, shown: str) -> Iterator[Text]:
    log = path.with_name(f"{path.name}-wal")
    open_elsewhere = log.exists() and log.stat().st_size > 0
    mode = "mode=ro" if open_elsewhere else "immutable=1"  # so that no file is made beside it
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?{mode}", uri=True)) as base:
        base.row_factory = sqlite3.Row
        base.text_factory = lambda data: data.decode("utf-8", "replace")
        tables = [name for (name,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in sorted(tables):
            quoted = table.replace('"', '""')
            for number, row in enumerate(base.execute(f'SELECT * FROM "{quoted}"')):
                value = {key: row[key] for key in row.keys() if isinstance(row[key], str)}  # noqa: SIM118
                yield from strings_of(value, Place(shown, row=number), "", (None, table))


def _of_json(path: Path, shown: str) -> Iterator[Text]:
    """A JSON document, or JSON Lines; a line that is none is text."""
    with path.open("rb") as handle:
        first = handle.readline()
        single = not handle.read(1)
    lines = path.suffix in _LINES or single
    if not lines and loads(first) is None and path.stat().st_size <= _WHOLE:
        value = loads(path.read_bytes())
        if value is None:
            yield from _of_text(path, shown)
        else:
            yield from strings_of(value, Place(shown))
        return
    with path.open("rb") as handle:
        for number, line in enumerate(handle, start=1):
            value = loads(line)
            place = Place(shown, line=number)
            plain = line.decode("utf-8", "replace").rstrip("\n")
            yield from strings_of(plain if value is None else value, place)


def _of_text(path: Path, shown: str) -> Iterator[Text]:
    with path.open(encoding="utf-8", errors="replace", newline="\n") as handle:
        line = 1
        while lines := handle.readlines(_PIECE):
            yield Text("".join(lines), "", Place(shown, line=line), None)
            line += len(lines)
