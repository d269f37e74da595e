"""Answers written by hand: found by session and step, priced, marked; a wrong file is one error line."""

import asyncio
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from tracemill.ingesters.discover import discover
from tracemill.ingesters.read_source import ingest_source
from tracemill.records.errors import TeacherError
from tracemill.records.identity import StepId
from tracemill.records.message import Message
from tracemill.teachers.build_teachers import build_teachers
from tracemill.teachers.core.question import Question
from tracemill.teachers.core.teacher_settings import HandwrittenTeacherSettings, PriceSettings
from tracemill.teachers.offline.handwritten_answers import read_handwritten

ROOT = Path(__file__).resolve().parents[2]
ANSWERS = ROOT / "examples" / "teachers"
TRACE = "claude_code-3ab60806198d22416591"
FILE = """
session: t
steps:
  1:
  - does: [{Read: {file_path: /home/ada/a.py}}, {Bash: {command: ls}}]
    by: {careful: I look., terse: ""}
  - by: {hasty: Done.}
"""


def folder(tmp_path: Path, text: str = FILE) -> Path:
    (tmp_path / "one.yaml").write_text(text)
    return tmp_path


def question(step: int, trace: str = "t") -> Question:
    messages = (Message("user", "Mend it."),)
    return Question(f"{trace}:0:{step}", trace, messages, (), "p", "1", "r1")


def settings(path: Path, name: str) -> HandwrittenTeacherSettings:
    prices = PriceSettings.model_validate({"prompt_usd": 1, "completion_usd": 10})
    return HandwrittenTeacherSettings(model=f"handwritten/{name}", path=path, prices=prices)


def test_an_answer_is_found_by_its_step_and_costs_what_its_prices_say(tmp_path: Path) -> None:
    (teacher,) = build_teachers(
        [settings(folder(tmp_path), "careful")], {}, lambda text: text.replace("ada", "X")
    )
    result = asyncio.run(teacher.ask(question(1), 0))
    reply = result.reply
    assert reply.action is not None
    calls = [(call.name, call.arguments) for call in reply.action.tool_calls]
    assert calls == [("Read", '{"file_path":"/home/X/a.py"}'), ("Bash", '{"command":"ls"}')]
    assert (reply.action.text, reply.simulated, reply.provider) == ("I look.", True, "handwritten")
    usage = reply.usage
    assert result.cost_nanousd == 1_000 * usage.prompt_tokens + 10_000 * usage.completion_tokens > 0
    assert result.cost_nanousd is not None
    assert result.cost_nanousd <= teacher.bound_nanousd(question(1))
    shown = replace(question(1), messages=(Message("user", "Mend <it>."),), prompt_id="q")
    assert asyncio.run(teacher.ask(shown, 0)).reply.action == reply.action
    assert teacher.request_key(shown, 0) != teacher.request_key(question(1), 0)


@pytest.mark.parametrize(
    ("name", "step", "trace"), [("careful", 2, "t"), ("careful", 1, "u"), ("thorough", 1, "t")]
)
def test_a_question_without_an_answer_is_said_to_have_none(
    tmp_path: Path, name: str, step: int, trace: str
) -> None:
    (teacher,) = build_teachers([settings(folder(tmp_path), name)], {})
    result = asyncio.run(teacher.ask(question(step, trace), 0))
    assert (result.reply.action, result.reply.failure, result.cost_nanousd) == (None, "not_recorded", 0)


def test_a_teacher_without_any_answer_is_refused_before_a_run(tmp_path: Path) -> None:
    (teacher,) = build_teachers([settings(folder(tmp_path), "nobody")], {})
    said = "has no answer of 'nobody'; expected one of: careful, hasty, terse"
    with pytest.raises(TeacherError, match=said):
        asyncio.run(teacher.check())


def test_an_edited_answer_is_another_answer(tmp_path: Path) -> None:
    keys = set()
    for text in (FILE, FILE.replace("I look.", "I look first.")):
        (teacher,) = build_teachers([settings(folder(tmp_path, text), "careful")], {})
        keys.add(teacher.request_key(question(1), 0))
    assert len(keys) == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("session: [", r"one.yaml, line \d is not valid YAML"),
        ("- 1", "one.yaml: the file is not valid"),
        (FILE.replace("does:", "do:"), r"one.yaml: steps.1.0.do is not valid"),
        (FILE.replace("Done.", "[]"), r"one.yaml: steps.1.1.by.hasty is not valid"),
    ],
)
def test_a_file_that_is_wrong_is_one_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(TeacherError, match=said) as found:
        read_handwritten(folder(tmp_path, text))
    assert "\n" not in str(found.value)


def test_a_folder_without_answers_is_said(tmp_path: Path) -> None:
    with pytest.raises(TeacherError, match="has no answers written by hand"):
        read_handwritten(tmp_path / "none")


def test_every_step_of_the_example_sessions_has_an_answer_of_all_four() -> None:
    answers, _ = read_handwritten(ANSWERS)
    steps = set[str]()
    for source in discover([ROOT / "examples" / "sessions"]):
        for trace in ingest_source(source)[0]:
            steps |= {str(StepId(trace.trace_id, 0, place)) for place in range(trace.step_count)}
    assert answers.keys() == steps
    by = Counter(teacher for actions in answers.values() for teacher in actions)
    assert by == dict.fromkeys(("careful", "terse", "hasty", "thorough"), 69)
    assert all(
        action.text or action.tool_calls for actions in answers.values() for action in actions.values()
    )
    assert answers[f"{TRACE}:0:3"]["careful"] != answers[f"{TRACE}:0:3"]["hasty"]
