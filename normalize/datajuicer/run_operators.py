"""The operators of a recipe over a file of rows, through data-juicer's own hooks, on batches in memory.

Datasets come in where operators compare rows, and hold no more of a row than what is compared: going through
them for every operator, as data-juicer's executor does, takes many times as long for the same survivors.

Each operator gets statistics of its own, so that stock filters on two fields both filter. A row that makes an
operator raise is dropped and named; the rows around it are judged on.

Importing this module imports data-juicer: only the worker does.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from data_juicer.ops import load_ops
from data_juicer.ops.base_op import OPERATORS, Deduplicator, Filter, Selector
from data_juicer.utils.constant import Fields

import tracemill.normalize.operators.pair_operators  # noqa: F401  registers ours, lets nothing be installed
from tracemill.normalize.operators.operator_rows import RAISED, ROW_FIELDS, load_row
from tracemill.normalize.operators.row_filters import NOTE, RowFilter
from tracemill.records.errors import NormalizeError

BATCH_ROWS = 1000
OUTSIDE = "outside the bounds of the operator"
REPEATS = "repeats an earlier row"

Row = dict[str, Any]
Reason = tuple[str, str]  # why a row is dropped, and its statistics as JSON


@dataclass(frozen=True, slots=True)
class Drop:
    """One row an operator dropped, by its `row` number."""

    row: int
    operator: str
    reason: str
    value: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a recipe did: rows kept in their order, rows dropped, and what each operator was given."""

    kept: list[int]
    dropped: list[Drop]
    rows_in: list[int]


@dataclass(slots=True)
class _Run:
    """A recipe on its way over the rows: how many rows each operator was given, and which are gone."""

    operators: Sequence[Any]
    labels: Sequence[str]
    rows_in: list[int]
    gone: dict[int, Drop] = field(default_factory=dict)

    def filtered(self, place: int, batch: list[Row]) -> list[Row]:
        """The rows of a batch that a filter leaves."""
        if not batch:
            return batch
        reasons = _filtered(self.operators[place], batch)
        return self._left(place, batch, dict(enumerate(reasons)))

    def hashed(self, place: int, batch: list[Row]) -> list[Row]:
        """What a deduplicator or a selector compares of the rows of a batch."""
        operator = self.operators[place]
        self.rows_in[place] += len(batch)
        if not isinstance(operator, Deduplicator):
            return batch
        made = [_hashed(operator, row) for row in batch]
        for row, one in zip(batch, made, strict=True):
            if isinstance(one, str):
                self._drop(place, row["row"], (RAISED, one))
        return [one for one in made if not isinstance(one, str)]

    def compared(self, place: int, prepared: list[Row]) -> None:
        """Let a deduplicator or a selector choose among all rows at once: those that come back stay."""
        from data_juicer.core.data import NestedDataset

        operator = self.operators[place]
        result: Any = operator.process(NestedDataset.from_list(prepared)) if prepared else []
        left = result[0] if isinstance(result, tuple) else result
        stay = set(left["row"]) if prepared else set()
        firsts = {_key(row): row["row_id"] for row in prepared if row["row"] in stay}
        for row in prepared:
            if row["row"] not in stay:
                first = firsts.get(_key(row)) if isinstance(operator, Deduplicator) else None
                why = REPEATS if isinstance(operator, Deduplicator) else OUTSIDE
                self._drop(place, row["row"], (why, "" if first is None else json.dumps({"first": first})))

    def _left(self, place: int, batch: list[Row], reasons: Mapping[int, Reason | None]) -> list[Row]:
        self.rows_in[place] += len(batch)
        left = []
        for at, row in enumerate(batch):
            if why := reasons[at]:
                self._drop(place, row["row"], why)
            else:
                left.append(row)
        return left

    def _drop(self, place: int, row: int, why: Reason) -> None:
        self.gone[row] = Drop(row, self.labels[place], *why)


