"""Read rows of SWE-bench, SWE-Gym and what is shaped like them: an issue, its patch, its tests."""

import json
import os
import subprocess
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

from tracemill.records.errors import EnvironmentTaskError

_TEXTS = ("instance_id", "repo", "base_commit", "patch", "test_patch", "problem_statement")
_NEEDED = (*_TEXTS, "FAIL_TO_PASS")


@dataclass(frozen=True)
class IssueRow:
    """A row: a commit of a repository, the patch that resolves an issue, and the tests that verify it."""

    instance_id: str
    repo: str
    base_commit: str
    patch: str
    test_patch: str
    problem_statement: str
    fail_to_pass: tuple[str, ...]
    pass_to_pass: tuple[str, ...]
    image: str = ""
    licence: str = "unknown"


def read_issue_rows(path: Path) -> Iterator[IssueRow]:
    """Yield the rows of a file: a JSON list, JSON lines, or Parquet.

    Raises EnvironmentTaskError, with the number of the row, where one lacks a field.
    """
    for number, row in enumerate(_rows(path), start=1):
        missing = [name for name in _NEEDED if not row.get(name)]
        if missing:
            raise EnvironmentTaskError(
                f"row {number} of {path} has no {', '.join(missing)}", f"a row with {', '.join(_NEEDED)}"
            )
        yield IssueRow(
            **{name: str(row[name]) for name in _TEXTS},
            fail_to_pass=_tests(row["FAIL_TO_PASS"], number, path),
            pass_to_pass=_tests(row.get("PASS_TO_PASS") or [], number, path),
            image=str(row.get("image_name") or row.get("docker_image") or ""),
            licence=str(row.get("license") or "unknown"),
        )


def _rows(path: Path) -> list[Mapping[str, Any]]:
    try:
        if path.suffix == ".parquet":
            import pyarrow.parquet

            return pyarrow.parquet.read_table(path).to_pylist()
        text = path.read_text(encoding="utf-8")
        found = json.loads(text) if text.lstrip().startswith("[") else [*map(json.loads, text.splitlines())]
    except (OSError, ValueError) as error:
        raise EnvironmentTaskError(
            f"{path} cannot be read ({type(error).__name__})", "a JSON list, JSON lines or Parquet"
        ) from None
    if not all(isinstance(row, dict) for row in found):
        raise EnvironmentTaskError(f"{path} has a value that is not a row", "JSON objects")
    return found


def _tests(value: Any, number: int, path: Path) -> tuple[str, ...]:
    """Parse the test names of a row: a list, or a JSON text of one."""
    try:
        found = json.loads(value) if isinstance(value, str) else value
        return tuple(str(each) for each in found)
    except (ValueError, TypeError):
        raise EnvironmentTaskError(
            f"row {number} of {path} names its tests in an unknown form", "a list, or the JSON text of one"
        ) from None


def check_out(checkout: Path, row: IssueRow, folder: Path, *patches: str) -> Path:
    """Write the files of a row's commit to a folder, apply patches to them, and return the folder.

    Raises EnvironmentTaskError if the checkout lacks the commit, or where a patch does not apply.
    """
    archive = _git("-C", checkout, "archive", "--format=tar", row.base_commit)
    if archive.returncode:
        raise EnvironmentTaskError(
            f"{checkout} has no commit {row.base_commit[:12]} of {row.repo}",
            "a git checkout that has it",
            f"git -C {checkout} fetch origin {row.base_commit}",
        )
    folder.mkdir(parents=True)
    with tarfile.open(fileobj=BytesIO(archive.stdout)) as tar:
        tar.extractall(folder, filter="data")
    for patch in patches:
        applied = _git("-C", folder, "apply", "--whitespace=nowarn", "-", stdin=patch.encode(), within=folder)
        if applied.returncode:
            said = applied.stderr.decode("utf-8", "replace").strip().splitlines() or [""]
            raise EnvironmentTaskError(
                f"a patch of {row.instance_id} does not apply ({said[0][:200]})", "the patch of that commit"
            )
    return folder


def _git(
    *arguments: object, stdin: bytes = b"", within: Path | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run git; with `within`, ignore repositories above that folder."""
    ceiling = {"GIT_CEILING_DIRECTORIES": str(within.parent)} if within else {}
    return subprocess.run(
        ["git", "-c", "safe.directory=*", *map(str, arguments)],
        input=stdin,
        capture_output=True,
        env={**os.environ, **ceiling},
        check=False,
    )
