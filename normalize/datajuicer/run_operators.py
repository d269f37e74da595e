"""Run the operators of a recipe over a file of rows, on batches in memory.

Operators are called through data-juicer's own methods. Datasets are built only for operators that compare
rows: building one for every operator, as data-juicer's executor does, takes many times as long.

Each operator has its own statistics, so that stock filters on two fields both filter. A row that makes an
operator raise is dropped and named; the other rows go on.

Importing this module imports data-juicer: only the worker does.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from data_juicer.ops import load_ops
from data_juicer.ops.base_op import OPERATORS, Deduplicator, Filter, Selector
from data_juicer.utils.constant import Fields

import tracemill.normalize.operators.pair_operators  # noqa: F401  registers our operators
from tracemill.normalize.operators.operator_rows import RAISED, ROW_FIELDS, load_row
from tracemill.normalize.operators.row_filters import NOTE, RowFilter
from tracemill.records.errors import NormalizeError

BATCH_ROWS = 1000
OUTSIDE = "outside the bounds of the operator"
REPEATS = "repeats an earlier row"

Row = dict[str, Any]
Reason = tuple[str, str]  # why a row is dropped, and its statistics as JSON


@dataclass(frozen=True, slots=True)
class DroppedRow:
    """A row that an operator dropped, by its `row` number."""

    row: int
    operator: str
    reason: str
    value: str


@dataclass(frozen=True, slots=True)
class RecipeOutcome:
    """Rows a recipe kept, in order, rows it dropped, and the number of rows each operator was given."""

    kept: list[int]
    dropped: list[DroppedRow]
    rows_in: list[int]


@dataclass(slots=True)
class _RecipeRun:
    """The state of a run: the number of rows each operator was given, and the rows dropped so far."""

    operators: Sequence[Any]
    labels: Sequence[str]
    rows_in: list[int]
    dropped: dict[int, DroppedRow] = field(default_factory=dict)

    def filter_rows(self, place: int, batch: list[Row]) -> list[Row]:
        """Return the rows of a batch that the filter at `place` keeps."""
        if not batch:
            return batch
        self.rows_in[place] += len(batch)
        reasons = _judge_rows(self.operators[place], batch)
        for row, reason in zip(batch, reasons, strict=True):
            if reason:
                self._drop(place, row["row"], reason)
        return [row for row, reason in zip(batch, reasons, strict=True) if not reason]

    def prepare(self, place: int, batch: list[Row]) -> list[Row]:
        """Return the values by which the deduplicator or selector at `place` compares the rows of a batch."""
        operator = self.operators[place]
        self.rows_in[place] += len(batch)
        if not isinstance(operator, Deduplicator):
            return batch
        prepared: list[Row] = []
        for row in batch:
            hashed = _hash_row(operator, row)
            if isinstance(hashed, str):
                self._drop(place, row["row"], (RAISED, hashed))
            else:
                prepared.append(hashed)
        return prepared

    def compare(self, place: int, prepared: list[Row]) -> None:
        """Drop the rows that the deduplicator or selector at `place` does not return."""
        from data_juicer.core.data import NestedDataset

        operator = self.operators[place]
        result: Any = operator.process(NestedDataset.from_list(prepared)) if prepared else []
        returned = result[0] if isinstance(result, tuple) else result
        kept = set(returned["row"]) if prepared else set()
        firsts = {_key(row): row["row_id"] for row in prepared if row["row"] in kept}
        for row in prepared:
            if row["row"] not in kept:
                first = firsts.get(_key(row)) if isinstance(operator, Deduplicator) else None
                why = REPEATS if isinstance(operator, Deduplicator) else OUTSIDE
                self._drop(place, row["row"], (why, "" if first is None else json.dumps({"first": first})))

    def _drop(self, place: int, row: int, why: Reason) -> None:
        self.dropped[row] = DroppedRow(row, self.labels[place], *why)


def build_operators(process: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Any]:
    """Build the operators of a recipe.

    Raises NormalizeError for an unknown name or argument, an argument of the wrong type or out of range, and
    for an operator that would change rows.
    """
    # this module imports ray, or the stand-in of `never_install`
    from data_juicer.core.preflight import PipelineConfigError, pre_instantiation_check

    try:
        pre_instantiation_check([{name: dict(arguments)} for name, arguments in process])
    except PipelineConfigError as error:
        raise NormalizeError("; ".join(map(str, error.errors)), "operators data-juicer knows") from None
    return [_build(name, arguments) for name, arguments in process]


def _build(name: str, arguments: Mapping[str, Any]) -> Any:
    if not issubclass(OPERATORS.modules[name], Filter | Deduplicator | Selector):
        raise NormalizeError(
            f"{name} changes rows",
            "filters, deduplicators and selectors",
            "training takes the messages as they are",
        )
    try:
        [operator] = load_ops([{name: dict(arguments)}])
    except Exception as error:
        raise NormalizeError(f"{name} cannot be set up ({type(error).__name__}: {error})") from error
    if isinstance(operator, RowFilter) and not hasattr(operator, "text_keys") and "text_key" not in arguments:
        raise NormalizeError(
            f"{name} does not say what it reads", f"text_key: one of {', '.join(ROW_FIELDS)}"
        )
    low, high = _bounds(operator)
    if low is not None and high is not None and low > high:
        raise NormalizeError(f"{name} has the minimum {low} above the maximum {high}", "a range with values")
    return operator


def run_operators(operators: Sequence[Any], labels: Sequence[str], path: Path, count: int) -> RecipeOutcome:
    """Run every operator over the rows that the operators before it kept.

    `path` holds `count` rows as JSON lines, numbered from 0 in `row`. It is read once, and again after each
    operator that compares rows.
    """
    run, place = _RecipeRun(operators, labels, [0] * len(operators)), 0
    while place < len(operators):
        filters = 0
        while place + filters < len(operators) and isinstance(operators[place + filters], Filter):
            filters += 1
        compares, prepared = place + filters < len(operators), list[Row]()
        for batch in _batches(path, run.dropped):
            for at in range(place, place + filters):
                batch = run.filter_rows(at, batch)
            if compares:
                prepared += run.prepare(place + filters, batch)
        if compares:
            run.compare(place + filters, prepared)
        place += filters + 1
    kept = [row for row in range(count) if row not in run.dropped]
    return RecipeOutcome(kept, [run.dropped[row] for row in sorted(run.dropped)], run.rows_in)


def _batches(path: Path, dropped: Mapping[int, object]) -> Iterator[list[Row]]:
    batch: list[Row] = []
    with path.open("rb") as lines:
        for number, line in enumerate(lines):
            if number not in dropped:
                batch.append(load_row(line))
            if len(batch) == BATCH_ROWS:
                yield batch
                batch = []
    if batch:
        yield batch


def _judge_rows(operator: Any, batch: list[Row]) -> list[Reason | None]:
    """Return why each row is dropped, None if it is kept; a row that makes the operator raise is dropped."""
    judge = _judge_batch if operator.is_batched_op() else _judge_single
    try:
        return judge(operator, batch)
    except Exception as error:
        if len(batch) == 1:
            return [(RAISED, type(error).__name__)]
        return [reason for row in batch for reason in _judge_rows(operator, [row])]


def _judge_batch(operator: Any, batch: list[Row]) -> list[Reason | None]:
    samples: dict[str, Any] = {key: [row[key] for row in batch] for key in batch[0]}
    samples[Fields.stats] = [{} for _ in batch]
    samples = operator.compute_stats_batched(samples)
    stats = samples[Fields.stats]
    keep = list(operator.process_batched(samples))
    return [None if kept else _reason(operator, each) for kept, each in zip(keep, stats, strict=True)]


def _judge_single(operator: Any, batch: list[Row]) -> list[Reason | None]:
    reasons: list[Reason | None] = []
    for row in batch:
        sample = operator.compute_stats_single({**row, Fields.stats: {}})
        kept = operator.process_single(sample)
        reasons.append(None if kept else _reason(operator, sample[Fields.stats]))
    return reasons


def _reason(operator: Any, stats: Mapping[str, Any]) -> Reason:
    """Return why a row with these statistics is dropped, and its numbers as JSON."""
    if error := next((note for name, note in stats.items() if name.endswith(NOTE) and note), ""):
        return RAISED, error
    numbers = {name: value for name, value in stats.items() if isinstance(value, int | float)}
    why, (low, high) = OUTSIDE, _bounds(operator)
    if len(numbers) == 1:
        [(name, value)] = numbers.items()
        statistic = name.split("__")[-1]
        if isinstance(value, bool):
            why = "condition not met"
        elif low is not None and value < low:
            why = f"{statistic} below {low:g}"
        elif high is not None and value > high:
            why = f"{statistic} above {high:g}"
    return why, json.dumps({name: _rounded(value) for name, value in numbers.items()})


def _bounds(operator: Any) -> tuple[float | None, float | None]:
    """Return the only `min_...` and the only `max_...` argument of an operator, else None."""

    def only(prefix: str) -> float | None:
        bounds = [
            value
            for name, value in vars(operator).items()
            if name.startswith(prefix) and isinstance(value, int | float) and not isinstance(value, bool)
        ]
        return bounds[0] if len(bounds) == 1 else None

    return only("min_"), only("max_")


def _rounded(value: float) -> float:
    if isinstance(value, bool):
        return value
    return int(value) if value == int(value) else round(value, 4)


def _hash_row(operator: Any, row: Row) -> Row | str:
    """Return the ids of a row with a deduplicator's hash of it; the type of the error if it raises."""
    try:
        hashed = operator.compute_hash(dict(row))
    except Exception as error:
        return type(error).__name__
    return {"row": row["row"], "row_id": row["row_id"]} | {k: v for k, v in hashed.items() if k not in row}


def _key(row: Row) -> str:
    return repr([value for name, value in row.items() if name not in ("row", "row_id")])
