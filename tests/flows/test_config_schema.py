"""The JSON schema of configurations: what it takes and refuses, and that it keeps up with the models."""

import re
import tomllib
from datetime import date
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tracemill.flows.config.config_schema import config_schema

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
SCHEMA = config_schema()
CHECKED = jsonschema.Draft202012Validator(SCHEMA)


def faults(text: str) -> list[str]:
    return [error.message for error in CHECKED.iter_errors(_days_as_text(tomllib.loads(text)))]


def _days_as_text(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _days_as_text(each) for key, each in value.items()}
    return value.isoformat() if isinstance(value, date) else value


def table_at(name: str) -> dict[str, Any]:
    """The properties of a table: "" is the top, `[[teachers]]` all keys of all types."""
    if name == "[[teachers]]":
        kinds = [part for key, part in SCHEMA["$defs"].items() if key.endswith("-teacher")]
        return {key: value for kind in kinds for key, value in kind["properties"].items()}
    found = SCHEMA
    for part in name.strip("[]").split(".") if name else ():
        found = SCHEMA["$defs"][found["properties"][part]["$ref"].rpartition("/")[2]]
    return found["properties"]


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert len(SCHEMA["$defs"]) > 20
    references = set(re.findall(r"'\$ref': '#/\$defs/([^']+)'", str(SCHEMA)))
    assert references <= SCHEMA["$defs"].keys()


@pytest.mark.parametrize("path", sorted(ROOT.glob("configs/*.toml")), ids=lambda path: path.name)
def test_every_shipped_configuration_is_valid(path: Path) -> None:
    assert faults(path.read_text()) == []


def test_every_example_of_the_pages_is_valid() -> None:
    texts = [
        (page.name, text)
        for page in sorted((ROOT / "docs").glob("*.md"))
        for text in re.findall(r"^```toml\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
        if not text.startswith("[project.")
    ]
    assert len(texts) >= 8
    assert [(name, found) for name, text in texts if (found := faults(text))] == []


def test_every_key_of_the_page_is_in_the_schema_and_the_other_way_round() -> None:
    sections = re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    checked = 0
    for heading, text in sections:
        name = "" if heading == "Top level" else heading.strip("`")
        if name and not name.startswith("["):
            continue
        keys = {
            key for first in re.findall(r"^\| (`[a-z].*?) \|", text, re.MULTILINE) for key in _names(first)
        }
        if name == "[judge]":
            continue
        properties = table_at(name)
        undocumented = {key for key in properties if not re.search(rf"[`\[.]{key}[`\].]", PAGE)}
        assert undocumented == set(), name
        values = {each for value in properties.values() for each in value.get("enum", ())}
        kinds = {part.removesuffix("-teacher") for part in SCHEMA["$defs"] if part.endswith("-teacher")}
        assert keys - properties.keys() - values - kinds == set(), name
        checked += len(keys & properties.keys())
    assert checked > 90


def _names(cell: str) -> list[str]:
    return re.findall(r"`([a-z_0-9]+)`", cell)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("teechers = []", "'teechers' was unexpected"),
        ("[budget]\nmax_total_usd = 1\nmax_usd = 2", "'max_usd' was unexpected"),
        ("[release.drift]\nagrement = 0.1", "'agrement' was unexpected"),
        ("preset = 'opan'", "'opan' is not one of"),
        ("[budget]\nmax_day_usd = 1", "'max_total_usd' is a required property"),
        ("[[teachers]]\ntype = 'simulated'\nmodel = 'a/b'\nprovider = 'x'", "is not valid under any"),
        ("[[teachers]]\ntype = 'nobody'\nmodel = 'a/b'", "is not valid under any"),
        ("[gate]\nshare = 2", "2 is greater than the maximum of 1"),
    ],
)
def test_a_wrong_configuration_is_refused(text: str, said: str) -> None:
    found = faults(text)
    assert len(found) == 1
    assert said in found[0]


def test_a_teacher_of_each_type_and_every_way_to_write_a_day_is_valid() -> None:
    assert faults("[select]\nsince = 2026-05-01\nuntil = '2026-06-01'") == []
    teachers = ("openrouter", "openai_compatible", "simulated", "recorded")
    more = {"openai_compatible": "base_url = 'http://127.0.0.1:1/v1'", "recorded": "path = 'table.jsonl'"}
    for name in teachers:
        assert faults(f"[[teachers]]\ntype = '{name}'\nmodel = 'a/b'\n{more.get(name, '')}") == []


def test_keys_say_what_they_mean() -> None:
    release = table_at("[release]")
    assert release["min_new_pairs"]["description"].startswith("New pairs that a run waits for")
    assert SCHEMA["properties"]["budget"]["description"].startswith("Hard caps in USD")
    assert table_at("[[teachers]]")["model"]["description"].startswith("pinned model id")
    said = [key for part in SCHEMA["$defs"].values() for key in part.get("properties", {}).values()]
    assert sum("description" in key for key in said) > 0.85 * len(said)
