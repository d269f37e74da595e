"""Write a hint: by a template for the kind of error, with what a model may know that the agent did not."""

from collections.abc import Mapping
from dataclasses import dataclass

from tracemill.records.message import ErrorKind, Message

HINT_TEMPLATES: Mapping[str, str] = {
    ErrorKind.EXIT_CODE: "The command you are about to run fails:\n{error}",
    ErrorKind.TOOL_ERROR: "The tool refuses the call you are about to make:\n{error}",
    ErrorKind.TIMEOUT: "The command you are about to run does not end in time:\n{error}",
    ErrorKind.HOOK: "A rule of the user stops the call you are about to make:\n{error}",
    ErrorKind.UNKNOWN: "The call you are about to make fails:\n{error}",
}
"""Templates by kind of error."""
ACTION_TEMPLATE = "A better next action is:\n{action}"
MOST_CHARACTERS = 1000
"""Characters of an error that a hint quotes: its beginning and its end."""
TEMPLATE = "template"
"""Name of the templates as the writer of a hint."""


@dataclass(frozen=True, slots=True)
class Hint:
    """A hint and its writer.

    `writer` is the id of a model, or `TEMPLATE`. `fallback` says why a template replaced a model's hint, ""
    if it did not. `simulated` is True if a simulated model wrote it.
    """

    text: str
    writer: str = TEMPLATE
    fallback: str = ""
    simulated: bool = False


def write_hint(error_kind: str, error_text: str, agreed: Message | None = None) -> str:
    """Return the hint for a step that failed.

    `{error}` in the template is replaced by the error. `agreed`, the action that teachers agreed on, follows
    as privileged context.
    """
    template = HINT_TEMPLATES.get(error_kind, HINT_TEMPLATES[ErrorKind.UNKNOWN])
    return add_agreed_action(template.replace("{error}", shorten_error(error_text)), agreed)


def add_agreed_action(hint: str, agreed: Message | None) -> str:
    """Return a hint followed by the action that teachers agreed on, if there is one."""
    if agreed is None:
        return hint
    return f"{hint}\n\n{ACTION_TEMPLATE.replace('{action}', action_text(agreed))}"


def action_text(action: Message) -> str:
    """Return an action as a hint quotes it: its text, then each call with its arguments."""
    calls = [f"{call.name} {call.arguments}" for call in action.tool_calls]
    return "\n".join(part for part in (action.content.strip(), *calls) if part)


def shorten_error(text: str) -> str:
    """Return the beginning and the end of an error, or all of one that is short."""
    text = text.strip()
    if len(text) <= MOST_CHARACTERS:
        return text
    half = MOST_CHARACTERS // 2
    return f"{text[:half]}\n[{len(text) - 2 * half} characters left out]\n{text[-half:]}"
