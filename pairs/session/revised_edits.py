"""Pairs of revised edits: an edit after which a check failed, against the edit with which the check passed.

A check is a command that compiles, lints, runs tests or the like. It failed after the edit; then the agent
rewrote lines that the edit had added, and the same command succeeded. The chosen side replaces the same text
of the file by the new text with these revisions. The user said nothing in between.
"""

import posixpath
import re
from collections import Counter

from tracemill.harnesses.core.vocabulary import WRITES, Operation
from tracemill.pairs.session.calls import SessionCall, SessionCalls, pairs_of_steps, replace_calls
from tracemill.pairs.session.text_edits import TextEdit, read_text_edit
from tracemill.records.message import Action, ToolCall
from tracemill.records.pair import DPOPair
from tracemill.records.trace import Trace

WINDOW = 30
"""How many steps later the check may succeed."""
TAKEN_OUT = "the revision took out what the edit had added"
ELSEWHERE = "other files were changed too, and the check did not name this one"
NOT_POSSIBLE = "the revision used something not known yet"
_SHOWN = 80
_OUTPUT_CUT = re.compile(r"(?:\s+2>&1)?(?:\s*\|\s*(?:head|tail)(?:\s+-n)?\s*-?\d*)?$")
_FAILED = re.compile(
    r"""^\s*(?:FAIL\b|---\ FAIL|FAILED\b|ERROR\b|Error:|error(?:\[\w+\])?:)|^\S+:\d+(?::\d+)?:\ |
    Traceback\ \(most\ recent|\b[1-9]\d*\ (?:failed|failures?|errors?)\b|\bERROR\ task\ failed""",
    re.MULTILINE | re.VERBOSE,
)
"""Failures that the exit code does not tell, since the output goes through a pipe."""


def revised_edit_pairs(trace: Trace) -> tuple[list[DPOPair], Counter[str]]:
    """Return the pairs of revised edits in step order, and counted reasons why there are no more."""
    return pairs_of_steps(trace, "revised_edit", _find_revisions)


def _find_revisions(session: SessionCalls, calls: list[SessionCall]) -> tuple[Action, str] | str:
    better: dict[ToolCall, ToolCall] = {}
    checks: list[str] = []
    reason = ""
    for made in calls:
        edit = read_text_edit(made.attempt) if made.succeeded else None
        found = _revise(session, made, edit) if edit else ""
        if isinstance(found, str):
            reason = reason or found
        else:
            better[made.call], check = found
            checks.append(check)
    if not better:
        return reason
    action, check = replace_calls(calls[0].state.student_action, better), checks[0].splitlines()[0]
    shown = check if len(check) <= _SHOWN else f"{check[:_SHOWN]}..."
    return action, f"after the edit `{shown}` failed, and succeeded once the edit was revised"


def _revise(session: SessionCalls, made: SessionCall, edit: TextEdit) -> tuple[ToolCall, str] | str:
    """Return the revised call and the check; else why there is none, "" if no check led to a revision."""
    text, added, cut = edit.new, edit.added_lines(), made.cut
    failing, revised_at, passed, named, changed_other = "", 0, set[str](), False, False
    for later in session.after(made.step, WINDOW):
        if session.user_texts(cut + 1, later.cut):
            return ""
        check = _check_of(later)
        has_failed = bool(check) and (not later.succeeded or bool(_FAILED.search(later.result.content)))
        if has_failed and not failing:
            if check in passed:
                return ""
            failing, named = check, posixpath.basename(edit.path) in later.result.content
        elif check and check == failing and not has_failed:
            if not revised_at:
                return ""
            if edit.is_undone_by(text) or text.count("\n") < edit.new.count("\n"):
                return TAKEN_OUT
            if changed_other and not named:
                return ELSEWHERE
            known = not session.learned(text, cut, revised_at)
            return (edit.with_new_text(text), check) if known else NOT_POSSIBLE
        elif check and not has_failed:
            passed.add(check)
        if not later.succeeded or later.attempt.effect.operation not in WRITES:
            continue
        change = read_text_edit(later.attempt)
        if change is None or change.path != edit.path:
            changed_other |= bool(failing)
        elif not change.old:
            return ""
        elif change.changes(text, added):
            text, added = text.replace(change.old, change.new), added | change.added_lines()
            revised_at = later.cut if failing else 0
    return ""


def _check_of(made: SessionCall) -> str:
    """Return the command line of a check without the part that cuts its output; "" if it is no check."""
    if made.attempt.effect.operation not in (Operation.RUN, Operation.RUN_TEST):
        return ""
    return _OUTPUT_CUT.sub("", made.attempt.command.strip())
