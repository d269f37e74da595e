"""Stand-in schemas of the tools of Claude Code, in our own words."""

from tracemill.harnesses.core.schema_builders import (
    build_flag_schema,
    build_integer_schema,
    build_list_schema,
    build_object_schema,
    build_text_schema,
    build_tool_schema,
    tool_schemas_by_name,
)

_FILE = build_text_schema("Absolute path of the file.")
_EDIT = build_object_schema(
    {
        "old_string": build_text_schema("Text to replace, exactly as it stands in the file."),
        "new_string": build_text_schema("Text to put in its place."),
        "replace_all": build_flag_schema("Replace every occurrence."),
    },
    ("old_string", "new_string"),
)
_TODO = build_object_schema(
    {
        "content": build_text_schema("The task, as an order."),
        "status": build_text_schema("Where it stands.", options=("pending", "in_progress", "completed")),
        "activeForm": build_text_schema("The task, as what is being done."),
    },
    ("content", "status"),
)
_OPTION = build_object_schema(
    {"label": build_text_schema("Short answer."), "description": build_text_schema("What it means.")},
    ("label",),
)
_QUESTION = build_object_schema(
    {
        "question": build_text_schema("The question."),
        "header": build_text_schema("One or two words for it."),
        "options": build_list_schema("Answers to choose from.", _OPTION),
        "multiSelect": build_flag_schema("More than one answer may be chosen."),
    },
    ("question", "options"),
)

_FILES = (
    build_tool_schema(
        "Read",
        "Reads a file and gives its lines with their numbers. Long files are cut: give offset and limit for "
        "a part. A folder cannot be read; list it with Bash.",
        {
            "file_path": _FILE,
            "offset": build_integer_schema("Number of the first line to read."),
            "limit": build_integer_schema("How many lines to read."),
        },
        ("file_path",),
    ),
    build_tool_schema(
        "Edit",
        "Replaces a text in a file that was read before. old_string must stand in the file exactly once, "
        "blanks included and line numbers left out, unless replace_all is true.",
        {
            "file_path": _FILE,
            "old_string": build_text_schema("Text to replace, exactly as it stands in the file."),
            "new_string": build_text_schema("Text to put in its place."),
            "replace_all": build_flag_schema("Replace every occurrence."),
        },
        ("file_path", "old_string", "new_string"),
    ),
    build_tool_schema(
        "MultiEdit",
        "Makes several replacements in one file, in order; all of them or none. The file was read before.",
        {"file_path": _FILE, "edits": build_list_schema("The replacements.", _EDIT)},
        ("file_path", "edits"),
    ),
    build_tool_schema(
        "Write",
        "Writes a whole file. A file that exists is replaced, and must have been read before.",
        {"file_path": _FILE, "content": build_text_schema("The whole new content.")},
        ("file_path", "content"),
    ),
    build_tool_schema(
        "NotebookEdit",
        "Replaces, inserts or deletes a cell of a Jupyter notebook.",
        {
            "notebook_path": build_text_schema("Absolute path of the notebook."),
            "new_source": build_text_schema("The new source of the cell."),
            "cell_id": build_text_schema("Id of the cell; with insert, the cell to insert after."),
            "cell_type": build_text_schema("Kind of the cell.", options=("code", "markdown")),
            "edit_mode": build_text_schema(
                "What to do.", options=("replace", "insert", "delete"), default="replace"
            ),
        },
        ("notebook_path", "new_source"),
    ),
    build_tool_schema(
        "Glob",
        "Finds files whose path matches a pattern such as src/**/*.go, last changed first.",
        {
            "pattern": build_text_schema("The pattern."),
            "path": build_text_schema("Folder; the working directory if left out."),
        },
        ("pattern",),
    ),
    build_tool_schema(
        "Grep",
        "Searches the text of files for a regular expression (ripgrep syntax).",
        {
            "pattern": build_text_schema("The regular expression."),
            "path": build_text_schema("File or folder to search; the working directory if left out."),
            "glob": build_text_schema("Only files that match, such as *.ts."),
            "type": build_text_schema("Only files of this type, such as py."),
            "output_mode": build_text_schema(
                "What to give.",
                options=("content", "files_with_matches", "count"),
                default="files_with_matches",
            ),
            "-i": build_flag_schema("Ignore case."),
            "-n": {"type": "boolean", "description": "Show line numbers (with content)."},
            "-A": build_integer_schema("Lines to show after a match."),
            "-B": build_integer_schema("Lines to show before a match."),
            "-C": build_integer_schema("Lines to show around a match."),
            "head_limit": build_integer_schema("Give only the first so many lines or files."),
            "multiline": build_flag_schema("Let a match go over several lines."),
        },
        ("pattern",),
    ),
    build_tool_schema(
        "LS", "Lists a folder.", {"path": build_text_schema("Absolute path of the folder.")}, ("path",)
    ),
)

