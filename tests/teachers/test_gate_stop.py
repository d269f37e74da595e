"""Stopping by value between teachers: what is heard, what is learned of it, and where a replay ends by it."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from tracemill.agreement.equivalence.ladder import Keys
from tracemill.agreement.voting.early_stop import AGREED, Referee
from tracemill.agreement.voting.policy import Policy
from tracemill.flows.labeling.ask_in_memory import ask_in_memory
from tracemill.flows.labeling.gate_report import gate_chances
from tracemill.flows.labeling.gate_weights import (
    Experience,
    gate_weights_version,
    keep_weights,
    read_gate_stages,
)
from tracemill.flows.labeling.label_shard import Shown
from tracemill.flows.labeling.own_ledger import build_ledger
from tracemill.flows.labeling.vote_policy import ASKED, record_vote_outcomes
from tracemill.harnesses.core.vocabulary import Operation
from tracemill.records.message import Message, ToolCall, ToolSpec
from tracemill.records.reply import Decision
from tracemill.records.storage.workspace import Workspace
from tracemill.records.trace import Context, Step, Trace
from tracemill.teachers.build_teachers import build_teachers
from tracemill.teachers.core.teacher_settings import PriceSettings, ReplaySettings, SimulatedSettings
from tracemill.teachers.gate.gate_decisions import EXPLORED, WORTH
from tracemill.teachers.gate.pair_model import Belief, learn_pair_model
from tracemill.teachers.gate.step_costs import step_costs_to_go
from tracemill.teachers.gate.value_stages import (
    Stages,
    are_own_answers,
    is_worth,
    price_that_keeps,
    value_stage_of,
    value_stage_words,
)
from tracemill.teachers.gate.value_stop import NOT_WORTH_ON, ValueStop
from tracemill.teachers.ledger.ledger import Ledger
from tracemill.teachers.offline.sim_policy import simulate_answer
from tracemill.teachers.planning.schedule import NOT_NEEDED
from tracemill.teachers.replay.replay_run import ReplayResult, replay

STEPS = 12
FEATURES = ("op=run",)
TOOLS = (ToolSpec("bash", "", {"type": "object", "properties": {"command": {"type": "string"}}}),)
MODELS = ("z-ai/glm-5.3", "deepseek/deepseek-v4-pro-0813", "qwen/qwen3.8-27b")
STOPPED = f"{NOT_NEEDED}: {NOT_WORTH_ON}"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def plain(name: str, cls: str, guess: bool = False) -> Keys:
    return Keys(name, name, name, name.partition("/")[0], cls, guess=guess)


def test_the_words_of_answers_say_how_near_each_is_to_the_student_and_to_those_before() -> None:
    own = plain("a", Operation.RUN)
    words = value_stage_words(own, [plain("a", Operation.RUN), None, plain("a/2", Operation.RUN, guess=True)])
    assert words == (
        "heard1=effect",
        "heard1_op=run",
        "heard1_guess=no",
        "heard1*op=effect*run*run",
        "heard2=none",
        "heard3=intent",
        "heard3_op=run",
        "heard3_guess=yes",
        "heard3*op=intent*run*run",
        "heard3~1=intent",
    )
    assert (
        value_stage_of(words),
        value_stage_of(()),
        are_own_answers(words),
        are_own_answers(words[:5]),
    ) == (3, 0, False, True)
    assert not are_own_answers(value_stage_words(own, [None]))
    far = value_stage_words(own, [plain("b", Operation.READ), plain("c", Operation.READ)])
    assert (far[0], far[-1]) == ("heard1=different", "heard2~1=class")


def known_stages(pairs: int = 30, others: int = 30) -> Stages:
    """After one answer: a pair where it is another one than the student's, none where it is the same."""
    rows = [((*FEATURES, "heard1=different"), 1.0)] * pairs + [((*FEATURES, "heard1=class"), 0.0)] * others
    return Stages.learn({1: rows, 2: []})


