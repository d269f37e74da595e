"""Operators for pairs: stock filters with statistics a side, and what stock operators do not look at.

data-juicer finds this module by its entry point, so that `dj-process` knows the operators too. Importing it
imports data-juicer, which takes seconds: only the process that runs it does.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from data_juicer.ops.base_op import OPERATORS
from data_juicer.ops.common import SPECIAL_CHARACTERS
from data_juicer.ops.filter.special_characters_filter import SpecialCharactersFilter
from data_juicer.ops.filter.text_length_filter import TextLengthFilter
from data_juicer.ops.filter.word_repetition_filter import WordRepetitionFilter
from data_juicer.utils.constant import StatsKeys
from rapidfuzz.distance import Indel

from tracemill.normalize.operators.never_install import never_install
from tracemill.normalize.operators.row_filters import OwnStatistics, RowFilter

never_install()

# What stands before a turn in chat templates, and roles that begin a paragraph.
_OTHER_ROLE = re.compile(
    r"<\|(?:im_start|start_header_id|user|assistant|system|observation|tool)\|>"
    r"|\n[ \t]*\n(?:Human|User|Assistant|Observation|Tool (?:result|output)|System):[ \n]"
)

# Special characters away, and what parts words for the stock filter (blank, newline, tab) a blank.
_LETTERS_ALONE = {ord(sign): None for sign in SPECIAL_CHARACTERS if len(sign) == 1}
_LETTERS_ALONE |= dict.fromkeys(b" \n\t", " ")


@OPERATORS.register_module("side_length_filter")
class SideLengthFilter(OwnStatistics, TextLengthFilter):
    """`text_length_filter` of one side: keeps rows of `min_len` to `max_len` characters."""

    figure = StatsKeys.text_len


@OPERATORS.register_module("side_special_characters_filter")
class SideSpecialCharactersFilter(OwnStatistics, SpecialCharactersFilter):
    """`special_characters_filter` of one side: keeps shares of `min_ratio` to `max_ratio`."""

    figure = StatsKeys.special_char_ratio


@OPERATORS.register_module("side_repetition_filter")
class SideRepetitionFilter(OwnStatistics, WordRepetitionFilter):
    """`word_repetition_filter` of one side: keeps rows where a share of `min_ratio` to `max_ratio` of the
    runs of `rep_len` words stands there more than once."""

    figure = StatsKeys.word_rep_ratio

    def measure(self, row: Mapping[str, Any]) -> float:
        """Return the share, 0 where it is within the bounds for certain.

        The stock filter compares words without special characters at their ends. Without any such character
        as many runs at least repeat, and of runs that repeat there are at most twice as many as come again.
        """
        letters = row[self.text_key].lower().translate(_LETTERS_ALONE)
        words = [word for word in letters.split(" ") if word]
        runs = max(0, len(words) - self.n + 1)
        again = runs - len(set(zip(*(words[at:] for at in range(self.n)), strict=False)))
        if self.min_ratio <= 0 and 2 * again <= self.max_ratio * runs:
            return 0.0
        return super().measure(row)


@OPERATORS.register_module("side_turns_filter")
class SideTurnsFilter(RowFilter):
    """Keep rows whose side is at most `max_turns` turns: messages, and other roles it plays in its free text.

    `text_key` names what the side says without its calls, `messages_key` its number of messages.
    """

    figure = "turns"

    def __init__(
        self, text_key: str = "text", messages_key: str = "", max_turns: int = 1, **kwargs: Any
    ) -> None:
        super().__init__(text_key=text_key, **kwargs)
        self.messages_key, self.max_turns = messages_key, max_turns

    def measure(self, row: Mapping[str, Any]) -> float:
        """Count the turns on the side."""
        messages = row[self.messages_key] if self.messages_key else 1
        text = row[self.text_key]
        return max(1, messages) + (len(_OTHER_ROLE.findall(text)) if "<|" in text or ":" in text else 0)

    def keeps(self, value: float) -> bool:
        """Return whether the side has no more turns than it may."""
        return value <= self.max_turns


@OPERATORS.register_module("sides_similar_filter")
class SidesSimilarFilter(RowFilter):
    """Keep rows whose sides are at most `max_similarity` alike, as the share of characters that an insertion
    and deletion distance leaves in place: of sides that are nearly the same DPO lowers both (Smaug,
    arXiv 2402.13228)."""

    figure = "similarity"

    def __init__(
        self, text_keys: list[str] | None = None, max_similarity: float = 0.95, **kwargs: Any
    ) -> None:
        if not 0 <= max_similarity <= 1:
            raise ValueError(f"the share {max_similarity} is not between 0 and 1")
        super().__init__(**kwargs)
        self.text_keys, self.max_similarity = _two_fields(text_keys), max_similarity

    def measure(self, row: Mapping[str, Any]) -> float:
        """Return how alike the sides are, 0 to 1; 0 where that is below the bound for certain."""
        first, second = (row[key] for key in self.text_keys)
        return Indel.normalized_similarity(first, second, score_cutoff=self.max_similarity)

    def keeps(self, value: float) -> bool:
        """Return whether the sides are no more alike than they may be."""
        return value <= self.max_similarity


@OPERATORS.register_module("sides_ratio_filter")
class SidesRatioFilter(RowFilter):
    """Keep rows whose longer side has at most `max_ratio` times the characters of the shorter, each taken for
    `least` at the least."""

    figure = "length_ratio"

    def __init__(
        self, text_keys: list[str] | None = None, max_ratio: float = 3.0, least: int = 200, **kwargs: Any
    ) -> None:
        if max_ratio < 1 or least < 1:
            raise ValueError(f"the ratio {max_ratio} or the length {least} is below 1")
        super().__init__(**kwargs)
        self.text_keys, self.max_ratio, self.least = _two_fields(text_keys), max_ratio, least

    def measure(self, row: Mapping[str, Any]) -> float:
        """Return the length of the longer side over that of the shorter."""
        short, long = sorted(max(self.least, len(row[key])) for key in self.text_keys)
        return long / short

    def keeps(self, value: float) -> bool:
        """Return whether the longer side is no more times as long than it may be."""
        return value <= self.max_ratio


def _two_fields(fields: Sequence[str] | None) -> tuple[str, str]:
    if fields is None:
        return "chosen", "rejected"
    if len(fields) != 2:
        raise ValueError(f"text_keys holds {len(fields)} fields where it takes 2")
    return fields[0], fields[1]
