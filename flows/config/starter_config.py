"""A first run configuration, written from a few answers."""

import json
import os
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tracemill.flows.config.config_schema import SCHEMA_FILE, config_schema
from tracemill.flows.config.run_settings import load_settings
from tracemill.flows.config.shared_workspace import require_shared_ledger
from tracemill.ingesters.reading.remote_files import is_remote
from tracemill.records.errors import ConfigError
from tracemill.records.storage.atomic_files import write_atomically
from tracemill.records.storage.working_copy import is_url

SourceKey = Literal["claude_code", "codex", "openhands", "swe_gym", "paths"]
_TEACHERS = {
    "none": "Nobody is asked: nothing is sent and nothing is spent.",
    "open": "Four open-weight model families through OpenRouter; the key is read from OPENROUTER_API_KEY.",
    "frontier": "Four families through OpenRouter (OPENROUTER_API_KEY); terms of three restrict training.",
    "simulated": "No model answers: for trying things out. Such a release is not published.",
}


@dataclass(frozen=True, slots=True)
class StarterAnswers:
    """The answers for a first configuration.

    `sources` maps keys of `[sources]` to paths. `max_usd` is None if there are no teachers.
    """

    sources: dict[SourceKey, list[str]]
    preset: str = "none"
    max_usd: float | None = None
    accept_terms: bool = False
    hub: str | None = None
    workspace: str = "tracemill-workspace"


def starter_config(answers: StarterAnswers, folder: Path) -> str:
    """Return the TOML of a configuration in `folder`; relative paths start at the current folder.

    Raises ConfigError if a source does not exist, teachers have no cap, or a value is not valid.
    """
    text = "\n".join(_lines(answers, folder)) + "\n"
    require_shared_ledger(answers.workspace, None)
    load_settings(None, tomllib.loads(text) | {"workspace": "tracemill-workspace"}).cap_usd()
    return text


def write_starter_config(text: str, path: Path) -> Path:
    """Write a configuration and the JSON schema that it names, return the path of the schema."""
    schema = path.parent / SCHEMA_FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    for place, content in ((schema, json.dumps(config_schema(), indent=1) + "\n"), (path, text)):
        with write_atomically(place) as part:
            part.write_text(content, encoding="utf-8")
    return schema


def _lines(answers: StarterAnswers, folder: Path) -> list[str]:
    lines = [
        f"#:schema ./{SCHEMA_FILE}",
        "# A run of tracemill. Paths are relative to this file; docs/configuration.md has every key.",
        "",
        "# Tables, what was paid for, and releases. Keep it: the next run reads only what is new.",
        f"workspace = {_text(_path(answers.workspace, folder))}",
        "",
        "# Who is asked what they would have done: none, open, frontier or simulated.",
        f"# {_TEACHERS.get(answers.preset, '')}".rstrip(),
        f"preset = {_text(answers.preset)}",
    ]
    if answers.accept_terms:
        lines += ["# You have settled that training on these teachers' answers is allowed for your use."]
        lines += ["accept_terms = true"]
    lines += ["", "# Where sessions are: files and folders.", "[sources]"]
    for key, paths in answers.sources.items():
        lines.append(f"{key} = [{', '.join(_text(_source(path, folder)) for path in paths)}]")
    lines += ["# min_age_minutes = 15 # sessions that were added to since are left for the next run", ""]
    if answers.max_usd is None:
        lines += ["# Hard cap in USD; needed as soon as there are teachers.", "# [budget]"]
        lines += ["# max_total_usd = 10.0"]
    else:
        lines += ["# Hard caps in USD, on what is spent and reserved together.", "[budget]"]
        lines += [f"max_total_usd = {answers.max_usd!r} # for the run, over all its restarts"]
        lines += ["# max_day_usd = 20.0 # a day, over all runs of the workspace"]
    lines += ["", "# What is redacted beside the rules: texts, patterns (re:...) and values of .env files."]
    lines += ["# [privacy]", '# redact = ["project-name"]', '# env_files = [".env"]', "", "[release]"]
    lines += ['name = "traces"']
    if answers.hub is None:
        lines += ['# hub = "OWNER/NAME" # a dataset of the Hub that finished releases are pushed to']
    else:
        lines += ["# A dataset of the Hub that finished releases are pushed to; a new one is private."]
        lines += [f"hub = {_text(answers.hub)}"]
    return lines


def _source(given: str, folder: Path) -> str:
    if not is_remote(given) and not Path(given).expanduser().exists():
        raise ConfigError(f"{given} is not there", "a file or folder of sessions")
    return _path(given, folder)


def _path(given: str, folder: Path) -> str:
    """Return a path relative to `folder`; absolute paths, `~` and URLs stay as given."""
    if is_remote(given) or is_url(given) or given.startswith("~") or Path(given).is_absolute():
        return given
    return os.path.relpath(given, folder)


def _text(value: str) -> str:
    """Return a string as TOML; JSON strings are valid TOML."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
