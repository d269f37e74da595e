"""What single families want of a request, seen in the bytes that go over the socket."""

import json
from typing import Any

import pytest
from teacher_chains import KEY, TOOLS, chain

from tracemill.records.errors import TeacherError
from tracemill.records.identity import extend_prompt, prompt_root
from tracemill.records.message import Message, ToolCall
from tracemill.teachers.build_teachers import build_teachers
from tracemill.teachers.client.check_model import require_usable
from tracemill.teachers.core.bundled_prices import OFFLINE_PRICES
from tracemill.teachers.core.price import Price
from tracemill.teachers.core.question import Question
from tracemill.teachers.core.teacher_protocol import AttemptResult
from tracemill.teachers.core.teacher_settings import OpenRouterTeacherSettings
from tracemill.teachers.openrouter_stub.family_quirks import family_quirk_refusal
from tracemill.teachers.openrouter_stub.server import running
from tracemill.teachers.openrouter_stub.stub_settings import StubSettings
from tracemill.teachers.pricing.model_info import ModelCard

pytestmark = pytest.mark.anyio
MODELS = (
    "anthropic/claude-opus-5.5",
    "openai/gpt-6.1-sol",
    "deepseek/deepseek-v4-pro-0813",
    "google/gemini-3.1-pro-preview",
    "moonshotai/kimi-k3",
    "qwen/qwen3.8-27b",
)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def thoughtful() -> Question:
    """A question whose history was recorded with reasoning, and with a turn that only calls."""
    messages = (
        Message("system", "You mend programs."),
        Message("user", "Mend src/app.py."),
        Message("assistant", "", (ToolCall("c1", "bash", "{}"),), reasoning="secret thoughts"),
        Message("tool", "", tool_call_id="c1"),
        Message("assistant", "Now I know.", reasoning="more thoughts"),
        Message("user", "Go on."),
    )
    prompt_id = prompt_root(TOOLS, "p1")
    for message in messages:
        prompt_id = extend_prompt(prompt_id, message)
    return Question("t:0:0", "t", messages, TOOLS, prompt_id, "p1", "r1")


async def sent(
    questions: list[Question], wire: dict[str, Any] | None = None, **settings: Any
) -> tuple[list[AttemptResult], list[dict[str, Any]], list[dict[str, str]]]:
    """Answers, bodies and headers of these questions, asked in order."""
    with running(StubSettings.model_validate({"keep_bodies": True, **(wire or {})})) as server:
        given = {"base_url": server.url, "max_tokens": 2000, **settings}
        (teacher,) = build_teachers([OpenRouterTeacherSettings.model_validate(given)], KEY)
        try:
            await teacher.check()
            asked = [await teacher.ask(question, sample) for sample in (0, 1) for question in questions]
        finally:
            await teacher.close()
        return asked, [json.loads(body) for body in server.server.bodies], server.server.headers


@pytest.mark.parametrize("model", MODELS)
async def test_no_family_refuses_what_it_is_sent(model: str) -> None:
    asked, bodies, _ = await sent([thoughtful()], model=model)
    assert [one.reply.failure for one in asked] == [None, None]
    for body in bodies:
        assert body["tool_choice"] == "auto"
        assert all(m["content"] is not None for m in body["messages"])
        assert body["messages"][2]["content"] == ""
        assert "thoughts" not in json.dumps(body)
        most = body["provider"].pop("max_price")
        listed = OFFLINE_PRICES[model]
        assert most == pytest.approx(
            {"prompt": float(listed.prompt_usd), "completion": float(listed.completion_usd)}, rel=1e-8
        )
        assert most["prompt"] > listed.prompt_usd
        assert body["provider"] == {"data_collection": "deny", "require_parameters": True}
        assert body["session_id"] == "t"
    assert "metadata" not in bodies[0]
    assert bodies[1]["metadata"] == {"sample": "1"}


async def test_deepseek_gets_an_empty_reasoning_where_a_turn_called_tools_and_nobody_else_does() -> None:
    found = {}
    for model in MODELS:
        _, bodies, _ = await sent([thoughtful()], model=model)
        found[model] = [at for at, m in enumerate(bodies[0]["messages"]) if m.get("reasoning_content") == ""]
    assert found == {model: [2] if "deepseek" in model else [] for model in MODELS}


async def test_a_temperature_goes_only_to_models_that_heed_one() -> None:
    model = "anthropic/claude-opus-5.5"
    _, bodies, _ = await sent([thoughtful()], model=model, temperature=0.7)
    assert [body["temperature"] for body in bodies] == [0.7, 0.7]
    ignoring = {"unlisted": {model: ("temperature",)}}
    asked, bodies, _ = await sent([thoughtful()], ignoring, model=model, temperature=0.7)
    assert all("temperature" not in body for body in bodies)
    assert [one.reply.failure for one in asked] == [None, None]


async def test_reasoning_is_the_same_at_every_step_and_reaches_the_wire_as_it_was_set() -> None:
    reasoning = {"effort": "low", "exclude": True}
    _, bodies, _ = await sent(chain(3), model="moonshotai/kimi-k3", reasoning=reasoning)
    assert [body["reasoning"] for body in bodies] == [reasoning] * len(bodies)
    assert {json.dumps(body["tools"]) for body in bodies} == {json.dumps([t.to_wire() for t in TOOLS])}


