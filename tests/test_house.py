"""The house: floors, names, sizes, and what the README and the commands promise of them."""

import ast
import json
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PACKAGES = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
SOURCES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


def test_every_package_is_imported_from_this_checkout() -> None:
    code = f"import importlib\nfor p in {PACKAGES!r}: print(importlib.import_module(p).__file__)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd="/")
    assert [Path(line).parent for line in out.stdout.split()] == [ROOT / name for name in PACKAGES]


def test_no_module_bears_the_name_of_a_package_a_dependency_or_a_standard_module() -> None:
    taken = set(PACKAGES) | set(sys.stdlib_module_names) | {"tests", "tools"}
    dependencies = {"datasets", "prefect", "openai", "pyarrow", "httpx", "tenacity", "torch", "trl", "pytest"}
    dependencies |= {"aiohttp", "fastapi", "jinja2", "orjson", "pydantic", "rich", "sqlalchemy", "typer"}
    assert dependencies - {"torch", "trl", "httpx"} <= set(packages_distributions())
    taken |= dependencies
    clashes = [str(p.relative_to(ROOT)) for p in SOURCES if p.stem in taken and p.stem != "__init__"]
    assert clashes == []


def test_every_init_is_a_docstring_and_nothing_else_but_the_public_face() -> None:
    for path in SOURCES:
        if path.name == "__init__.py" and path.parent.name != "tracemill":
            body = ast.parse(path.read_text()).body
            assert len(body) == 1, path
            assert isinstance(body[0], ast.Expr), path


def test_files_and_functions_keep_their_size() -> None:
    lengths = []
    for path in SOURCES:
        text = path.read_text()
        assert text.count("\n") <= 310, f"{path.name} has {text.count(chr(10))} lines"
        lengths += [
            (node.end_lineno or 0) - node.lineno + 1
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        ]
    lengths.sort()
    assert lengths[int(len(lengths) * 0.9)] <= 30
    assert lengths[-1] <= 60


def test_everything_public_has_a_docstring() -> None:
    bare = []
    for path in SOURCES:
        tree = ast.parse(path.read_text())
        if ast.get_docstring(tree) is None:
            bare.append(str(path.relative_to(ROOT)))
        for node in tree.body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and (
                not node.name.startswith("_") and ast.get_docstring(node) is None
            ):
                bare.append(f"{path.relative_to(ROOT)}:{node.lineno} {node.name}")
    assert bare == []


def test_the_readme_names_every_folder_of_the_house() -> None:
    readme = (ROOT / "README.md").read_text()
    assert [name for name in PACKAGES if f"`{name}/`" not in readme] == []


STARTS = """
import contextlib, io, json, sys, tracemill
from flows.cli import main

found, (lines, heavy) = {}, json.loads(sys.argv[1])
for line in lines:
    sys.argv = ["tracemill", *line]
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            main()
        except SystemExit as stop:
            assert not stop.code, line
    found[" ".join(line[:2])] = [name for name in heavy if name in sys.modules]
print(json.dumps(found))
"""


def test_what_needs_no_heavy_import_starts_without(tmp_path: Path) -> None:
    heavy = ["aiohttp", "data_juicer", "datasets", "huggingface_hub", "openai", "prefect", "sqlalchemy"]
    heavy += ["torch", "transformers", "trl"]
    sessions, work = ROOT / "examples" / "sessions" / "claude_code", str(tmp_path / "w")
    lines = [
        ["--help"],
        ["run", "--help"],
        ["train", "--help"],
        ["serve", "--help"],
        ["ingest", str(sessions), "--out", work],
        ["show", "--workspace", work],
        ["pairs", "--workspace", work],
        ["privacy", "diff", str(ROOT / "README.md")],
        ["privacy", "scan", str(ROOT / "LICENSE"), "--workspace", work],
        ["doctor", "--workspace", work],
    ]
    command = [sys.executable, "-c", STARTS, json.dumps([lines, heavy])]
    out = subprocess.run(command, capture_output=True, text=True, check=False)
    assert out.returncode == 0, out.stderr[-1000:]
    found = json.loads(out.stdout)
    assert len(found) == len(lines)
    assert {line: names for line, names in found.items() if names} == {}
