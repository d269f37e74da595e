"""Contexts at a trainer's length: what stays, what goes, and that calls keep their results."""

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest

from tracemill.normalize.context_length.cut_context import ContextCutter, FittedContext
from tracemill.normalize.context_length.cut_plan import shorten_for_cut_plan
from tracemill.normalize.context_length.token_counts import (
    TokenizerCounts,
    count_message_tokens,
    count_tool_tokens,
    estimate_token_count,
    estimate_token_counts,
    make_token_counter,
)
from tracemill.records.errors import NormalizeError
from tracemill.records.message import Message, ToolCall, ToolSpec
from tracemill.records.trace import MessageView

TOOLS = (ToolSpec("Bash", "Runs a command.", {"type": "object"}),)
SIDES = ((Message("assistant", "yes " * 20),), (Message("assistant", "no"),))


def call(number: int) -> ToolCall:
    return ToolCall(f"c{number}", "Bash", json.dumps({"command": f"ls {number}"}))


def context(turns: int, chars: int) -> list[Message]:
    messages = [Message("system", "You are an agent."), Message("user", "Fix the lantern.")]
    for n in range(turns):
        messages.append(Message("assistant", f"step {n}", (call(2 * n), call(2 * n + 1))))
        for which in (2 * n, 2 * n + 1):
            messages.append(Message("tool", f"<{which}>" + "x" * chars, tool_call_id=f"c{which}"))
    return messages


def fit(messages: list[Message], most: int) -> FittedContext:
    found = ContextCutter(estimate_token_counts, most).fit(messages, TOOLS, SIDES)
    assert isinstance(found, FittedContext)
    return found


def total(messages: list[Message]) -> int:
    beside = count_tool_tokens(TOOLS, estimate_token_counts) + sum(
        count_message_tokens(SIDES[0], estimate_token_counts)
    )
    return beside + sum(count_message_tokens(messages, estimate_token_counts))


def test_what_fits_is_left_alone() -> None:
    messages = context(3, 100)
    found = fit(messages, 10_000)
    assert found.messages is messages
    assert (found.length.tokens, found.length.whole, found.length.cut) == (
        total(messages),
        total(messages),
        "",
    )
    assert fit(messages, 0).messages is messages


def test_observations_are_shortened_before_turns_are_left_out() -> None:
    found = fit(context(4, 20_000), 22_000)
    assert found.length.cut == "observations"
    assert [message.role for message in found.messages] == [m.role for m in context(4, 20_000)]
    told = found.messages[3].content
    assert told.startswith("<0>xxx")
    assert "\n[... 12,003 characters left out ...]\n" in told
    assert found.length.tokens == total(list(found.messages)) <= 22_000 < found.length.whole


def test_the_oldest_turns_go_and_the_task_says_how_many() -> None:
    messages = context(40, 4000)
    found = fit(messages, 6000)
    assert found.length.cut == "turns"
    assert found.messages[0] == messages[0]
    left = len(messages) - len(found.messages)
    assert found.messages[1].content == f"Fix the lantern.\n\n[... {left} earlier messages left out ...]"
    assert found.messages[-3].content == "step 39"
    assert found.messages[-1].content.startswith("<79>")
    assert total(list(found.messages)) <= found.length.tokens <= 6000


def test_nothing_is_said_to_be_left_out_where_nothing_is() -> None:
    messages = context(1, 30_000)
    found = fit(messages, 600)
    assert found.length.cut == "observations"
    assert [message.role for message in found.messages] == [message.role for message in messages]
    assert found.messages[:2] == messages[:2]
    assert found.length.tokens == total(list(found.messages)) <= 600


