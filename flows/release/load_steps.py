"""The votes and replies of a workspace by trace."""

from tracemill.records.identity import StepId
from tracemill.records.pair import StepVotes
from tracemill.records.reply import TeacherReply
from tracemill.records.storage.table_rows import replies_from_table, votes_from_table
from tracemill.records.storage.workspace import Workspace


def votes_of_traces(work: Workspace, trace_ids: frozenset[str]) -> dict[str, dict[str, StepVotes]]:
    """The votes at the steps of these traces, by trace and step id."""
    found: dict[str, dict[str, StepVotes]] = {}
    for table in work.current("votes", trace_ids):
        for step in votes_from_table(table):
            found.setdefault(StepId.parse(step.step_id).trace_id, {})[step.step_id] = step
    return found


def replies_of_traces(work: Workspace, trace_ids: frozenset[str]) -> dict[str, list[TeacherReply]]:
    """The replies at the steps of these traces, by trace."""
    found: dict[str, list[TeacherReply]] = {}
    for table in work.current("replies", trace_ids):
        for reply in replies_from_table(table):
            found.setdefault(StepId.parse(reply.step_id).trace_id, []).append(reply)
    return found
