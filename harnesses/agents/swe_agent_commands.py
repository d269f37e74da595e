"""The commands of SWE-agent, written as lines, made the calls they are where tools are called.

`open src/a.py 12`, `edit 3:4` with its lines, `str_replace_editor view a.py --view_range 1 9`. After the
signatures of the tools in SWE-agent 0.7, 1.0 and 1.1 (https://swe-agent.com/latest/reference/bundle_config).
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
    """The call a command is, with an empty id: of one of SWE-agent's own tools where it is nothing else
    than that, else of `bash`. Never raises."""
    found = _own_call(command.strip())
    if found is None:
        return ToolCall("", "bash", _json({"command": command.strip("\n")}))
    name, arguments = found
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
    if words is None or len(words) - 1 > len(signature):
        return None
    return name, {key.rstrip("#"): _value(key, word) for key, word in zip(signature, words[1:], strict=False)}


def _range_edit(name: str, found: re.Match[str]) -> dict[str, Any]:
    """The arguments of an edit of several lines: of the lines named, else of those selected before."""
    if found["first"] is None:
        return {"text": found["text"]}
    first = int(found["first"])
    if name == "insert":
        return {"text": found["text"], "line": first}
    return {"start_line": first, "end_line": int(found["last"] or first), "replacement_text": found["text"]}


def _words(command: str) -> list[str] | None:
    """The words of a command that is one command and no more; None where the shell would do more."""
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
    """`str_replace_editor view <path> --view_range 1 9`: the command and path, then named arguments."""
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
    """A word as the argument it is: numbers where the signature says so, truth values by their names."""
    if key.endswith("#"):
        return int(word) if re.fullmatch(r"-?\d{1,9}", word) else word
    if key == "replace-all":
        return word.lower() in ("true", "1", "yes")
    return word


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False)


def find_swe_agent_command(text: str) -> str | None:
    """The command that SWE-agent takes from an answer; None where it would ask again."""
    place = _place_of_command(text)
    return None if place is None else text[place]


def locate_swe_agent_command(text: str) -> list[slice]:
    """Return where the command that SWE-agent takes from an answer stands, as a list of one or none."""
    place = _place_of_command(text)
    return [] if place is None else [place]


def _place_of_command(text: str) -> slice | None:
    start, end = text.rfind("<command>"), text.rfind("</command>")
    if 0 <= start < end:
        return slice(start + len("<command>"), end)
    opened: list[re.Match[str]] = []
    command = None
    for mark in _FENCE.finditer(text):
        if opened and not mark.group(1):
            start = opened.pop()
            if not opened:
                command = slice(start.end(), mark.start())
        elif mark.group(1) is not None:
            opened.append(mark)
    return command
