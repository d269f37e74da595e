"""Stand-in schemas of the tools of Claude Code, in our own words."""

from tracemill.harnesses.core.schema_builders import by_name, flag, integer, items, record, stand_in, text

_FILE = text("Absolute path of the file.")
_EDIT = record(
    {
        "old_string": text("Text to replace, exactly as it stands in the file."),
        "new_string": text("Text to put in its place."),
        "replace_all": flag("Replace every occurrence."),
    },
    ("old_string", "new_string"),
)
_TODO = record(
    {
        "content": text("The task, as an order."),
        "status": text("Where it stands.", options=("pending", "in_progress", "completed")),
        "activeForm": text("The task, as what is being done."),
    },
    ("content", "status"),
)
_OPTION = record({"label": text("Short answer."), "description": text("What it means.")}, ("label",))
_QUESTION = record(
    {
        "question": text("The question."),
        "header": text("One or two words for it."),
        "options": items("Answers to choose from.", _OPTION),
        "multiSelect": flag("More than one answer may be chosen."),
    },
    ("question", "options"),
)

_FILES = (
    stand_in(
        "Read",
        "Reads a file and gives its lines with their numbers. Long files are cut: give offset and limit for "
        "a part. A folder cannot be read; list it with Bash.",
        {
            "file_path": _FILE,
            "offset": integer("Number of the first line to read."),
            "limit": integer("How many lines to read."),
        },
        ("file_path",),
    ),
    stand_in(
        "Edit",
        "Replaces a text in a file that was read before. old_string must stand in the file exactly once, "
        "blanks included and line numbers left out, unless replace_all is true.",
        {
            "file_path": _FILE,
            "old_string": text("Text to replace, exactly as it stands in the file."),
            "new_string": text("Text to put in its place."),
            "replace_all": flag("Replace every occurrence."),
        },
        ("file_path", "old_string", "new_string"),
    ),
    stand_in(
        "MultiEdit",
        "Makes several replacements in one file, in order; all of them or none. The file was read before.",
        {"file_path": _FILE, "edits": items("The replacements.", _EDIT)},
        ("file_path", "edits"),
    ),
    stand_in(
        "Write",
        "Writes a whole file. A file that exists is replaced, and must have been read before.",
        {"file_path": _FILE, "content": text("The whole new content.")},
        ("file_path", "content"),
    ),
    stand_in(
        "NotebookEdit",
        "Replaces, inserts or deletes a cell of a Jupyter notebook.",
        {
            "notebook_path": text("Absolute path of the notebook."),
            "new_source": text("The new source of the cell."),
            "cell_id": text("Id of the cell; with insert, the cell to insert after."),
            "cell_type": text("Kind of the cell.", options=("code", "markdown")),
            "edit_mode": text("What to do.", options=("replace", "insert", "delete"), default="replace"),
        },
        ("notebook_path", "new_source"),
    ),
    stand_in(
        "Glob",
        "Finds files whose path matches a pattern such as src/**/*.go, last changed first.",
        {"pattern": text("The pattern."), "path": text("Folder; the working directory if left out.")},
        ("pattern",),
    ),
    stand_in(
        "Grep",
        "Searches the text of files for a regular expression (ripgrep syntax).",
        {
            "pattern": text("The regular expression."),
            "path": text("File or folder to search; the working directory if left out."),
            "glob": text("Only files that match, such as *.ts."),
            "type": text("Only files of this type, such as py."),
            "output_mode": text(
                "What to give.",
                options=("content", "files_with_matches", "count"),
                default="files_with_matches",
            ),
            "-i": flag("Ignore case."),
            "-n": {"type": "boolean", "description": "Show line numbers (with content)."},
            "-A": integer("Lines to show after a match."),
            "-B": integer("Lines to show before a match."),
            "-C": integer("Lines to show around a match."),
            "head_limit": integer("Give only the first so many lines or files."),
            "multiline": flag("Let a match go over several lines."),
        },
        ("pattern",),
    ),
    stand_in("LS", "Lists a folder.", {"path": text("Absolute path of the folder.")}, ("path",)),
)

