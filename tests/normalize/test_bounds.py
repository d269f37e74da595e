"""The bounds of every operator: the value at the bound, the one below and the one above.

The operators live in one process of their own, as data-juicer does in a run; the tests read what it found.
"""

import json
import os
import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tracemill.normalize.context_length.cut_context import ContextCutter, FittedContext
from tracemill.normalize.context_length.cut_plan import CutPlan, shorten_for_cut_plan
from tracemill.normalize.context_length.token_counts import count_message_tokens, estimate_token_count
from tracemill.records.message import Message, ToolCall, ToolSpec
from tracemill.records.pair import RowTokens

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = """
import json, sys
from pathlib import Path
from tracemill.normalize.datajuicer.run_operators import build_operators, run_operators
from tracemill.normalize.operators import pair_operators
from tracemill.normalize.operators.pair_operators import OPERATORS
from tracemill.normalize.operators.row_filters import NOTE
from tracemill.records.errors import NormalizeError
from data_juicer.ops.filter.word_repetition_filter import WordRepetitionFilter
from data_juicer.utils.constant import Fields

folder = Path(sys.argv[1])

def filtered(name, arguments, row):
    [operator] = build_operators([(name, arguments)])
    samples = {key: [value] for key, value in row.items()} | {Fields.stats: [{}]}
    stats = operator.compute_stats_batched(samples)[Fields.stats][0]
    kept = operator.process_batched(samples)
    (folder / "row.jsonl").write_text(json.dumps({"row": 0, "row_id": "a", **row}))
    outcome = run_operators([operator], ["it"], folder / "row.jsonl", 1)
    return [stats[operator.stat], stats[operator.stat + NOTE], kept, [d.reason for d in outcome.dropped]]

def refused(name, arguments):
    try:
        build_operators([(name, arguments)])
    except NormalizeError as error:
        return str(error)

def repeated(text):
    [operator] = build_operators([("side_repetition_filter", {"text_key": "text"})])
    stock = WordRepetitionFilter(rep_len=10)
    samples = {"text": [text], Fields.stats: [{}]}
    share = stock.compute_stats_batched(samples)[Fields.stats][0]["word_rep_ratio"]
    return [share, operator.measure({"text": text})]

asked = json.loads((folder / "asked.json").read_text())
made_of = {"filtered": filtered, "refused": refused, "repeated": repeated}
found = {kind: [made_of[kind](*each) for each in asked[kind]] for kind in asked}
(folder / "found.json").write_text(json.dumps(found))
"""
Arguments = dict[str, Any]
Row = dict[str, Any]
LENGTH, SPECIAL, REPEATS = "side_length_filter", "side_special_characters_filter", "side_repetition_filter"
TURNS, SIMILAR, RATIO = "side_turns_filter", "sides_similar_filter", "sides_ratio_filter"
T = {"text_key": "text"}
EXEMPT, RAISED = "exempt", "operator raised"


def text(value: str, **fields: Any) -> Row:
    return {"text": value, **fields}


def sides(chosen: str, rejected: str, **fields: Any) -> Row:
    return {"chosen": chosen, "rejected": rejected, **fields}


