"""Operators of tracemill for data-juicer: one stat key a side, and a verdict that says why.

Stock filters keep one stat whatever field they read, so the second of two on one row takes the first
one's figure and never filters. These name the stat after the field. They run under data-juicer's own
executor as well as bare; a row that makes one raise is dropped and carries the error in its stats.

Importing this module imports data-juicer, which takes seconds: only the worker does.
"""

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, ClassVar

from data_juicer.ops.base_op import OPERATORS, Filter
from data_juicer.ops.common import SPECIAL_CHARACTERS
from data_juicer.utils.constant import Fields

from tracemill.normalize.operators.operator_rows import RAISED
from tracemill.normalize.operators.word_counts import count_words

# What stands before a turn in chat templates, and roles that begin a paragraph.
_OTHER_ROLE = re.compile(
    r"<\|(?:im_start|start_header_id|user|assistant|system|observation|tool)\|>"
    r"|\n[ \t]*\n(?:Human|User|Assistant|Observation|Tool (?:result|output)|System):[ \n]"
)
# Emoji of several code points are in the list too; a character by itself never equals one.
_WITHOUT_SPECIAL = {ord(entry): None for entry in SPECIAL_CHARACTERS if len(entry) == 1}
_SPECIAL_ASCII = bytes(code for code in _WITHOUT_SPECIAL if code < 128)

Reason = tuple[str, str]  # why a row is dropped, and the value that failed


class RowFilter(Filter):
    """A filter with one figure a row, kept in the stat `stat`, and a reason where it fails.

    Subclasses give `measure` (the figure of one row) and `judge` (why a figure fails, or None).
    """

    _batched_op = True
    stat: str

    def measure(self, row: Mapping[str, Any]) -> float:
        """The figure of one row."""
        raise NotImplementedError

    def judge(self, value: float) -> Reason | None:
        """Why a row of this figure is dropped, and the figure as text; None where it is kept."""
        raise NotImplementedError

    def explain(self, stats: Mapping[str, Any]) -> Reason | None:
        """Why a row of these stats is dropped; None where it is kept."""
        error = stats[f"{self.stat}__error"]
        return (RAISED, error) if error else self.judge(stats[self.stat])

    def compute_stats_batched(
        self, samples: dict[str, list[Any]], *_: Any, **__: Any
    ) -> dict[str, list[Any]]:
        """data-juicer's first pass: the figure of each row, and the type of the error where it has none."""
        for row, stats in zip(_rows(samples), samples[Fields.stats], strict=True):
            stats[self.stat], stats[f"{self.stat}__error"] = self._measured(row)
        return samples

    def verdict(self, row: Mapping[str, Any]) -> Reason | None:
        """Both passes over one row: why it is dropped, None where it is kept."""
        value, error = self._measured(row)
        return (RAISED, error) if error else self.judge(value)

    def process_batched(self, samples: dict[str, list[Any]]) -> Any:
        """data-juicer's second pass: a list, True for each row that is kept."""
        return [self.explain(stats) is None for stats in samples[Fields.stats]]

    def _measured(self, row: Mapping[str, Any]) -> tuple[float, str]:
        try:
            return float(self.measure(row)), ""
        except Exception as error:  # whatever a row does to an operator costs that row alone
            return -1.0, type(error).__name__


class SideFilter(RowFilter):
    """A filter of one side that keeps figures from `low` to `high`, both included."""

    figure: ClassVar[str]
    unit: ClassVar[str]

    def __init__(self, text_key: str, low: float, high: float, **kwargs: Any) -> None:
        if low > high:
            raise ValueError(f"the minimum {low} is above the maximum {high}")
        super().__init__(text_key=text_key, **kwargs)
        self.low, self.high = low, high
        self.stat = f"{text_key}__{self.figure}"

    def judge(self, value: float) -> Reason | None:
        if value < self.low:
            return f"fewer than {self.low} {self.unit}", f"{value:g}"
        if value > self.high:
            return f"more than {self.high} {self.unit}", f"{value:g}"
        return None


@OPERATORS.register_module("side_length_filter")
class SideLengthFilter(SideFilter):
    """Keeps rows whose side has `min_len` to `max_len` characters."""

    figure, unit = "length", "characters"

    def __init__(self, text_key: str = "text", min_len: int = 8, max_len: int = 32000, **kwargs: Any) -> None:
        super().__init__(text_key, min_len, max_len, **kwargs)

    def measure(self, row: Mapping[str, Any]) -> float:
        """Characters of the side."""
        return len(row[self.text_key])


