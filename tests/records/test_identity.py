"""Identities: what changes them and what does not; families of model ids."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracemill.records.errors import TracemillError
from tracemill.records.families import family_of
from tracemill.records.identity import (
    StepId,
    canonical_json,
    digest,
    extend_prompt,
    make_trace_id,
    prompt_root,
)
from tracemill.records.message import Message, ToolCall, ToolSpec, render_turn


def test_a_joint_between_parts_cannot_move() -> None:
    assert digest("ab", "c") != digest("a", "bc")
    assert digest("ab") != digest("ab", "")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": [1, 2.0, None], "a": {"y": True, "x": "é\n"}}, '{"a":{"x":"é\\n","y":true},"b":[1,2.0,null]}'),
        ({2: "b", 1: "a"}, '{"1":"a","2":"b"}'),
        (("t", 2**70, 1e-7), '["t",1180591620717411303424,1e-07]'),
        ("\ud83d", '"\ud83d"'),
        ({"a": "\ud83d", "b": 2**70}, '{"a":"\ud83d","b":1180591620717411303424}'),
    ],
)
def test_canonical_json_has_one_text_for_one_value(value: object, text: str) -> None:
    assert canonical_json(value) == text


PLAIN = st.one_of(st.none(), st.booleans(), st.integers(), st.text(), st.characters())


@given(st.dictionaries(st.one_of(st.text(), st.integers()), st.one_of(PLAIN, st.floats(), st.lists(PLAIN))))
def test_canonical_json_of_an_object_is_that_of_the_standard_library(value: dict[Any, Any]) -> None:
    if len({type(key) for key in value}) < 2:
        written = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        assert canonical_json(value) == written


def test_a_prompt_chain_depends_on_every_message_and_on_the_tools() -> None:
    tool = ToolSpec("Read", "reads", {"type": "object"})
    root = prompt_root([tool], "p1")
    assert root != prompt_root([], "p1")
    assert root != prompt_root([tool], "p2")
    one = extend_prompt(root, Message("user", "a"))
    assert one != extend_prompt(root, Message("user", "b"))
    assert one != extend_prompt(root, Message("system", "a"))
    call = Message("assistant", "", (ToolCall("1", "Read", "{}"),))
    assert extend_prompt(one, call) != extend_prompt(one, Message("assistant", ""))


def test_what_only_the_record_knows_does_not_change_a_prompt() -> None:
    shown = Message("tool", "no such file", tool_call_id="1")
    known = Message("tool", "no such file", (), "1", "Read", True, "tool_error", "thought")
    assert extend_prompt("p", shown) == extend_prompt("p", known)
    assert "reasoning" not in known.to_wire()
    assert known.to_wire() == {"role": "tool", "content": "no such file", "tool_call_id": "1"}


def test_step_ids_read_back_and_sort_by_number() -> None:
    step = StepId(make_trace_id("swe_gym", "django__django-1:2"), 1, 12)
    assert StepId.parse(str(step)) == step
    assert StepId("t", 0, 9) < StepId("t", 0, 10)
    with pytest.raises(TracemillError, match="is not a step id"):
        StepId.parse("t:1")


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("claude-opus-4-5-20251101", "anthropic"),
        ("deepseek/deepseek-v4-pro-0813", "deepseek"),
        ("deepseek-r1-distill-llama-70b", "meta"),
        ("deepseek-r1-distill-qwen-32b", "qwen"),
        ("nousresearch/hermes-4-llama-3.1-405b", "meta"),
        ("nvidia/llama-3.1-nemotron-ultra", "meta"),
        ("openai/o3-mini", "openai"),
        ("gpt-4o-2024-08-06", "openai"),
        ("litellm_proxy/anthropic/claude-3-5-haiku", "anthropic"),
        ("moonshotai/kimi-k3", "moonshot"),
        ("z-ai/glm-5.3", "zai"),
        ("swe-agent-llama-70b", "meta"),
        ("simulated/deepseek-a", "deepseek"),
        ("moonshotai/Kimi-Dev-72B", "qwen"),
        ("alibaba/tongyi-deepresearch-30b", "qwen"),
        ("SWE-Gym/OpenHands-32B-Agent", "qwen"),
        ("agentica-org/DeepSWE-Preview", "qwen"),
        ("perplexity/r1-1776", "deepseek"),
        ("ollama/qwen3:8b", "qwen"),
        ("ollama_chat/llama3.1", "meta"),
        ("ollama/gemma3", "google"),
        ("arcee-ai/supernova", "unknown"),
        ("01-ai/yi-34b", "01ai"),
        ("my-own-model", "unknown"),
        (None, "unknown"),
    ],
)
def test_a_fine_tune_is_of_the_family_of_its_base(model: str | None, family: str) -> None:
    assert family_of(model) == family


def test_a_turn_renders_with_real_newlines_and_keeps_what_is_no_json() -> None:
    turn = (
        Message("assistant", " I edit it. ", (ToolCall("1", "Edit", '{"old": "a\\nb", "all": true}'),)),
        Message("assistant", "", (ToolCall("2", "Bash", "{oops"),)),
    )
    assert render_turn(turn) == "I edit it.\nEdit old: a\nb\nall: true\nBash {oops"
