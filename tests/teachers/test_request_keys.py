"""What an answer is bought under: every field of a request flipped, one by one.

Each table names every field there is, with another value for it; a field that is added anywhere fails here
until it is on the one side or the other.
"""

import inspect
from dataclasses import fields, replace
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import pytest

from tracemill.records.identity import extend_prompt, prompt_root, request_key
from tracemill.records.message import Message, ToolCall, ToolSpec
from tracemill.teachers.build_teachers import build_teachers
from tracemill.teachers.core.question import Question
from tracemill.teachers.core.teacher_settings import (
    BaseTeacherSettings,
    CompatibleTeacherSettings,
    HandwrittenTeacherSettings,
    OpenRouterTeacherSettings,
    PriceSettings,
    ReasoningSettings,
    RecordedTeacherSettings,
    SimulatedTeacherSettings,
)
from tracemill.teachers.registry import TEACHERS

KEYS = {"OPENROUTER_API_KEY": "k", "OTHER_KEY": "k"}
QUESTION = Question(
    "t:0:0", "t", (Message("user", "Mend it."),), (ToolSpec("bash", "", {}),), "prompt-1", "p1", "r1"
)
Flip = dict[str, Any]

OF_A_KEY: Flip = {
    "prompt_id": "other",
    "model": "other",
    "provider": None,
    "sampling": {"temperature": 0.7, "max_tokens": 4097},
    "reasoning": {},
    "presentation": "other",
    "sample": 1,
}
BASE: Flip = {
    "prompt_id": "p",
    "model": "z-ai/glm-5.3",
    "provider": "z-ai",
    "sampling": {"temperature": 0.7, "max_tokens": 4096},
    "reasoning": {"effort": "low"},
    "presentation": "p1",
    "sample": 0,
}

QUESTION_CHANGES: Flip = {"prompt_id": "other", "presentation": "other"}
QUESTION_LEAVES: Flip = {
    "step_id": "u:0:0",
    "trace_id": "u",
    "messages": (Message("user", "Its hash is prompt_id."),),
    "tools": (),
    "redaction": "r2",
    "student_family": "qwen",
    "former_prompt_id": "other",
}

COMMON_CHANGES: Flip = {"model": "moonshotai/kimi-k3", "max_tokens": 100, "temperature": 0.7}
COMMON_CHANGES |= {"reasoning": ReasoningSettings(effort="low")}
COMMON_LEAVES: Flip = {"name": "other", "family": "other", "logprobs": 5}
COMMON_LEAVES |= {"prices": PriceSettings(prompt_usd=Decimal(9)), "terms": "allowed"}
TABLES: dict[type[Any], tuple[Flip, Flip, Flip]] = {
    OpenRouterTeacherSettings: (
        {"model": "deepseek/deepseek-v4-pro-0813"},
        COMMON_CHANGES
        | {"provider": "deepseek", "base_url": "http://127.0.0.1:8787/api/v1", "reasoning_room": 9000},
        COMMON_LEAVES
        | {
            "api_key_env": "OTHER_KEY",
            "attribution_url": "https://example.org",
            "data_collection": "allow",
            "enforce_distillable_text": True,
            "require_parameters": False,
            "local": True,
        },
    ),
    CompatibleTeacherSettings: (
        {"model": "qwen/q", "base_url": "http://127.0.0.1:1/v1"},
        COMMON_CHANGES | {"base_url": "http://127.0.0.1:2/v1", "reasoning_room": 9000},
        COMMON_LEAVES | {"api_key_env": "OTHER_KEY", "local": True},
    ),
    SimulatedTeacherSettings: (
        {"model": "simulated/qwen-a"},
        COMMON_CHANGES | {"model": "simulated/qwen-b", "seed": 1},
        COMMON_LEAVES | {"latency_s": 1.0, "reasoning_room": 9000},
    ),
    HandwrittenTeacherSettings: (
        {"model": "h/careful", "path": Path("answers")},
        {"model": "h/terse", "path": Path("others")},
        COMMON_LEAVES
        | {"max_tokens": 100, "temperature": 0.7, "reasoning": ReasoningSettings(effort="low")}
        | {"reasoning_room": 9000},
    ),
    RecordedTeacherSettings: (
        {"model": "m", "path": Path("one.jsonl")},
        {"model": "other", "path": Path("other.jsonl")},
        COMMON_LEAVES
        | {"max_tokens": 100, "temperature": 0.7, "reasoning": ReasoningSettings(effort="low")}
        | {"reasoning_room": 9000},
    ),
}


@pytest.fixture(autouse=True)
def tables_of_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("one", "same", "other"):
        Path(f"{name}.jsonl").write_text("{}\n" if name == "other" else "\n")
    for name, said in (("answers", "I look."), ("others", "Done.")):
        Path(name).mkdir()
        Path(name, "one.yaml").write_text(f"session: t\nsteps: {{0: [{{by: {{careful: {said}}}}}]}}\n")


def key_of(settings: BaseTeacherSettings, question: Question = QUESTION, sample: int = 0) -> str:
    return build_teachers([settings], KEYS)[0].request_key(question, sample)


def rows(side: int) -> list[Any]:
    flips = [(kind, name, value) for kind, table in TABLES.items() for name, value in table[side].items()]
    return [pytest.param(*row, id=f"{row[0].__name__}.{row[1]}") for row in flips]


def flipped(kind: type[Any], name: str, value: object) -> tuple[str, str]:
    base = TABLES[kind][0]
    assert kind(**base) != kind(**(base | {name: value}))
    return key_of(kind(**base)), key_of(kind(**(base | {name: value})))


