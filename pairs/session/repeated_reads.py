"""Pairs of repeated reads: a read of what had been shown already, against the edit that followed it.

The edit replaces text that had been shown before the read and was the same still, in a file that the agent
had read or written. So it could have been made at once. No later edit of the session rewrites it. A read
after another edit of the file looks at what that made of it: it is no repeated one. All pairs of a session
teach the one habit, so it gives few.
"""

import re
from collections import Counter

from tracemill.harnesses.core.vocabulary import WRITES, Operation
from tracemill.pairs.session.calls import SessionCall, SessionCalls, pairs_of_steps
from tracemill.pairs.session.text_edits import edit_lasts, read_text_edit
from tracemill.records.message import Action
from tracemill.records.pair import DPOPair
from tracemill.records.trace import Trace

LEAST_LINES = 3
"""Shorter texts may stand in an earlier message by chance."""
NO_EDIT = "no edit of the file followed"
NOT_POSSIBLE = "the edit was not possible yet"
REWRITTEN = "the edit was rewritten later"
CHANGED = "the file was edited after it was shown"
ENOUGH = "the session has enough pairs of repeated reads"
MOST = 3
"""Pairs of one session."""
_LINE_NUMBER = re.compile(r"^[ \t]*\d+(?:\u2192|\t|: ?)", re.MULTILINE)
_EVIDENCE = "all that was read had been shown before, and the next action edited the file"


def repeated_read_pairs(trace: Trace) -> tuple[list[DPOPair], Counter[str]]:
    """Return the pairs of repeated reads in step order, and counted reasons why there are no more."""
    pairs, reasons = pairs_of_steps(trace, "repeated_read", _find_edit)
    return pairs[:MOST], reasons + Counter({ENOUGH: max(0, len(pairs) - MOST)})


def _find_edit(session: SessionCalls, reads: list[SessionCall]) -> tuple[Action, str] | str:
    places = [_shown_before(session, made) for made in reads]
    if None in places:
        return ""
    step, cut, paths = reads[0].step, reads[0].cut, {made.attempt.effect.target for made in reads}
    following = session.steps[step + 1] if step + 1 < len(session.steps) else []
    if not following or session.user_texts(cut + 1, following[0].cut):
        return NO_EDIT
    if any(_changed_since(session, made, place or 0) for made, place in zip(reads, places, strict=True)):
        return CHANGED
    for made in following:
        edit = read_text_edit(made.attempt)
        if edit is None or edit.path not in paths or not made.succeeded:
            return NO_EDIT
        if not session.shown.holds(edit.old, cut) or not _may_edit(session, step, edit.path):
            return NOT_POSSIBLE
        if not edit_lasts(session, made, edit):
            return REWRITTEN
    return following[0].state.student_action, _EVIDENCE


def _shown_before(session: SessionCalls, made: SessionCall) -> int | None:
    """Return the last earlier message with all that a read showed; None without one, or if it failed."""
    if not made.succeeded or made.attempt.effect.operation != Operation.READ:
        return None
    text = _LINE_NUMBER.sub("", made.result.content.partition("<system-reminder>")[0]).strip("\n")
    return session.shown.last_place(text, made.cut) if text.count("\n") >= LEAST_LINES - 1 else None


def _changed_since(session: SessionCalls, read: SessionCall, place: int) -> bool:
    """Return whether a call after a message wrote the file that is read."""
    before = (made for calls in session.steps[: read.step] for made in calls)
    return any(
        made.cut > place and made.succeeded and made.attempt.effect.operation in WRITES
        for made in before
        if made.attempt.effect.target == read.attempt.effect.target
    )


def _may_edit(session: SessionCalls, step: int, path: str) -> bool:
    """Return whether the last call on a file before a step read or wrote it, as harnesses require."""
    for made in reversed([made for calls in session.steps[:step] for made in calls]):
        effect = made.attempt.effect
        if effect.target == path and not made.attempt.command:
            return made.succeeded and effect.operation in (*WRITES, Operation.READ)
    return False
