"""opencode: a stand-in system prompt, tool schemas, and what each tool does.

Original wording, based on exported sessions and the public documentation (https://opencode.ai/docs/tools/).
"""

from tracemill.harnesses.core.schema_builders import load_stand_in_tools
from tracemill.harnesses.core.vocabulary import Harness, Operation, ToolRule

_SYSTEM = """\
You are a coding agent that works in a terminal, inside opencode, on the project in the current folder.

How you work:
- Find code with glob, grep and read before you change it; give paths of files as the tools ask for them.
- Change files with edit and write, run builds and tests with bash. Each command runs in a new shell.
- Calls that do not depend on each other may be made together in one message.
- When the task is done, or you need an answer, reply with text and no tool call.
- Text in <system-reminder> tags is added by the program and not by the user.

(This prompt is a stand-in: what the session was really given was not recorded.)"""


def _rules() -> dict[str, ToolRule]:
    op = Operation
    file, place = ("filePath",), ("path",)
    return {
        "bash": ToolRule(op.RUN, ("command",), "shell", ignored=("description", "timeout"), folder="workdir"),
        "read": ToolRule(op.READ, file, paths=file),
        "write": ToolRule(op.CREATE, file, paths=file),
        "edit": ToolRule(op.EDIT, file, paths=file),
        "multiedit": ToolRule(op.EDIT, file, paths=file),
        "apply_patch": ToolRule(op.EDIT, ("patchText",), "patch"),
        "patch": ToolRule(op.EDIT, ("patchText",), "patch"),
        "glob": ToolRule(op.SEARCH, ("pattern",), paths=place),
        "grep": ToolRule(op.SEARCH, ("pattern",), paths=place),
        "list": ToolRule(op.LIST, place, paths=place),
        "lsp": ToolRule(op.SEARCH, file, paths=file),
        "webfetch": ToolRule(op.WEB, ("url",), ignored=("timeout",)),
        "websearch": ToolRule(op.WEB, ("query",)),
        "codesearch": ToolRule(op.WEB, ("query",), ignored=("tokensNum",)),
        "todowrite": ToolRule(op.PLAN),
        "todoread": ToolRule(op.PLAN),
        "plan_enter": ToolRule(op.PLAN),
        "plan_exit": ToolRule(op.PLAN),
        "task": ToolRule(op.OTHER, ("subagent_type",), ignored=("description",)),
        "skill": ToolRule(op.OTHER, ("name",)),
        "question": ToolRule(op.ASK),
    }


OPENCODE = Harness(
    "opencode",
    "0.x to 1.x",
    _SYSTEM,
    load_stand_in_tools("opencode"),
    ("bash", "edit", "glob", "grep", "read", "todowrite", "webfetch", "write"),
    _rules(),
    persistent_shell=False,
)
"""opencode, with the tools of versions up to 1.x."""
