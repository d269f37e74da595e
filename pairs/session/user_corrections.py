"""Pairs of the user's corrections: an edit that the user rejected, against the one the user then accepted.

The accepted edit is of the same place of the same file, uses only what was known before the rejected one, and
no later edit of the session rewrites it. Other rejected calls, and words of the user alone, make no pair:
what the user wanted instead could not be known at the step.
"""

from collections import Counter

from tracemill.harnesses.core.vocabulary import WRITES
from tracemill.pairs.session.calls import SessionCall, SessionCalls, pairs_of_steps, replace_calls
from tracemill.pairs.session.text_edits import edit_lasts, read_text_edit
from tracemill.records.message import Action, ToolCall
from tracemill.records.pair import DPOPair
from tracemill.records.trace import Trace

WINDOW = 10
"""How many steps later an edit of the same place may be accepted."""
NOT_EDIT = "the user rejected something else than an edit"
NO_OTHER = "no edit of the same place was accepted later"
UNCHANGED = "the user accepted the same change later"
REWRITTEN = "what the user accepted was rewritten later"
NOT_POSSIBLE = "what the user accepted used something not known yet"
_EVIDENCE = "the user rejected the edit, and accepted another one of the same place later"


def user_pairs(trace: Trace) -> tuple[list[DPOPair], Counter[str]]:
    """Return the pairs of the user's corrections in step order, and counted reasons why there are no more."""
    return pairs_of_steps(trace, "user", _find_correction)


def _find_correction(session: SessionCalls, calls: list[SessionCall]) -> tuple[Action, str] | str:
    better: dict[ToolCall, ToolCall] = {}
    for made in calls:
        if made.rejected:
            found = _find_accepted(session, made)
            if isinstance(found, str):
                return found
            better[made.call] = found
    return (replace_calls(calls[0].state.student_action, better), _EVIDENCE) if better else ""


def _find_accepted(session: SessionCalls, made: SessionCall) -> ToolCall | str:
    """Return the first accepted edit of the same place within the window, or why there is none.

    It must be the first change of files after the rejected one, since it may depend on earlier changes.
    """
    edit = read_text_edit(made.attempt)
    if edit is None:
        return NOT_EDIT
    changed_other = False
    for later in session.after(made.step, WINDOW):
        if not later.succeeded or later.attempt.effect.operation not in WRITES:
            continue
        other = read_text_edit(later.attempt)
        if other is None or not other.overlaps(edit):
            changed_other = True
        elif other.is_same_change(edit):
            return UNCHANGED
        elif changed_other or not session.was_possible(made, later, other.new):
            return NOT_POSSIBLE
        else:
            return later.call if edit_lasts(session, later, other) else REWRITTEN
    return NO_OTHER