SHORT, LONG = "text_len below {}", "text_len above {}"
SHARE, SAID = "special_char_ratio above {}", "word_rep_ratio above {}"
ALIKE, LONGER, SEVERAL = "similarity above {}", "length_ratio above {}", "turns above 1"
FILTERED: list[tuple[str, Arguments, Row, float, str | None]] = [
    # characters of a side
    (LENGTH, T | {"min_len": 8}, text("x" * 7), 7, SHORT.format(8)),
    (LENGTH, T | {"min_len": 8}, text("x" * 8), 8, None),
    (LENGTH, T | {"min_len": 8}, text("é" * 8), 8, None),
    (LENGTH, T | {"max_len": 32000}, text("x" * 32000), 32000, None),
    (LENGTH, T | {"max_len": 32000}, text("x" * 32001), 32001, LONG.format(32000)),
    (LENGTH, T | {"min_len": 5, "max_len": 5}, text("abcd"), 4, SHORT.format(5)),
    (LENGTH, T | {"min_len": 5, "max_len": 5}, text("abcde"), 5, None),
    (LENGTH, T | {"min_len": 5, "max_len": 5}, text("abcdef"), 6, LONG.format(5)),
    (LENGTH, T | {"min_len": 0}, text(""), 0, None),
    (LENGTH, {"text_key": "said", "min_len": 8}, text("x", said="x" * 8), 8, None),
    (LENGTH, T, {"other": "x"}, -1, RAISED),
    # rows that are not judged
    (LENGTH, T | {"unless": "calls > 0"}, text("one", calls=0), 3, SHORT.format(10)),
    (LENGTH, T | {"unless": "calls > 0"}, text("one", calls=1), -1, EXEMPT),
    (LENGTH, T | {"unless": "calls > 0"}, text("one", calls=None), 3, SHORT.format(10)),
    (LENGTH, T | {"unless": "kind == 'a' or differ"}, text("one", kind="b", differ=True), -1, EXEMPT),
    (LENGTH, T | {"unless": "kind == 'a' or differ"}, text("one", kind="a", differ=False), -1, EXEMPT),
    (
        LENGTH,
        T | {"unless": "kind == 'a' or differ"},
        text("one", kind="b", differ=False),
        3,
        SHORT.format(10),
    ),
    (LENGTH, T | {"unless": "calls > kind"}, text("one", calls=1, kind="a"), -1, RAISED),
    # special characters of a side
    (SPECIAL, T | {"max_ratio": 0.5}, text(""), 0, None),
    (SPECIAL, T | {"max_ratio": 0.5}, text("ab12"), 0.5, None),
    (SPECIAL, T | {"max_ratio": 0.5}, text("a b "), 0.5, None),
    (SPECIAL, T | {"max_ratio": 0.5}, text("abc" + "." * 5), 0.625, SHARE.format(0.5)),
    (SPECIAL, T | {"max_ratio": 0.5}, text("éé12"), 0.5, None),
    (SPECIAL, T | {"max_ratio": 0.5}, text("é123"), 0.75, SHARE.format(0.5)),
    (SPECIAL, T | {"max_ratio": 0}, text("abcd"), 0, None),
    (SPECIAL, T | {"max_ratio": 0}, text("abc."), 0.25, SHARE.format(0)),
    (SPECIAL, T | {"max_ratio": 1}, text("...."), 1, None),
    (SPECIAL, T | {"min_ratio": 0.5, "max_ratio": 1}, text("abc."), 0.25, "special_char_ratio below 0.5"),
    # runs that stand on a side more than once: each of their places counts
    (REPEATS, T, text("w " * 10), 0, None),
    (REPEATS, T, text("w " * 11), 1, SAID.format(0.5)),
    (REPEATS, T | {"rep_len": 1}, text(""), 0, None),
    (REPEATS, T | {"rep_len": 1}, text("a a b c"), 0.5, None),
    (REPEATS, T | {"rep_len": 1, "max_ratio": 0.49}, text("a a b c"), 0.5, SAID.format(0.49)),
    (REPEATS, T | {"rep_len": 1}, text("A, a. b"), 2 / 3, SAID.format(0.5)),
    (REPEATS, T | {"rep_len": 1, "min_ratio": 0.5}, text("a b c"), 0, "word_rep_ratio below 0.5"),
    (REPEATS, T | {"rep_len": 3, "max_ratio": 0.5}, text("a b c a b c"), 0.5, None),
    (REPEATS, T | {"rep_len": 3, "max_ratio": 0.49}, text("a b c a b c"), 0.5, SAID.format(0.49)),
    # turns on a side
    (TURNS, T, text("Done: all of it."), 1, None),
    (TURNS, T, text("Done.\n\nHuman: go on"), 2, SEVERAL),
    (TURNS, T, text("Done.\nHuman: go on"), 1, None),
    (TURNS, T, text("<|user|> go <|tool|> on"), 3, SEVERAL),
    (TURNS, T | {"max_turns": 3}, text("<|user|> go <|tool|> on"), 3, None),
    (TURNS, T | {"messages_key": "n"}, text("x", n=0), 1, None),
    (TURNS, T | {"messages_key": "n"}, text("x", n=1), 1, None),
    (TURNS, T | {"messages_key": "n"}, text("x", n=2), 2, SEVERAL),
    (TURNS, T | {"messages_key": "n"}, text("a\n \n\tUser: b", n=0), 1, None),
    (TURNS, T | {"messages_key": "n"}, text("a\n \nUser: b", n=0), 2, SEVERAL),
    # sides that are alike, or of different length
    (SIMILAR, {}, sides("x" * 20, "x" * 19 + "y"), 0.95, None),
    (SIMILAR, {}, sides("x" * 21, "x" * 20 + "y"), 1 - 2 / 42, ALIKE.format(0.95)),
    (SIMILAR, {}, sides("x" * 19, "x" * 18 + "y"), 0, None),
    (SIMILAR, {}, sides("x" * 21, "x" * 19), 0.95, None),
    (SIMILAR, {"max_similarity": 0.5}, sides("ab", "ac"), 0.5, None),
    (SIMILAR, {"max_similarity": 0.5}, sides("abc", "abd"), 1 - 2 / 6, ALIKE.format(0.5)),
    (SIMILAR, {"max_similarity": 0}, sides("ab", "cd"), 0, None),
    (SIMILAR, {"max_similarity": 0}, sides("ab", "bc"), 0.5, ALIKE.format(0)),
    (SIMILAR, {"max_similarity": 1}, sides("ab", "ab"), 1, None),
    (SIMILAR, {"text_keys": ["x", "y"]}, sides("a", "a", x="1", y="2"), 0, None),
    (RATIO, {}, sides("x" * 200, "x" * 600), 3, None),
    (RATIO, {}, sides("x" * 601, "x" * 200), 3.005, LONGER.format(3)),
    (RATIO, {}, sides("", "x" * 600), 3, None),
    (RATIO, {}, sides("x" * 199, "x" * 601), 3.005, LONGER.format(3)),
    (RATIO, {}, sides("x" * 201, "x" * 603), 3, None),
    (RATIO, {}, sides("x" * 604, "x" * 201), 604 / 201, LONGER.format(3)),
    (RATIO, {"max_ratio": 1, "least": 1}, sides("ab", "cd"), 1, None),
    (RATIO, {"max_ratio": 1, "least": 1}, sides("", "cd"), 2, LONGER.format(1)),
    (RATIO, {"unless": "c > 0 or d > 0"}, sides("x" * 999, "", c=0, d=0), 4.995, LONGER.format(3)),
    (RATIO, {"unless": "c > 0 or d > 0"}, sides("x" * 999, "", c=0, d=1), -1, EXEMPT),
]
REFUSED: list[tuple[str, Arguments, str | None]] = [
    (LENGTH, T | {"min_len": 6, "max_len": 5}, "side_length_filter has the minimum 6 above the maximum 5"),
    (LENGTH, T | {"min_len": 5, "max_len": 5}, None),
    ("text_length_filter", T | {"min_len": 6, "max_len": 5}, "text_length_filter has the minimum 6 above"),
    (SPECIAL, T | {"min_ratio": 0.6, "max_ratio": 0.5}, "has the minimum 0.6 above the maximum 0.5"),
    (LENGTH, {"min_len": 5}, "side_length_filter does not say what it reads; expected text_key: one of row"),
    (TURNS, {}, "side_turns_filter does not say what it reads"),
    (LENGTH, T | {"unless": "calls >"}, "side_length_filter cannot be set up (SyntaxError"),
    (SIMILAR, {"max_similarity": -0.01}, "the share -0.01 is not between 0 and 1"),
    (SIMILAR, {"max_similarity": 0}, None),
    (SIMILAR, {"max_similarity": 1}, None),
    (SIMILAR, {"max_similarity": 1.01}, "the share 1.01 is not between 0 and 1"),
    (RATIO, {"max_ratio": 0.99}, "max_ratio = 0.99 and least = 200; both must be 1 or more"),
    (RATIO, {"max_ratio": 1, "least": 1}, None),
    (RATIO, {"least": 0}, "max_ratio = 3.0 and least = 0; both must be 1 or more"),
    (RATIO, {"text_keys": ["a"]}, "text_keys holds 1 fields where it takes 2"),
    (SIMILAR, {"text_keys": ["a", "b", "c"]}, "text_keys holds 3 fields where it takes 2"),
]
WORDS = (
    "look",
    "look,",
    "(look)",
    "LOOK",
    "at",
    "a-t",
    "7",
    "!!",
    "é\u00a0é",
    "\U0001f600",
    "\n",
    "\t",
    "\x1c",
)


