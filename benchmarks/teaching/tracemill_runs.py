"""`tracemill run` and `tracemill train`, as a user starts them."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.teaching.policies import REGIMES
from benchmarks.teaching.teacher_server import PRICES, teacher_server
from benchmarks.teaching.worlds.world import World

CAP_USD = 50.0
FAMILIES = ("deepseek", "qwen", "glm")
"""The teachers are of three families, none of them the student's."""


class CommandFailed(Exception):
    """A command of tracemill ended with another exit code than 0."""


def make_release(
    world: World, sessions: Path, regime: str, folder: Path, more: Mapping[str, Any] | None = None
) -> Path:
    """Run `tracemill run` on the sessions with the teachers of a regime, and return the release.

    Settings are the product's defaults except for `more` (lines of TOML by table).
    """
    folder.mkdir(parents=True, exist_ok=True)
    done = folder / "release.json"
    if done.exists():
        return Path(json.loads(done.read_text())["path"])
    with teacher_server(world, regime) as url:
        config = folder / "run.toml"
        config.write_text(_config(sessions, folder / "workspace", regime, url, more or {}), encoding="utf-8")
        output = tracemill("run", str(config), "--yes", "--json")
    record = json.loads(output)
    path = record["release"]["path"]
    if path is None:
        raise CommandFailed(f"no release: {record['release'].get('note')}")
    done.write_text(json.dumps({"path": path, "record": record}, indent=1), encoding="utf-8")
    return Path(path)


def _config(sessions: Path, workspace: Path, regime: str, url: str, more: Mapping[str, Any]) -> str:
    outcomes = sessions.parent / f"{sessions.name}-outcomes.jsonl"
    tables: dict[str, list[str]] = {
        "sources": [f"paths = ['{sessions}']", "min_age_minutes = 0"],
        "budget": [f"max_total_usd = {CAP_USD}"],
        "release": ["name = 'teaching'"],
    }
    if outcomes.exists():
        tables["release"].append(f"outcomes = '{outcomes}'")
    for table, lines in more.items():
        tables.setdefault(table, []).extend(lines)
    text = [f"workspace = '{workspace}'"]
    for table, lines in tables.items():
        text += [f"[{table}]", *lines]
    prices = ", ".join(f"{key} = {value}" for key, value in PRICES.items())
    for teacher, family in zip(REGIMES[regime], FAMILIES, strict=True):
        text += [
            "[[teachers]]",
            "type = 'openai_compatible'",
            f"model = '{teacher.name}'",
            f"family = '{family}'",
            f"base_url = '{url}'",
            "local = true",
            "max_tokens = 256",
            f"prices = {{ {prices} }}",
        ]
    return "\n".join(text) + "\n"


def train(release: Path, model: Path, output: Path, settings: Mapping[str, Any]) -> Path:
    """Return the checkpoint that `tracemill train` makes of a release."""
    config = output.parent / f"{output.name}.toml"
    lines = [f"model = '{model}'", f"output = '{output}'"]
    lines += [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(f"workspace = '{output}-workspace'\n[training]\n" + "\n".join(lines) + "\n")
    tracemill("train", str(config), "--release", str(release))
    [report] = output.rglob("training.json")
    return report.parent


def tracemill(*arguments: str) -> str:
    """Return what a command writes to stdout. Raises CommandFailed with the last lines of stderr."""
    command = [str(Path(sys.executable).parent / "tracemill"), *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "TRANSFORMERS_VERBOSITY": "error"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        last: Sequence[str] = done.stderr.strip().splitlines()[-3:]
        raise CommandFailed(f"tracemill {arguments[0]} ended with {done.returncode}: {' | '.join(last)}")
    return done.stdout
