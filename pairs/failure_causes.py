"""Find why a call failed, from what tools and shells print.

Only mistakes of the call itself have a cause. A failing test, a compiler error or a search without a hit says
something about the code and nothing about the call, and makes no pair.
"""

import json
import re
from enum import StrEnum

from tracemill.harnesses.agents.registry import Harness, rule_for
from tracemill.harnesses.core.vocabulary import Operation
from tracemill.records.message import ErrorKind, Message, ToolCall


class FailureCause(StrEnum):
    """A mistake in a call."""

    UNREAD = "the file had not been read"
    TEXT_ABSENT = "the text to replace is not in the file once"
    PATH = "the path does not exist"
    DIRECTORY = "the path is a folder"
    TOO_LARGE = "the file is too large to read at once"
    ARGUMENTS = "the arguments are not valid"
    COMMAND = "the command is not valid here"
    PATTERN = "the pattern found nothing"
    SYNTAX = "the edit would break the syntax"


NOT_CAUSED_BY_CALL: dict[str | None, str] = {
    ErrorKind.USER_REJECTION: "rejected by the user",
    ErrorKind.HOOK: "stopped by a hook",
    ErrorKind.TIMEOUT: "timed out",
    ErrorKind.API_ERROR: "failed at the model's API",
}
"""Failures that say nothing about the call, with the reason under which they are counted."""

_TOOL_MESSAGES = (
    (FailureCause.UNREAD, r"has not been read yet"),
    (FailureCause.SYNTAX, r"proposed edit has introduced new syntax error"),
    (
        FailureCause.TEXT_ABSENT,
        r"String to replace not found|did not appear verbatim|Multiple occurrences of old_str",
    ),
    (FailureCause.TEXT_ABSENT, r"Found \d+ matches of the string to replace"),
    (FailureCause.TEXT_ABSENT, r"verification failed: (?:Error: )?Failed to find (?:expected lines|context)"),
    (
        FailureCause.TEXT_ABSENT,
        r"Failed to edit, (?:0 occurrences found|could not find the string|expected \d+ occurrence)",
    ),
    (FailureCause.ARGUMENTS, r"^failed to parse function arguments"),
    (
        FailureCause.TEXT_ABSENT,
        r"SEARCH block content doesn't match|does not match anything in the file|No sufficiently similar",
    ),
    (FailureCause.TEXT_ABSENT, r"(?:oldString not found|Could not find oldString) in "),
    (FailureCause.TEXT_ABSENT, r"Found (?:multiple|\d+) matches for oldString"),
    (FailureCause.UNREAD, r"You must read (?:the )?file .{1,400} before (?:overwriting|editing)"),
    (FailureCause.ARGUMENTS, r"tool was called with invalid arguments|Missing value for required parameter"),
    (FailureCause.PATH, r"^(?:Error: )?File not found: "),
    (
        FailureCause.TEXT_ABSENT,
        r"(?:Could not find the exact text|Could not find edits\[\d+\]) in"
        r"|Found \d+ occurrences of (?:the text|edits\[\d+\]) in",
    ),
    (FailureCause.ARGUMENTS, r"No changes to (?:make|apply)|The replacement produced identical content"),
    (
        FailureCause.DIRECTORY,
        r"EISDIR|view_range` parameter is not allowed when `path` points to a directory",
    ),
    (FailureCause.TOO_LARGE, r"exceeds maximum allowed (?:tokens|size)"),
    (
        FailureCause.ARGUMENTS,
        r"InputValidationError|Invalid `\w+`|Parameter `\w+` is required|is not an absolute path",
    ),
    (
        FailureCause.PATH,
        r"(?:File|[Pp]ath|Directory) does not exist|The path \S+ does not exist|[Nn]o such file or directory"
        r"|^Path not found",
    ),
)
_TOOL_PATTERNS = tuple((cause, re.compile(pattern)) for cause, pattern in _TOOL_MESSAGES)

_SHELL_MISTAKE = re.compile(
    r"""^(?:[^\n]*:\ )?(?:
        command\ not\ found | no\ such\ file\ or\ directory | not\ a\ directory | parse\ error\ near |
        no\ matches\ found | syntax\ error\ near |
        (?:illegal|invalid|unknown|unrecognized)\ (?:option|argument|flag) |
        is\ a\ directory | cannot\ access | can't\ read | No\ version\ is\ set | unknown\ (?:sub)?command |
        ambiguous\ argument | permission\ denied | pathspec\ .*\ did\ not\ match | Missing\ script |
        The\ current\ branch\ \S+\ has\ no\ upstream |
        unknown\ shorthand\ flag | no\ such\ option | unrecognized\ subcommand | unexpected\ argument |
        accepts\ [^\n]*\barg\(s\),\ received | can't\ open\ file | not\ a\ valid\ identifier |
        unexpected\ EOF\ while\ looking | bad\ substitution | event\ not\ found | unknown\ predicate |
        '[^'\n]+'\ is\ not\ recognized\ as | The\ term\ '[^'\n]+'\ is\ not\ recognized |
        The\ token\ '[^'\n]+'\ is\ not\ a\ valid | A\ parameter\ cannot\ be\ found |
        Cannot\ find\ path\ | The\ system\ cannot\ find\ the\ (?:file|path)
    )""",
    re.VERBOSE | re.IGNORECASE | re.MULTILINE,
)
_SCRIPT_SYNTAX = re.compile(
    r"""(?:File\ "<(?:string|stdin)>"|\[(?:eval|stdin)\]:\d).*?^(?:Syntax|Indentation)Error\b""",
    re.VERBOSE | re.MULTILINE | re.DOTALL,
)
"""A script on the command line, or behind it, that does not parse."""
_REFUSED_INSTALL = re.compile(r"error: externally-managed-environment|^hint: See PEP 668", re.MULTILINE)
"""How pip refuses to install outside a virtual environment; the exit code is lost behind a pipe."""
_POWERSHELL_PLACE = "At line:"
"""The first of three lines with which PowerShell tells the place of a mistake."""
_IS_FOLDER = re.compile(r": Is a directory\s*(?:$|\n\[)", re.MULTILINE)
_NOTHING_FOUND = re.compile(
    r"\s*(?:No matches found|No files found|Exit code 1|(?:\(no output\)\s*)?Command exited with code 1"
    r"|Command failed with exit code 1\.?)\s*(?:$|\n\n?\[)"
)
_SHORT = 600
_QUOTED = 100  # characters
_HEADER = re.compile(
    r"^(?:OBSERVATION|EXECUTION RESULT of \[[\w.-]+\]):\n|^Exit code \d+\n"
    r"|^\[[\w-]+(?: for [\s\S]*?)?\] Result:\n(?:Command (?:executed|failed)[^\n]*\n)?"
    r"(?:Exit code: -?\d+\n)?(?:Output:\n)?"
    r"|^Command (?:executed|failed)[^\n]*\n(?:Exit code: -?\d+\n)?(?:Output:\n)?"
)
_FRAME = re.compile(r"^<returncode>(\d+)</returncode>\n(?:<output>\n?(.*?)(?:</output>\s*)?)?$", re.DOTALL)