_SHELL = (
    build_tool_schema(
        "Bash",
        "Runs a command in a shell and gives what it prints. The working directory stays between calls. A "
        "command that takes longer than the timeout is stopped.",
        {
            "command": build_text_schema("The command."),
            "description": build_text_schema("What it does, in a few words."),
            "timeout": build_integer_schema("Longest time to wait, in milliseconds."),
            "run_in_background": build_flag_schema("Start it and go on at once."),
        },
        ("command",),
    ),
    build_tool_schema(
        "BashOutput",
        "Gives what a background command printed since it was last asked.",
        {
            "bash_id": build_text_schema("Id of the command."),
            "filter": build_text_schema("Only lines that match this expression."),
        },
        ("bash_id",),
    ),
    build_tool_schema(
        "KillShell", "Stops a background command.", {"shell_id": build_text_schema("Its id.")}, ("shell_id",)
    ),
    build_tool_schema(
        "KillBash", "Stops a background command.", {"shell_id": build_text_schema("Its id.")}, ("shell_id",)
    ),
    build_tool_schema(
        "TaskOutput",
        "Gives the output of a background command or agent.",
        {
            "task_id": build_text_schema("Its id."),
            "block": build_flag_schema("Wait until it has ended.", True),
            "timeout": build_integer_schema("Longest time to wait, in milliseconds."),
        },
        ("task_id",),
    ),
    build_tool_schema(
        "TaskStop",
        "Stops a background command or agent.",
        {"task_id": build_text_schema("Its id.")},
        ("task_id",),
    ),
)

_AGENT = {
    "description": build_text_schema("The task in three to five words."),
    "prompt": build_text_schema("The whole task, with all that the agent must know."),
    "subagent_type": build_text_schema("Kind of agent."),
    "model": build_text_schema("Model the agent runs on."),
    "run_in_background": build_flag_schema("Start it and go on at once."),
}
_AGENT_USE = "Hands a task to another agent with a context of its own, which reports once, at its end."

_WORK = (
    build_tool_schema("Task", _AGENT_USE, _AGENT, ("description", "prompt", "subagent_type")),
    build_tool_schema("Agent", _AGENT_USE, _AGENT, ("description", "prompt")),
    build_tool_schema(
        "TodoWrite",
        "Writes the whole list of tasks.",
        {"todos": build_list_schema("All.", _TODO)},
        ("todos",),
    ),
    build_tool_schema(
        "TaskCreate",
        "Adds a task to the list.",
        {
            "subject": build_text_schema("The task, as an order."),
            "description": build_text_schema("What is to be done."),
            "activeForm": build_text_schema("The task, as what is being done."),
        },
        ("subject", "description"),
    ),
    build_tool_schema(
        "TaskUpdate",
        "Changes a task of the list.",
        {
            "taskId": build_text_schema("Id of the task."),
            "status": build_text_schema(
                "Where it stands.", options=("pending", "in_progress", "completed", "deleted")
            ),
            "subject": build_text_schema("New subject."),
            "description": build_text_schema("New description."),
        },
        ("taskId",),
    ),
    build_tool_schema("TaskList", "Gives the list of tasks.", {}),
    build_tool_schema(
        "TaskGet", "Gives one task of the list.", {"taskId": build_text_schema("Its id.")}, ("taskId",)
    ),
    build_tool_schema(
        "EnterPlanMode", "Asks to plan first: only looking, no changes, until a plan is accepted.", {}
    ),
    build_tool_schema(
        "ExitPlanMode",
        "Shows the user the plan and asks to go on with it.",
        {"plan": build_text_schema("The plan, in Markdown.")},
    ),
    build_tool_schema(
        "AskUserQuestion",
        "Asks the user one to four questions, each with answers to choose from.",
        {"questions": build_list_schema("The questions.", _QUESTION)},
        ("questions",),
    ),
    build_tool_schema(
        "WebFetch",
        "Fetches a web page and answers a question about it.",
        {"url": build_text_schema("Address of the page."), "prompt": build_text_schema("What to find out.")},
        ("url", "prompt"),
    ),
    build_tool_schema(
        "WebSearch",
        "Searches the web.",
        {
            "query": build_text_schema("What to search for."),
            "allowed_domains": build_list_schema("Only results from these domains.", {"type": "string"}),
            "blocked_domains": build_list_schema("No results from these domains.", {"type": "string"}),
        },
        ("query",),
    ),
    build_tool_schema(
        "Skill",
        "Loads the instructions of a named skill.",
        {"skill": build_text_schema("Name of the skill."), "args": build_text_schema("Arguments for it.")},
        ("skill",),
    ),
    build_tool_schema(
        "SlashCommand",
        "Runs a command of the user's own, with its arguments.",
        {"command": build_text_schema("The command with its slash.")},
        ("command",),
    ),
    build_tool_schema(
        "ToolSearch",
        "Finds tools that are not loaded yet, by keywords or by name, and loads them.",
        {
            "query": build_text_schema("Keywords, or select:<name>."),
            "max_results": build_integer_schema("Most tools to give."),
        },
        ("query",),
    ),
)

TOOLS = tool_schemas_by_name(*_FILES, *_SHELL, *_WORK)
"""Every tool described here, by name."""