@OPERATORS.register_module("side_words_filter")
class SideWordsFilter(SideFilter):
    """Keeps rows whose side has `min_num` to `max_num` words, or is a call.

    A word stands between blanks and holds a letter or a digit; a Chinese or Japanese character is one
    by itself. `calls_key` names the field with the side's number of calls; without it calls are
    measured as well.
    """

    figure, unit = "words", "words"

    def __init__(
        self,
        text_key: str = "text",
        calls_key: str | None = None,
        min_num: int = 2,
        max_num: int = 4096,
        **kwargs: Any,
    ) -> None:
        super().__init__(text_key, min_num, max_num, **kwargs)
        self.calls_key = calls_key

    def measure(self, row: Mapping[str, Any]) -> float:
        """Words of the side, -1 where it is a call."""
        if self.calls_key is not None and row[self.calls_key] > 0:
            return -1
        return count_words(row[self.text_key])

    def judge(self, value: float) -> Reason | None:
        return None if value < 0 else super().judge(value)


@OPERATORS.register_module("side_special_characters_filter")
class SideSpecialCharactersFilter(RowFilter):
    """Keeps rows whose side is at most `max_ratio` special characters, as data-juicer's own filter
    lists them: punctuation, digits, blanks, symbols, emoji. An empty side has a share of 0."""

    def __init__(self, text_key: str = "text", max_ratio: float = 0.5, **kwargs: Any) -> None:
        if not 0 <= max_ratio <= 1:
            raise ValueError(f"the share {max_ratio} is not between 0 and 1")
        super().__init__(text_key=text_key, **kwargs)
        self.max_ratio = max_ratio
        self.stat = f"{text_key}__special_characters"

    def measure(self, row: Mapping[str, Any]) -> float:
        """The share of special characters, 0 to 1."""
        text = row[self.text_key]
        if text.isascii():
            plain = len(text.encode("ascii").translate(None, _SPECIAL_ASCII))
        else:
            plain = len(text.translate(_WITHOUT_SPECIAL))
        return 1 - plain / len(text) if text else 0.0

    def judge(self, value: float) -> Reason | None:
        if value <= self.max_ratio:
            return None
        return f"more than {self.max_ratio:.0%} special characters", f"{value:.4f}"


@OPERATORS.register_module("side_repetition_filter")
class SideRepetitionFilter(RowFilter):
    """Keeps rows of whose runs of `rep_len` words on a side at most `max_ratio` came before on that side."""

    def __init__(
        self, text_key: str = "text", rep_len: int = 10, max_ratio: float = 0.5, **kwargs: Any
    ) -> None:
        if not 0 <= max_ratio <= 1 or rep_len < 1:
            raise ValueError(f"the share {max_ratio} is not between 0 and 1, or {rep_len} words are none")
        super().__init__(text_key=text_key, **kwargs)
        self.rep_len, self.max_ratio = rep_len, max_ratio
        self.stat = f"{text_key}__repetition"

    def measure(self, row: Mapping[str, Any]) -> float:
        """The share of runs that repeat an earlier one, 0 to 1; 0 where that is within the bound for certain:
        runs that begin with different words are different."""
        words = row[self.text_key].split()
        runs = len(words) - self.rep_len + 1
        if runs < 2:
            return 0.0
        beginnings = (words[:runs], pairwise(words[: runs + 1]))
        if self.rep_len > 1 and any(1 - len(set(each)) / runs <= self.max_ratio for each in beginnings):
            return 0.0
        return 1 - len(set(zip(*(words[at:] for at in range(self.rep_len)), strict=False))) / runs

    def judge(self, value: float) -> Reason | None:
        if value <= self.max_ratio:
            return None
        return f"more than {self.max_ratio:.0%} of it said before", f"{value:.4f}"


@OPERATORS.register_module("side_turns_filter")
class SideTurnsFilter(RowFilter):
    """Keeps rows whose side is one turn: one message, and none that plays other roles in its free text.

    `text_key` names what the side says without its calls, `messages_key` its number of messages.
    """

    def __init__(self, text_key: str = "text", messages_key: str | None = None, **kwargs: Any) -> None:
        super().__init__(text_key=text_key, **kwargs)
        self.messages_key = messages_key
        self.stat = f"{text_key}__turns"

    def measure(self, row: Mapping[str, Any]) -> float:
        """Turns on the side."""
        messages = row[self.messages_key] if self.messages_key is not None else 1
        text = row[self.text_key]
        return max(1, messages) + (len(_OTHER_ROLE.findall(text)) if "<|" in text or ":" in text else 0)

    def judge(self, value: float) -> Reason | None:
        return None if value <= 1 else ("several turns in one", f"{value:g}")


def _rows(samples: Mapping[str, list[Any]]) -> Iterator[dict[str, Any]]:
    for index in range(len(samples[Fields.stats])):
        yield {key: values[index] for key, values in samples.items() if key != Fields.stats}