_CODEX_STARTS = ("Command: ", "Chunk ID: ", "Exit code: ", "Wall time")
_CODEX_FRAME = re.compile(
    r"^(?:.*?\n)??(?:Process exited with code|Exit code:) (-?\d+)\n(?:[^\n]*\n){0,4}?Output:\n(.*)$",
    re.DOTALL,
)

_GEMINI_FRAME = re.compile(
    r"^(?:Command: .*?\nDirectory: [^\n]*\n)?(?:Output|Stdout): (.*?)(?:\nStderr: (.*?))?(?:\nError: [^\n]*)?"
    r"\nExit Code: (-?\d+)(?:\n|$)",
    re.DOTALL,
)
_GEMINI_STARTS = ("Command: ", "Output: ", "Stdout: ")


def find_failure_cause(
    call: ToolCall, result: Message, operation: Operation, harness: Harness
) -> FailureCause | None:
    """Return the mistake in a call that gave this result, None if unknown."""
    rule = rule_for(harness, call.name)
    text = _output_of(result)
    failed = bool(result.is_error or result.error_kind)
    if operation == Operation.SEARCH and _NOTHING_FOUND.match(_HEADER.sub("", text) or text):
        return FailureCause.PATTERN
    if rule is not None and rule.reading == "shell":
        return _shell_failure_cause(_HEADER.sub("", text), failed, operation)
    if not failed:
        return None
    return next((cause for cause, pattern in _TOOL_PATTERNS if pattern.search(text)), None)


def quote_shell_mistake(result: Message) -> str | None:
    """Return the first line in which a shell or program reports a mistake, None if none is known.

    It is cut to 100 characters.
    """
    text = _output_of(result)
    found = _SHELL_MISTAKE.search(text) or _REFUSED_INSTALL.search(text)
    if found is None:
        return None
    line = text[text.rfind("\n", 0, found.start()) + 1 :].lstrip("\n").split("\n", 1)[0].strip()
    return line if len(line) <= _QUOTED else f"{line[: _QUOTED - 3]}..."


def _output_of(result: Message) -> str:
    """Return the first 4,000 characters of a result without the lines that agents add."""
    return _unwrap_output(_gemini_output(_codex_output(result.content))[:4000])


def _codex_output(text: str) -> str:
    """Remove the lines or JSON object that Codex adds to the output of a command."""
    if text.startswith(_CODEX_STARTS) and (match := _CODEX_FRAME.match(text)):
        code, output = match.groups()
    elif text.startswith('{"output":'):
        try:
            value = json.loads(text)
            code, output = str(value["metadata"]["exit_code"]), str(value["output"])
        except (ValueError, TypeError, KeyError, RecursionError):
            return text
    else:
        return text
    return output if code == "0" else f"Exit code {code}\n{output}"


def _gemini_output(text: str) -> str:
    """Remove the lines that Gemini CLI adds to the output of a command; errors come first."""
    if not text.startswith(_GEMINI_STARTS) or (match := _GEMINI_FRAME.match(text)) is None:
        return text
    output, errors, code = match.groups()
    printed = "\n".join(each for each in (errors, output) if each and each != "(empty)")
    return printed if code == "0" else f"Exit code {code}\n{printed}"


def _unwrap_output(text: str) -> str:
    """Remove the tags that mini-swe-agent puts around an output."""
    match = _FRAME.match(text)
    if match is None:
        return text
    code, output = match.group(1), match.group(2) or ""
    return output if code == "0" else f"Exit code {code}\n{output}"


def _shell_failure_cause(text: str, failed: bool, operation: Operation) -> FailureCause | None:
    """Return the mistake in a command line; of a call without an error flag only if its output is short."""
    if _REFUSED_INSTALL.search(text):
        return FailureCause.COMMAND
    if not failed and len(text) > _SHORT:
        return None
    lines = text.strip().splitlines()
    if lines and lines[0].startswith(_POWERSHELL_PLACE):
        lines = lines[3:]
    head = "\n".join(lines[:3] if failed else lines[:1])
    if not _SHELL_MISTAKE.search(head) and not (failed and _SCRIPT_SYNTAX.search(text)):
        return None
    if operation == Operation.READ and _IS_FOLDER.search(text):
        return FailureCause.DIRECTORY
    return FailureCause.COMMAND