_SHELL = (
    stand_in(
        "Bash",
        "Runs a command in a shell and gives what it prints. The working directory stays between calls. A "
        "command that takes longer than the timeout is stopped.",
        {
            "command": text("The command."),
            "description": text("What it does, in a few words."),
            "timeout": integer("Longest time to wait, in milliseconds."),
            "run_in_background": flag("Start it and go on at once."),
        },
        ("command",),
    ),
    stand_in(
        "BashOutput",
        "Gives what a background command printed since it was last asked.",
        {"bash_id": text("Id of the command."), "filter": text("Only lines that match this expression.")},
        ("bash_id",),
    ),
    stand_in("KillShell", "Stops a background command.", {"shell_id": text("Its id.")}, ("shell_id",)),
    stand_in("KillBash", "Stops a background command.", {"shell_id": text("Its id.")}, ("shell_id",)),
    stand_in(
        "TaskOutput",
        "Gives the output of a background command or agent.",
        {
            "task_id": text("Its id."),
            "block": flag("Wait until it has ended.", True),
            "timeout": integer("Longest time to wait, in milliseconds."),
        },
        ("task_id",),
    ),
    stand_in("TaskStop", "Stops a background command or agent.", {"task_id": text("Its id.")}, ("task_id",)),
)

_AGENT = {
    "description": text("The task in three to five words."),
    "prompt": text("The whole task, with all that the agent must know."),
    "subagent_type": text("Kind of agent."),
    "model": text("Model the agent runs on."),
    "run_in_background": flag("Start it and go on at once."),
}
_AGENT_USE = "Hands a task to another agent with a context of its own, which reports once, at its end."

_WORK = (
    stand_in("Task", _AGENT_USE, _AGENT, ("description", "prompt", "subagent_type")),
    stand_in("Agent", _AGENT_USE, _AGENT, ("description", "prompt")),
    stand_in("TodoWrite", "Writes the whole list of tasks.", {"todos": items("All.", _TODO)}, ("todos",)),
    stand_in(
        "TaskCreate",
        "Adds a task to the list.",
        {
            "subject": text("The task, as an order."),
            "description": text("What is to be done."),
            "activeForm": text("The task, as what is being done."),
        },
        ("subject", "description"),
    ),
    stand_in(
        "TaskUpdate",
        "Changes a task of the list.",
        {
            "taskId": text("Id of the task."),
            "status": text("Where it stands.", options=("pending", "in_progress", "completed", "deleted")),
            "subject": text("New subject."),
            "description": text("New description."),
        },
        ("taskId",),
    ),
    stand_in("TaskList", "Gives the list of tasks.", {}),
    stand_in("TaskGet", "Gives one task of the list.", {"taskId": text("Its id.")}, ("taskId",)),
    stand_in("EnterPlanMode", "Asks to plan first: only looking, no changes, until a plan is accepted.", {}),
    stand_in(
        "ExitPlanMode",
        "Shows the user the plan and asks to go on with it.",
        {"plan": text("The plan, in Markdown.")},
    ),
    stand_in(
        "AskUserQuestion",
        "Asks the user one to four questions, each with answers to choose from.",
        {"questions": items("The questions.", _QUESTION)},
        ("questions",),
    ),
    stand_in(
        "WebFetch",
        "Fetches a web page and answers a question about it.",
        {"url": text("Address of the page."), "prompt": text("What to find out.")},
        ("url", "prompt"),
    ),
    stand_in(
        "WebSearch",
        "Searches the web.",
        {
            "query": text("What to search for."),
            "allowed_domains": items("Only results from these domains.", {"type": "string"}),
            "blocked_domains": items("No results from these domains.", {"type": "string"}),
        },
        ("query",),
    ),
    stand_in(
        "Skill",
        "Loads the instructions of a named skill.",
        {"skill": text("Name of the skill."), "args": text("Arguments for it.")},
        ("skill",),
    ),
    stand_in(
        "SlashCommand",
        "Runs a command of the user's own, with its arguments.",
        {"command": text("The command with its slash.")},
        ("command",),
    ),
    stand_in(
        "ToolSearch",
        "Finds tools that are not loaded yet, by keywords or by name, and loads them.",
        {"query": text("Keywords, or select:<name>."), "max_results": integer("Most tools to give.")},
        ("query",),
    ),
)

TOOLS = by_name(*_FILES, *_SHELL, *_WORK)
"""Every tool described here, by name."""
