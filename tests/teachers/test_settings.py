"""Configuration: presets, refusals, who may vote, the gate."""

from dataclasses import replace
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from tracemill.records.errors import ConfigError
from tracemill.records.message import Message, ToolSpec
from tracemill.teachers.build_teachers import build_teachers
from tracemill.teachers.core.eligibility import require_eligible
from tracemill.teachers.core.presets import DEFAULT_TEACHERS, FRONTIER, OPEN, SIMULATED
from tracemill.teachers.core.question import Question
from tracemill.teachers.core.teacher_settings import (
    BaseTeacherSettings,
    BudgetSettings,
    CompatibleTeacherSettings,
    GateSettings,
    OpenRouterTeacherSettings,
    ReplaySettings,
    SimulatedTeacherSettings,
)
from tracemill.teachers.gate.gate_decisions import STUDENT_FAMILY, make_gate_decisions
from tracemill.teachers.registry import TeacherSettings

KEYS = {"OPENROUTER_API_KEY": "k"}
QUESTION = Question(
    "t:0:0", "t", (Message("user", "Mend it."),), (ToolSpec("bash", "", {}),), "prompt-1", "p1", "r1"
)


def read(**data: Any) -> BaseTeacherSettings:
    return TypeAdapter[BaseTeacherSettings](TeacherSettings).validate_python(data)


def test_the_type_chooses_the_teacher_and_the_id_names_it() -> None:
    teacher = read(type="openrouter", model="deepseek/deepseek-v4-pro-0813")
    assert isinstance(teacher, OpenRouterTeacherSettings)
    assert (teacher.name, teacher.family) == ("deepseek/deepseek-v4-pro-0813", "deepseek")
    assert isinstance(
        read(type="openai_compatible", model="m", base_url="http://h/v1"), CompatibleTeacherSettings
    )
    named = read(type="simulated", model="simulated/qwen-a", name="q", family="mine", seed=3)
    assert isinstance(named, SimulatedTeacherSettings)
    assert (named.name, named.family) == ("q", "mine")


@pytest.mark.parametrize(
    "data",
    [
        {"type": "openrouter", "model": "m", "temprature": 1},
        {"type": "openrouter"},
        {"type": "telepathy", "model": "m"},
        {"type": "openai_compatible", "model": "m"},
        {"type": "openrouter", "model": "m", "max_tokens": 0},
        {"type": "openrouter", "model": "m", "reasoning": {"effort": "heroic"}},
        {"type": "openrouter", "model": "m", "prices": {"prompt_usd": -1}},
    ],
)
def test_unknown_keys_and_values_out_of_range_are_refused(data: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        read(**data)


def test_money_is_read_exactly() -> None:
    assert str(BudgetSettings.model_validate({"max_total_usd": "0.01"}).max_total_usd) == "0.01"
    with pytest.raises(ValidationError):
        BudgetSettings.model_validate({"max_total_usd": "-1"})


def test_the_presets_are_four_families_each() -> None:
    for preset in (OPEN, FRONTIER, SIMULATED):
        assert len({teacher.family for teacher in preset.teachers} - {"unknown"}) == 4
        assert preset.terms
    assert OPEN.teachers == DEFAULT_TEACHERS
    for teacher in OPEN.teachers:
        assert isinstance(teacher, OpenRouterTeacherSettings)
        assert (teacher.enforce_distillable_text, teacher.data_collection) == (True, "deny")


def test_too_few_families_are_an_error_for_the_student_that_leaves_too_few() -> None:
    require_eligible(OPEN.teachers, {"anthropic", "deepseek"})
    with pytest.raises(ConfigError, match=r"2 families .* may vote on steps of the family 'deepseek'"):
        require_eligible(OPEN.teachers[:3], {"anthropic", "deepseek"})
    require_eligible(OPEN.teachers[:3], {"deepseek"}, exclude_student_family=False)
    same = [OpenRouterTeacherSettings(model="qwen/a", name=name) for name in "abcd"]
    with pytest.raises(ConfigError, match=r"1 families \(qwen\)"):
        require_eligible(same, {"anthropic"})
    with pytest.raises(ConfigError, match="share a name: qwen/a"):
        require_eligible([OpenRouterTeacherSettings(model="qwen/a")] * 2, ())


def test_teachers_of_no_known_family_make_no_vote() -> None:
    strangers = [OpenRouterTeacherSettings(model=f"stranger/{name}") for name in "abcd"]
    with pytest.raises(ConfigError, match="0 families"):
        require_eligible(strangers, ())


def test_a_missing_key_is_one_clear_line() -> None:
    with pytest.raises(ConfigError, match="expected the environment variable OPENROUTER_API_KEY"):
        build_teachers(OPEN.teachers, {})
    assert len(build_teachers(SIMULATED.teachers, {})) == 4


def test_the_url_comes_from_the_settings_then_the_environment() -> None:
    bare = OpenRouterTeacherSettings(model="m")
    environ = {"TRACEMILL_OPENROUTER_URL": "http://127.0.0.1:1/api/v1/"}
    assert bare.sends_to({}) == "https://openrouter.ai/api/v1"
    assert bare.sends_to(environ) == "http://127.0.0.1:1/api/v1"
    assert OpenRouterTeacherSettings(model="m", base_url="http://x/v1").sends_to(environ) == "http://x/v1"


def test_the_gate_asks_every_step_and_says_why_it_does_not() -> None:
    students = [replace(QUESTION, step_id=f"t:0:{n}", student_family="deepseek") for n in range(3)]
    decisions = make_gate_decisions(students, OPEN.teachers, 7, GateSettings())
    assert [d.verdict for d in decisions] == ["skip", "ask", "ask", "ask"] * 3
    assert decisions[0].reason == STUDENT_FAMILY
    kept = make_gate_decisions(students, OPEN.teachers, 7, GateSettings(skip_student_family=False))
    assert {d.verdict for d in kept} == {"ask"}


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"model": "~anthropic/claude-opus-latest"}, "alias that floats"),
        ({"model": "a/b", "max_tokens": 500, "reasoning": {"max_tokens": 500}}, "leave room"),
        ({"model": "a/b", "logprobs": 21}, "less than or equal to 20"),
    ],
)
def test_settings_that_contradict_themselves_are_refused(given: dict[str, Any], match: str) -> None:
    with pytest.raises(ValidationError, match=match):
        OpenRouterTeacherSettings.model_validate(given)


def test_calls_in_flight_may_take_as_long_to_come_home_as_an_attempt_unless_it_is_set() -> None:
    assert ReplaySettings().interrupt_wait_s == 180
    assert ReplaySettings(attempt_timeout_s=240).interrupt_wait_s == 240
    assert ReplaySettings(attempt_timeout_s=240, grace_s=1.5).interrupt_wait_s == 1.5
