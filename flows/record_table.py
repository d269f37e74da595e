"""Build the closing table of a run from its record."""

from typing import Any

from tracemill.flows.run_state.closing_table import closing_table_rows
from tracemill.flows.run_state.run_summary import ReleaseOutcome, Summary


def record_rows(record: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the closing table of a run's record."""
    release = ReleaseOutcome(**record["release"]) if record["release"] else None
    rows = closing_table_rows(
        Summary.from_json(record["summary"]),
        record["cap_usd"],
        record["teachers"],
        release,
        record.get("simulated", "none"),
    )
    if found := record.get("training"):
        from tracemill.flows.training.training_run import training_table_rows

        rows += training_table_rows(found)
    return rows
