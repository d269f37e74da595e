"""tracemill as a library: the public names, and the whole idea in a few calls."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

import tracemill as tm
from teachers.presets import PRESETS

EXAMPLES = Path(__file__).resolve().parent.parent / "examples" / "sessions"
SIMULATED = PRESETS["simulated"].teachers


def _states() -> list[tm.TraceState]:
    traces = tm.ClaudeCodeIngester().ingest(EXAMPLES / "claude_code")
    return [state for trace in traces for state in trace.states()]


def test_every_public_name_is_there_and_listed() -> None:
    assert sorted(tm.__all__) == dir(tm)
    for name in tm.__all__:
        assert getattr(tm, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        tm.nothing  # noqa: B018


def test_importing_it_loads_nothing() -> None:
    code = "import sys, tracemill; print([m for m in sys.modules if m.split('.')[0] in ('flows', 'records')])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_states_to_replies_to_pairs_to_normalized_pairs(tmp_path: Path) -> None:
    states = _states()
    ledger = tmp_path / "ledger.sqlite"
    replies = tm.replay_trace_sync(states, teachers=SIMULATED, max_total_usd=1.0, ledger=ledger)
    assert len(replies) == 4 * len(states)
    assert 0 < sum(reply.cost_usd for reply in replies) < 1.0
    pairs = tm.extract_dpo_pairs(states, replies, agreement_threshold=2)
    strict = tm.extract_dpo_pairs(states, replies, agreement_threshold=4)
    assert len(states) > len(pairs) > len(strict)
    assert all(pair.label_source == "teachers" and pair.n_teachers_agreeing >= 2 for pair in pairs)
    by_step = {str(state.step_id): state for state in states}
    for pair in pairs:
        assert len(pair.state_messages) >= len(by_step[pair.step_id].messages)

    again = tm.replay_trace_sync(states, teachers=SIMULATED, max_total_usd=0.0, ledger=ledger)
    assert again == replies
    done = tm.replay_and_normalize_trace_sync(states, teachers=SIMULATED, max_total_usd=1.0, ledger=ledger)
    assert len(done.kept) + len(done.dropped) == len(pairs)


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


def test_too_few_teachers_are_an_error_before_anything_is_asked() -> None:
    with pytest.raises(tm.TracemillError, match="families"):
        tm.replay_trace_sync(_states(), teachers=SIMULATED[:2], max_total_usd=1.0)
