"""A replay that stops early, over a real socket: the same labels for fewer calls, none in a rerun."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tracemill.agreement.voting.early_stop import AGREED, CERTAIN, EarlyStopper, Stop
from tracemill.agreement.voting.policy import VotePolicy
from tracemill.flows.labeling.label_shard import ShownTrace, make_pairs
from tracemill.flows.labeling.vote_policy import record_vote_outcomes
from tracemill.records.message import Message, ToolCall, ToolSpec
from tracemill.records.reply import AskDecision
from tracemill.records.trace import Context, Step, Trace
from tracemill.teachers.build_teachers import build_teachers
from tracemill.teachers.core.presets import SIMULATED
from tracemill.teachers.core.question import Question
from tracemill.teachers.core.teacher_settings import GateSettings, OpenRouterTeacherSettings
from tracemill.teachers.gate.gate_decisions import EXPLORED, make_gate_decisions
from tracemill.teachers.ledger.ledger import Ledger
from tracemill.teachers.offline.sim_policy import simulate_answer
from tracemill.teachers.openrouter_stub.server import running
from tracemill.teachers.openrouter_stub.stub_settings import StubSettings
from tracemill.teachers.planning.schedule import DEADLINE, NOT_NEEDED
from tracemill.teachers.replay.replay_run import TIME_UP, ReplayRequest, ReplayResult, replay

pytestmark = pytest.mark.anyio
KEY = {"OPENROUTER_API_KEY": "sk-or-simulated"}
MODELS = tuple(teacher.model for teacher in SIMULATED.teachers)[:3]
STEPS = 16
TOOLS = tuple(
    ToolSpec(name, "", {"type": "object", "properties": {argument: {"type": "string"}}})
    for name, argument in (("bash", "command"), ("read_file", "path"))
)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def trace_of(number: int) -> Trace:
    """A session whose tests fail at every second step; at some steps it does what the first teacher would."""
    messages = [Message("system", "You mend programs."), Message("user", f"Mend src/part{number}.py")]
    steps: list[Step] = []
    for step in range(STEPS):
        command = f"python -m pytest tests/test_{number}_{step}.py" if step % 3 else "git status --short"
        call = ToolCall(f"c{step}", "bash", json.dumps({"command": command}))
        if step % 4 == 2:
            shown = [message.to_wire() for message in messages]
            calls = simulate_answer(
                MODELS[0], shown, [tool.to_wire() for tool in TOOLS], seed=0, sample=0
            ).calls
            call = ToolCall(f"c{step}", *calls[0]) if calls else call
        result = f"FAILED tests/test_{number}_{step}.py - AssertionError" if step % 2 else "1 passed"
        steps.append(Step(step, len(messages), "claude-x", "anthropic", cwd="/repo"))
        messages.append(Message("assistant", "I run it.", (call,)))
        messages.append(Message("tool", result, tool_call_id=call.id))
    context = Context(0, tuple(messages), tuple(steps), tools=TOOLS)
    return Trace(f"t{number}", "openhands", "test", "openhands", (context,), redaction="r1")


SHOWN = [ShownTrace.of(trace_of(number)) for number in range(2)]
QUESTIONS = [question for item in SHOWN for question in item.questions()]


def stopper(stop: Stop) -> EarlyStopper:
    states = {str(s.step_id): (s, i.presentations[0].tools) for i in SHOWN for s in i.trace.states()}
    return EarlyStopper(states, VotePolicy(), stop)


async def run(
    url: str, folder: Path, stop: Stop, questions: list[Question], left_s: float | None = None
) -> tuple[ReplayResult, list[AskDecision]]:
    models = [OpenRouterTeacherSettings(model=model, base_url=url, max_tokens=200) for model in MODELS]
    decisions = make_gate_decisions(questions, models, 7, GateSettings(explore=0.15))
    with Ledger(f"sqlite:///{folder / 'l.db'}") as ledger:
        ledger.open_run("run", 10**10)
        judge = None if stop == "off" else stopper(stop)
        teachers = build_teachers(models, KEY)
        return (
            await replay(
                ReplayRequest(
                    questions, decisions, teachers, ledger, "run", stopper=judge, time_left_s=left_s
                )
            ),
            decisions,
        )


def labels(result: ReplayResult) -> dict[str, str | None]:
    """The key chosen at each step, None where none is."""
    made = make_pairs(SHOWN, result.replies, VotePolicy(), of_traces=False)
    chosen = {
        votes.step_id: next(vote.key for vote in votes.votes if vote.agrees)
        for votes in made.votes
        if votes.verdict == "pair"
    }
    return {question.step_id: chosen.get(question.step_id) for question in QUESTIONS}


async def test_labels_are_those_of_the_full_vote_and_a_rerun_asks_nothing(tmp_path: Path) -> None:
    found: dict[Stop, ReplayResult] = {}
    received: dict[str, int] = {}
    for stop in ("off", "lossless", "tiered"):
        (tmp_path / stop).mkdir()
        with running() as server:
            found[stop], decisions = await run(server.url, tmp_path / stop, stop, QUESTIONS)
            received[stop] = server.stats()["received"]
            url = server.url
        # the server is gone
        again, _ = await run(url, tmp_path / stop, stop, QUESTIONS)
        assert again.replies == found[stop].replies
        assert again.counters["attempts"] == 0
        assert again.not_asked == found[stop].not_asked
        outcomes = [d.outcome for d in record_vote_outcomes(decisions, again.not_asked)]
        assert outcomes.count("asked") == received[stop]
    assert received["off"] == len(QUESTIONS) * 3
    assert labels(found["lossless"]) == labels(found["off"])
    assert sum(label is not None for label in labels(found["off"]).values()) > 5
    assert received["tiered"] < received["lossless"] < 0.85 * received["off"]
    assert received["lossless"] >= 2 * len(QUESTIONS)
    kept = set(found["tiered"].not_asked.values())
    assert {f"{NOT_NEEDED}: {CERTAIN}", f"{NOT_NEEDED}: {AGREED}"} <= kept
    explored = {d.step_id for d in decisions if d.reason == EXPLORED}
    assert explored
    for step_id in explored:
        assert sum(reply.step_id == step_id for reply in found["tiered"].replies) == 3


async def test_what_the_first_run_left_is_not_asked_by_a_wider_one_unless_it_is_needed(
    tmp_path: Path,
) -> None:
    """Tiered, then lossless: only the steps that the first vote ended are gone on with."""
    with running() as server:
        tiered, _ = await run(server.url, tmp_path, "tiered", QUESTIONS)
        first = server.stats()["received"]
        lossless, _ = await run(server.url, tmp_path, "lossless", QUESTIONS)
        second = server.stats()["received"] - first
        assert server.stats()["paid_twice"] == 0
    ended = {step for (step, _), why in tiered.not_asked.items() if why == f"{NOT_NEEDED}: {AGREED}"}
    assert len(ended) <= second <= 2 * len(ended)
    assert {reply.step_id for reply in lossless.replies} == {question.step_id for question in QUESTIONS}


async def test_after_the_deadline_nothing_goes_out_and_the_next_run_asks_it(tmp_path: Path) -> None:
    with running(StubSettings(latency_s=0.1)) as server:
        late, _ = await run(server.url, tmp_path, "lossless", QUESTIONS, left_s=0.0)
        assert server.stats()["received"] == 0
        some, decisions = await run(server.url, tmp_path, "lossless", QUESTIONS[:STEPS], left_s=0.45)
        received = server.stats()["received"]
        rest, _ = await run(server.url, tmp_path, "lossless", QUESTIONS[:STEPS])
        assert server.stats()["paid_twice"] == 0
    assert late.stopped == some.stopped == TIME_UP
    assert (late.counters[f"not_asked:{DEADLINE}"], rest.stopped) == (len(QUESTIONS) * 3, None)
    assert 0 < received < STEPS
    assert rest.counters["cached"] == received
    outcomes = [d.outcome for d in record_vote_outcomes(decisions, some.not_asked)]
    assert outcomes.count("asked") == received
    settled = sum(outcome.startswith(NOT_NEEDED) for outcome in outcomes)
    assert outcomes.count(DEADLINE) == STEPS * 3 - received - settled > 10


def test_the_explored_slice_is_a_share_of_what_is_asked() -> None:
    asked = [replace(QUESTIONS[0], step_id=f"t:0:{number}") for number in range(4000)]
    for share in (0.05, 0.2):
        made = make_gate_decisions(asked, SIMULATED.teachers[:1], 0, GateSettings(explore=share))
        explored = [d for d in made if d.reason == EXPLORED]
        assert len(explored) / 4000 == pytest.approx(share, abs=0.02)
        assert all(d.verdict == "ask" for d in made)
