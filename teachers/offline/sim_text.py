"""Write calls into the text, for harnesses that offer no tools."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from tracemill.teachers.offline.sim_tools import Toolbox
from tracemill.teachers.offline.sim_view import sim_view_text

FUNCTION, FENCE, PLAIN = "function", "```", "plain"
_FENCE = re.compile(r"^```(?:bash|mswea_bash_command)?[ \t]*$", re.MULTILINE)


def sim_text_style(messages: Sequence[Mapping[str, Any]]) -> str:
    """Return the notation in which this conversation writes its calls.

    It is `<function=...>` tags, a fenced block (its first line), or none.
    """
    shown = [
        sim_view_text(m) for m in (*messages[:2], *messages[-6:]) if m.get("role") in ("system", "assistant")
    ]
    if any("<function=" in text for text in shown):
        return FUNCTION
    if not any("```" in text for text in shown):
        return PLAIN
    opened = (found.group().strip() for text in reversed(shown) if (found := _FENCE.search(text)))
    return next(opened, FENCE)


def sim_text_toolbox(style: str) -> Toolbox:
    """Return a shell if the notation can express calls, else no tool."""
    if style == PLAIN:
        return Toolbox({})
    name = "execute_bash" if style == FUNCTION else "bash"
    parameters = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
    return Toolbox({"shell": {"name": name, "parameters": parameters}})


def write_sim_text_call(style: str, text: str, call: tuple[str, str] | None) -> str:
    """Return a text with its call written into it."""
    if call is None:
        return text
    name, arguments = call
    if style.startswith(FENCE):
        return f"{text}\n\n{style}\n{json.loads(arguments)['command']}\n```"
    parameters = "".join(
        f"<parameter={key}>{value}</parameter>\n" for key, value in json.loads(arguments).items()
    )
    return f"{text}\n\n<function={name}>\n{parameters}</function>"
