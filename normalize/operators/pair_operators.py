"""data-juicer operators for pairs: stock filters for one side, and filters that compare the sides.

data-juicer finds this module by its entry point, so that `dj-process` knows the operators too. Importing it
imports data-juicer, which takes seconds: only the worker does.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from data_juicer.ops.base_op import OPERATORS
from data_juicer.ops.filter.special_characters_filter import SpecialCharactersFilter
from data_juicer.ops.filter.text_length_filter import TextLengthFilter
from data_juicer.ops.filter.word_repetition_filter import WordRepetitionFilter
from data_juicer.utils.constant import StatsKeys
from rapidfuzz.distance import Indel

from tracemill.normalize.operators.never_install import never_install
from tracemill.normalize.operators.row_filters import OwnStatistics, RowFilter

never_install()

# Role tokens of chat templates, and role names that begin a paragraph.
_OTHER_ROLE = re.compile(
    r"<\|(?:im_start|start_header_id|user|assistant|system|observation|tool)\|>"
    r"|\n[ \t]*\n(?:Human|User|Assistant|Observation|Tool (?:result|output)|System):[ \n]"
)


@OPERATORS.register_module("side_length_filter")
class SideLengthFilter(OwnStatistics, TextLengthFilter):
    """A filter that keeps rows whose side has `min_len` to `max_len` characters (`text_length_filter`)."""

    figure = StatsKeys.text_len


@OPERATORS.register_module("side_special_characters_filter")
class SideSpecialCharactersFilter(OwnStatistics, SpecialCharactersFilter):
    """A filter that keeps rows whose side has a special-character share of `min_ratio` to `max_ratio`."""

    figure = StatsKeys.special_char_ratio


@OPERATORS.register_module("side_repetition_filter")
class SideRepetitionFilter(OwnStatistics, WordRepetitionFilter):
    """A filter of sides whose repeated `rep_len`-word n-grams are a share of `min_ratio` to `max_ratio`."""

    figure = StatsKeys.word_rep_ratio


@OPERATORS.register_module("side_turns_filter")
class SideTurnsFilter(RowFilter):
    """A filter of sides by turns (`max_turns`): messages, and other roles a side plays in its text.

    `text_key` names the field with the text of the side, `messages_key` its number of messages.
    """

    figure = "turns"

    def __init__(
        self, text_key: str = "text", messages_key: str = "", max_turns: int = 1, **kwargs: Any
    ) -> None:
        super().__init__(text_key=text_key, **kwargs)
        self.messages_key, self.max_turns = messages_key, max_turns

    def measure(self, row: Mapping[str, Any]) -> float:
        """Return the number of turns of the side."""
        messages = row[self.messages_key] if self.messages_key else 1
        return max(1, messages) + len(_OTHER_ROLE.findall(row[self.text_key]))

    def keeps(self, value: float) -> bool:
        """Return whether the number of turns is within the limit."""
        return value <= self.max_turns


@OPERATORS.register_module("sides_similar_filter")
class SidesSimilarFilter(RowFilter):
    """A filter that keeps rows whose sides have an indel similarity of at most `max_similarity` (0 to 1).

    DPO lowers the probability of both sides if they are nearly equal (Smaug, arXiv 2402.13228).
    """

    figure = "similarity"

    def __init__(
        self, text_keys: list[str] | None = None, max_similarity: float = 0.95, **kwargs: Any
    ) -> None:
        if not 0 <= max_similarity <= 1:
            raise ValueError(f"the share {max_similarity} is not between 0 and 1")
        super().__init__(**kwargs)
        self.text_keys, self.max_similarity = _two_fields(text_keys), max_similarity

    def measure(self, row: Mapping[str, Any]) -> float:
        """Return the similarity of the sides, 0 if it is below the limit."""
        first, second = (row[key] for key in self.text_keys)
        return Indel.normalized_similarity(first, second, score_cutoff=self.max_similarity)

    def keeps(self, value: float) -> bool:
        """Return whether the similarity is within the limit."""
        return value <= self.max_similarity


@OPERATORS.register_module("sides_ratio_filter")
class SidesRatioFilter(RowFilter):
    """A filter that keeps rows whose longer side has at most `max_ratio` times the shorter one's characters.

    A side shorter than `least` characters counts as `least`.
    """

    figure = "length_ratio"

    def __init__(
        self, text_keys: list[str] | None = None, max_ratio: float = 3.0, least: int = 200, **kwargs: Any
    ) -> None:
        if max_ratio < 1 or least < 1:
            raise ValueError(f"max_ratio = {max_ratio} and least = {least}; both must be 1 or more")
        super().__init__(**kwargs)
        self.text_keys, self.max_ratio, self.least = _two_fields(text_keys), max_ratio, least

    def measure(self, row: Mapping[str, Any]) -> float:
        """Return the length of the longer side over that of the shorter."""
        short, long = sorted(max(self.least, len(row[key])) for key in self.text_keys)
        return long / short

    def keeps(self, value: float) -> bool:
        """Return whether the ratio is within the limit."""
        return value <= self.max_ratio


def _two_fields(fields: Sequence[str] | None) -> tuple[str, str]:
    if fields is None:
        return "chosen", "rejected"
    if len(fields) != 2:
        raise ValueError(f"text_keys holds {len(fields)} fields where it takes 2")
    return fields[0], fields[1]
