"""Ask a model for a hint at an action that failed, and read its answer."""

from tracemill.records.identity import extend_prompt
from tracemill.records.message import Action, Message
from tracemill.train.hints.error_sites import ErrorSite
from tracemill.train.hints.hint_text import action_text, shorten_error

HINT_VERSION = "hint-1"
"""Raise it when a model is asked otherwise: its answers are bought anew then."""
MOST_HINT_CHARACTERS = 1000
"""Characters of a hint that a model may write."""
CALLS_A_TOOL, NO_HINT, TOO_LONG = "called a tool", "no hint", "too long"
"""Reasons why an answer is no hint."""
_NONE = "NONE"


def hint_message(site: ErrorSite) -> Message:
    """Return the question for a hint, which follows the messages before the failed action."""
    return Message(
        "user",
        "At this point of the session the agent took an action that failed.\n\n"
        f"The action:\n{action_text(site.state.student_action.to_message())}\n\n"
        f"The error:\n{shorten_error(site.error_text)}\n\n"
        "Write a hint that would have kept the agent from this mistake had it read it before it acted: what "
        "is so here, or what it should look at. At most three sentences. Do not act and do not call a tool. "
        f"Answer with the hint alone, or with {_NONE} if you know of none.",
    )


def hint_prompt_id(prompt_id: str, message: Message) -> str:
    """Return the id of the prompt that the question makes of a step's prompt."""
    return extend_prompt(prompt_id, message)


def read_hint(answer: Action) -> tuple[str, str]:
    """Return the hint of an answer and "", or "" and why the answer is no hint."""
    text = answer.text.strip()
    if answer.tool_calls:
        return "", CALLS_A_TOOL
    if text.strip("\"'*.` ").upper() in ("", _NONE):
        return "", NO_HINT
    return ("", TOO_LONG) if len(text) > MOST_HINT_CHARACTERS else (text, "")
