"""Prompt caches over a real socket: who gets marks, what is found again, for how long, what it costs."""

import json
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from teacher_chains import KEY, TOOLS, chain

from tracemill.records.identity import extend_prompt, prompt_root
from tracemill.records.message import Message, ToolCall
from tracemill.records.trace import MessageView
from tracemill.teachers.build_teachers import build_teachers
from tracemill.teachers.client.build_request import mark_places
from tracemill.teachers.core.bundled_prices import find_bundled_price
from tracemill.teachers.core.question import Question
from tracemill.teachers.core.teacher_protocol import AttemptResult
from tracemill.teachers.core.teacher_settings import OpenRouterTeacherSettings
from tracemill.teachers.core.token_chain import AnsweredPrompt
from tracemill.teachers.offline.sim_policy import sim_message_tokens
from tracemill.teachers.openrouter_stub.prompt_cache import StubPromptCache, cut_stub_prompt
from tracemill.teachers.openrouter_stub.server import running
from tracemill.teachers.openrouter_stub.stub_settings import StubSettings
from tracemill.teachers.pricing.cache_rules import cache_rule

pytestmark = pytest.mark.anyio
RESULT = "x = 1\n" * 900
"""A result of 5,400 bytes, 1,350 simulated tokens."""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def ask_all(
    model: str, questions: list[Question], wire: StubSettings | None = None
) -> tuple[list[AttemptResult], list[dict[str, Any]]]:
    """The answers to the questions in order, and the bodies they were asked with."""
    with running((wire or StubSettings()).model_copy(update={"keep_bodies": True})) as server:
        given = OpenRouterTeacherSettings(model=model, base_url=server.url, max_tokens=100)
        (teacher,) = build_teachers([given], KEY)
        await teacher.check()
        asked = [await teacher.ask(question, 0) for question in questions]
        await teacher.close()
        assert all(one.reply.failure is None for one in asked)
        return asked, [json.loads(body) for body in server.server.bodies]


def marks(body: dict[str, Any]) -> list[int]:
    """Which messages of a body are marked."""
    parts = [m["content"] if isinstance(m["content"], list) else [] for m in body["messages"]]
    return [at for at, each in enumerate(parts) if any("cache_control" in part for part in each)]


@pytest.mark.parametrize("model", ["anthropic/claude-sonnet-5.5", "deepseek/deepseek-v4-pro-0813"])
async def test_a_prompt_put_together_of_parts_is_what_its_messages_say(model: str) -> None:
    questions = [*chain(9, result="\u2028é 🏮 \ud800"), *chain(2, trace="t2", result="other")]
    questions[3] = replace(questions[3], messages=questions[3].messages[:])  # no view
    _, bodies = await ask_all(model, [questions[5], questions[10], *questions[:5], questions[8]])
    for asked, body in zip([questions[5], questions[10], *questions[:5], questions[8]], bodies, strict=True):
        texts = [
            m["content"] if isinstance(m["content"], str) else m["content"][0]["text"]
            for m in body["messages"]
        ]
        assert texts == [message["content"] for message in asked.wire_messages()]
        assert [m["role"] for m in body["messages"]] == [m.role for m in asked.messages]
        assert body["tools"] == asked.wire_tools()
        thought = [m.get("reasoning_content") for m in body["messages"] if "tool_calls" in m]
        assert set(thought) <= ({""} if model.startswith("deepseek") else {None})


@pytest.mark.parametrize("model", ["anthropic/claude-sonnet-5.5", "qwen/qwen3.8-27b"])
async def test_families_that_cache_at_marks_get_one_at_the_end_and_read_the_step_before(model: str) -> None:
    questions = chain(6, result=RESULT)
    asked, bodies = await ask_all(model, questions)
    assert [marks(body) for body in bodies] == [[len(question.messages) - 1] for question in questions]
    used = [one.reply.usage for one in asked]
    assert used[0].cached_tokens == used[0].cache_write_tokens == 0  # shorter than any cache keeps
    assert used[1].cache_write_tokens == used[1].prompt_tokens
    for before, now in pairwise(used[1:]):
        assert now.cached_tokens == before.prompt_tokens
        assert now.cache_write_tokens == now.prompt_tokens - before.prompt_tokens


@pytest.mark.parametrize("model", ["deepseek/deepseek-v4-pro-0813", "openai/gpt-6.1-sol", "z-ai/glm-5.3"])
async def test_families_that_cache_by_themselves_get_no_mark_and_cost_what_their_list_says(
    model: str,
) -> None:
    asked, bodies = await ask_all(model, chain(6, result=RESULT))
    assert [marks(body) for body in bodies] == [[]] * 7
    assert all(isinstance(m["content"], str) for body in bodies for m in body["messages"])
    price, used = find_bundled_price(model), [one.reply.usage for one in asked]
    assert price is not None
    for before, now, one in zip(used[1:], used[2:], asked[2:], strict=False):
        fresh = now.prompt_tokens - before.prompt_tokens
        assert now.cached_tokens == before.prompt_tokens
        expected = before.prompt_tokens * price.cache_read + fresh * price.cache_write
        expected += now.completion_tokens * price.completion
        assert one.cost_nanousd == pytest.approx(float(expected) * 1e9, abs=1)


