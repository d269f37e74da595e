"""mini-swe-agent: a stand-in system prompt, its one tool, and what it does.

Versions 1.x take one command in a fenced block of the answer, 2.x take calls of `bash`, several at a time,
or such a block. In our own words, after recorded runs and the public documentation
(https://mini-swe-agent.com/latest/advanced/control_flow/).
"""

import json
import re

from tracemill.harnesses.core.schema_builders import (
    build_text_schema,
    build_tool_schema,
    tool_schemas_by_name,
)
from tracemill.harnesses.core.vocabulary import Harness, Operation, ToolRule, WrittenCommand
from tracemill.records.message import ToolCall

_SYSTEM = """\
You are a programmer who works in a shell on a computer that holds a repository. You get a task, and you \
change the code until it is done.

How you work:
- Say what you think, then act. {acting}
- Every command runs in a new shell: a folder or a variable that you set is forgotten. Join with && what \
belongs together.
- There is no editor and nobody to ask: edit files with commands such as sed or cat with a here-document.
- When the work is done, run echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT, which ends the run; what the \
command prints after that line is handed in.

(This prompt is a stand-in: what the run was really given was not recorded.)"""

_BLOCK = "Give exactly one command, in a block that begins with a line ```bash and ends with a line ```."

_COMMAND = re.compile(
    r"```(?:mswea_bash_command|bash)\s*\n(.*?)\n```|<(mswea_bash_command|bash_code)>(.*?)</\2>", re.DOTALL
)


def _blocks(text: str) -> list[slice]:
    return [slice(*found.span(1 if found.group(2) is None else 3)) for found in _COMMAND.finditer(text)]


def _bash(command: str) -> ToolCall:
    return ToolCall("", "bash", json.dumps({"command": command.strip()}, ensure_ascii=False))


MINI_SWE_AGENT = Harness(
    "mini_swe_agent",
    "1.x and 2.x",
    _SYSTEM.format(acting="Every answer calls bash at least once."),
    tool_schemas_by_name(
        build_tool_schema(
            "bash",
            "Runs a command in a shell of its own and gives its exit code and output.",
            {"command": build_text_schema("The command.")},
            ("command",),
        )
    ),
    ("bash",),
    {"bash": ToolRule(Operation.RUN, ("command",), "shell")},
    text_actions=True,
    text_system=_SYSTEM.format(acting=_BLOCK),
    text_ends=False,
    shell_stays=False,
    written=WrittenCommand(_blocks, _bash),
    user_answers=True,
)
"""Both ways of acting; `text_system` is shown where a run holds no tool call."""
