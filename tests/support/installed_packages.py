"""Packages as an installer leaves them: modules beside a `.dist-info` that names their entry points."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from subprocess import CompletedProcess

SCRIPT = Path(sys.executable).parent / "tracemill"

Groups = Mapping[str, Mapping[str, str]]
"""Entry points: `module:attribute` by group and name."""


def install(site: Path, name: str, files: Mapping[str, str], groups: Groups, version: str = "1.0") -> None:
    """Write the files of a package, by path, and its metadata into a folder of packages."""
    for path, text in files.items():
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        (site / path).write_text(text, encoding="utf-8")
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    lines = [
        line
        for group, points in groups.items()
        for line in (f"[{group}]", *(f"{key} = {value}" for key, value in points.items()), "")
    ]
    (info / "entry_points.txt").write_text("\n".join(lines))


def install_module(site: Path, name: str, module: str, groups: Groups) -> Path:
    """Install a package of one module; give the folder of packages."""
    install(site, name, {f"{name}.py": module}, groups)
    return site


def called_with(packages: Path, *arguments: object, **environment: str) -> CompletedProcess[str]:
    """Call the console script in a process of its own that has these packages installed."""
    env = dict(os.environ) | {"PYTHONPATH": str(packages)} | environment
    command = [str(SCRIPT), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env=env, timeout=240, check=False)


def refusal_with(packages: Path, *arguments: object) -> str:
    """Return the one line that a call is refused with."""
    done = called_with(packages, *arguments)
    assert done.returncode == 2, done.stderr[-2000:]
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


def make_environment(home: Path) -> tuple[Path, Path]:
    """Make a virtual environment with what this one has; give its Python and its folder of packages."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(home)], check=True)
    [site] = home.glob("lib/*/site-packages")
    checkout = Path(__file__).resolve().parents[2]
    there = [str(checkout), *(path for path in sys.path if Path(path).name == "site-packages")]
    (site / "this_environment.pth").write_text("\n".join(there) + "\n")
    return home / "bin" / "python", site


def jsonl(*records: object) -> str:
    """Write records as JSON Lines."""
    return "".join(f"{json.dumps(record)}\n" for record in records)
