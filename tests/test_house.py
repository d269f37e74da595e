"""The house: one import root, floors, docstrings, and what the README and the commands promise of them."""

import ast
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
LINKS = sorted(path for path in (ROOT / "tracemill").iterdir() if path.is_symlink())
PACKAGES = [path.name for path in LINKS if path.name != "configs"]
SOURCES = sorted(path for name in (*PACKAGES, "tracemill") for path in (ROOT / name).rglob("*.py"))


def test_every_top_level_package_is_a_link_below_the_import_root() -> None:
    real = sorted(path.parent.name for path in ROOT.glob("*/__init__.py") if path.parent.name != "tracemill")
    assert real == PACKAGES
    assert {str(path.readlink()) for path in LINKS} == {f"../{path.name}" for path in LINKS}


def test_every_package_is_imported_from_this_checkout_below_one_root() -> None:
    code = (
        f"import importlib\nfor p in {PACKAGES!r}: print(importlib.import_module('tracemill.' + p).__file__)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd="/")
    assert [Path(line).parent for line in out.stdout.split()] == [ROOT / "tracemill" / p for p in PACKAGES]


def test_every_package_is_checked_by_lint_types_and_contracts() -> None:
    tools = PROJECT["tool"]
    banned = tools["ruff"]["lint"]["flake8-tidy-imports"]["banned-api"]
    assert sorted(banned) == PACKAGES
    assert sorted(tools["pyright"]["include"]) == ["tracemill", *(f"tracemill/{p}" for p in PACKAGES)]
    contracts = tools["importlinter"]["contracts"]
    layered = {item["containers"][0] for item in contracts if item["type"] == "layers" and item["exhaustive"]}
    assert layered == {"tracemill", *(f"tracemill.{p}" for p in PACKAGES)}
    assert [item["ancestors"] for item in contracts if item["type"] == "acyclic_siblings"] == [["tracemill"]]


def test_a_checkout_without_links_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "tracemill").mkdir()
    (tmp_path / "tracemill" / "__init__.py").write_text((ROOT / "tracemill" / "__init__.py").read_text())
    (tmp_path / "tracemill" / "records").write_text("../records")  # what a link becomes on such a system
    command = [
        sys.executable,
        "-c",
        "import sys; sys.path.insert(0, sys.argv[1]); import tracemill",
        tmp_path,
    ]
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError: tracemill/ holds links")
    assert "install the wheel" in last


def test_every_init_is_a_docstring_and_nothing_else_but_the_public_face() -> None:
    for path in SOURCES:
        if path.name == "__init__.py" and path.parent.name != "tracemill":
            body = ast.parse(path.read_text()).body
            assert len(body) == 1, path
            assert isinstance(body[0], ast.Expr), path


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


def test_the_docstring_of_a_class_says_what_an_instance_is() -> None:
    clauses = (
        "What ",
        "How ",
        "Who ",
        "Whether ",
        "When ",
        "Which ",
        "Where ",
        "Why ",
        "Everything ",
        "Anything ",
    )
    assert [
        f"{path.relative_to(ROOT)}: {node.name}"
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef) and (ast.get_docstring(node) or "").startswith(clauses)
    ] == []


def test_a_public_class_name_exists_once() -> None:
    places: dict[str, list[str]] = {}
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


def test_the_architecture_page_says_what_every_folder_is() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    folders = {line.partition("/")[0] for line in tracked.splitlines() if "/" in line}
    told = {*PACKAGES, *re.findall(r"`(\w+)/`", page)}
    assert sorted(folder for folder in folders if not folder.startswith(".") and folder not in told) == []
    assert [name for name in PACKAGES if f"| `{name}` |" not in page] == []


STARTS = """
import contextlib, io, json, sys, tracemill
from tracemill.cli.main import main

found, (lines, heavy, packages) = {}, json.loads(sys.argv[1])
for line in lines:
    sys.argv = ["tracemill", *line]
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            main()
        except SystemExit as stop:
            assert not stop.code, line
    copies = [name for name in sys.modules if name.partition(".")[0] in packages]
    found[" ".join(line[:2])] = [name for name in heavy if name in sys.modules] + copies
print(json.dumps(found))
"""


def test_what_needs_no_heavy_import_starts_without(tmp_path: Path) -> None:
    heavy = ["aiohttp", "data_juicer", "datasets", "huggingface_hub", "openai", "prefect", "sqlalchemy"]
    heavy += ["torch", "transformers", "trl"]
    sessions, work = ROOT / "examples" / "sessions" / "claude_code", str(tmp_path / "w")
    lines = [
        ["--help"],
        ["--version"],
        ["run", "--help"],
        ["train", "--help"],
        ["schedule", "--help"],
        ["ingest", str(sessions), "--workspace", work],
        ["status", "--workspace", work],
        ["label", "--workspace", work],
        ["privacy", "diff", str(ROOT / "README.md")],
        ["privacy", "scan", str(ROOT / "LICENSE"), "--workspace", work],
        ["doctor", "--workspace", work],
    ]
    command = [sys.executable, "-c", STARTS, json.dumps([lines, heavy, PACKAGES])]
    out = subprocess.run(command, capture_output=True, text=True, check=False)
    assert out.returncode == 0, out.stderr[-1000:]
    found = json.loads(out.stdout)
    assert len(found) == len(lines)
    assert {line: names for line, names in found.items() if names} == {}


def test_tests_that_import_pytorch_are_slow() -> None:
    """The others run where the extra `train` is not installed."""
    needs = re.compile(
        r"^(?:import|from) (?:torch|transformers|trl|peft|accelerate|safetensors)\b"
        r"|^\w+ = pytest\.importorskip\(\"torch\"",
        re.MULTILINE,
    )
    slow = re.compile(r"^pytestmark = \[?\s*pytest\.mark\.slow\b", re.MULTILINE)
    texts = {path.name: path.read_text() for path in (ROOT / "tests").rglob("test_*.py")}
    needy = {name for name, text in texts.items() if needs.search(text)}
    assert len(needy) >= 8
    assert {name for name in needy if not slow.search(texts[name])} == set()