def test_a_stage_is_gone_by_once_it_rests_on_enough() -> None:
    stages = known_stages()
    high = stages.probability(FEATURES, ("heard1=different",), 1)
    low = stages.probability(FEATURES, ("heard1=class",), 1)
    assert high is not None
    assert low is not None
    assert high > 0.75
    assert low < 0.25
    assert stages.probability(FEATURES, ("heard1=class",), 2) is None  # nothing was asked beyond it
    assert known_stages(2, 60).probability(FEATURES, ("heard1=class",), 1) is None
    assert known_stages(10, 10).probability(FEATURES, ("heard1=class",), 1) is None
    assert stages.probability(FEATURES, (), 0) is None
    again = Stages.from_json(json.loads(json.dumps(stages.to_json())))
    assert again == stages
    assert again.version == stages.version != known_stages(31).version


def test_what_was_believed_counts_where_the_label_is_not_known() -> None:
    half = learn_pair_model([(("op=run",), 0.5)] * 40)
    assert half.probability(("op=run",)) == pytest.approx(0.5, abs=0.1)
    assert (half.asked, half.pairs) == (40, 20)
    rows = [(("a=1",), 0.3), (("a=1",), 1.0), (("b=2",), 0.0)]
    assert learn_pair_model(rows) == learn_pair_model(reversed(rows))
    assert Belief.from_json(half.to_json()) == half


def test_costs_to_go_and_the_price_that_keeps_a_share_of_the_pairs() -> None:
    assert step_costs_to_go([1.0, 2.0, 4.0], [1.0, 0.5, 0.25]) == [3.0, 4.0, 4.0]
    assert is_worth(0.2, 1.0, 0.1, 2.0)
    assert not is_worth(0.19, 1.0, 0.1, 2.0)
    assert is_worth(0.0, 1.0, float("inf"), 0.0)
    # Expected pairs .01 + .09 + .9; per USD .01, .09, .9: giving the first up loses 1 %, the second 9 % more.
    chains = [[(p, 1.0, 1.0)] for p in (0.01, 0.09, 0.9)]
    assert [price_that_keeps(chains, keep) for keep in (1.0, 0.98, 0.89, 0.5)] == [0.01, 0.09, 0.9, 0.9]
    assert price_that_keeps([], 0.9) == 0.0
    later = [[(0.5, 1.0, 1.0), (0.02, 1.0, 1.0)]]
    assert price_that_keeps(later, 0.9) == 0.5  # it ends where little is left, after the second answer


def trace() -> Trace:
    """A session that does at every third step what the first teacher would."""
    messages = [Message("system", "You mend programs."), Message("user", "Mend src/part.py")]
    steps: list[Step] = []
    for step in range(STEPS):
        call = ToolCall(f"c{step}", "bash", json.dumps({"command": f"python -m pytest tests/test_{step}.py"}))
        if step % 3 == 2:
            shown = [message.to_wire() for message in messages]
            said = simulate_answer(
                MODELS[0], shown, [tool.to_wire() for tool in TOOLS], seed=0, sample=0
            ).calls
            call = ToolCall(f"c{step}", *said[0]) if said else call
        steps.append(Step(step, len(messages), "claude-x", "anthropic", cwd="/repo"))
        messages.append(Message("assistant", "I run it.", (call,)))
        messages.append(Message("tool", f"FAILED tests/test_{step}.py", tool_call_id=call.id))
    context = Context(0, tuple(messages), tuple(steps), tools=TOOLS)
    return Trace("t0", "openhands", "test", "openhands", (context,), redaction="r1")


SHOWN = Shown.of(trace())
QUESTIONS = SHOWN.questions()
EXPLORED_STEPS = {question.step_id for question in QUESTIONS[:3]}


def decisions(price: float) -> list[Decision]:
    """All teachers at all steps, the first three explored; asking on costs 1, 2 and 4 units."""
    return [
        Decision(
            question.step_id,
            model,
            "ask",
            EXPLORED if question.step_id in EXPLORED_STEPS else WORTH,
            "gate+w1",
            1.0,
            0.5,
            features=FEATURES,
            belief=0.5,
            utility=1.0,
            expected_usd=3.0,
            place=place,
            price=price,
            to_go_usd=usd,
        )
        for question in QUESTIONS
        for place, (model, usd) in enumerate(zip(MODELS, (3.0, 4.0, 4.0), strict=True))
    ]


