"""A row as SWE-bench and SWE-Gym have them, and the git repository that it is of."""

import json
import subprocess
from pathlib import Path
from typing import Any

BEFORE = '''\
def parse(text):
    """Return the seconds of a text such as `2m`."""
    number, unit = text[:-1], text[-1]
    return int(number) * {"s": 1, "m": 60}[unit]


def show(seconds):
    """Return seconds as text."""
    return f"{seconds}s"
'''
AFTER = BEFORE.replace('{"s": 1, "m": 60}', '{"s": 1, "m": 60, "h": 3600}').replace(
    'f"{seconds}s"', 'f"{seconds // 3600}h" if seconds % 3600 == 0 else f"{seconds}s"'
)
TESTS = """\
import pytest

from spans import parse, show


@pytest.mark.parametrize(("text", "seconds"), [("5s", 5), ("2m", 120)])
def test_parse(text, seconds):
    assert parse(text) == seconds


def test_show():
    assert show(7) == "7s"
"""
NEW_TESTS = """

@pytest.mark.parametrize(("text", "seconds"), [("1h", 3600), ("3h", 10800)])
def test_hours(text, seconds):
    assert parse(text) == seconds


def test_hours_are_shown():
    assert show(7200) == "2h"
"""


def git(folder: Path, *arguments: str) -> str:
    """Run git in a folder."""
    command = ["git", "-c", "user.name=dev", "-c", "user.email=dev@example.org", *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


def patch_of(folder: Path, file: str, text: str) -> str:
    """The patch that gives a file another text."""
    before = (folder / file).read_text()
    (folder / file).write_text(text)
    made = git(folder, "diff")
    (folder / file).write_text(before)
    return made


def write_checkout(folder: Path) -> Path:
    """Write a repository of one commit."""
    (folder / "tests").mkdir(parents=True)
    (folder / "spans.py").write_text(BEFORE)
    (folder / "tests" / "test_spans.py").write_text(TESTS)
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "Begin")
    return folder


def row_of(checkout: Path, **changed: Any) -> dict[str, Any]:
    """A row that asks for hours."""
    file = "tests/test_spans.py"
    return {
        "instance_id": "dev__spans-7",
        "repo": "dev/spans",
        "base_commit": git(checkout, "rev-parse", "HEAD").strip(),
        "patch": patch_of(checkout, "spans.py", AFTER),
        "test_patch": patch_of(checkout, file, TESTS + NEW_TESTS),
        "problem_statement": "`parse` does not know hours, and `show` does not write them.",
        "FAIL_TO_PASS": json.dumps([f"{file}::test_hours[1h-3600]", f"{file}::test_hours_are_shown"]),
        "PASS_TO_PASS": [f"{file}::test_parse[5s-5]", f"{file}::test_show"],
        **changed,
    }


def written(folder: Path, *rows: dict[str, Any]) -> Path:
    """A file of rows."""
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path
