"""The examples of CONTRIBUTING.md: their blocks are installed as a package and run as they stand there."""

import json
import os
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from installed_packages import install, make_environment
from plain_pairs import plain_pair
from training_releases import released, tiny_model

from tracemill.ingesters.registry import FORMATS
from tracemill.normalize.normalizer import DJNormalizer
from tracemill.records.errors import NormalizeError
from tracemill.records.message import Message

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
METADATA = "pyproject.toml"
FORMAT, OPERATOR = "Add a session format", "Add a normalisation operator"
TEACHER, METHOD = "Add a teacher", "Add a training method"
_BLOCK = re.compile(r'^```\w+ title="([^"]+)"\n(.*?)^```$', re.MULTILINE | re.DOTALL)
_CONSOLE = "from tracemill.cli.main import main; main()"


@cache
def sections() -> dict[str, str]:
    """The text of each section by its heading."""
    parts = re.split(r"^## (.+)\n", PAGE, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def blocks(headings: Iterable[str]) -> dict[str, str]:
    """The titled blocks of these sections by file name; a block whose name came before is added to it."""
    found: dict[str, str] = {}
    for heading in headings:
        for name, text in _BLOCK.findall(sections()[heading]):
            found[name] = f"{found[name]}\n{text}" if name in found else text
    return found


@dataclass(frozen=True)
class Example:
    """Sections of the page, carried out: their package is installed in an environment of its own, everything
    else lies in `folder`, where commands run."""

    folder: Path
    python: Path

    @classmethod
    def of(cls, *headings: str, folder: Path, installed: bool = True) -> "Example":
        """Carry out these sections in an empty folder; with `installed` unset the package is one more folder
        in it, which nothing names."""
        files = blocks(headings)
        project = tomllib.loads(files.pop(METADATA))["project"]
        package = {name: text for name, text in files.items() if name.startswith("my_agent/")}
        python, site = make_environment(folder / "environment")
        if installed:
            install(site, project["name"], package, project["entry-points"], project["version"])
        for name, text in files.items():
            if not (installed and name in package):
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_text(text, encoding="utf-8")
        return cls(folder, python)

    def tracemill(self, *arguments: str, **environment: str) -> dict[str, Any]:
        """What a command prints as JSON."""
        done = self.call("-c", _CONSOLE, *arguments, "--json", **environment)
        assert done.returncode == 0, done.stderr[-2000:]
        return json.loads(done.stdout)

    def call(self, *arguments: str, **environment: str) -> CompletedProcess[str]:
        """Run the Python of the environment in the folder."""
        env = os.environ | environment
        command = [str(self.python), *arguments]
        return subprocess.run(
            command, cwd=self.folder, env=env, capture_output=True, text=True, check=False, timeout=240
        )


def read_messages(example: Example, workspace: str) -> list[list[Any]]:
    """The messages that a workspace holds: role, text, calls by tool, whether it failed and why."""
    code = (
        "import json, sys\n"
        "from tracemill.records.storage.trace_rows import traces_from_table\n"
        "from tracemill.records.storage.workspace import Workspace\n"
        "work = Workspace.open(sys.argv[1], create=False)\n"
        "traces = [t for table in work.current('traces') for t in traces_from_table(table)]\n"
        "print(json.dumps([[m.role, m.content, [c.name for c in m.tool_calls], m.is_error, m.error_kind]\n"
        "                  for t in traces for c in t.contexts for m in c.messages]))"
    )
    done = example.call("-c", code, workspace)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def check_session(record: dict[str, Any]) -> None:
    """What `tracemill ingest` says of the session of the page."""
    [file] = record["files"]
    assert file["format"] == "my_agent"
    assert (file["traces"], file["contexts"], file["states"]) == (1, 1, 5)
    assert (file["tool_calls"], file["tool_errors"]) == (4, 2)
    assert file["records"] == {"assistant": 5, "tool": 4, "user": 1, "untyped": 1}
    assert (file["skipped"], file["flags"], file["error"]) == ({}, {}, None)


# ---------------------------------------------------------------- a session format


def test_the_format_of_a_package_reads_its_session(tmp_path: Path) -> None:
    example = Example.of(FORMAT, folder=tmp_path)
    check_session(example.tracemill("ingest", "sessions", "--workspace", "my-workspace"))
    messages = read_messages(example, "my-workspace")
    assert [role for role, *_ in messages] == ["user", *["assistant", "tool"] * 4, "assistant"]
    assert messages[0][1] == "`slug` in src/garden/slug.py drops digits. Keep them."
    assert [calls for role, _, calls, *_ in messages if role == "assistant"] == [
        *[["read_file"]] * 2,
        *[["edit_file"]] * 2,
        [],
    ]
    assert [rest for role, *_, failed, kind in messages if role == "tool" for rest in [[failed, kind]]] == [
        [True, "unknown"],
        [False, None],
        [True, "unknown"],
        [False, None],
    ]
    made = example.tracemill("label", "--workspace", "my-workspace")
    assert made["pairs"] == {"hindsight: read over read": 1, "hindsight: edit over edit": 1}


def test_lines_that_the_reader_does_not_know_are_counted(tmp_path: Path) -> None:
    example = Example.of(FORMAT, folder=tmp_path)
    session = tmp_path / "sessions" / "slug.jsonl"
    lines = session.read_text().splitlines()
    odd = ['{"who": "weather", "text": "rain"}', '{"who": "tool", "id": "9", "text": "late"}', "no json"]
    session.write_text("\n".join([*lines, *odd]))
    (tmp_path / "sessions" / "empty.jsonl").write_text(lines[0])
    record = example.tracemill("ingest", "sessions", "--workspace", "my-workspace")
    assert {Path(file["path"]).name: file["skipped"] for file in record["files"]} == {
        "empty.jsonl": {"session without a step": 1},
        "slug.jsonl": {"line of an unknown kind": 1, "result without its call": 1, "not json": 1},
    }
    assert (record["totals"]["traces"], record["totals"]["states"]) == (1, 5)


def test_the_same_format_in_this_repository_reads_it_too(tmp_path: Path) -> None:
    """The checkout is copied as far as the example changes it, the rest of it is links."""
    files = blocks([FORMAT])
    checkout = tmp_path / "checkout"
    shutil.copytree(ROOT / "ingesters", checkout / "ingesters", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "tracemill", checkout / "tracemill", symlinks=True)
    shutil.copy(ROOT / METADATA, checkout)
    for link in (ROOT / "tracemill").iterdir():
        if link.is_symlink() and link.name != "ingesters":
            (checkout / link.name).symlink_to(ROOT / link.name)
    for name, text in files.items():
        if name.startswith("my_agent/"):
            place = checkout / "ingesters" / name
            place.parent.mkdir(exist_ok=True)
            place.write_text(re.sub(r'(from |")my_agent\.', r"\1tracemill.ingesters.my_agent.", text))
    patch = subprocess.run(
        ["git", "apply", "-"], input=files["registry.diff"], cwd=checkout, text=True, capture_output=True
    )
    assert patch.returncode == 0, patch.stderr

    example = Example.of(FORMAT, folder=tmp_path / "alone", installed=False)
    environment = {"PYTHONPATH": str(checkout)}
    record = example.tracemill("ingest", "sessions", "--workspace", "my-workspace", **environment)
    check_session(record)
    names = "from tracemill.ingesters.registry import FORMATS; print(*FORMATS.names())"
    assert example.call("-c", names, **environment).stdout.split() == [*FORMATS.names(), "my_agent"]
    contracts = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    env = os.environ | environment
    done = subprocess.run(
        [str(example.python), "-c", contracts, "--no-cache"],
        cwd=checkout,
        env=env,
        text=True,
        capture_output=True,
    )
    assert done.returncode == 0, done.stdout[-2000:]
    assert "Layers of ingesters KEPT" in done.stdout
    assert re.search(r"Contracts: (\d+) kept, 0 broken", done.stdout)


# ---------------------------------------------------------------- a normalisation operator


@pytest.mark.slow
@pytest.mark.long
def test_the_operator_judges_each_side_in_a_whole_run(tmp_path: Path, prefect_server: dict[str, str]) -> None:
    example = Example.of(FORMAT, OPERATOR, folder=tmp_path)
    record = example.tracemill("run", "run.toml", **prefect_server)
    summary, release = record["summary"], record["release"]
    assert (summary["traces"], summary["states"]) == (2, 11)
    assert summary["pairs"] == {"hindsight: read over read": 1, "hindsight: edit over edit": 3}
    assert release["dropped"] == {
        "side_left_out_filter(chosen): left_out above 0": 1,
        "side_left_out_filter(rejected): left_out above 1": 1,
    }
    assert release["kept"] == {"hindsight: read over read": 1, "hindsight: edit over edit": 1}
    assert release["rows"] == 2
    manifest = tmp_path / "my-workspace" / "runs" / record["run_id"] / "normalize.json"
    counted = json.loads(manifest.read_text())["operators"][:2]
    assert [(each["operator"], each["rows_in"], each["dropped"], each["errors"]) for each in counted] == [
        ("side_left_out_filter(chosen)", 4, 1, 0),
        ("side_left_out_filter(rejected)", 3, 1, 0),
    ]


def test_a_recipe_names_the_file_of_an_operator_where_no_package_is_installed(tmp_path: Path) -> None:
    example = Example.of(FORMAT, OPERATOR, folder=tmp_path, installed=False)
    texts = ["def weigh(lots):\n    # ... as before\n    #...", "def weigh(lots):\n    return sum(lots)"]
    pairs = [plain_pair(at, chosen=(Message("assistant", text),)) for at, text in enumerate(texts)]
    made = DJNormalizer(example.folder / "recipe_by_path.yaml").normalize(pairs)
    assert made.recipe.startswith("recipe_by_path-")
    assert [(each.operator, each.rows_in, each.dropped, each.errors) for each in made.counts] == [
        ("side_left_out_filter(chosen)", 2, 1, 0)
    ]
    assert [(gone.pair, gone.reason, gone.value) for gone in made.dropped] == [
        (pairs[0], "left_out above 0", '{"chosen__left_out": 2}')
    ]
    with pytest.raises(NormalizeError, match="side_left_out_filter"):
        DJNormalizer(example.folder / "recipe.yaml").check()


# ---------------------------------------------------------------- a teacher, a training method


@pytest.mark.slow
@pytest.mark.long
def test_the_teacher_of_a_package_is_asked_and_votes(tmp_path: Path, prefect_server: dict[str, str]) -> None:
    example = Example.of(FORMAT, TEACHER, folder=tmp_path)
    record = example.tracemill("run", "teachers.toml", **prefect_server)
    summary = record["summary"]
    assert record["teachers"] == ["deepseek/reader", "qwen/reader", "z-ai/reader"]
    assert (summary["states"], summary["asked"], summary["calls"]) == (5, 11, 11)
    assert summary["verdicts"]["pair"] >= 1
    assert record["release"]["rows"] >= 1
    assert any(kind.startswith("teachers: read over ") for kind in record["release"]["kept"])


def test_the_training_method_of_a_package_is_known_by_its_options(tmp_path: Path) -> None:
    example = Example.of(FORMAT, METHOD, folder=tmp_path)
    code = (
        "import json, sys; from pathlib import Path\n"
        "from tracemill.flows.config.run_settings import load_settings\n"
        "told = load_settings(Path('ipo.toml'), {}).training\n"
        "print(json.dumps([told.method, told.beta, told.options, 'torch' in sys.modules]))"
    )
    done = example.call("-c", code)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == ["ipo", 0.2, {"label_smoothing": 0.1}, False]


@pytest.mark.slow
def test_the_training_method_of_a_package_trains(tmp_path: Path) -> None:
    example = Example.of(FORMAT, METHOD, folder=tmp_path)
    released(tmp_path / "w" / "releases")
    tiny_model(tmp_path / "tiny")
    record = example.tracemill("train", "ipo.toml", "--release", "views")
    assert (record["steps"], record["rows"]["train"]["used"]) == (2, 8)
    # (0 - 1 / (2 x 0.2)) squared, (1 - s) of it and s of its mirror image with s = 0.1, which are equal at 0
    assert record["first_loss"] == pytest.approx(6.25, abs=1e-2)


# ---------------------------------------------------------------- the page itself


@pytest.mark.parametrize("heading", [FORMAT, OPERATOR, TEACHER, METHOD])
def test_every_example_has_its_section(heading: str) -> None:
    assert sections()[heading].strip()


def test_every_place_that_the_page_names_is_there() -> None:
    prose = re.sub(r"^```.*?^```$", "", PAGE, flags=re.MULTILINE | re.DOTALL)
    named = set(re.findall(r"`((?:[\w.-]+/)+(?:[\w.-]+\.\w+)?)`", prose))
    new = {name for name in named if "my_agent" in name}
    assert len(named - new) >= 25
    assert [name for name in sorted(named - new) if not (ROOT / name).exists()] == []
