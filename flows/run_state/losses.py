"""Say what a run lost: files, questions, teachers, the rest behind a cap."""

from typing import Any

from tracemill.flows.run_state.run_summary import Summary


def losses_of(record: dict[str, Any]) -> list[str]:
    """Return a line for each kind of loss in a run's record, counts only."""
    summary = Summary.from_json(record["summary"])
    unread = len(record.get("unread_files", ())) or summary.unread.total()
    counted = (
        (unread, "files not read"),
        (summary.failures.total(), "questions failed"),
        (len(summary.outages), "teachers given up"),
        (summary.left_over, "questions left for the next run"),
    )
    lines = [f"{count:,} {what}" for count, what in counted if count]
    if record["at_cap"]:
        lines.append("stopped at the cap")
    return lines