def build_operators(process: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Any]:
    """Return the operators of a recipe. Raises NormalizeError for an unknown name or argument, an argument of
    another type or out of range, and for operators that would change a row."""
    from data_juicer.core.preflight import PipelineConfigError, pre_instantiation_check  # wants ray, or ours

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


def run_operators(operators: Sequence[Any], labels: Sequence[str], path: Path, count: int) -> Outcome:
    """Run every operator over the rows that the ones before it left. `path` holds `count` rows, one JSON
    object a line, numbered from 0 in `row`. It is read once, and again behind each operator that compares."""
    run, place = _Run(operators, labels, [0] * len(operators)), 0
    while place < len(operators):
        filters = 0
        while place + filters < len(operators) and isinstance(operators[place + filters], Filter):
            filters += 1
        compares, prepared = place + filters < len(operators), list[Row]()
        for batch in _batches(path, run.gone):
            for at in range(place, place + filters):
                batch = run.filtered(at, batch)
            if compares:
                prepared += run.hashed(place + filters, batch)
        if compares:
            run.compared(place + filters, prepared)
        place += filters + 1
    kept = [row for row in range(count) if row not in run.gone]
    return Outcome(kept, [run.gone[row] for row in sorted(run.gone)], run.rows_in)


def _batches(path: Path, gone: Mapping[int, object]) -> Iterator[list[Row]]:
    batch: list[Row] = []
    with path.open("rb") as lines:
        for number, line in enumerate(lines):
            if number not in gone:
                batch.append(load_row(line))
            if len(batch) == BATCH_ROWS:
                yield batch
                batch = []
    if batch:
        yield batch


def _filtered(operator: Any, batch: list[Row]) -> list[Reason | None]:
    judge = _judge_batch if operator.is_batched_op() else _judge_single
    try:
        return judge(operator, batch)
    except Exception:  # one row of the batch: find it, and judge the others
        return [_judge_alone(judge, operator, row) for row in batch]


def _judge_alone(
    judge: Callable[[Any, list[Row]], list[Reason | None]], operator: Any, row: Row
) -> Reason | None:
    try:
        return judge(operator, [row])[0]
    except Exception as error:
        return RAISED, type(error).__name__


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
    """Why a row of these statistics is dropped, in words that hold no figure of the row, and its figures."""
    if error := next((note for name, note in stats.items() if name.endswith(NOTE) and note), ""):
        return RAISED, error
    figures = {name: value for name, value in stats.items() if isinstance(value, int | float)}
    why, (low, high) = OUTSIDE, _bounds(operator)
    if len(figures) == 1:
        [(name, value)] = figures.items()
        figure = name.split("__")[-1]
        if isinstance(value, bool):
            why = "condition not met"
        elif low is not None and value < low:
            why = f"{figure} below {low:g}"
        elif high is not None and value > high:
            why = f"{figure} above {high:g}"
    return why, json.dumps({name: _short(value) for name, value in figures.items()})


def _bounds(operator: Any) -> tuple[float | None, float | None]:
    """The least and the most an operator lets pass, where it has one such argument."""

    def only(prefix: str) -> float | None:
        found = [
            value
            for name, value in vars(operator).items()
            if name.startswith(prefix) and isinstance(value, int | float) and not isinstance(value, bool)
        ]
        return found[0] if len(found) == 1 else None

    return only("min_"), only("max_")


def _short(value: float) -> float:
    if isinstance(value, bool):
        return value
    return int(value) if value == int(value) else round(value, 4)


def _hashed(operator: Any, row: Row) -> Row | str:
    """The number of a row and what a deduplicator computes of it; the type of the error where it raises."""
    try:
        made = operator.compute_hash(dict(row))
    except Exception as error:
        return type(error).__name__
    return {"row": row["row"], "row_id": row["row_id"]} | {k: v for k, v in made.items() if k not in row}


def _key(row: Row) -> str:
    return repr([value for name, value in row.items() if name not in ("row", "row_id")])