def test_a_context_is_counted_once_for_all_of_its_steps() -> None:
    counted: list[str] = []

    def count(texts: Sequence[str]) -> list[int]:
        counted.extend(text for text in texts if text.startswith("<"))
        return estimate_token_counts(texts)

    messages = tuple(context(30, 3000))
    cutter = ContextCutter(count, 9000)
    found = [cutter.fit(MessageView(messages, cut), TOOLS, SIDES) for cut in range(3, len(messages) + 1, 3)]
    assert [isinstance(each, FittedContext) and each.length.cut for each in found[-3:]] == ["turns"] * 3
    whole = [text for text in counted if "left out" not in text]
    assert {text: whole.count(text) for text in whole if whole.count(text) > 3} == {}
    assert len(counted) <= 60 * 5  # whole, and before and after at two lengths


def test_what_does_not_fit_however_cut_gives_its_shortest_length() -> None:
    messages = [Message("system", "s" * 50_000), *context(5, 900)[1:]]
    short = ContextCutter(estimate_token_counts, 8000).fit(messages, TOOLS, SIDES)
    assert isinstance(short, int)
    assert 15_000 < short < 17_000


def test_no_cut_parts_a_call_from_its_results() -> None:
    coin = random.Random(20261121)
    for _ in range(300):
        messages = context(coin.randrange(1, 12), coin.choice((50, 900, 5000, 30_000)))
        for at in sorted(coin.sample(range(2, len(messages)), coin.randrange(3)), reverse=True):
            if messages[at].role == "assistant":
                messages.insert(at, Message("user", "Go on. " * coin.choice((1, 900))))
        most = coin.choice((1000, 3000, 9000, 30_000))
        found = ContextCutter(estimate_token_counts, most).fit(messages, TOOLS, SIDES)
        if isinstance(found, int):
            assert found > most
            continue
        calls = [one.id for message in found.messages for one in message.tool_calls]
        results = [message.tool_call_id for message in found.messages if message.role == "tool"]
        assert calls == results
        assert found.messages[0] == messages[0]
        assert found.messages[1].content.startswith("Fix the lantern.")
        assert found.messages[-1].role == messages[-1].role
        assert total(list(found.messages)) <= found.length.tokens <= most or not found.length.cut
        assert found.length.tokens <= most
        assert found.length.least <= found.length.whole


def test_shortened_keeps_both_ends() -> None:
    assert (
        shorten_for_cut_plan("a" * 50 + "b" * 50, 20)
        == "a" * 10 + "\n[... 80 characters left out ...]\n" + "b" * 10
    )


def test_the_estimate_counts_bytes() -> None:
    assert (estimate_token_count(""), estimate_token_count("x" * 33), estimate_token_count("é" * 33)) == (
        0,
        10,
        20,
    )


def test_a_tokenizer_counts_by_itself(tmp_path: Path) -> None:
    from tokenizers import Encoding, Tokenizer, models, pre_tokenizers

    made = Tokenizer(models.WordLevel({"a": 0, "b": 1, "?": 2}, unk_token="?"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.save(str(tmp_path / "tokenizer.json"))
    assert make_token_counter(tmp_path)(["a b nobody \ud800", "a", "a"]) == [4, 1, 1]
    assert make_token_counter(tmp_path / "tokenizer.json")(["a"]) == [1]
    asked: list[str] = []

    class Counting:
        def encode_batch_fast(self, texts: list[str], add_special_tokens: bool) -> list[Encoding]:
            asked.extend(texts)
            return made.encode_batch_fast(texts, add_special_tokens=add_special_tokens)

    once = TokenizerCounts(cast(Tokenizer, Counting()))
    assert once.counts(["a b", "a", "a b"]) == [2, 1, 2]
    assert once.counts(["a", "b b b"]) == [1, 3]
    assert asked == ["a b", "a", "b b b"]
    (tmp_path / "tokenizer.json").write_text("{}", encoding="utf-8")
    with pytest.raises(NormalizeError, match="cannot be read"):
        make_token_counter(tmp_path)
    with pytest.raises(NormalizeError, match="does not exist"):
        make_token_counter(tmp_path / "none")
