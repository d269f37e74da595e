"""What a replay keeps in memory, and how the garbage collection stands while it runs."""

import asyncio
import gc
from pathlib import Path

import pytest

from tracemill.records.message import Message, ToolCall
from tracemill.records.reply import TeacherReply
from tracemill.records.trace import MessageView
from tracemill.teachers.build_teachers import build_teachers
from tracemill.teachers.client.build_request import count_request_bytes, request_body
from tracemill.teachers.core.presets import SIMULATED
from tracemill.teachers.core.price import Price
from tracemill.teachers.core.prompt_json import WRITTEN, StillAsked
from tracemill.teachers.core.question import Question
from tracemill.teachers.core.teacher_settings import (
    CompatibleSettings,
    GateSettings,
    OpenRouterSettings,
    ReplaySettings,
)
from tracemill.teachers.gate.gate_decisions import make_gate_decisions
from tracemill.teachers.ledger.ledger import Ledger
from tracemill.teachers.openrouter_stub.server import running
from tracemill.teachers.openrouter_stub.stub_settings import WireSettings
from tracemill.teachers.pricing.model_info import ModelCard
from tracemill.teachers.replay.gc_pause import pause_gc
from tracemill.teachers.replay.replay_run import replay

CARD = ModelCard(Price())


def questions_of(traces: int, steps: int) -> list[Question]:
    """Sessions of so many steps, each prompt the beginning of the next."""
    found: list[Question] = []
    for number in range(traces):
        messages = [Message("user", f"mend part {number}")]
        for step in range(steps):
            call = ToolCall(f"c{step}", "read_file", '{"path": "a.py"}')
            messages += [Message("assistant", "", (call,)), Message("tool", "x" * 50, tool_call_id=call.id)]
        whole = tuple(messages)
        for step in range(steps):
            view = MessageView(whole, 1 + 2 * step)
            prompt_id = f"p{number}-{step}"
            found.append(Question(f"t{number}:0:{step}", f"t{number}", view, (), prompt_id, "1", "r1"))
    return found


def ask(
    folder: Path, questions: list[Question], cap_nusd: int = 10**9
) -> tuple[list[TeacherReply], list[int], list[tuple[int, ...]]]:
    """The replies, and at each of them the bytes of JSON kept and how garbage is collected."""
    kept: list[int] = []
    collected: list[tuple[int, ...]] = []

    def on_reply(_reply: TeacherReply, _stored: bool) -> None:
        kept.append(len(WRITTEN))
        collected.append((*gc.get_threshold(), int(gc.get_freeze_count() > 0)))

    with running(WireSettings()) as server, Ledger(f"sqlite:///{folder / 'l.db'}") as ledger:
        settings = OpenRouterSettings(model=SIMULATED.teachers[0].model, base_url=server.url)
        teachers = build_teachers([settings], {"OPENROUTER_API_KEY": "sk-or-simulated"})
        ledger.open_run("run", cap_nusd)
        decisions = make_gate_decisions(questions, teachers, 0, GateSettings())
        asking = replay(
            questions, decisions, teachers, ledger, "run", ReplaySettings(concurrency=2), on_reply
        )
        return asyncio.run(asking).replies, kept, collected


def test_json_of_a_context_goes_once_all_its_steps_are_asked(tmp_path: Path) -> None:
    before = len(WRITTEN)
    questions = questions_of(12, 3)
    replies, kept, _ = ask(tmp_path, questions)
    assert len(replies) == 36
    assert len(WRITTEN) == before
    settings = CompatibleSettings(model="m", base_url="http://127.0.0.1:9/v1")
    longest = max(len(request_body(settings, question, 0, CARD)) for question in questions)
    for question in questions:
        WRITTEN.forget(question.messages)
    assert max(kept) - before > 0
    # two calls are out at a time, each along a context of its own; a third has just ended
    assert max(kept) - before < 3 * longest


def test_json_of_a_context_goes_where_its_steps_are_not_asked() -> None:
    before = len(WRITTEN)
    one, two = questions_of(2, 1)
    settings = CompatibleSettings(model="m", base_url="http://127.0.0.1:9/v1")
    still = StillAsked([one, one, two])
    for question in (one, two):
        request_body(settings, question, 0, CARD)
    assert len(WRITTEN) > before
    still.once_less(two)
    both = len(WRITTEN)
    still.once_less(one)
    assert len(WRITTEN) == both > before
    still.once_less(one)
    assert len(WRITTEN) == before


@pytest.mark.parametrize("family", ["anthropic", "deepseek", "openai"])
def test_a_body_is_as_long_as_it_was_said_to_be(family: str) -> None:
    settings = OpenRouterSettings(model=f"{family}/m", family=family)
    for question in questions_of(1, 3):
        body = request_body(settings, question, 0, CARD)
        assert count_request_bytes(settings, question, 0, CARD) == len(body)
        WRITTEN.forget(question.messages)


@pytest.fixture
def nothing_frozen() -> None:
    """Other parts of a process may have taken objects out of the collector's sight before."""
    gc.unfreeze()


@pytest.mark.usefixtures("nothing_frozen")
def test_garbage_is_collected_rarely_while_a_replay_runs_and_as_before_after_it(tmp_path: Path) -> None:
    before = (gc.get_threshold(), gc.get_freeze_count())
    _, _, collected = ask(tmp_path, questions_of(2, 1))
    assert set(collected) == {(5_000, 50, 100, 1)}
    assert (gc.get_threshold(), gc.get_freeze_count()) == before


@pytest.mark.usefixtures("nothing_frozen")
def test_the_last_of_several_replays_puts_the_collection_back() -> None:
    before = gc.get_threshold()
    one, two = pause_gc(), pause_gc()
    one.__enter__()
    two.__enter__()
    one.__exit__(None, None, None)
    assert gc.get_threshold() == (5_000, 50, 100)
    assert gc.get_freeze_count() > 0
    two.__exit__(None, None, None)
    assert gc.get_threshold() == before
    assert gc.get_freeze_count() == 0
