"""Packages as an installer leaves them: modules beside a `.dist-info` that names their entry points."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

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
