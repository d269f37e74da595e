"""Tell what a file looks like that no format recognises: its keys, their types, the nearest format.

Names that are not plain words become `other`, and no value is shown: either may be content.
"""

from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from tracemill.ingesters.common.foreign_rows import keys_of_row, name_foreign_row
from tracemill.ingesters.reading.row_files import iter_rows
from tracemill.ingesters.registry import FORMATS
from tracemill.records.errors import SourceError
from tracemill.records.ingest_report import IngestReport

_MAX_ROWS = 20
_MAX_BYTES = 1 << 26
_MIN_SHARED = 2


def looks_like(path: Path) -> str:
    """Return a description of a file's first objects, "" for a folder and a file of more than 64 MiB."""
    try:
        if path.is_dir() or path.stat().st_size > _MAX_BYTES:
            return ""
        rows = list(islice(iter_rows(path, IngestReport(str(path))), _MAX_ROWS))
    except (SourceError, OSError, EOFError, ValueError):
        return "no JSON and no table"
    objects = [row for row in rows if isinstance(row, dict) and row]
    if not objects:
        return "JSON without an object" if rows else "no line is a JSON object"
    parts = [f"objects with {keys_of_row(objects[0])}"]
    if foreign := name_foreign_row(objects[0]):
        parts.append(f"these are {foreign}")
    if nearest := _nearest_format(objects):
        parts.append(f"nearest format {nearest}")
    return "; ".join(parts)


def _nearest_format(objects: Iterable[Mapping[str, Any]]) -> str:
    """Return the format that shares most keys with the objects, and these keys; "" if none shares two."""
    seen = frozenset(key for each in objects for key in each)
    shared = {form.name: seen & form.facts.keys for form in FORMATS if form.facts is not None}
    name = max(shared, key=lambda each: len(shared[each]), default="")
    if not name or len(shared[name]) < _MIN_SHARED:
        return ""
    return f"{name}, by {', '.join(sorted(shared[name]))}"
