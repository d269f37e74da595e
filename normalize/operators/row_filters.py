"""Base classes of filters whose statistics are named after the field they read.

A stock filter stores its statistic under one name for every field, so that under data-juicer's executor the
second of two such filters reuses the statistic of the first. A row that makes one of these filters raise is
dropped alone, and its statistics name the error.

Importing this module imports data-juicer, which takes seconds: only the worker does.
"""

import ast
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from data_juicer.ops.base_op import Filter
from data_juicer.ops.filter.general_field_filter import ExpressionTransformer
from data_juicer.utils.constant import Fields

NOTE = "__note"
EXEMPT = "exempt"


class _Row(Mapping[str, Any]):
    """One row of a batch, without copying it."""

    __slots__ = ("_index", "_samples")

    def __init__(self, samples: Mapping[str, list[Any]], index: int) -> None:
        self._samples, self._index = samples, index

    def __getitem__(self, key: str) -> Any:
        return self._samples[key][self._index]

    def __iter__(self) -> Iterator[str]:
        return iter(self._samples)

    def __len__(self) -> int:
        return len(self._samples)


class RowFilter(Filter):
    """A filter by one number per row, stored in the statistics as `<fields>__<figure>`.

    Subclasses define the name `figure`, `measure` (the number of a row) and `keeps` (whether it passes).
    `unless` is a condition as in `general_field_filter`, such as `chosen_calls > 0`: a row that meets it is
    kept unmeasured. A note beside the number says so, or names the error that the row raised.
    """

    _batched_op = True
    figure: ClassVar[str]

    def __init__(self, unless: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.unless = ast.parse(unless.strip(), mode="eval") if unless.strip() else None

    @property
    def stat(self) -> str:
        """Return the name of the number in the statistics."""
        return f"{'_'.join(getattr(self, 'text_keys', (self.text_key,)))}__{self.figure}"

    def measure(self, row: Mapping[str, Any]) -> float:
        """Return the number of a row."""
        raise NotImplementedError

    def keeps(self, value: float) -> bool:
        """Return whether a row with this number is kept."""
        raise NotImplementedError

    def compute_stats_batched(
        self, samples: dict[str, list[Any]], *_: Any, **__: Any
    ) -> dict[str, list[Any]]:
        """Measure each row: data-juicer's first pass."""
        stat, note = self.stat, self.stat + NOTE
        for index, stats in enumerate(samples[Fields.stats]):
            stats[stat], stats[note] = self._measured(_Row(samples, index))
        return samples

    def process_batched(self, samples: dict[str, list[Any]]) -> Any:
        """Return for each row whether it is kept: data-juicer's second pass."""
        stat, note = self.stat, self.stat + NOTE
        return [
            stats[note] == EXEMPT or (not stats[note] and self.keeps(stats[stat]))
            for stats in samples[Fields.stats]
        ]

    def _measured(self, row: Any) -> tuple[float, str]:
        try:
            if self.unless is not None and ExpressionTransformer(row).transform(self.unless):
                return -1.0, EXEMPT
            return float(self.measure(row)), ""
        except Exception as error:  # it drops this row alone
            return -1.0, type(error).__name__


class OwnStatistics(RowFilter):
    """A mixin before a stock filter that gives it statistics of its own.

    `figure` is the name of the statistic that the stock filter computes.
    """

    def measure(self, row: Mapping[str, Any]) -> float:
        """Return the number that the stock filter computes of the row."""
        stats: dict[str, Any] = {}
        one = {self.text_key: [row[self.text_key]], Fields.stats: [stats]}
        super(RowFilter, self).compute_stats_batched(one)
        return stats[self.figure]

    def keeps(self, value: float) -> bool:
        """Return whether the stock filter keeps a row with this number."""
        [stays] = super(RowFilter, self).process_batched({Fields.stats: [{self.figure: value}]})
        return bool(stays)
