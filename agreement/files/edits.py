"""Parse edit calls into changes of a text."""

import posixpath
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tracemill.harnesses.shell.patches import Hunk, read_patch

_CODE_NAMES = """bash bzl c cc cfg clj cmake conf cpp cs css cu cxx dart el ex exs fish gd go gradle groovy
    h hh hpp hs hxx ini java jl js json jsonc jsx kt kts less lisp lua m mjs ml mm nim php pl pm proto ps1 py
    pyi pyx r rb rs sass scala scm scss sh sol sql svelte swift tf toml ts tsx v vb vue zig zsh"""
_CODE = frozenset(_CODE_NAMES.split())
_CODE_FILES = frozenset(
    ("makefile", "dockerfile", "rakefile", "gemfile", "jenkinsfile", "build", "workspace")
)
TEXTS = ("content", "file_text", "contents", "text", "file_content", "body")
"""Names of arguments that hold the text of a written file."""
_EVERY = ("replace_all", "replace-all", "replaceAll", "allow_multiple")
_REPLACED = (
    ("old_string", "new_string"),
    ("old_str", "new_str"),
    ("old_text", "new_text"),
    ("oldString", "newString"),
    ("oldText", "newText"),
    ("search", "replace"),
)


@dataclass(frozen=True, slots=True)
class TextChange:
    """One change of a text.

    `old` becomes `new`, everywhere with `every`. Where `first` is set, lines `first` to `last` become `new`;
    with `last` before `first` it is an insertion before line `first`. Where `hunk` is set, the hunk is
    applied. `times` is how often `old` must occur, else the tool refuses; 0 for any number.
    """

    old: str
    new: str
    every: bool = False
    first: int | None = None
    last: int | None = None
    times: int = 0
    hunk: Hunk | None = None


def parse_edit_changes(arguments: Mapping[str, Any]) -> tuple[TextChange, ...] | None:
    """Return the changes an editing call asks for, None where its arguments do not say.

    Tools with these argument names refuse a text that occurs more than once (Claude Code's Edit and
    MultiEdit, the editors of Anthropic, SWE-agent and OpenHands, opencode, Copilot), or not as often as
    expected (Gemini CLI's replace: https://google-gemini.github.io/gemini-cli/docs/tools/file-system.html).
    SWE-agent's `search` looks at its window alone, and the MCP filesystem server edits the first place.
    """
    edits = arguments.get("edits")
    if isinstance(edits, list):
        found = [_edit_of(edit) for edit in edits if isinstance(edit, Mapping)]
        return tuple(c for changes in found if changes for c in changes) if all(found) and found else None
    for old, new in _REPLACED:
        if isinstance(arguments.get(old), str):
            every = any(str(arguments.get(name)).lower() == "true" for name in _EVERY)
            times = 0 if every or old == "search" else _expected(arguments.get("expected_replacements"))
            return (
                TextChange(arguments[old], str(arguments.get(new) or ""), every or times > 1, times=times),
            )
    return _by_lines(arguments)


def _expected(given: Any) -> int:
    try:
        return max(1, int(given))
    except (TypeError, ValueError, OverflowError):
        return 1


def _edit_of(edit: Mapping[str, Any]) -> tuple[TextChange, ...] | None:
    changes = parse_edit_changes(edit)
    if changes is None or "oldText" not in edit:
        return changes
    return tuple(replace(change, times=0) for change in changes)


def _by_lines(arguments: Mapping[str, Any]) -> tuple[TextChange, ...] | None:
    for behind, new in (("insert_line", "new_str"), ("insert_line", "insert_text"), ("line", "text")):
        if isinstance(line := arguments.get(behind), int) and isinstance(arguments.get(new), str):
            return (TextChange("", arguments[new], first=line + 1, last=line),)
    for first, last, new in (("start_line", "end_line", "replacement_text"), ("start", "end", "content")):
        if isinstance(arguments.get(first), int) and isinstance(arguments.get(new), str):
            end = arguments.get(last)
            return (
                TextChange(
                    "", arguments[new], first=arguments[first], last=end if isinstance(end, int) else None
                ),
            )
    return None


def parse_patch_edits(patch: str) -> tuple[tuple[str, str, tuple[TextChange, ...]], ...]:
    """Return (Add, Update or Delete; path; changes) for each file of a `*** Begin Patch` patch.

    An added file has one change from nothing to its text; a file with an unreadable line has no changes.
    """
    return tuple(
        (each.kind, each.path, edits_from_hunks(each.hunks) if each.readable else ())
        for each in read_patch(patch)
    )


def edits_from_hunks(hunks: Iterable[Hunk]) -> tuple[TextChange, ...]:
    """Return hunks as changes."""
    return tuple(TextChange("\n".join(hunk.old), "\n".join(hunk.new), hunk=hunk) for hunk in hunks)


def is_code(path: str) -> bool:
    """Return whether empty lines of a file have no meaning, by its name.

    In others, Markdown and YAML among them, an empty line may end a paragraph or belong to a text.
    """
    name = posixpath.basename(path).lower()
    return name in _CODE_FILES or posixpath.splitext(name)[1][1:] in _CODE


def fold_edited_lines(lines: Iterable[str], code: bool = True) -> str:
    """Return lines without trailing blanks; in code without empty lines.

    Elsewhere several empty lines become one, with none at the beginning or the end.
    """
    if code:
        return "\n".join([kept for line in lines if (kept := line.rstrip(" \t"))])
    stripped = [line.rstrip(" \t") for line in lines]
    kept = [line for place, line in enumerate(stripped) if line or (place and stripped[place - 1])]
    return "\n".join(kept).strip("\n")
