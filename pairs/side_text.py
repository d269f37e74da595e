"""Whose words a row holds: the sides as they were said, calls alone, or the student's words on both.

Otherwise DPO learns to tell a vendor's style from the student's: the same call, worded otherwise.
"""

from dataclasses import replace
from typing import Literal

from tracemill.harnesses.text_calls import find_text_call, replace_text_call
from tracemill.records.message import Message
from tracemill.records.pair import DPOPair

Wording = Literal["full", "calls_only", "student_thought"]
WORDS_ALONE = "a side that says something and calls nothing"


def choose_side_text(pair: DPOPair, wording: Wording) -> DPOPair | str:
    """The pair as it is exported; a short fixed phrase where it cannot be.

    `calls_only`: no free text on either side, so a pair with a side that calls nothing is left out.
    `student_thought`: the chosen side has the words of the rejected one and its own calls. Where the student
    called nothing, its words were its action, and the calls stand alone; where the teachers called
    nothing, their words are the action, and stay.
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
            return WORDS_ALONE
        return replace(pair, chosen=tuple(chosen), rejected=tuple(rejected))
    chosen = tuple(use_student_side_text(pair.rejected[0], message, pair.harness) for message in pair.chosen)
    return replace(pair, chosen=chosen)


def strip_side_text(message: Message, harness: str) -> Message | None:
    """The calls of a turn without its words; None where there are no calls. Calls that are written in the
    text are what is left of it."""
    if message.tool_calls:
        return replace(message, content="")
    written = find_text_call(message.content, harness)
    return None if written is None else replace(message, content=written)


def use_student_side_text(student: Message, teacher: Message, harness: str) -> Message:
    """The teacher's calls in the words of the student."""
    if teacher.tool_calls:
        return replace(teacher, content=student.content if student.tool_calls else "")
    if student.tool_calls:
        return teacher
    text = replace_text_call(student.content, teacher.content, harness)
    return teacher if text is None else replace(teacher, content=text)
