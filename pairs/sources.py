"""The label sources that ship with tracemill."""

from collections import Counter

from tracemill.records.label_source import LabelSource
from tracemill.records.pair import DPOPair
from tracemill.records.trace import Trace


def _hindsight_pairs(trace: Trace) -> tuple[list[DPOPair], Counter[str]]:
    from tracemill.pairs.hindsight import hindsight_pairs

    return hindsight_pairs(trace)


def _user_pairs(trace: Trace) -> tuple[list[DPOPair], Counter[str]]:
    from tracemill.pairs.session.user_corrections import user_pairs

    return user_pairs(trace)


def _revised_edit_pairs(trace: Trace) -> tuple[list[DPOPair], Counter[str]]:
    from tracemill.pairs.session.revised_edits import revised_edit_pairs

    return revised_edit_pairs(trace)


def _repeated_read_pairs(trace: Trace) -> tuple[list[DPOPair], Counter[str]]:
    from tracemill.pairs.session.repeated_reads import repeated_read_pairs

    return repeated_read_pairs(trace)


TEACHERS = LabelSource(
    "teachers",
    means="several teacher models were shown the step and agreed on another action than the agent's",
    better="{n} models agree that this is the better action here:",
)
HINDSIGHT = LabelSource(
    "hindsight",
    title="self-repair",
    means="a self-repair: the action failed, and a later one of the same session fixed it",
    better="This fixed it later:",
    pairs_of_trace=_hindsight_pairs,
)
USER = LabelSource(
    "user",
    title="user's correction",
    means="the user rejected the edit, and accepted another one of the same place later in the session",
    better="The user accepted this instead:",
    pairs_of_trace=_user_pairs,
)
REVISED_EDIT = LabelSource(
    "revised_edit",
    title="revised edit",
    means="a check (tests, linter, compiler) failed after the edit, and succeeded once the agent had revised "
    "it; the chosen side is the edit with the revisions",
    better="With this the check succeeds:",
    pairs_of_trace=_revised_edit_pairs,
)
REPEATED_READ = LabelSource(
    "repeated_read",
    title="repeated read",
    means="all that was read had been shown before, and the next action edited the file",
    better="All of that was shown already; do this:",
    pairs_of_trace=_repeated_read_pairs,
)
JUDGE = LabelSource(
    "judge",
    means="teachers did not agree, or agreed on an action near the agent's, and a judge model preferred this "
    "one in both orders; its weight is the lower end of the judge's measured precision",
    better="A judge prefers this action here:",
)
VERIFIED = LabelSource(
    "verified",
    means="an environment executed both actions from this state and went on by a fixed policy: the chosen "
    "one succeeded more often; its weight is the difference",
    better="When executed, this succeeds more often:",
)
SIBLINGS = LabelSource(
    "siblings",
    means="two runs of one task share everything before this step, and only one was resolved",
    better="A run that solved the task did this instead:",
)
