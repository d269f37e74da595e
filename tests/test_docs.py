"""The documents name every command, option and key there is."""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel
from typer.main import get_command

from tracemill.cli.main import app
from tracemill.flows.config.run_settings import RunSettings
from tracemill.ingesters.registry import dialects
from tracemill.records.version import __version__
from tracemill.teachers.core.teacher_settings import (
    CompatibleSettings,
    OpenRouterSettings,
    PriceSettings,
    RecordedSettings,
    SimulatedSettings,
)

ROOT = Path(__file__).resolve().parent.parent
COMMANDS = get_command(app).commands  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_and_option_is_documented_and_has_help(name: str) -> None:
    text = (ROOT / "docs" / "commands.md").read_text()
    command = COMMANDS[name]
    assert f"`tracemill {name}" in text
    assert command.help
    for parameter in command.params:
        options = [o for o in getattr(parameter, "opts", []) if o.startswith("--") and o != "--help"]
        assert all(f"`{option}`" in text for option in options), options
        assert getattr(parameter, "help", None), parameter.name


def _keys(model: type[BaseModel]) -> set[str]:
    found: set[str] = set()
    for name, field in model.model_fields.items():
        found.add(name)
        kinds = [field.annotation, *getattr(field.annotation, "__args__", ())]
        for kind in kinds:
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                found |= _keys(kind)
    return found


def test_every_key_of_the_configuration_is_documented() -> None:
    text = (ROOT / "docs" / "configuration.md").read_text()
    models = (RunSettings, OpenRouterSettings, CompatibleSettings, SimulatedSettings, PriceSettings)
    models = (*models, RecordedSettings)
    keys = set().union(*map(_keys, models))
    assert len(keys) > 50
    named = set(re.findall(r"[a-z0-9_]+", text))
    assert keys - named == set()


def test_every_format_is_documented() -> None:
    text = (ROOT / "docs" / "sources.md").read_text()
    assert [name for name in dialects() if f"`{name}`" not in text] == []


def test_links_between_documents_lead_somewhere() -> None:
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_every_benchmark_that_a_page_names_is_there() -> None:
    pages = {path: path.read_text() for path in (ROOT / "benchmarks" / "README.md", *ROOT.glob("docs/*.md"))}
    named = {name for text in pages.values() for name in re.findall(r"benchmarks/(\w+\.py)", text)}
    headed = set(re.findall(r"^## `(\w+\.py)`", pages[ROOT / "benchmarks" / "README.md"], re.MULTILINE))
    there = {path.name for path in (ROOT / "benchmarks").glob("*.py")}
    assert named
    assert headed
    assert named | headed <= there, (named | headed) - there


def test_the_changelog_names_the_version() -> None:
    assert f"## {__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_every_column_of_a_pair_and_of_an_action_is_said() -> None:
    from tracemill.data_cards.model.columns import column_features

    told = (ROOT / "docs" / "views.md").read_text(encoding="utf-8")
    for config in ("dpo", "sft"):
        assert [name for name in column_features(config) if f"`{name}`" not in told] == []


# ---------------------------------------------------------------- the page on the architecture

ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
WORKSPACE = {"traces/", "decisions/", "decisions/gate/", "replies/", "votes/", "pairs/", "splits/"}


def _names(tree: ast.Module) -> Iterator[str]:
    """What a module defines at its top, methods as `Class.method`."""
    for node in tree.body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield node.name
            case ast.ClassDef():
                yield node.name
                yield from (f"{node.name}.{each}" for each in _names(ast.Module(node.body, [])))
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                yield name


def test_every_place_on_the_architecture_page_is_there() -> None:
    places = set(re.findall(r"`([\w/]+\.py):([\w.]+)`", ARCHITECTURE))
    assert len(places) >= 60
    files = {file: set(_names(ast.parse((ROOT / file).read_text()))) for file, _ in places}
    assert sorted(f"{file}:{name}" for file, name in places if name not in files[file]) == []
    paths = set(re.findall(r"`((?:[\w.-]+/)+(?:[\w.-]+\.\w+)?)`", ARCHITECTURE)) - WORKSPACE
    assert [path for path in sorted(paths) if not (ROOT / path).exists()] == []


def test_the_architecture_page_has_the_steps_in_order_and_every_package() -> None:
    steps = [int(number) for number in re.findall(r"^(\d+)\. \*\*", ARCHITECTURE, re.MULTILINE)]
    assert steps == list(range(1, len(steps) + 1))
    assert 10 <= len(steps) <= 15
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    [floors] = [each["layers"] for each in contracts if each.get("containers") == ["tracemill"]]
    packages = [{*floor.split(" | ")} for floor in reversed(floors)]
    table = re.findall(r"^\| `(\w+)` \| [^|]+ → ", ARCHITECTURE, re.MULTILINE)
    floor_of = {name: at for at, floor in enumerate(packages) for name in floor}
    assert {*table} == floor_of.keys() - {"cli", "flows", "records"}
    assert [floor_of[name] for name in table] == sorted(floor_of[name] for name in table)
    drawn = re.findall(r"```mermaid\n(.*?)```", ARCHITECTURE, re.DOTALL)
    assert len(drawn) == 2
    assert [name for name in floor_of if not re.search(rf"\b{name}\b", drawn[1])] == []


def test_every_version_and_registry_is_on_the_architecture_page() -> None:
    folders = [path.parent for path in ROOT.glob("*/__init__.py")]
    code = [path.read_text() for folder in folders for path in folder.rglob("*.py")]
    groups = {group for text in code for group in re.findall(r'Registry\(\s*"[^"]+",\s*"([\w.]+)"', text)}
    assert "tracemill.ingesters" in groups
    assert [group for group in sorted(groups) if f"`{group}`" not in ARCHITECTURE] == []
    versions = {name for text in code for name in re.findall(r"^([A-Z]+_VERSION) = \d+$", text, re.MULTILINE)}
    assert len(versions) >= 6
    assert [name for name in sorted(versions) if f":{name}`" not in ARCHITECTURE] == []
