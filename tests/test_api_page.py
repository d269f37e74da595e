"""docs/api.md is what the docstrings say, and leaves out no public name."""

import runpy
from itertools import zip_longest
from pathlib import Path

import tracemill

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "api_page.py"))


def test_the_page_is_current() -> None:
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8").splitlines()
    current = SCRIPT["api_page"]().splitlines()
    differ = [pair for pair in zip_longest(page, current) if pair[0] != pair[1]]
    assert differ[:1] == [], "run .venv/bin/python scripts/api_page.py"


def test_every_public_name_is_on_the_page_once_and_says_something() -> None:
    named = [name for names in SCRIPT["GROUPS"].values() for name in names]
    assert sorted(named) == sorted(tracemill.__all__)
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    entries = page.split("\n### ")[1:]
    assert [entry.split("`")[1] for entry in entries] == named
    silent = [entry.split("`")[1] for entry in entries if len(entry.split("```")[-1].split()) < 8]
    assert silent == []