@pytest.mark.parametrize(("kind", "name", "value"), rows(1))
def test_a_setting_that_changes_the_answer_changes_its_key(kind: type[Any], name: str, value: object) -> None:
    before, after = flipped(kind, name, value)
    assert before != after


@pytest.mark.parametrize(("kind", "name", "value"), rows(2))
def test_a_setting_that_does_not_change_the_answer_leaves_its_key(
    kind: type[Any], name: str, value: object
) -> None:
    before, after = flipped(kind, name, value)
    assert before == after


def test_every_setting_of_every_teacher_is_in_one_of_the_two_tables() -> None:
    assert set(TABLES) == {kind.settings for kind in TEACHERS}
    for kind, (_, changes, leaves) in TABLES.items():
        assert changes.keys() | leaves.keys() == kind.model_fields.keys() - {"type"}, kind.__name__
        assert not changes.keys() & leaves.keys()


def test_every_setting_of_reasoning_changes_the_key() -> None:
    flips: Flip = {"effort": "high", "max_tokens": 7, "enabled": False, "exclude": True}
    assert flips.keys() == ReasoningSettings.model_fields.keys()
    bare = OpenRouterTeacherSettings(model="a/b")
    keys = {
        key_of(bare.model_copy(update={"reasoning": ReasoningSettings(**{name: value})}))
        for name, value in flips.items()
    }
    assert len(keys | {key_of(bare)}) == len(flips) + 1


@pytest.mark.parametrize("kind", TABLES)
def test_every_field_of_a_question_does_what_its_table_says(kind: type[Any]) -> None:
    assert QUESTION_CHANGES.keys() | QUESTION_LEAVES.keys() == {field.name for field in fields(Question)}
    settings = kind(**TABLES[kind][0])
    for name, value in QUESTION_CHANGES.items():
        assert key_of(settings, replace(QUESTION, **{name: value})) != key_of(settings), name
    for name, value in QUESTION_LEAVES.items():
        assert value != getattr(QUESTION, name)
        assert key_of(settings, replace(QUESTION, **{name: value})) == key_of(settings), name
    assert key_of(settings, sample=1) != key_of(settings)


def test_every_part_of_a_request_key_changes_it() -> None:
    assert OF_A_KEY.keys() == BASE.keys() == inspect.signature(request_key).parameters.keys()
    keys = {request_key(**(BASE | {name: value})) for name, value in OF_A_KEY.items()}
    assert len(keys | {request_key(**BASE)}) == len(OF_A_KEY) + 1


def test_the_order_of_settings_does_not_change_a_request_key() -> None:
    swapped = BASE | {"sampling": {"max_tokens": 4096, "temperature": 0.7}}
    assert request_key(**BASE) == request_key(**swapped)


Shown = Literal["shown", "record only"]
MESSAGE: dict[str, tuple[Any, Shown]] = {
    "role": ("system", "shown"),
    "content": ("other", "shown"),
    "tool_calls": ((ToolCall("1", "Read", "{}"),), "shown"),
    "tool_call_id": ("2", "shown"),
    "name": ("Read", "record only"),
    "is_error": (True, "record only"),
    "error_kind": ("tool_error", "record only"),
    "reasoning": ("a thought", "record only"),
}
CALL: Flip = {"id": "2", "name": "Write", "arguments": '{"a": 1}'}
TOOL: Flip = {"name": "Write", "description": "writes", "parameters": {"type": "string"}}


def test_a_prompt_is_every_field_that_is_shown_and_no_other() -> None:
    assert MESSAGE.keys() == {field.name for field in fields(Message)}
    shown = extend_prompt("p", Message("user", "text"))
    for name, (value, kind) in MESSAGE.items():
        other = replace(Message("user", "text"), **{name: value})
        assert (extend_prompt("p", other) != shown) == (kind == "shown"), name
        assert (other.to_wire() != Message("user", "text").to_wire()) == (kind == "shown"), name


def test_a_prompt_is_every_field_of_its_calls_and_tools() -> None:
    assert CALL.keys() == {field.name for field in fields(ToolCall)}
    call = ToolCall("1", "Read", "{}")
    calls = [call, *(replace(call, **{name: value}) for name, value in CALL.items())]
    assert len({extend_prompt("p", Message("assistant", "", (each,))) for each in calls}) == len(calls)
    assert TOOL.keys() | {"origin"} == {field.name for field in fields(ToolSpec)}
    tool = ToolSpec("Read", "reads", {"type": "object"})
    tools = [tool, *(replace(tool, **{name: value}) for name, value in TOOL.items())]
    assert len({prompt_root([each], "p1") for each in tools}) == len(tools)
    assert prompt_root([tool], "p1") == prompt_root([replace(tool, origin="inferred")], "p1")
    assert prompt_root([tool], "p1") != prompt_root([tool], "p2")


def test_the_address_of_the_real_thing_leaves_the_key_however_it_is_written() -> None:
    bare, slashed = (
        OpenRouterTeacherSettings(model="a/b", base_url=url)
        for url in (None, "https://openrouter.ai/api/v1/")
    )
    assert key_of(bare) == key_of(slashed)


def test_a_stand_in_server_has_one_key_whatever_its_port() -> None:
    one, two = (
        OpenRouterTeacherSettings(model="a/b", base_url=f"http://127.0.0.1:{port}/api/v1") for port in (1, 2)
    )
    assert key_of(one) == key_of(two)


def test_a_table_of_answers_is_known_by_its_content() -> None:
    one, same = (RecordedTeacherSettings(model="m", path=Path(name)) for name in ("one.jsonl", "same.jsonl"))
    assert key_of(one) == key_of(same)
