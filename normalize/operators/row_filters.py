"""Filters with statistics of their own, so that one line of a recipe judges one side and the next the other.

Stock filters keep their figure under one name whatever field they read, so that under data-juicer's executor
the second of two takes the figure of the first and never filters. These name the figure after the field, and
a row that makes one raise is dropped alone and says so in its statistics.

Importing this module imports data-juicer, which takes seconds: only the process that runs it does.
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
    """A filter of one figure a row, kept in the statistics as `<fields>__<figure>`.

    Subclasses name the `figure`, give `measure` (the figure of a row) and `keeps` (whether a figure passes).
    `unless` is a condition in the language of `general_field_filter`, such as `chosen_calls > 0`: a row that
    meets it stays unmeasured. The note beside the figure says so, or names the error the row raised.
    """

    _batched_op = True
    figure: ClassVar[str]

    def __init__(self, unless: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.unless = ast.parse(unless.strip(), mode="eval") if unless.strip() else None

    @property
    def stat(self) -> str:
        """The name of the figure in the statistics."""
        return f"{'_'.join(getattr(self, 'text_keys', (self.text_key,)))}__{self.figure}"

    def measure(self, row: Mapping[str, Any]) -> float:
        """Return the figure of a row."""
        raise NotImplementedError

    def keeps(self, value: float) -> bool:
        """Return whether a row of this figure stays."""
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
        """Return for each row whether it stays: data-juicer's second pass."""
        stat, note = self.stat, self.stat + NOTE
        return [self._stays(stats[stat], stats[note]) for stats in samples[Fields.stats]]

    def _measured(self, row: Any) -> tuple[float, str]:
        try:
            if self.unless is not None and ExpressionTransformer(row).transform(self.unless):
                return -1.0, EXEMPT
            return float(self.measure(row)), ""
        except Exception as error:  # whatever a row does to an operator costs that row alone
            return -1.0, type(error).__name__

    def _stays(self, value: float, note: str) -> bool:
        return note == EXEMPT or (not note and self.keeps(value))


class OwnStatistics(RowFilter):
    """Put before a stock filter among the bases of a class: its figure and its bounds, with statistics of its
    own. `figure` is the name the stock filter gives its figure."""

    def measure(self, row: Mapping[str, Any]) -> float:
        """Return the figure that the stock filter computes of the row."""
        stats: dict[str, Any] = {}
        one = {self.text_key: [row[self.text_key]], Fields.stats: [stats]}
        super(RowFilter, self).compute_stats_batched(one)
        return stats[self.figure]

    def keeps(self, value: float) -> bool:
        """Return whether the stock filter keeps a row of this figure."""
        [stays] = super(RowFilter, self).process_batched({Fields.stats: [{self.figure: value}]})
        return bool(stays)
