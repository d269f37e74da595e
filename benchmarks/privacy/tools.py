"""The tools that are measured: ours in this process, the others each in an environment of its own."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tracemill.privacy.redaction.redactor import RULES_VERSION, Redactor

PACKAGES = {
    "dataclaw": "dataclaw",
    "teich": "teich",
    "detect-secrets": "detect-secrets",
    "kingfisher": "kingfisher-bin",
}
"""Other tools, and the packages they are in."""
_DRIVERS = Path(__file__).resolve().parent / "drivers.py"


@dataclass(frozen=True, slots=True)
class Ran:
    """The result of a tool for each text, and its time, in seconds of one core."""

    texts: list[str]
    seconds: float


Run = Callable[[Sequence[str], Sequence[bool]], Ran]


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that runs, or the reason why it does not."""

    name: str
    version: str
    run: Run | None
    problem: str = ""


def ours() -> Tool:
    """Our redactor, without any known value: what it finds, it finds by its rules."""

    def run(texts: Sequence[str], decode: Sequence[bool]) -> Ran:
        redactor = Redactor(key=b"benchmark")
        redactor.redact_text("x")
        started = time.process_time()
        done = [redactor.redact_text(text)[0] for text in texts]
        return Ran(done, time.process_time() - started)

    return Tool("tracemill", f"rules {RULES_VERSION}", run)


def others(folder: Path) -> list[Tool]:
    """Return the other tools, installed below `folder` if needed; a failed one has the reason."""
    return [_other(folder / name, name, package) for name, package in PACKAGES.items()]


def _other(home: Path, name: str, package: str) -> Tool:
    python = home / "bin" / "python"
    if not python.exists():
        made = subprocess.run([sys.executable, "-m", "venv", str(home)], capture_output=True, check=False)
        if made.returncode:
            return Tool(name, "", None, f"no environment can be made in {home}")
    wanted = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", package]
    done = subprocess.run(wanted, capture_output=True, text=True, check=False)
    shown = subprocess.run(
        [str(python), "-m", "pip", "show", package], capture_output=True, text=True, check=False
    )
    version = next((ln.split()[1] for ln in shown.stdout.splitlines() if ln.startswith("Version:")), "")
    if not version:
        return Tool(name, "", None, (done.stderr.strip().splitlines() or ["not installable"])[-1][:200])

    def run(texts: Sequence[str], decode: Sequence[bool]) -> Ran:
        lines = "\n".join(json.dumps({"text": t, "decode": d}) for t, d in zip(texts, decode, strict=True))
        command = [str(python), str(_DRIVERS), name]
        ran = subprocess.run(command, input=lines, capture_output=True, text=True, check=False)
        if ran.returncode:
            raise RuntimeError((ran.stderr.strip().splitlines() or ["no message"])[-1])
        *out, last = ran.stdout.splitlines()
        return Ran([json.loads(line) for line in out], json.loads(last)["seconds"])

    return Tool(name, version, run)
