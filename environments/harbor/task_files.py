"""Write the files of a task that Harbor reads: task.toml, instruction.md, Dockerfile, test.sh, solve.sh."""

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_VERDICT = Path(__file__).parent.parent / "verdict"
_COPIED = (
    *(_VERDICT / name for name in ("decide.py", "mix_tests.py", "run_pytest.py", "record_values.py")),
    Path(__file__).with_name("verify.py"),
)

DOCKERFILE = """\
FROM python:{python}-slim
RUN pip install --no-cache-dir {packages}
COPY repository /repository
RUN chmod -R a+rX /repository
WORKDIR /repository
"""
DOCKERFILE_OF_IMAGE = """\
FROM {image}
RUN python -m pip install --no-cache-dir pytest && rm -rf {hidden}
COPY repository /repository
RUN chmod -R a+rX /repository
WORKDIR /repository
"""
IN_IMAGE = "/testbed"
"""Where images of SWE-bench and SWE-Gym hold the repository, with its history."""
TEST_SH = """\
#!/bin/sh
# Writes the reward to /logs/verifier/reward.txt.
cd /tmp && exec python3 -I /tests/verify.py
"""
SOLVE_SH = """\
#!/bin/sh
# Puts the original files back.
cp -R "$(dirname "$0")/files/." /repository/
"""


def write_harbor_files(
    folder: Path, name: str, instruction: str, about: Mapping[str, Any], exam: Mapping[str, Any]
) -> None:
    """Write the files that Harbor needs beside the folders of a task."""
    origin = about["origin"]
    dockerfile = DOCKERFILE.format(python="3.11", packages=" ".join(exam["packages"]))
    if about["image"]:
        dockerfile = DOCKERFILE_OF_IMAGE.format(image=about["image"], hidden=IN_IMAGE)
    (folder / "environment" / "Dockerfile").write_text(dockerfile, encoding="utf-8")
    (folder / "instruction.md").write_text(instruction + "\n", encoding="utf-8")
    for file in _COPIED:
        shutil.copyfile(file, folder / "tests" / file.name)
    for path, text in ((folder / "tests" / "test.sh", TEST_SH), (folder / "solution" / "solve.sh", SOLVE_SH)):
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)
    settings = {
        "schema_version": "1.1",
        "task": {
            "name": f"tracemill/{name}",
            "description": f"Rebuild what was deleted from {origin['name']} {origin['version']}".strip(),
            "keywords": ["feature-deletion", "python"],
        },
        "metadata": {"category": "programming", "licence": origin["licence"], "tracemill": about},
        "verifier": {"timeout_sec": max(360.0, 120 * exam["seconds"])},
        "agent": {"timeout_sec": 1800.0},
        "environment": {
            "build_timeout_sec": 600.0,
            "cpus": 1,
            "memory_mb": 2048,
            "storage_mb": 10240,
            "allow_internet": False,
        },
    }
    write_settings(folder / "task.toml", settings)


def write_settings(path: Path, settings: Mapping[str, Any]) -> None:
    """Write task.toml atomically."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.write_text(_toml(settings), encoding="utf-8")
    partial.replace(path)


def _toml(values: Mapping[str, Any], within: str = "") -> str:
    """Return values as TOML: plain values first, then tables."""
    plain = {key: value for key, value in values.items() if not isinstance(value, Mapping)}
    tables = {key: value for key, value in values.items() if isinstance(value, Mapping)}
    lines = [f"[{within}]"] if within and plain else []
    # JSON's strings, numbers, booleans and lists of them are TOML's too where nothing is escaped as a pair
    lines += [f"{_key(key)} = {json.dumps(value, ensure_ascii=False)}" for key, value in plain.items()]
    parts = ["\n".join(lines)] if lines else []
    parts += [
        _toml(value, f"{within}.{_key(key)}" if within else _key(key)).rstrip("\n")
        for key, value in tables.items()
    ]
    return "\n\n".join(parts) + "\n"


def _key(name: str) -> str:
    """Return a TOML key, quoted if necessary."""
    bare = name.replace("_", "").replace("-", "")
    return name if bare.isascii() and bare.isalnum() else json.dumps(name, ensure_ascii=False)