async def run(
    folder: Path, made: list[Decision], stages: Stages
) -> tuple[ReplayResult, list[Decision], ValueStop]:
    teachers = [
        SimulatedSettings(
            model=model, prices=PriceSettings.model_validate({"prompt_usd": usd, "completion_usd": usd})
        )
        for model, usd in zip(MODELS, (4, 1, 2), strict=True)  # not the order that was decided
    ]
    states = {str(s.step_id): (s, SHOWN.presentations[0].tools) for s in SHOWN.trace.states()}
    judge = Referee(states, Policy(), "value")
    families = {teacher.name: teacher.family for teacher in teachers}
    value = ValueStop(judge, made, families, {"gate+w1": stages}.__getitem__)
    with Ledger(f"sqlite:///{folder / 'l.db'}") as ledger:
        if not ledger.knows("run"):
            ledger.open_run("run", 10**12)
        done = await replay(
            QUESTIONS,
            made,
            build_teachers(teachers, {}),
            ledger,
            "run",
            ReplaySettings(stop="value"),
            referee=judge,
            value=value,
        )
    return done, value.with_looks(record_vote_outcomes(made, done.not_asked), done.replies), value


def asked_at(result: ReplayResult) -> dict[str, int]:
    return {
        question.step_id: sum(reply.step_id == question.step_id for reply in result.replies)
        for question in QUESTIONS
    }


@pytest.mark.anyio
async def test_a_step_ends_where_asking_on_is_not_worth_it_and_a_rerun_ends_there_too(tmp_path: Path) -> None:
    """Whatever the first teacher said is worth less than going on costs, except where it is explored."""
    made = decisions(price=1.0)
    done, rows, _ = await run(tmp_path, made, known_stages())
    counts = asked_at(done)
    assert all(counts[step] == 3 for step in EXPLORED_STEPS)
    assert {count for step, count in counts.items() if step not in EXPLORED_STEPS} == {1}
    assert {reply.teacher for reply in done.replies if counts[reply.step_id] == 1} == {MODELS[0]}
    by_place = {(row.step_id, row.place): row for row in rows}
    for question in QUESTIONS:
        first, second, third = (by_place[question.step_id, place] for place in range(3))
        assert (first.heard, third.heard, first.outcome) == ((), (), ASKED)
        assert second.heard[0].startswith("heard1=")
        assert second.heard_verdict == "stop"
        assert second.heard_belief == known_stages().probability(FEATURES, second.heard, 1)
        assert second.outcome == (ASKED if question.step_id in EXPLORED_STEPS else STOPPED)
        assert third.outcome == second.outcome

    again, replayed, _ = await run(tmp_path, made, known_stages())
    assert (again.counters["attempts"], replayed) == (0, rows)
    # What the rows say holds, although other weights would go on.
    never, kept, _ = await run(tmp_path, rows, known_stages(60, 30))
    assert (never.counters["attempts"], kept) == (0, rows)


@pytest.mark.anyio
async def test_a_price_of_nothing_asks_until_the_label_is_certain(tmp_path: Path) -> None:
    done, rows, _ = await run(tmp_path, decisions(price=0.0), known_stages())
    assert STOPPED not in {row.outcome for row in rows}
    assert min(asked_at(done).values()) >= 2
    assert {row.heard_verdict for row in rows if row.place == 1} == {"go on"}
    assert {row.heard_belief for row in rows if row.place == 2} == {None}  # nothing is known of that stage


@pytest.mark.anyio
async def test_where_too_little_is_known_it_ends_as_tiered(tmp_path: Path) -> None:
    _, rows, _ = await run(tmp_path, decisions(price=1e9), Stages())
    looked = [row for row in rows if row.heard]
    assert {row.heard_belief for row in looked} == {None}
    assert all((row.heard_verdict == "stop") == are_own_answers(row.heard) for row in looked)
    assert {row.heard_verdict for row in looked if not are_own_answers(row.heard)} == {"go on"}
    assert {row.heard_verdict for row in looked if are_own_answers(row.heard)} == {"stop"}


