"""Known kinds and keys of ATIF trajectories, versions 1.0 to 1.8."""

from collections.abc import Iterator

from tracemill.ingesters.atif.steps import STEP_KEYS, is_verified_version, unread_step
from tracemill.ingesters.format import Record, RecordKind


def kinds_of_trajectory(record: Record) -> Iterator[RecordKind]:
    """Yield the kinds of a trajectory and its steps; other columns of a row are free."""
    yield RecordKind("trajectory", record.keys(), True)
    if not is_verified_version(record.get("schema_version")):
        yield RecordKind("version unverified", (), False)
    steps = record.get("steps")
    for step in steps if isinstance(steps, list) else ():
        if isinstance(step, dict):
            source = str(step.get("source"))
            yield RecordKind(f"step {source}", step.keys(), source in ("system", "user", "agent"), STEP_KEYS)
            yield from (RecordKind(f"part {name}", (), False) for name in unread_step(step))
