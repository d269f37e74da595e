"""The outcome filter on the student's own sessions, without any teacher: a baseline to beat."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.teaching.formats import write_sessions
from benchmarks.teaching.policies import Session
from benchmarks.teaching.variants import Row
from benchmarks.teaching.worlds.world import World
from tracemill.ingesters.ingester_classes import ClaudeCodeIngester, SWEGymIngester
from tracemill.pairs.label_weights import LabelWeights


def weigh_solved(world: World, sessions: Sequence[Session], folder: Path) -> list[Row]:
    """Return the steps of the solved sessions, each with the weight that outcomes give it."""
    from benchmarks.teaching.arms import session_rows

    path = write_sessions(world, sessions, folder)
    ingester = SWEGymIngester() if world.session_format == "swe_gym" else ClaudeCodeIngester()
    rewards = {session.text: session.reward for session in sessions}
    traces = []
    for trace in ingester.ingest(path):
        solved = rewards[trace.contexts[0].messages[0].content]
        traces.append(replace(trace, outcome="resolved" if solved else "not_resolved"))
    weights, by_text = LabelWeights.fit(traces), {}
    for trace in traces:
        for state in trace.states():
            done = state.context.messages[state.step.cut]
            key = (trace.contexts[0].messages[0].content, state.step.index)
            by_text[key] = weights.weigh(state, done, 1.0).weight
    rows = []
    for session in sessions:
        if session.reward:
            for place, row in enumerate(session_rows(world, [session])):
                rows.append({**row, "weight": by_text[session.text, place]})
    return rows