def repeating_texts() -> list[str]:
    """Texts of few words, whole phrases of which come again."""
    coin = random.Random(20261123)
    texts = ["", "w", "!! " * 40]
    for number in range(400):
        phrase = coin.choices(WORDS, k=coin.randrange(1, 30))
        words = [*coin.choices(WORDS, k=coin.randrange(40)), *phrase * coin.randrange(1, 5)]
        texts.append(" ".join([*words, *coin.choices(WORDS, k=number % 40)]))
    return texts


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    """What the operators find of every case, by its place in its list."""
    folder = tmp_path_factory.mktemp("bounds")
    asked: dict[str, list[Any]] = {
        "filtered": [each[:3] for each in FILTERED],
        "refused": [each[:2] for each in REFUSED],
        "repeated": [[each] for each in repeating_texts()],
    }
    (folder / "asked.json").write_text(json.dumps(asked), encoding="utf-8")
    command = [sys.executable, "-c", SCRIPT, str(folder)]
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder / "home"), "PYTHONPATH": str(ROOT)}
    environment |= {"HF_HUB_OFFLINE": "1", "PIP_NO_INDEX": "1", "UV_OFFLINE": "1"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads((folder / "found.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("place", range(len(FILTERED)))
def test_a_filter_keeps_what_is_at_its_bound_and_nothing_beyond(
    found: dict[str, list[Any]], place: int
) -> None:
    """In the two passes of data-juicer, and with its reason where tracemill runs it."""
    *_, figure, reason = FILTERED[place]
    value, note, kept, reasons = found["filtered"][place]
    assert value == pytest.approx(figure, abs=1e-12)
    stays = reason in (None, EXEMPT)
    assert (kept, reasons) == ([stays], [] if stays else [reason])
    assert (note == EXEMPT, bool(note)) == (reason == EXEMPT, reason in (EXEMPT, RAISED))


@pytest.mark.parametrize("place", range(len(REFUSED)))
def test_an_operator_takes_no_argument_beyond_its_bound(found: dict[str, list[Any]], place: int) -> None:
    said, wanted = found["refused"][place], REFUSED[place][-1]
    assert said is None if wanted is None else wanted in said


def test_the_repetition_of_a_side_is_that_of_the_stock_filter(found: dict[str, list[Any]]) -> None:
    assert all(ours == stock for stock, ours in found["repeated"])
    assert 100 < sum(stock > 0 for stock, _ in found["repeated"]) < len(repeating_texts()) - 100


# Contexts cut to a length.


def by_character(texts: Sequence[str]) -> list[int]:
    """A token a character, so that a message takes its characters and 5."""
    return [len(each) for each in texts]


SIDE = ((Message("assistant", "a" * 5),), (Message("assistant", ""),))  # the longer one takes 10
TASK = Message("user", "t" * 15)  # 20


def acting(n: int, chars: int) -> list[Message]:
    """One turn: an action of 10 characters that calls, and a result of so many."""
    call = ToolCall(f"c{n}", "ls", "{}")
    return [Message("assistant", "s" * 10, (call,)), Message("tool", "r" * chars, tool_call_id=f"c{n}")]


TURN = 10 + 5 + 12 + 4 + 5  # what it takes beside its result
MARK = len("\n\n[... 9,999 earlier messages left out ...]")


def fit(turns: int, chars: int, most: int) -> tuple[int | RowTokens, list[str]]:
    """What is told of a context of so many turns, and the texts of its messages where it fits."""
    messages = [TASK, *(each for n in range(turns) for each in acting(n, chars))]
    found = ContextCutter(by_character, most).fit(messages, (), SIDE)
    if isinstance(found, int):
        return found, []
    return found.length, [message.content for message in found.messages]


def test_messages_take_what_stands_around_them() -> None:
    assert count_message_tokens([TASK, *acting(0, 7)], by_character) == [20, TURN - 5, 12]


@pytest.mark.parametrize(("size", "tokens"), [(0, 0), (1, 1), (3, 1), (4, 2), (33, 10), (34, 11), (66, 20)])
def test_ten_tokens_are_estimated_for_33_bytes(size: int, tokens: int) -> None:
    assert estimate_token_count("x" * size) == tokens


def test_a_context_that_just_fits_is_left_alone_and_one_token_less_cuts_it() -> None:
    whole = 20 + 10 + TURN + 600
    texts = ["t" * 15, "s" * 10, "r" * 600]
    assert fit(1, 600, whole) == (RowTokens(whole, whole, whole, ""), texts)
    assert fit(1, 600, 0) == (RowTokens(whole, whole, whole, ""), texts)
    cut, found = fit(1, 600, whole - 1)
    mark = "\n[... 100 characters left out ...]\n"
    assert found == [*texts[:2], "r" * 250 + mark + "r" * 250]
    assert cut == RowTokens(whole - 100 + len(mark), whole, whole, "observations")


def test_the_longer_side_and_the_tools_count_against_the_length() -> None:
    tool = ToolSpec("ls", "", {})
    beside = fit(1, 10, 10_000)[0]
    assert isinstance(beside, RowTokens)
    found = ContextCutter(by_character, 10_000).fit([TASK, *acting(0, 10)], (tool,), SIDE)
    assert isinstance(found, FittedContext)
    text = '{"function":{"description":"","name":"ls","parameters":{}},"type":"function"}'
    assert found.length.tokens == beside.tokens + len(text)
    alone = ContextCutter(by_character, 10_000).fit([TASK, *acting(0, 10)], (), ())
    assert isinstance(alone, FittedContext)
    assert alone.length.tokens == beside.tokens - 10


@pytest.mark.parametrize(("most", "next_most"), [(8000, 2000), (2000, 500)])
def test_observations_are_shortened_no_further_than_wanted(most: int, next_most: int) -> None:
    def size(chars: int) -> int:
        left = len(f"\n[... {10_000 - chars:,} characters left out ...]\n")
        return 20 + 10 + TURN + chars + left

    assert fit(1, 10_000, size(most))[0] == RowTokens(size(most), 10_066, size(500), "observations")
    assert fit(1, 10_000, size(most) - 1)[0] == RowTokens(size(next_most), 10_066, size(500), "observations")


def test_the_shortest_form_is_told_where_it_does_not_fit() -> None:
    least = 20 + 10 + TURN + 500 + len("\n[... 9,500 characters left out ...]\n")
    assert fit(1, 10_000, least)[0] == RowTokens(least, 10_066, least, "observations")
    assert fit(1, 10_000, least - 1) == (least, [])
    assert fit(2, 10_000, least + MARK)[0] == RowTokens(least + MARK, 20_102, least + MARK, "turns")
    assert fit(2, 10_000, least + MARK - 1) == (least + MARK, [])


@pytest.mark.parametrize(
    ("chars", "least"),
    [(4030, 4096), (4031, 20 + 10 + TURN + 500 + len("\n[... 3,531 characters left out ...]\n"))],
)
def test_the_shortest_form_of_what_any_trainer_takes_is_the_whole(chars: int, least: int) -> None:
    assert fit(1, chars, 0)[0] == RowTokens(66 + chars, 66 + chars, least, "")


@pytest.mark.parametrize(("room", "kept"), [(0, 3), (-1, 2), (TURN + 400, 4), (TURN + 399, 3)])
def test_as_many_of_the_last_turns_stay_as_there_is_room_for(room: int, kept: int) -> None:
    """Of ten turns whose results nothing shortens; the mark is counted as one of four digits."""
    three = 20 + 10 + MARK + 3 * (TURN + 400)
    length, texts = fit(10, 400, three + room)
    mark = f"\n\n[... {(10 - kept) * 2} earlier messages left out ...]"
    assert texts == ["t" * 15 + mark, *["s" * 10, "r" * 400] * kept]
    assert isinstance(length, RowTokens)
    assert (length.tokens, length.cut) == (20 + 10 + MARK + kept * (TURN + 400), "turns")


@pytest.mark.parametrize(
    ("chars", "found"), [(20, 20), (21, 20 + len("\n[... 1 characters left out ...]\n"))]
)
def test_what_came_back_is_shortened_from_one_character_beyond_on(chars: int, found: int) -> None:
    plan = CutPlan([TASK, *acting(0, chars)], by_character)
    assert [len(message.content) for message in plan.short(20)] == [15, 10, found]
    assert plan.sizes(20) == [0, 20, 20 + TURN - 5, 20 + TURN + found]


def test_the_two_ends_of_a_shortened_text_are_half_of_it_each() -> None:
    assert shorten_for_cut_plan("abcdefg", 4) == "ab\n[... 3 characters left out ...]\nfg"
    assert shorten_for_cut_plan("abcdefg", 5) == "ab\n[... 3 characters left out ...]\nfg"


def test_nothing_before_the_agent_first_speaks_is_shortened_and_its_words_never() -> None:
    messages = [
        Message("user", "u" * 30),
        Message("assistant", "a" * 30),
        Message("user", "v" * 30),
        Message("tool", "w" * 30),
    ]
    plan = CutPlan(messages, by_character)
    assert [len(message.content) > 30 for message in plan.short(20)] == [False, False, True, True]
    assert (plan.head, plan.starts) == (1, [1, 2])


@pytest.mark.parametrize(("others", "again"), [(15, False), (16, True)])
def test_what_is_known_of_a_context_is_kept_for_the_last_16(others: int, again: bool) -> None:
    counted: list[str] = []

    def count(texts: Sequence[str]) -> list[int]:
        counted.extend(texts)
        return by_character(texts)

    cutter = ContextCutter(count, 10_000)
    first = (Message("user", "the first"), *acting(0, 10))
    contexts = [(Message("user", f"n {n}"), *acting(0, 10)) for n in range(others)]
    for context in (first, *contexts, first):
        cutter.fit(context, (), ())
    assert counted.count("the first") == 1 + again
    counted.clear()
    cutter.fit(first, (), ())
    assert counted == []


@pytest.mark.parametrize(("others", "again"), [(63, False), (64, True)])
def test_what_tools_take_is_kept_for_the_last_64(others: int, again: bool) -> None:
    counted: list[str] = []

    def count(texts: Sequence[str]) -> list[int]:
        counted.extend(texts)
        return by_character(texts)

    cutter = ContextCutter(count, 10_000)
    tools = [(ToolSpec(f"tool-{n}", "", {}),) for n in range(others + 1)]
    context = (TASK, *acting(0, 10))
    for each in (*tools, tools[0]):
        cutter.fit(context, each, ())
    assert sum("tool-0" in text for text in counted) == 1 + again
