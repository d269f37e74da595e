"""Codex CLI: a stand-in system prompt, tool schemas, and what each tool does.

In our own words, after recorded sessions of versions 0.118 to 0.139 and the public documentation
(https://developers.openai.com/codex/cli).
"""

from tracemill.harnesses.core.schema_builders import by_name, integer, items, record, stand_in, text
from tracemill.harnesses.core.vocabulary import Harness, Operation, ToolRule

_SYSTEM = """\
You are a coding agent that works in a terminal, inside Codex CLI. You and a developer share one workspace.

How you work:
- Run commands with exec_command; search with rg where it is there. Look before you change.
- Change files with apply_patch. Keep changes small, and check them with the project's own tests.
- When the task is done, or you need an answer, reply with text and no tool call.

(This prompt is a stand-in: what the session was really given was not recorded.)"""

_SHELL = {"workdir": text("Folder to run it in."), "timeout_ms": integer("Longest time, in milliseconds.")}
_STEP = record(
    {
        "step": text("The step."),
        "status": text("Where it stands.", options=("pending", "in_progress", "completed")),
    },
    ("step", "status"),
)
_TOOLS = by_name(
    stand_in(
        "exec_command",
        "Runs a command in a shell and gives its output, or a session that still runs.",
        {"cmd": text("The command."), **_SHELL, "max_output_tokens": integer("Longest output.")},
        ("cmd",),
    ),
    stand_in(
        "shell",
        "Runs a command, given as its words.",
        {"command": items("Program and arguments.", {"type": "string"}), **_SHELL},
        ("command",),
    ),
    stand_in(
        "write_stdin",
        "Sends input to a command that still runs, or waits for more of its output.",
        {"session_id": integer("The running command."), "chars": text("The input; empty to wait.")},
        ("session_id",),
    ),
    stand_in(
        "apply_patch",
        "Changes files by a patch between the lines *** Begin Patch and *** End Patch.",
        {"input": text("The patch.")},
        ("input",),
    ),
    stand_in("update_plan", "Writes the plan.", {"plan": items("All steps.", _STEP)}, ("plan",)),
)


def _rules() -> dict[str, ToolRule]:
    op = Operation
    idle = ("timeout_ms", "max_output_tokens", "yield_time_ms", "justification", "with_escalated_permissions")
    shell = ToolRule(op.RUN, ("cmd", "command"), "shell", ignored=idle, folder="workdir")
    process = ToolRule(op.RUN, ("session_id",), ignored=idle)
    agent = ToolRule(op.OTHER, ("target", "agent_type"))
    return {
        "exec_command": shell,
        "shell": shell,
        "shell_command": shell,
        "local_shell": shell,
        "write_stdin": process,
        "apply_patch": ToolRule(op.EDIT, ("input", "patch"), "patch"),
        "update_plan": ToolRule(op.PLAN, ignored=("explanation",)),
        "view_image": ToolRule(op.READ, ("path",), paths=("path",)),
        "web_search": ToolRule(op.WEB, ("query",)),
        "request_user_input": ToolRule(op.ASK),
        "spawn_agent": agent,
        "wait_agent": agent,
        "close_agent": agent,
    }


CODEX = Harness(
    "codex",
    "0.x",
    _SYSTEM,
    _TOOLS,
    ("apply_patch", "exec_command", "update_plan"),
    _rules(),
    shell_stays=False,
)
"""Codex CLI and what embeds it."""
