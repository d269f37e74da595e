"""Parse edit calls into changes of a text."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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
_BLOCK = re.compile(
    r"^(?:<{5,}|-{5,}) SEARCH>?\n(?:(?::\w+:[^\n]*\n)*-{5,}\n)?(.*?)^={5,}\n(.*?)^(?:>{5,}|\+{5,}) REPLACE",
    re.DOTALL | re.MULTILINE,
)
"""A block of a diff that names a text to find and the text to put there."""


@dataclass(frozen=True, slots=True)
class TextChange:
    """One change of a text.

    `old` is replaced by `new`, at every occurrence if `every`. If `first` is set, lines `first` to `last`
    are replaced by `new`; with `last` before `first`, `new` is inserted before line `first`.
    """

    old: str
    new: str
    every: bool = False
    first: int | None = None
    last: int | None = None


def parse_edit_changes(arguments: Mapping[str, Any]) -> tuple[TextChange, ...] | None:
    """Return the changes an editing call asks for, None if its arguments do not specify them."""
    edits = arguments.get("edits")
    if isinstance(edits, list):
        found = [parse_edit_changes(edit) for edit in edits if isinstance(edit, Mapping)]
        return tuple(c for changes in found if changes for c in changes) if all(found) and found else None
    for old, new in _REPLACED:
        if isinstance(arguments.get(old), str):
            every = any(str(arguments.get(name)).lower() == "true" for name in _EVERY)
            every = every or arguments.get("expected_replacements") not in (None, 1)
            return (TextChange(arguments[old], str(arguments.get(new) or ""), every),)
    if isinstance(diff := arguments.get("diff"), str) and (blocks := _BLOCK.findall(diff)):
        return tuple(TextChange(old.removesuffix("\n"), new.removesuffix("\n")) for old, new in blocks)
    return _by_lines(arguments)


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
