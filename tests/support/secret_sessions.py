"""Sessions with secrets that nothing around them gives away: made anew with random values."""

import base64
import json
import random
import string
from collections.abc import Callable
from urllib.parse import quote

from tracemill.records.message import Message, ToolCall
from tracemill.records.trace import Context, Step, Trace

_WORDS = (
    *("amber", "cobalt", "drizzle", "lantern", "marble", "orchid"),
    *("pepper", "quartz", "saddle", "timber", "velvet", "walnut"),
)


def random_secrets(rng: random.Random) -> dict[str, str]:
    """Return one value of each make: what services hand out, what generators print, what people choose."""

    def draw(alphabet: str, size: int) -> str:
        return "".join(rng.choices(alphabet, k=size))

    word = rng.choice(_WORDS)
    return {
        "token": draw(string.ascii_letters + string.digits, 20) + "7aQ",
        "hex": draw("0123456789abcdef", 40),
        "base64": base64.b64encode(rng.randbytes(24)).decode(),
        "password": f"{word.title()}{rng.choice('!#%*')}{rng.randint(1000, 9999)}",
        "symbols": f"{draw(string.ascii_letters, 5)}@7/{draw(string.ascii_letters, 3)}&{rng.randint(10, 99)}",
    }


def plain_secrets(rng: random.Random) -> dict[str, str]:
    """Return values that have no shape of their own, which the command alone gives away."""
    return {
        "passphrase": "-".join(rng.sample(_WORDS, 4)),
        "lower": "".join(rng.choices(string.ascii_lowercase, k=10)),
        "pin": str(rng.randint(100_000, 999_999)),
    }


FORMS: dict[str, Callable[[str], str]] = {
    "as is": lambda value: value,
    "quoted": lambda value: f"'{value}'",
    "json": lambda value: json.dumps({"rows": [value]}),
    "json in json": lambda value: json.dumps({"body": json.dumps({"rows": [value]})}),
    "url": lambda value: f"https://db.host.dev/?q={quote(value, safe='')}",
    "base64": lambda value: base64.b64encode(value.encode()).decode(),
    "base64 of a login": lambda value: base64.b64encode(f"app:{value}".encode()).decode(),
    "base64 for an address": lambda value: base64.urlsafe_b64encode(value.encode()).decode().rstrip("="),
    "hex": lambda value: value.encode().hex(),
    "glued": lambda value: f"x={value};",
}
"""Ways in which a session gives a value back."""


def trace_of(*messages: Message, harness: str = "claude_code") -> Trace:
    """Return a trace of one context with these messages."""
    return Trace(f"{harness}-1", harness, harness, harness, (Context(0, messages, (Step(0, 1),)),))


def command_call(line: str, call_id: str = "c1") -> Message:
    """Return the message of an agent that runs a command line in Claude Code's shell."""
    return Message("assistant", "", (ToolCall(call_id, "Bash", json.dumps({"command": line})),))


def echoed_trace(line: str, text: str, place: str) -> Trace:
    """Return a trace that sets a secret by a command line and gives it back as `text` in a place."""
    said = f"see {text} there"
    ok = Message("tool", "ok", tool_call_id="c1")
    page = json.dumps({"file_path": "a.md", "content": f"# Use\n\n{said}\n"})
    messages = {
        "result": (Message("tool", said, tool_call_id="c1"),),
        "later result": (ok, command_call("ls", "c2"), Message("tool", said, tool_call_id="c2")),
        "user": (ok, Message("user", said)),
        "answer": (ok, Message("assistant", said)),
        "reasoning": (ok, Message("assistant", "so", reasoning=said)),
        "arguments": (ok, command_call(f"mysql --x {text}", "c2")),
        "edit": (ok, Message("assistant", "", (ToolCall("c2", "Write", page),))),
    }
    return trace_of(Message("user", "go"), command_call(line), *messages[place])


PLACES = ("result", "later result", "user", "answer", "reasoning", "arguments", "edit")
"""Places of `echoed_trace`."""

_CLAUDE, _MINI, _CODEX, _OPENHANDS = "claude_code", "mini_swe_agent", "codex", "openhands"
HARNESS_NAMES = (_CLAUDE, _MINI, _CODEX, _OPENHANDS)
"""Agents of `output_trace`."""


def output_trace(harness: str, line: str, output: str, is_error: bool | None = None) -> Trace:
    """Return a trace of an agent that ran a command line, with the output as that agent records it."""
    user = Message("user", "go")
    if harness == _MINI:
        said = Message("assistant", f"I look.\n\n```bash\n{line}\n```\n")
        told = f"<returncode>0</returncode>\n<output>\n{output}\n</output>"
        return trace_of(user, said, Message("user", told, is_error=is_error), harness=harness)
    calls = {
        _CLAUDE: ToolCall("c1", "Bash", json.dumps({"command": line, "description": "Look"})),
        _CODEX: ToolCall("c1", "shell", json.dumps({"command": ["bash", "-lc", line]})),
        _OPENHANDS: ToolCall("c1", "execute_bash", json.dumps({"command": line})),
    }
    told = {
        _CLAUDE: output,
        _CODEX: f"Exit code: 0\nWall time: 0.1 seconds\nOutput:\n{output}\n",
        _OPENHANDS: f"{output}\n[The command completed with exit code 0.]\n[Current working directory: /w]\n"
        "[Command finished with exit code 0]",
    }
    result = Message("tool", told[harness], tool_call_id="c1", is_error=is_error)
    return trace_of(user, Message("assistant", "", (calls[harness],)), result, harness=harness)
