"""tracemill as a library: the public names, and the whole idea in a few calls."""

import asyncio
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import tracemill as tm
from tracemill.agreement.voting.consensus_reward import ConsensusShape
from tracemill.flows.config.run_settings import load_settings
from tracemill.flows.ingest.ingest_order import IngestOptions
from tracemill.flows.ingest.ingest_run import ingest_everything
from tracemill.flows.release.load_pairs import load_pairs
from tracemill.flows.sources.source_spec import order_of
from tracemill.flows.workspace_commands import label_workspace
from tracemill.records.errors import ConfigError
from tracemill.records.storage.workspace import Workspace
from tracemill.records.version import __version__
from tracemill.teachers.core.presets import PRESETS
from tracemill.teachers.core.teacher_settings import OpenRouterTeacherSettings
from tracemill.teachers.openrouter_stub.server import running
from tracemill.teachers.openrouter_stub.stub_settings import StubSettings
from tracemill.train.consensus.state_rows import AnsweredState, message_of

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "sessions"
SIMULATED = PRESETS["simulated"].teachers
OF_TORCH = {
    "ComposerReplicationTrainer",
    "StepScorer",
    "TAIDScheduler",
    "compose_loss",
    "entropy_aware_opd_loss",
}
OF_TORCH |= {"generalized_jsd_loss", "simpo_loss", "taid_loss"}
ALL = tm.ReplaySettings(stop="off")


def _states() -> list[tm.TraceState]:
    traces = tm.ClaudeCodeIngester().ingest(EXAMPLES / "claude_code")
    return [state for trace in traces for state in trace.states()]


