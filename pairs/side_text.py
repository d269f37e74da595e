"""The free text of a row: as it was written, none, or the student's on both sides.

With the text as written, DPO may learn to tell the teacher's style from the student's.
"""

from dataclasses import replace
from typing import Literal

from tracemill.harnesses.text_calls import find_text_call, replace_text_call
from tracemill.records.message import Message
from tracemill.records.pair import DPOPair

Wording = Literal["full", "calls_only", "student_thought"]
NO_CALL = "a side has text and no call"


def choose_side_text(pair: DPOPair, wording: Wording) -> DPOPair | str:
    """Return the pair as it is exported, or `NO_CALL` if this wording cannot express it.

    `calls_only` removes free text from both sides. `student_thought` gives the chosen side the text of the
    rejected one, and its own calls. If the student called nothing, the chosen side has no text; if the
    teachers called nothing, their text stays, as it is the action.
    """
    if wording == "full":
        return pair
    if wording == "calls_only":
        sides = [
            [strip_side_text(message, pair.harness) for message in side]
            for side in (pair.chosen, pair.rejected)
        ]
        chosen, rejected = ([message for message in side if message is not None] for side in sides)
        if len(chosen) != len(pair.chosen) or len(rejected) != len(pair.rejected):
            return NO_CALL
        return replace(pair, chosen=tuple(chosen), rejected=tuple(rejected))
    chosen = tuple(use_student_side_text(pair.rejected[0], message, pair.harness) for message in pair.chosen)
    return replace(pair, chosen=chosen)


def strip_side_text(message: Message, harness: str) -> Message | None:
    """Return a turn with its calls alone, including a call written in its text; None if it has no call."""
    if message.tool_calls:
        return replace(message, content="")
    text_call = find_text_call(message.content, harness)
    return None if text_call is None else replace(message, content=text_call)


def use_student_side_text(student: Message, teacher: Message, harness: str) -> Message:
    """Return the teacher's calls with the text of the student."""
    if teacher.tool_calls:
        return replace(teacher, content=student.content if student.tool_calls else "")
    if student.tool_calls:
        return teacher
    text = replace_text_call(student.content, teacher.content, harness)
    return teacher if text is None else replace(teacher, content=text)
