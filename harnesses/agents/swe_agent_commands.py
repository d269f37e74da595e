"""Convert commands of SWE-agent, written as lines, to the tool calls they correspond to.

`open src/a.py 12`, `edit 3:4` with its lines, `str_replace_editor view a.py --view_range 1 9`. The signatures
are those of the tools in SWE-agent 0.7, 1.0 and 1.1 (https://swe-agent.com/latest/reference/bundle_config).
"""

import json
import re
import shlex
from typing import Any

from tracemill.records.message import ToolCall

_FENCE = re.compile(r"^```(\S*)\s*\n|^```\s*$", re.MULTILINE)
_RANGE_EDIT = re.compile(
    r"(?:edit|insert)(?:\s+(?P<first>\d+)(?::(?P<last>\d+))?)?[^\S\n]*(?:<<\s*'?end_of_\w+'?)?[^\S\n]*\n"
    r"(?P<text>.*?)\n?^end_of_(?:edit|insert)\s*\Z",
    re.DOTALL | re.MULTILINE,
)
# Name → arguments in their order; those that are numbers end with `#`.
_SIGNATURES = {
    "open": ("path", "line_number#"),
    "goto": ("line_number#",),
    "set_cursors": ("start_line#", "end_line#"),
    "scroll_up": (),
    "scroll_down": (),
    "create": ("filename",),
    "search_dir": ("search_term", "dir"),
    "search_file": ("search_term", "file"),
    "find_file": ("file_name", "dir"),
    "filemap": ("file_path",),
    "submit": ("value",),
    "exit_forfeit": (),
    "insert": ("text", "line#"),
    "edit": ("search", "replace", "replace-all"),
}
_EDITOR = "str_replace_editor"
_PLAIN_WORDS = re.compile(r"[\w./:=,@%+-]+(?: [\w./:=,@%+-]+)*")
_NUMBERS = frozenset({"insert_line"})


def parse_swe_agent_command(command: str) -> ToolCall:
    """Return a command as a call with an empty id, of SWE-agent's own tool or of `bash`. Never raises."""
    own_call = _own_call(command.strip())
    if own_call is None:
        return ToolCall("", "bash", _json({"command": command.strip("\n")}))
    name, arguments = own_call
    return ToolCall("", name, _json(arguments))


def _own_call(command: str) -> tuple[str, dict[str, Any]] | None:
    name = command.split(None, 1)[0] if command else ""
    if name in ("edit", "insert") and (ranged := _RANGE_EDIT.fullmatch(command)):
        return name, _range_edit(name, ranged)
    if name == _EDITOR:
        return _editor(command)
    signature = _SIGNATURES.get(name)
    if signature is None or ("\n" in command and name not in ("edit", "insert")):
        return None
    words = _words(command)
    if name == "submit" and (words is None or len(words) > 2):  # without quotes, a word is an argument
        return name, {"value": words[1:] if words else command.removeprefix(name).strip()}
    if words is None or len(words) - 1 > len(signature):
        return None
    return name, {key.rstrip("#"): _value(key, word) for key, word in zip(signature, words[1:], strict=False)}


def _range_edit(name: str, match: re.Match[str]) -> dict[str, Any]:
    """Return the arguments of an edit of several lines: those named, else those selected before."""
    if match["first"] is None:
        return {"text": match["text"]}
    first = int(match["first"])
    if name == "insert":
        return {"text": match["text"], "line": first}
    return {"start_line": first, "end_line": int(match["last"] or first), "replacement_text": match["text"]}


def _words(command: str) -> list[str] | None:
    """Return the words of a single command, None if the shell would do more."""
    if _PLAIN_WORDS.fullmatch(command):
        return command.split(" ")
    try:
        lexer = shlex.shlex(command, posix=True, punctuation_chars="|&;<>")
        lexer.commenters = ""
        lexer.whitespace_split = True
        words = list(lexer)
    except ValueError:
        return None
    return None if any(set(word) <= set("|&;<>") for word in words if word) else words


def _editor(command: str) -> tuple[str, dict[str, Any]] | None:
    """Parse `str_replace_editor view <path> --view_range 1 9`: command and path, then named arguments."""
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    arguments: dict[str, Any] = {}
    key, rest = "", words[1:]
    for place, word in enumerate(rest):
        if word.startswith("--") and len(word) > 2:
            key = word[2:]
            arguments[key] = [] if key == "view_range" else ""
        elif key == "view_range":
            arguments[key].append(_value("#", word))
        elif key:
            arguments[key] = _value("#" if key in _NUMBERS else key, word)
            key = ""
        elif place < 2:
            arguments["command" if place == 0 else "path"] = word
    return (_EDITOR, arguments) if "path" in arguments else None


def _value(key: str, word: str) -> Any:
    """Convert a word to its argument: numbers by the signature, booleans by the name."""
    if key.endswith("#"):
        return int(word) if re.fullmatch(r"-?\d{1,9}", word) else word
    if key == "replace-all":
        return word.lower() in ("true", "1", "yes")
    return word


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False)


def locate_swe_agent_command(text: str) -> list[slice]:
    """Return the place of the command that SWE-agent takes from an answer, in a list of one or none."""
    start, end = text.rfind("<command>"), text.rfind("</command>")
    if 0 <= start < end:
        return [slice(start + len("<command>"), end)]
    opened: list[re.Match[str]] = []
    commands: list[slice] = []
    for fence in _FENCE.finditer(text):
        if opened and not fence.group(1):
            opening = opened.pop()
            if not opened:
                commands.append(slice(opening.end(), fence.start()))
        elif fence.group(1) is not None:
            opened.append(fence)
    return commands[-1:]
