"""Codex CLI: a stand-in system prompt, tool schemas, and what each tool does.

In our own words, after recorded sessions of versions 0.118 to 0.139 and the public documentation
(https://developers.openai.com/codex/cli).
"""

from tracemill.harnesses.core.schema_builders import (
    build_integer_schema,
    build_list_schema,
    build_object_schema,
    build_text_schema,
    build_tool_schema,
    tool_schemas_by_name,
)
from tracemill.harnesses.core.vocabulary import Harness, Operation, ToolRule

_SYSTEM = """\
You are a coding agent that works in a terminal, inside Codex CLI. You and a developer share one workspace.

How you work:
- Run commands with exec_command; search with rg where it is there. Look before you change.
- Change files with apply_patch. Keep changes small, and check them with the project's own tests.
- When the task is done, or you need an answer, reply with text and no tool call.

(This prompt is a stand-in: what the session was really given was not recorded.)"""

_SHELL = {
    "workdir": build_text_schema("Folder to run it in."),
    "timeout_ms": build_integer_schema("Longest time, in milliseconds."),
}
_STEP = build_object_schema(
    {
        "step": build_text_schema("The step."),
        "status": build_text_schema("Where it stands.", options=("pending", "in_progress", "completed")),
    },
    ("step", "status"),
)
_TOOLS = tool_schemas_by_name(
    build_tool_schema(
        "exec_command",
        "Runs a command in a shell and gives its output, or a session that still runs.",
        {
            "cmd": build_text_schema("The command."),
            **_SHELL,
            "max_output_tokens": build_integer_schema("Longest output."),
        },
        ("cmd",),
    ),
    build_tool_schema(
        "shell",
        "Runs a command, given as its words.",
        {"command": build_list_schema("Program and arguments.", {"type": "string"}), **_SHELL},
        ("command",),
    ),
    build_tool_schema(
        "write_stdin",
        "Sends input to a command that still runs, or waits for more of its output.",
        {
            "session_id": build_integer_schema("The running command."),
            "chars": build_text_schema("The input; empty to wait."),
        },
        ("session_id",),
    ),
    build_tool_schema(
        "apply_patch",
        "Changes files by a patch between the lines *** Begin Patch and *** End Patch.",
        {"input": build_text_schema("The patch.")},
        ("input",),
    ),
    build_tool_schema(
        "update_plan", "Writes the plan.", {"plan": build_list_schema("All steps.", _STEP)}, ("plan",)
    ),
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
