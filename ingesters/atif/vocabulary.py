"""Known kinds and keys of ATIF trajectories, versions 1.0 to 1.8."""

from collections.abc import Iterator

from tracemill.ingesters.atif.steps import unread_step
from tracemill.ingesters.format import KindSeen, Record

_STEP_TEXT = """step_id timestamp source model_name reasoning_effort message reasoning_content tool_calls
    observation metrics extra is_copied_context llm_call_count"""
_STEP_KEYS = frozenset(_STEP_TEXT.split())


def kinds_of_trajectory(record: Record) -> Iterator[KindSeen]:
    """Yield the kinds of a trajectory and its steps; other columns of a row are free."""
    yield KindSeen("trajectory", record.keys(), True)
    steps = record.get("steps")
    for step in steps if isinstance(steps, list) else ():
        if isinstance(step, dict):
            source = str(step.get("source"))
            yield KindSeen(f"step {source}", step.keys(), source in ("system", "user", "agent"), _STEP_KEYS)
            yield from (KindSeen(f"part {name}", (), False) for name in unread_step(step))
