"""What the small columns of a table say of its rows, without reading what was said.

A row is made of them with empty messages of the recorded roles, and read as any row is: so the facts
are those the whole row would give.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tracemill.ingesters.reading.parquet_rows import TableSlice, column_rows, leaves_of
from tracemill.ingesters.row_readers import row_reader
from tracemill.records.identity import digest
from tracemill.records.ingest_report import IngestReport
from tracemill.records.trace import Trace

_LISTS = ("messages", "trajectory")
_SMALL = frozenset(
    (
        *("instance_id", "run_id", "trajectory_id", "traj_id", "id", "repo", "resolved", "target"),
        *("model", "model_name", "model_name_or_path", "llm", "gen_tests_correct", "pred_passes_gen_tests"),
    )
)


@dataclass(frozen=True, slots=True)
class Glanced:
    """One row of a table by its number: what tells it from others, and a trace with all its facts but
    no text. `steps` is None where the table keeps its messages as one text."""

    number: int
    key: str
    trace: Trace
    steps: int | None


def glance(part: TableSlice, dialect: str | None) -> Iterator[Glanced]:
    """The rows of a slice that are runs. Raises SourceError where it cannot be read.

    Tables of other dialects than `swe_gym` are read whole.
    """
    read = row_reader(dialect)
    assert read is not None, dialect
    report = IngestReport("")
    for number, row, steps_known in _rows(part, dialect):
        trace = next(iter(read(row, "", report, None)), None)
        if trace is not None:
            small = {name: value for name, value in row.items() if name in _SMALL}
            key = digest(repr(sorted(small.items())), size=10)
            yield Glanced(number, key, trace, trace.step_count if steps_known else None)


def _rows(part: TableSlice, dialect: str | None) -> Iterator[tuple[int, dict[str, Any], bool]]:
    if dialect != "swe_gym":
        for number, row in column_rows(part, None):
            yield number, row, True
        return
    leaves = leaves_of(part.place)
    roles = [leaf for leaf in leaves if _is_role(leaf)]
    for number, row in column_rows(part, [*filter(_is_small, leaves), *roles]):
        yield number, row | ({} if roles else {"messages": [{"role": "assistant"}]}), bool(roles)


def _is_role(leaf: str) -> bool:
    parts = leaf.split(".")
    return len(parts) == 4 and parts[0] in _LISTS and parts[3] == "role"


def _is_small(leaf: str) -> bool:
    column, _, rest = leaf.partition(".")
    if column == "test_result":
        return rest.rpartition(".")[2] == "resolved"
    return column in _SMALL and not rest
