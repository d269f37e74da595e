"""Known kinds and keys of ATIF trajectories, versions 1.0 to 1.8."""

from collections.abc import Iterator

from tracemill.ingesters.atif.steps import unread_step
from tracemill.ingesters.format import Record, RecordKind

_STEP_TEXT = """step_id timestamp source model_name reasoning_effort message reasoning_content tool_calls
    observation metrics extra is_copied_context llm_call_count"""
_STEP_KEYS = frozenset(_STEP_TEXT.split())


def kinds_of_trajectory(record: Record) -> Iterator[RecordKind]:
    """Yield the kinds of a trajectory and its steps; other columns of a row are free."""
    yield RecordKind("trajectory", record.keys(), True)
    steps = record.get("steps")
    for step in steps if isinstance(steps, list) else ():
        if isinstance(step, dict):
            source = str(step.get("source"))
            yield RecordKind(f"step {source}", step.keys(), source in ("system", "user", "agent"), _STEP_KEYS)
            yield from (RecordKind(f"part {name}", (), False) for name in unread_step(step))
