"""The documents name every command, option and key there is."""

import ast
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from typer.main import get_command

from tracemill.cli.grouped_help import SECTIONS as HELP_SECTIONS
from tracemill.cli.main import app
from tracemill.flows.config.run_settings import RunSettings, load_settings
from tracemill.ingesters.registry import dialects
from tracemill.records.version import __version__
from tracemill.teachers.core.teacher_settings import (
    CompatibleTeacherSettings,
    HandwrittenTeacherSettings,
    OpenRouterTeacherSettings,
    PriceSettings,
    RecordedTeacherSettings,
    SimulatedTeacherSettings,
)

ROOT = Path(__file__).resolve().parent.parent
APP = get_command(app)
COMMANDS_PAGE = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
SECTIONS = dict(
    re.findall(r"^## `tracemill ([a-z -]+)`\n(.*?)(?=^## |\Z)", COMMANDS_PAGE, re.MULTILINE | re.DOTALL)
)
SHARED = re.search(r"^## Shared options\n(.*?)(?=^## )", COMMANDS_PAGE, re.MULTILINE | re.DOTALL)
PAGE = 50
"""Lines of a terminal that the help of a command fits into, at 100 columns."""


def _commands(group: Any, above: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Every command that does something, with the words that call it."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, (*above, name))
        else:
            yield " ".join((*above, name)), command


COMMANDS = dict(_commands(APP))


def _options(command: Any) -> set[str]:
    long = {option for each in command.params for option in each.opts if option.startswith("--")}
    return long - {"--help"}


def _listed(text: str) -> set[str]:
    """The options in the first column of a table, and after `Shared options:`."""
    columns = re.findall(r"^\| ([^|]+) \|", text, re.MULTILINE)
    shared = re.findall(r"^Shared options: (.*?)\.$", text, re.MULTILINE | re.DOTALL)
    return set(re.findall(r"`(--[a-z-]+)`", " ".join((*columns, *shared))))


def test_the_commands_page_has_the_commands_that_there_are() -> None:
    assert len(COMMANDS) == 35
    assert SECTIONS.keys() == COMMANDS.keys()
    summary = COMMANDS_PAGE[: COMMANDS_PAGE.index("## Exit codes")]
    anchors = set(re.findall(r"\(#tracemill-([a-z-]+)\)", summary))
    assert anchors == {name.replace(" ", "-") for name in COMMANDS}


def test_the_help_has_every_command_under_one_heading() -> None:
    named = [name for lines in HELP_SECTIONS.values() for name in lines]
    assert sorted(named) == sorted(vars(APP)["commands"])
    with APP.make_context("tracemill", [], resilient_parsing=True, terminal_width=80) as context:
        text = APP.get_help(context)
    for lines in HELP_SECTIONS.values():
        for name, line in lines.items():
            assert re.search(rf"^  {name} +{re.escape(line)}$", text, re.MULTILINE), name


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_a_command_has_the_options_that_its_section_lists(name: str) -> None:
    section, command = SECTIONS[name], COMMANDS[name]
    assert _listed(section) == _options(command)
    assert SHARED is not None
    shared = re.findall(r"^Shared options: (.*?)\.$", section, re.MULTILINE | re.DOTALL)
    assert set(re.findall(r"`(--[a-z-]+)`", " ".join(shared))) <= _listed(SHARED[1])
    assert f"```\ntracemill {name}" in section
    assert f"```\n$ tracemill {name}" in section


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_a_command_and_its_options_have_help_that_fits_a_page(name: str) -> None:
    command = COMMANDS[name]
    assert all(getattr(each, "help", None) for each in command.params)
    with command.make_context(name, [], resilient_parsing=True, terminal_width=100) as context:
        text = command.get_help(context)
    assert len(text.splitlines()) <= PAGE
    first = command.help.split("\n")[0]
    assert re.match(r"[A-Z][a-z]+ .*\.$", first), first


def test_every_command_that_a_text_names_is_there() -> None:
    folders = [path.parent for path in ROOT.glob("*/__init__.py")]
    pages = [path for path in ROOT.glob("*.md") if path.name != "CHANGELOG.md"]
    pages += [path for folder in (*folders, ROOT / "benchmarks") for path in folder.rglob("*.py")]
    pages += [*ROOT.glob("docs/**/*.md"), *ROOT.glob("data_cards/**/*.jinja"), *ROOT.glob("configs/*.toml")]
    words = {tuple(name.split()[: at + 1]) for name in COMMANDS for at in range(2)}
    named = {
        (page.name, *(word for word in found if word))
        for page in pages
        for found in re.findall(
            r"(?:`|\$ |bin/|```\n)tracemill\s+([a-z][a-z-]*)(?: ([a-z][a-z-]*))?",
            page.read_text(encoding="utf-8"),
        )
    }
    groups = {name.split()[0] for name in COMMANDS if " " in name}
    gone = {each for each in named if each[1:2] not in words}
    gone |= {each for each in named if each[1] in groups and len(each) > 2 and each[1:3] not in words}
    assert gone == set()
    assert len(named) > 50


@pytest.mark.parametrize("path", sorted(ROOT.glob("configs/*.toml")), ids=lambda path: path.name)
def test_a_shipped_configuration_loads(path: Path) -> None:
    settings = load_settings(path, {})
    assert settings.asked_teachers()
    assert settings.cap_usd() is not None


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
    models = (
        RunSettings,
        OpenRouterTeacherSettings,
        CompatibleTeacherSettings,
        SimulatedTeacherSettings,
        PriceSettings,
    )
    models = (*models, RecordedTeacherSettings, HandwrittenTeacherSettings)
    keys = set().union(*map(_keys, models))
    assert len(keys) > 50
    named = set(re.findall(r"[a-z0-9_]+", text))
    assert keys - named == set()


def test_every_format_is_documented() -> None:
    text = (ROOT / "docs" / "sources.md").read_text()
    assert [name for name in dialects() if f"`{name}`" not in text] == []


def _anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    heads = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}


README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_readme_fits_its_page_and_its_commands_are_there() -> None:
    assert len(README.splitlines()) <= 150
    lines = re.findall(r"^\.venv/bin/tracemill (.*)$", README, re.MULTILINE)
    assert len(lines) >= 7
    for line in lines:
        words = shlex.split(line, comments=True)
        name = next(name for name in (" ".join(words[:2]), words[0]) if name in COMMANDS)
        assert {word for word in words if word.startswith("--")} <= _options(COMMANDS[name]), line
    targets = re.findall(r"^make (\w+)", README, re.MULTILINE)
    makefile = (ROOT / "Makefile").read_text()
    assert [name for name in (*targets, "demo", "teaching") if f"\n{name}:" not in makefile] == []


def test_links_between_documents_lead_somewhere() -> None:
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]:
        for target, anchor in re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", page.read_text()):
            there = page.parent / target if target else page
            assert there.exists(), f"{page.name}: {target}"
            if anchor and there.suffix == ".md":
                assert anchor in _anchors(there), f"{page.name}: {target}#{anchor}"


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