@pytest.mark.anyio
async def test_the_library_which_has_learned_nothing_stops_as_tiered() -> None:
    found: dict[str, list[str]] = {}
    for stop in ("lossless", "tiered", "value"):
        with build_ledger(None) as ledger:
            replies = await ask_in_memory(
                [SHOWN],
                {question.step_id for question in QUESTIONS},
                [SimulatedSettings(model=model) for model in MODELS],
                ledger,
                1.0,
                ReplaySettings.model_validate({"stop": stop}),
                Policy(),
            )
        found[stop] = [reply.request_key for reply in replies]
    assert found["value"] == found["tiered"]
    assert len(found["tiered"]) < len(found["lossless"])


def looked(step: str, outcome: str, verdict: str, heard: str, belief: float | None) -> list[Decision]:
    known = (ASKED, FEATURES, 0.4, 1.0, 3.0, 0.05, 0, 0.1, 3.0)
    first = Decision(step, "a", "ask", WORTH, "g+w", 1.0, 0.5, *known)
    words = (f"heard1={heard}",)
    look = replace(first, teacher="b", place=1, to_go_usd=2.0, outcome=outcome, heard=words)
    return [first, replace(look, heard_belief=belief, heard_verdict=verdict)]  # type: ignore[arg-type]


def test_what_ended_early_is_learned_as_what_was_believed_and_says_nothing_between_teachers() -> None:
    made = Experience()
    made.add(looked("s:0:0", STOPPED, "stop", "class", 0.25), {"s:0:0": "too_few_votes"})
    assert (made.belief(), made.stages()) == (learn_pair_model([(FEATURES, 0.25)]), Stages())
    made.add(looked("s:0:1", ASKED, "go on", "different", 0.5), {"s:0:1": "pair"})
    assert made.belief() == learn_pair_model([(FEATURES, 0.25), (FEATURES, 1.0)])
    assert made.stages() == Stages.learn({1: [((*FEATURES, "heard1=different"), 1.0)]})
    made.add(looked("s:0:1", f"{NOT_NEEDED}: {AGREED}", "", "effect", None), {"s:0:1": "too_few_votes"})
    assert made.belief() == learn_pair_model([(FEATURES, 0.25), (FEATURES, 0.0)])
    assert made.stages() == Stages()
    for number in range(2, 80):
        pair = number % 2
        heard = "different" if pair else "class"
        rows = looked(f"s:0:{number}", ASKED, "go on", heard, None)
        made.add(rows, {f"s:0:{number}": "pair" if pair else "no_agreement"})
    stages = made.stages()
    low, high = (stages.probability(FEATURES, (f"heard1={said}",), 1) for said in ("class", "different"))
    assert low is not None
    assert high is not None
    assert made.price(stages, 1.0) == pytest.approx(low / 2.0)
    assert made.price(stages, 0.5) == pytest.approx(high / 2.0)


def test_weights_between_teachers_are_kept_with_those_of_the_gate(tmp_path: Path) -> None:
    work = Workspace.open(tmp_path / "w")
    belief, stages = learn_pair_model([(FEATURES, 1.0)]), known_stages()
    version = keep_weights(work, belief, stages)
    assert (
        version
        == gate_weights_version(belief, stages)
        != belief.version
        == gate_weights_version(belief, Stages())
    )
    assert read_gate_stages(work, version) == stages
    assert read_gate_stages(work, "0" * 8) is None


def test_totals_count_a_stopped_step_as_drawn_by_exploration_alone() -> None:
    def step(name: str, reason: str, verdict: str, belief: float) -> list[Decision]:
        return [replace(row, reason=reason) for row in looked(name, ASKED, verdict, "class", belief)]

    steps = [
        looked("s:0:0", STOPPED, "stop", "class", 0.25),
        step("s:0:1", EXPLORED, "stop", 0.2),  # it would have stopped
        step("s:0:2", EXPLORED, "go on", 0.9),
        looked("s:0:3", f"{NOT_NEEDED}: {AGREED}", "", "effect", None),
    ]
    verdicts: Mapping[str, str] = {
        "s:0:0": "too_few_votes",
        "s:0:1": "pair",
        "s:0:2": "pair",
        "s:0:3": "too_few_votes",
    }
    told = [(c.probability, c.expected, c.found, c.asked) for c in gate_chances(steps, verdicts)]
    assert told == [
        (0.05, 0.25, None, False),
        (0.05, 0.2, 1.0, True),
        (1.0, 0.4, 1.0, True),
        (1.0, 0.4, 0.0, True),
    ]
