"""Parse Python in threads."""

import ast
from threading import Lock

PARSING = Lock()
"""Held while a module is parsed: Python 3.11 counts the depth of a tree for all threads together."""


def parse_python(text: str) -> ast.Module:
    """Return the tree of a module. Raises what `ast.parse` raises."""
    with PARSING:
        return ast.parse(text)
