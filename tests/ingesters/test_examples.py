"""The example sessions that ship: read whole, with failing calls that are then mended."""

from pathlib import Path

import pytest

from tracemill.harnesses.operations import find_action_operation, find_action_target
from tracemill.ingesters.discover import discover
from tracemill.ingesters.read_source import ingest_source
from tracemill.records.trace import Trace

SESSIONS = Path(__file__).resolve().parents[2] / "examples" / "sessions"
EXPECTED = {"claude_code": (3, 34, 9), "openhands": (2, 19, 6), "swe_gym": (2, 16, 6)}
"""Traces, steps and failed steps of each folder."""


def _traces(folder: str) -> list[Trace]:
    found: list[Trace] = []
    for source in discover([SESSIONS / folder]):
        traces, report = ingest_source(source)
        assert (report.error, dict(report.skipped)) == (None, {})
        found += traces
    return found


def _failed_steps(trace: Trace) -> list[int]:
    states = list(trace.states())
    return [place for place, state in enumerate(states) if any(r.is_error for r in state.results)]


@pytest.mark.parametrize("folder", sorted(EXPECTED))
def test_an_example_folder_is_read_whole(folder: str) -> None:
    traces = _traces(folder)
    failed = sum(len(_failed_steps(trace)) for trace in traces)
    assert (len(traces), sum(t.step_count for t in traces), failed) == EXPECTED[folder]
    assert {t.source for t in traces} == {folder}
    assert all(c.fidelity.context == "complete" for t in traces for c in t.contexts)


@pytest.mark.parametrize("folder", sorted(EXPECTED))
def test_failed_actions_are_mended_on_the_same_target(folder: str) -> None:
    mended = 0
    for trace in _traces(folder):
        states = list(trace.states())
        failed = _failed_steps(trace)
        about = [find_action_target(s.student_action, trace.harness) for s in states]
        does = [find_action_operation(s.student_action, trace.harness) for s in states]
        for place in failed:
            later = [n for n in range(place + 1, min(place + 5, len(states))) if n not in failed]
            mended += any((about[n], does[n]) == (about[place], does[place]) for n in later)
    assert mended >= EXPECTED[folder][2] // 2


def test_outcomes_and_a_planted_token_are_there_to_be_seen() -> None:
    outcomes = {folder: [t.outcome for t in _traces(folder)] for folder in EXPECTED}
    assert outcomes["openhands"] == ["resolved", "not_resolved"]
    assert outcomes["swe_gym"] == ["resolved", "not_resolved"]
    texts = [m.content for t in _traces("claude_code") for c in t.contexts for m in c.messages]
    assert sum("ghp_EXAMPLE" in text for text in texts) == 1
