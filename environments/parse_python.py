"""Parse Python in threads."""

import ast
from threading import Lock

_ALONE = Lock()
"""Python 3.11 counts the depth of the tree that is built for all threads together."""


def parse_python(text: str | bytes) -> ast.Module:
    """Return the tree of a module. Raises what `ast.parse` raises."""
    with _ALONE:
        return ast.parse(text)
