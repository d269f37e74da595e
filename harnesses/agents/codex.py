"""Codex CLI: a stand-in system prompt, tool schemas, and what each tool does.

Original wording, based on recorded sessions of versions 0.118 to 0.139 and the public documentation
(https://developers.openai.com/codex/cli).
"""

from tracemill.harnesses.core.schema_builders import load_stand_in_tools
from tracemill.harnesses.core.vocabulary import Harness, Operation, ToolRule

_SYSTEM = """\
You are a coding agent that works in a terminal, inside Codex CLI. You and a developer share one workspace.

How you work:
- Run commands with exec_command; search with rg where it is there. Look before you change.
- Change files with apply_patch. Keep changes small, and check them with the project's own tests.
- When the task is done, or you need an answer, reply with text and no tool call.

(This prompt is a stand-in: what the session was really given was not recorded.)"""


def _rules() -> dict[str, ToolRule]:
    op = Operation
    idle = (
        "timeout_ms",
        "max_output_tokens",
        "yield_time_ms",
        "justification",
    )
    outside = ("sandbox_permissions", "with_escalated_permissions")
    shell = ToolRule(op.RUN, ("cmd", "command"), "shell", ignored=idle, folder="workdir", outside=outside)
    process = ToolRule(op.RUN, ("session_id",), ignored=idle)
    agent = ToolRule(op.OTHER, ("target", "agent_type"))
    return {
        "exec_command": shell,
        "shell": shell,
        "shell_command": shell,
        "local_shell": shell,
        "exec": ToolRule(op.RUN, ("input",), "script"),
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
    load_stand_in_tools("codex"),
    ("apply_patch", "exec_command", "update_plan"),
    _rules(),
    persistent_shell=False,
)
"""Codex CLI and what embeds it."""