def wide(calls: int) -> list[Question]:
    """Two questions; between them stands one turn with so many calls, each answered."""
    made = tuple(ToolCall(f"c{n}", "bash", "{}") for n in range(calls))
    messages = (
        Message("system", "You mend programs."),
        Message("user", "Mend it. " * 700),
        Message("assistant", "I look.", made),
        *(Message("tool", f"{n}", tool_call_id=f"c{n}") for n in range(calls)),
    )
    found = list[Question]()
    for step, end in enumerate((2, len(messages))):
        prompt_id = prompt_root(TOOLS, "p1")
        for message in messages[:end]:
            prompt_id = extend_prompt(prompt_id, message)
        view = MessageView(messages, end)
        found.append(Question(f"w:0:{step}", "w", view, TOOLS, prompt_id, "p1", "r1"))
    return found


@pytest.mark.parametrize(("calls", "placed"), [(9, [11]), (10, [1, 12]), (40, [1, 42])])
async def test_a_step_of_more_blocks_than_a_cache_looks_back_gets_a_second_mark(
    calls: int, placed: list[int]
) -> None:
    first, second = wide(calls)
    asked, bodies = await ask_all("anthropic/claude-sonnet-5.5", [first, second])
    assert marks(bodies[1]) == placed
    assert asked[1].reply.usage.cached_tokens == asked[0].reply.usage.prompt_tokens


def test_without_the_second_mark_the_cache_would_be_missed() -> None:
    first, second = (question.wire_messages() for question in wide(40))
    cache, model = StubPromptCache(), "anthropic/claude-sonnet-5.5"

    def marked(messages: list[dict[str, Any]], *places: int) -> list[dict[str, Any]]:
        text = {"type": "text", "cache_control": {"type": "ephemeral"}}
        return [
            m | {"content": [text | {"text": m["content"]}]} if at in places else m
            for at, m in enumerate(messages)
        ]

    cache.keep(cut_stub_prompt(model, "anthropic", marked(first, 1), []), 0.0)
    assert (
        cache.lookup(cut_stub_prompt(model, "anthropic", marked(second, 42), []), 1.0, True).cached_tokens
        == 0
    )
    found = cache.lookup(cut_stub_prompt(model, "anthropic", marked(second, 1, 42), []), 1.0, True)
    assert found.cached_tokens == sum(map(sim_message_tokens, first))


def test_an_empty_result_carries_no_mark() -> None:
    messages = (*wide(1)[1].messages, Message("tool", "", tool_call_id="c9"))
    assert mark_places(messages, None) == [3]
    assert mark_places(messages[:1], None) == [0]
    assert mark_places((Message("user", ""),), None) == []
    assert mark_places(messages, AnsweredPrompt(2, 0, "")) == [3]


@pytest.mark.parametrize(("family", "lifetime_s"), [("anthropic", 300), ("google", 180), ("zai", 300)])
def test_what_was_not_used_for_a_lifetime_is_gone_and_use_prolongs_it(family: str, lifetime_s: float) -> None:
    messages = [{"role": "user", "content": "word " * 4000}]
    if cache_rule(family).marked:
        part = {"type": "text", "text": "word " * 4000, "cache_control": {"type": "ephemeral"}}
        messages = [{"role": "user", "content": [part]}]
    prompt, cache = cut_stub_prompt("m", family, messages, []), StubPromptCache()
    cache.keep(prompt, 0.0)
    assert cache.lookup(prompt, lifetime_s, False).cached_tokens == 5004
    assert cache.lookup(prompt, lifetime_s + 1, False).cached_tokens == 0
    cache.keep(prompt, lifetime_s)
    assert cache.lookup(prompt, 2 * lifetime_s, False).cached_tokens == 5004
    assert cache.lookup(cut_stub_prompt("other", family, messages, []), 1.0, False).cached_tokens == 0


async def test_caches_can_be_turned_off_and_two_models_share_none() -> None:
    asked, _ = await ask_all("openai/gpt-6.1-sol", chain(4, result=RESULT), StubSettings(prompt_cache=False))
    assert {one.reply.usage.cached_tokens for one in asked} == {0}
    short = StubSettings(cache_lifetime_s=0)
    asked, _ = await ask_all("openai/gpt-6.1-sol", chain(4, result=RESULT), short)
    assert {one.reply.usage.cached_tokens for one in asked} == {0}
