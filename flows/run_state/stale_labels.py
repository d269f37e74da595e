"""Count answers of teachers that came after the pairs of a workspace were made."""

from tracemill.records.identity import StepId, digest
from tracemill.records.printable import printable_count
from tracemill.records.storage.workspace import MadeOf, Workspace

_COLUMNS = ("step_id", "request_key", "failure")


def stale_label_answers(work: Workspace, traces: frozenset[str] | None = None) -> MadeOf:
    """Count the answers of each trace in the workspace, with a digest of them.

    Failed calls make no pair and do not count. `traces` limits the count to these.
    """
    keys: dict[str, list[str]] = {}
    for table in work.current("replies", traces, _COLUMNS):
        for row in table.to_pylist():
            if row["failure"] is None:
                keys.setdefault(StepId.parse(row["step_id"]).trace_id, []).append(row["request_key"])
    return {of: (len(found), digest(*sorted(found), size=8)) for of, found in keys.items()}


def count_stale_labels(work: Workspace) -> int:
    """Return a lower bound of the answers that the stored pairs do not take into account.

    Replaced answers of one trace count as one.
    """
    taken: dict[str, tuple[int, str]] = {}
    for shard, traces in work.current_traces("pairs"):
        taken |= {of: rows for of, rows in work.made_of("pairs", shard).items() if of in traces}
    return sum(_newer(now, taken.get(of, (0, ""))) for of, now in stale_label_answers(work).items())


def stale_labels_text(count: int) -> str:
    """Return a line on stale labels to print, empty without any."""
    if not count:
        return ""
    are = "is" if count == 1 else "are"
    answers = printable_count(count, "answer")
    return f"{answers} {are} newer than the pairs: `tracemill label` takes them in, at no cost"


def _newer(now: tuple[int, str], then: tuple[int, str]) -> int:
    return 0 if now == then else max(1, now[0] - then[0])