def test_every_public_name_is_there_and_listed() -> None:
    assert sorted(tm.__all__) == dir(tm)
    for name in sorted({*tm.__all__} - OF_TORCH):
        assert getattr(tm, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        tm.nothing  # noqa: B018


@pytest.mark.slow
def test_every_public_name_that_takes_tensors_is_there() -> None:
    assert {*tm.__all__} >= OF_TORCH
    for name in sorted(OF_TORCH):
        assert getattr(tm, name).__module__.startswith("tracemill.train.")


def test_a_name_that_takes_tensors_says_in_one_line_that_it_needs_pytorch() -> None:
    code = "import sys; sys.modules['torch'] = None\nimport tracemill\ntracemill.simpo_loss"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert out.returncode == 1
    said = "pip install torch==2.13.0, then pip install 'tracemill[train]'"
    assert out.stderr.splitlines()[-1] == f"ImportError: tracemill.simpo_loss needs PyTorch: {said}"


def test_importing_it_loads_nothing() -> None:
    code = "import sys, tracemill; print([m for m in sys.modules if m.split('.')[0] in ('flows', 'records')])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_states_to_replies_to_pairs_to_normalized_pairs(tmp_path: Path) -> None:
    states = _states()
    ledger = tmp_path / "ledger.sqlite"
    replies = tm.replay_trace_sync(states, teachers=SIMULATED, max_total_usd=1.0, ledger=ledger, settings=ALL)
    assert len(replies) == 4 * len(states)
    assert 0 < sum(reply.cost_usd for reply in replies) < 1.0
    pairs = tm.extract_dpo_pairs(states, replies, agreement_threshold=2)
    strict = tm.extract_dpo_pairs(states, replies, agreement_threshold=4)
    assert len(states) > len(pairs) > len(strict)
    assert all(pair.label_source == "teachers" and pair.n_teachers_agreeing >= 2 for pair in pairs)
    by_step = {str(state.step_id): state for state in states}
    for pair in pairs:
        assert len(pair.state_messages) >= len(by_step[pair.step_id].messages)

    again = tm.replay_trace_sync(states, teachers=SIMULATED, max_total_usd=0.0, ledger=ledger, settings=ALL)
    assert again == replies
    done = tm.replay_and_normalize_trace_sync(states, teachers=SIMULATED, max_total_usd=1.0, ledger=ledger)
    assert len(done.kept) + len(done.dropped) == len(pairs)


def test_every_step_has_a_reward_of_its_teachers() -> None:
    states = _states()
    replies = tm.replay_trace_sync(states, teachers=SIMULATED, max_total_usd=1.0, settings=ALL)
    rewards = {
        shape: tm.compute_teacher_consensus_prm(states, replies, shape)
        for shape in ("plurality", "weighted", "variance_weighted")
    }
    assert all(len(each) == len(states) for each in rewards.values())
    assert all(reward is not None for reward in rewards["weighted"])
    assert {0.0, 1.0} == set(rewards["plurality"])
    assert len(set(rewards["weighted"])) >= 3  # dense: no label of two values
    for plural, weighted, varied in zip(*rewards.values(), strict=True):
        assert plural is not None
        assert weighted is not None
        assert varied is not None
        assert 0 <= varied <= weighted <= 1
        assert plural <= (weighted > 0)
    some = {str(state.step_id) for state in states[:2]}
    few = [reply for reply in replies if reply.step_id in some]
    assert tm.compute_teacher_consensus_prm(states, few)[:3] == [*rewards["weighted"][:2], None]


def test_a_row_of_a_state_rewards_the_recorded_action_as_the_library_does() -> None:
    states = _states()
    replies = tm.replay_trace_sync(states, teachers=SIMULATED, max_total_usd=1.0, settings=ALL)
    given: list[ConsensusShape] = ["plurality", "weighted", "variance_weighted"]
    weights = {SIMULATED[0].name: 2.5, SIMULATED[1].name: 0.5}
    rows = [json.loads(json.dumps(row)) for row in tm.build_consensus_rows(states, replies)]
    assert [row["step_id"] for row in rows] == [str(state.step_id) for state in states]
    taught = [AnsweredState.of_row(row) for row in rows]
    for shape in given:
        wanted = tm.compute_teacher_consensus_prm(states, replies, shape, teacher_weights=weights)
        found = [
            row.reward(state.student_action.to_message(), shape, weights)
            for row, state in zip(taught, states, strict=True)
        ]
        assert found == pytest.approx(wanted)
        assert len({*wanted}) > 1
    for row, read in zip(rows, taught, strict=True):  # a teacher's own action has the share of those like it
        for answer in row["answers"]:
            share = read.reward(message_of(answer["action"]), "weighted", {})
            assert share is not None
            assert share >= 1 / len(row["answers"])
    first = str(states[0].step_id)
    scores = {first: {"t1": 0.25, "t2": 0.75}}
    [scored] = tm.build_consensus_rows(states, [], scores)
    action = states[0].student_action.to_message()
    read = AnsweredState.of_row(scored)
    assert read.reward(action, "score_regression", {}) == 0.5
    assert read.reward(action, "score_regression", {"t2": 3.0}) == 0.625
    assert read.reward(replace(action, content="Other.", tool_calls=()), "score_regression", {}) is None
    assert read.reward(action, "weighted", {}) is None


def test_teachers_are_asked_no_further_than_the_labels_need() -> None:
    states = _states()
    for threshold in (2, 3):
        given = {"teachers": SIMULATED, "max_total_usd": 1.0, "agreement_threshold": threshold}
        every = tm.replay_trace_sync(states, **given, settings=ALL)
        needed = tm.replay_trace_sync(states, **given)
        assert 2 * len(states) < len(needed) < len(every)
        labels = [tm.extract_dpo_pairs(states, replies, threshold) for replies in (every, needed)]
        assert len(labels[0]) > 3
        assert [pair.step_id for pair in labels[1]] == [pair.step_id for pair in labels[0]]


def test_part_of_the_states_is_asked_alone() -> None:
    some = _states()[3:5]
    replies = asyncio.run(tm.replay_trace(some, teachers=SIMULATED, max_total_usd=1.0))
    assert {reply.step_id for reply in replies} == {str(state.step_id) for state in some}
    assert {pair.step_id for pair in tm.extract_dpo_pairs(some, replies)} <= {str(s.step_id) for s in some}


def test_no_secret_of_a_state_is_in_a_pair() -> None:
    states = _states()
    recorded = "\n".join(m.content for s in states for m in s.context.messages)
    assert "ghp_" in recorded
    replies = tm.replay_trace_sync(states, teachers=SIMULATED, max_total_usd=1.0)
    shown = [
        m for p in tm.extract_dpo_pairs(states, replies) for m in (*p.state_messages, *p.chosen, *p.rejected)
    ]
    assert not any("ghp_" in message.content for message in shown)


def test_what_is_sent_is_redacted_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the socket: no key of a session, no secret of the environment, no user name is in any request."""
    own = "a-secret-of-the-environment-4711"
    monkeypatch.setenv("MY_SERVICE_TOKEN", own)
    monkeypatch.setenv("OPENROUTER_API_KEY", "sk-or-test-only-0123456789")
    states = [_with_a_secret(state, f"token {own} in /home/carlotta/notes") for state in _states()]
    recorded = "\n".join(m.content for s in states for m in s.context.messages)
    for secret in ("ghp_", own, "carlotta"):
        assert secret in recorded
    with running(StubSettings(api_key="sk-or-test-only-0123456789", keep_bodies=True)) as server:
        teachers = [
            OpenRouterTeacherSettings(model=f"simulated/{name}", base_url=server.url, max_tokens=200)
            for name in ("deepseek-a", "kimi-a", "glm-a")
        ]
        replies = tm.replay_trace_sync(states, teachers=teachers, max_total_usd=5.0, settings=ALL)
        sent = b"\n".join(server.server.bodies)
    assert len(replies) == server.stats()["received"] == 3 * len(states)
    assert b"in /home/user_" in sent
    for secret in (b"ghp_", own.encode(), b"carlotta"):
        assert secret not in sent


def test_a_trace_that_older_rules_redacted_is_redacted_again() -> None:
    state = _with_a_secret(_states()[0], "in /home/carlotta/notes")
    older = replace(state.trace, redaction="r0")
    states = list(older.states())[:2]
    replies = tm.replay_trace_sync(states, teachers=SIMULATED, max_total_usd=1.0)
    today = [s for s in state.trace.states() if s.step_id in {each.step_id for each in states}]
    assert replies == tm.replay_trace_sync(today, teachers=SIMULATED, max_total_usd=1.0)


def _with_a_secret(state: tm.TraceState, text: str) -> tm.TraceState:
    """The state in a trace whose first message holds this text."""
    contexts = []
    for context in state.trace.contexts:
        first, *rest = context.messages
        messages = (replace(first, content=f"{first.content}\n{text}"), *rest)
        contexts.append(replace(context, messages=messages))
    trace = replace(state.trace, contexts=tuple(contexts))
    return next(s for s in trace.states() if s.step_id == state.step_id)


def test_too_few_teachers_are_an_error_before_anything_is_asked() -> None:
    with pytest.raises(tm.TracemillError, match="families"):
        tm.replay_trace_sync(_states(), teachers=SIMULATED[:2], max_total_usd=1.0)


def test_pairs_without_teachers_are_those_of_a_run(tmp_path: Path) -> None:
    states = _states()
    pairs = tm.extract_session_pairs(states)
    folder = tmp_path / "w"
    ingest_everything(
        IngestOptions(order_of(paths=[str(EXAMPLES / "claude_code")], min_age_minutes=0), folder)
    )
    label_workspace(load_settings(None, {"workspace": str(folder)}))
    stored = load_pairs(Workspace.open(folder))
    assert sorted(pair.pair_id for pair in pairs) == sorted(pair.pair_id for pair in stored)
    assert {pair.label_source for pair in pairs} == {"hindsight"}
    assert len(pairs) >= 3
    assert all(pair.state_key and not pair.votes for pair in pairs)
    first = pairs[0]
    [state] = [state for state in states if str(state.step_id) == first.step_id]
    assert tm.extract_session_pairs([state]) == [first]
    assert "ghp_" not in str([pair.to_dict() for pair in pairs])
    assert len(tm.pairs_to_dataset(pairs)) == len(pairs)


def test_no_replies_and_no_teachers_are_errors_that_name_the_way_without() -> None:
    states = _states()[:2]
    with pytest.raises(tm.TracemillError, match=r"no replies.*tm\.extract_session_pairs\(states\)"):
        tm.extract_dpo_pairs(states, [])
    assert tm.extract_dpo_pairs([], []) == []
    with pytest.raises(tm.TracemillError, match=r"no teachers are given.*tm\.extract_session_pairs"):
        tm.replay_trace_sync(states, teachers=[], max_total_usd=1.0)


def test_a_missing_key_is_one_error_before_anything_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its traceback shows the call and nothing of asyncio."""
    monkeypatch.delenv("OPENROUTER_API_KEY", raising=False)
    monkeypatch.setattr("tracemill.flows.library._traces", lambda states: pytest.fail("read before"))
    with pytest.raises(ConfigError, match="expected the environment variable OPENROUTER_API_KEY") as caught:
        tm.replay_trace_sync([], tm.DEFAULT_TEACHERS, max_total_usd=1.0)
    assert len(caught.traceback) == 2
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_the_command_line_starts_as_a_module_too() -> None:
    done = subprocess.run([sys.executable, "-m", "tracemill", "--version"], capture_output=True, check=True)
    assert done.stdout.decode() == f"tracemill {__version__}\n"
