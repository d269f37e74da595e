"""Find copies of deleted functions that a repository still holds: old files, patches, archives, documents."""

import ast
import tarfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from tracemill.environments.feature_deletion.source_tree import Function
from tracemill.environments.parse_python import parse_python

_MOST_BYTES = 2_000_000
_LEAST_LINES, _LEAST_CHARACTERS = 2, 30
"""A shorter body is no copy where it stands again."""


class RemainingCopies:
    """The texts of a tree, in which bodies of functions are looked for."""

    def __init__(self, code: Path) -> None:
        """Read every file below a folder, and those in its archives."""
        self._code = code
        self._texts = {name: _plain(text) for name, text in _texts_of(code)}

    def find(self, functions: Sequence[Function], deleted: Path) -> str:
        """Return a file that holds the body of one of these functions; empty if none does.

        `deleted` is the tree without them.
        """
        files = {function.file for function in functions}
        left = {file: _plain((deleted / file).read_text("utf-8", "replace")) for file in files}
        bodies = [_body(self._code / function.file, function) for function in functions]
        for name, text in {**self._texts, **left}.items():
            if any(body and body in text for body in bodies):
                return name
        return ""


def _texts_of(code: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(each for each in code.rglob("*") if each.is_file()):
        name = path.relative_to(code).as_posix()
        with suppress(OSError, zipfile.BadZipFile, tarfile.TarError, EOFError, RuntimeError):
            if zipfile.is_zipfile(path):
                with zipfile.ZipFile(path) as archive:
                    for member in archive.infolist():
                        if member.file_size <= _MOST_BYTES:
                            yield f"{name}:{member.filename}", archive.read(member).decode("utf-8", "replace")
            elif ".tar" in path.suffixes or path.suffix == ".tgz":
                with tarfile.open(path) as archive:
                    for member in archive:
                        if member.isfile() and member.size <= _MOST_BYTES:
                            opened = archive.extractfile(member)
                            text = opened.read().decode("utf-8", "replace") if opened else ""
                            yield f"{name}:{member.name}", text
            elif path.stat().st_size <= _MOST_BYTES:
                text = path.read_text("utf-8", "replace")
                yield name, text.replace("\\n", "\n") if path.suffix == ".ipynb" else text


def _body(path: Path, function: Function) -> str:
    """Return the body of a function without its docstring, as `_plain` gives it; empty if it is short."""
    text = path.read_text("utf-8", "replace")
    first = function.body_line
    for node in ast.walk(parse_python(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno == function.last_line:
            has_name = node.name == function.name.rpartition(".")[2]
            if has_name and ast.get_docstring(node) is not None:
                first = (node.body[0].end_lineno or first) + 1
    body = _plain("\n".join(text.splitlines()[first - 1 : function.last_line]))
    is_long = body.count("\n") > _LEAST_LINES and len(body) >= _LEAST_CHARACTERS
    return body if is_long else ""


def _plain(text: str) -> str:
    """Return the lines of a text without indentation, comments, and what patches and notebooks add."""
    lines = (each.strip().lstrip("+->|").strip(' \t",') for each in text.splitlines())
    bare = (each.removesuffix("\\n").strip() for each in lines)
    return "\n" + "\n".join(each for each in bare if each and not each.startswith("#")) + "\n"