async def test_the_application_is_named_and_its_page_only_where_one_is_given() -> None:
    _, _, headers = await sent([thoughtful()], model="moonshotai/kimi-k3")
    assert headers[0]["x-openrouter-title"] == "tracemill"
    assert "http-referer" not in headers[0]
    page = "https://example.org/mine"
    _, _, headers = await sent([thoughtful()], model="moonshotai/kimi-k3", attribution_url=page)
    assert headers[0]["http-referer"] == page


async def test_log_probabilities_are_asked_only_of_models_that_list_them() -> None:
    model = "moonshotai/kimi-k3"
    _, bodies, _ = await sent([thoughtful()], model=model, logprobs=5)
    assert (bodies[0]["logprobs"], bodies[0]["top_logprobs"]) == (True, 5)
    without = {"unlisted": {model: ("logprobs", "top_logprobs")}}
    asked, bodies, _ = await sent([thoughtful()], without, model=model, logprobs=5)
    assert "logprobs" not in bodies[0]
    assert asked[0].reply.failure is None


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ({"data_collection": "allow"}, {"data_collection": "allow"}),
        ({"enforce_distillable_text": True}, {"enforce_distillable_text": True}),
        ({"provider": "simulated"}, {"only": ["simulated"]}),
        ({"require_parameters": False}, {"require_parameters": False}),
    ],
)
async def test_routing_and_policy_reach_the_wire(policy: dict[str, Any], expected: dict[str, Any]) -> None:
    _, bodies, _ = await sent([thoughtful()], model="moonshotai/kimi-k3", **policy)
    default = {"data_collection": "deny", "require_parameters": True}
    most = {"max_price": {"prompt": 3.000000003, "completion": 15.000000015}}
    assert bodies[0]["provider"] == default | most | expected
    assert "order" not in bodies[0]["provider"]


async def test_a_prompt_that_was_too_long_once_is_not_sent_longer() -> None:
    too_long = {"faults": ({"kind": "400-context", "after_requests": 2, "first_requests": 1},)}
    asked, bodies, _ = await sent(chain(5), too_long, model="moonshotai/kimi-k3")
    kinds = [one.reply.failure for one in asked]
    assert kinds[:6] == [None, None, *["context_too_long"] * 4]
    # of both rounds: two answered, one refused at the third step, then the first two again
    assert len(bodies) == 5
    assert [one.cost_nanousd for one in asked[2:6]] == [0, 0, 0, 0]
    assert all(one.final for one in asked[2:6])


@pytest.mark.parametrize(
    ("family", "body", "why"),
    [
        ("deepseek", {"messages": [{"role": "assistant", "content": None}]}, "content"),
        ("deepseek", {"messages": [{"content": "", "tool_calls": [1]}]}, "reasoning_content"),
        ("openai", {"messages": [{"content": "", "reasoning_details": [1]}]}, "another model"),
        ("anthropic", {"messages": [], "tool_choice": "required"}, "tool_choice"),
        ("anthropic", {"messages": [{"content": [{"text": "", "cache_control": {}}]}]}, "empty"),
        ("anthropic", {"messages": [{"content": [{"text": "x", "cache_control": {}}] * 5}]}, "4 blocks"),
        ("openai", {"messages": [], "tool_choice": "required"}, ""),
    ],
)
def test_the_stand_in_refuses_what_the_families_refuse(family: str, body: dict[str, Any], why: str) -> None:
    found = family_quirk_refusal({"anthropic": "anthropic/claude-opus-5.5"}.get(family, family), family, body)
    assert (why in found) if why else found == ""


CARD = ModelCard(Price(), context_tokens=100_000, max_answer_tokens=8_000)
REASONING = frozenset(("tools", "reasoning"))


@pytest.mark.parametrize(
    ("card", "settings", "match"),
    [
        (CARD, {"max_tokens": 9_000}, r"answers at most 8,000 tokens and `max_tokens` is 9,000"),
        (ModelCard(Price(), context_tokens=4_096), {}, "answers at most 4,096"),
        (ModelCard(Price(), parameters=frozenset(("max_tokens",))), {}, "cannot call tools"),
        (
            ModelCard(Price(), parameters=frozenset(("tools",))),
            {"reasoning": {"effort": "low"}},
            "does not support `reasoning`",
        ),
        (
            ModelCard(Price(), parameters=REASONING, reasoning_mandatory=True),
            {"reasoning": {"enabled": False}},
            "always reasons",
        ),
        (
            ModelCard(Price(), parameters=REASONING, reasoning_mandatory=True),
            {"reasoning": {"effort": "none"}},
            "always reasons",
        ),
        (
            ModelCard(Price(), parameters=REASONING, efforts=("low", "high")),
            {"reasoning": {"effort": "medium"}},
            "one of low, high",
        ),
    ],
)
def test_settings_that_do_not_fit_a_model_are_one_line(
    card: ModelCard, settings: dict[str, Any], match: str
) -> None:
    with pytest.raises(TeacherError, match=match):
        require_usable(card, OpenRouterTeacherSettings.model_validate({"model": "a/b", **settings}))


def test_settings_that_fit_are_let_through() -> None:
    reasoning = {"effort": "low", "max_tokens": 500}
    for card in (CARD, ModelCard(Price()), ModelCard(Price(), efforts=("low",))):
        require_usable(
            card, OpenRouterTeacherSettings.model_validate({"model": "a/b", "reasoning": reasoning})
        )


async def test_an_unknown_model_is_told_with_its_likes() -> None:
    with pytest.raises(TeacherError, match="such as moonshotai/kimi-k3"):
        await sent([], model="moonshotai/kimi-k33")
