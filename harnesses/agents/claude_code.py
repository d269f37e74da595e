"""Claude Code: a stand-in system prompt, tool schemas, and what each tool does.

Session files before 2.1.267 hold neither system prompt nor tool schemas. The stand-ins here are original
wording, based on calls in sessions of versions 1.0 to 2.1 and on the public documentation
(https://docs.claude.com/en/docs/claude-code/settings, tools available).
"""

from tracemill.harnesses.core.schema_builders import load_stand_in_tools
from tracemill.harnesses.core.vocabulary import Harness, Operation, ToolRule

_SYSTEM = """\
You are a coding agent that works in a terminal on the computer of a software developer, inside Claude \
Code {versions}. You get tasks about the code base in the current working directory, and you carry them \
out with tools.

How you work:
- Look before you change: read a file with Read before Edit or Write on it; an edit of a file that was \
not read is refused.
- {search}
- Bash runs commands: builds, tests, version control. Its working directory stays between calls.
- Calls that do not depend on each other may be made together in one message.
- After a change, check it with the project's own tests, build or linter.
- Text outside tool calls is shown to the user, in a terminal. Keep it short.
- When the task is done, or you need an answer from the user, reply with text and no tool call.
- Text in <system-reminder> tags is added by the program and not by the user.

(This prompt is a stand-in: what the session was really given was not recorded.)"""

_FILE_SEARCH = "Glob finds files by name, Grep finds text in files; prefer both to find and grep in Bash."
_SHELL_SEARCH = "Find files and text with Glob and Grep where they are offered, with find and grep in Bash \
where not."


def _rules() -> dict[str, ToolRule]:
    op = Operation
    file_path = ("file_path",)
    process = ToolRule(op.RUN, ("bash_id", "shell_id", "task_id"), ignored=("timeout",))
    plan = ToolRule(op.PLAN, ("subject", "taskId"), ignored=("activeForm",))
    return {
        "Bash": ToolRule(
            op.RUN,
            ("command",),
            "shell",
            ignored=("description", "timeout"),
            outside=("dangerouslyDisableSandbox",),
        ),
        "Read": ToolRule(op.READ, file_path, paths=file_path),
        "NotebookRead": ToolRule(op.READ, ("notebook_path",), paths=("notebook_path",)),
        "Edit": ToolRule(op.EDIT, file_path, paths=file_path),
        "MultiEdit": ToolRule(op.EDIT, file_path, paths=file_path),
        "NotebookEdit": ToolRule(op.EDIT, ("notebook_path",), paths=("notebook_path",)),
        "Write": ToolRule(op.CREATE, file_path, paths=file_path),
        "Glob": ToolRule(op.SEARCH, ("pattern",), paths=("path",)),
        "Grep": ToolRule(op.SEARCH, ("pattern",), paths=("path",)),
        "LSP": ToolRule(op.SEARCH, ("filePath", "query"), paths=("filePath",)),
        "LS": ToolRule(op.LIST, ("path",), paths=("path",)),
        "BashOutput": process,
        "TaskOutput": process,
        "AgentOutputTool": process,
        "KillShell": process,
        "KillBash": process,
        "TaskStop": process,
        "TodoWrite": plan,
        "TodoRead": plan,
        "TaskCreate": plan,
        "TaskUpdate": plan,
        "TaskList": plan,
        "TaskGet": plan,
        "EnterPlanMode": plan,
        "ExitPlanMode": plan,
        "AskUserQuestion": ToolRule(op.ASK),
        "WebFetch": ToolRule(op.WEB, ("url",)),
        "WebSearch": ToolRule(op.WEB, ("query",)),
        "Task": ToolRule(op.OTHER, ("subagent_type",), ignored=("description",)),
        "Agent": ToolRule(op.OTHER, ("subagent_type",), ignored=("description",)),
        "Skill": ToolRule(op.OTHER, ("skill",)),
        "SlashCommand": ToolRule(op.OTHER, ("command",)),
        "ToolSearch": ToolRule(op.OTHER, ("query",), ignored=("max_results",)),
    }


_RULES, _TOOLS = _rules(), load_stand_in_tools("claude_code")
_CORE = ("Bash", "Edit", "Read", "Write")

OLD = Harness(
    "claude_code",
    "1.x to 2.1.90",
    _SYSTEM.format(versions="1.x to 2.1.90", search=_FILE_SEARCH),
    _TOOLS,
    (*_CORE, "Glob", "Grep"),
    _RULES,
)
"""Versions that offer Glob and Grep in every session."""

NEW = Harness(
    "claude_code",
    "2.1.91 and later",
    _SYSTEM.format(versions="2.1.91 or later", search=_SHELL_SEARCH),
    _TOOLS,
    _CORE,
    _RULES,
    since=(2, 1, 91),
)
"""Versions in which a session may search through Bash alone."""
