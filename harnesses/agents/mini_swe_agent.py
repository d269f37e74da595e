"""mini-swe-agent: a stand-in system prompt, its one tool, and what it does.

Versions 1.x take one command in a fenced block of the answer; 2.x take calls of `bash`, several at a time, or
such a block. Original wording, based on recorded runs and the public documentation
(https://mini-swe-agent.com/latest/advanced/control_flow/).
"""

import json
import re

from tracemill.harnesses.core.schema_builders import load_stand_in_tools
from tracemill.harnesses.core.vocabulary import Harness, Operation, TextCommands, ToolRule
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
    return [slice(*match.span(1 if match.group(2) is None else 3)) for match in _COMMAND.finditer(text)]


def _bash(command: str) -> ToolCall:
    return ToolCall("", "bash", json.dumps({"command": command.strip()}, ensure_ascii=False))


MINI_SWE_AGENT = Harness(
    "mini_swe_agent",
    "1.x and 2.x",
    _SYSTEM.format(acting="Every answer calls bash at least once."),
    load_stand_in_tools("mini_swe_agent"),
    ("bash",),
    {"bash": ToolRule(Operation.RUN, ("command",), "shell")},
    text_actions=True,
    text_system=_SYSTEM.format(acting=_BLOCK),
    text_ends_run=False,
    persistent_shell=False,
    text_commands=TextCommands(_blocks, _bash),
    results_as_user=True,
)
"""Both ways of acting; `text_system` is shown where a run holds no tool call."""
