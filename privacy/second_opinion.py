"""Kingfisher as a second opinion: a scanner by other people with rules of its own.

`kingfisher-bin` on PyPI carries its binary (https://github.com/mongodb/kingfisher). It runs on text files
alone, validates nothing against any service and asks for no update, so that nothing leaves the machine.
"""

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import Any

import orjson

from records.errors import ConfigError, PrivacyError

VARIABLE = "TRACEMILL_KINGFISHER"
ABSENT = "no second opinion: kingfisher is absent (pip install kingfisher-bin)"
_FOUND = (0, 200, 205)  # exit codes: nothing found, findings, findings that hold
_TIMEOUT_S = 3600
_OPTIONS = (
    "scan",
    "--no-validate",
    "--no-update-check",
    "--format=jsonl",
    "--confidence=low",
    "--no-dedup",  # every occurrence
    "--no-ignore",  # a session that says `gitleaks:allow` is not believed
    "--git-history=none",
    "--no-extract-archives",
)


@dataclass(frozen=True, slots=True)
class Match:
    """One place kingfisher points at; its `repr` does not show the value."""

    rule: str
    file: str
    line: int
    value: str = field(repr=False)


def find_kingfisher(environ: Mapping[str, str]) -> Path | None:
    """The binary: the one `TRACEMILL_KINGFISHER` names, of the installed package, or on the path; None
    where there is none, or the variable says `none`.

    Raises ConfigError where the variable names what is no file.
    """
    named = environ.get(VARIABLE, "").strip()
    if named.lower() == "none":
        return None
    if named:
        if not Path(named).is_file():
            raise ConfigError(f"{VARIABLE} names no file", "the kingfisher binary, or none")
        return Path(named)
    spec = find_spec("kingfisher")
    if spec is not None and spec.origin:
        for name in ("kingfisher", "kingfisher.exe"):
            binary = Path(spec.origin).parent / "bin" / name
            if binary.is_file():
                return binary
    found = which("kingfisher", path=environ.get("PATH"))
    return Path(found) if found else None


def require_kingfisher(environ: Mapping[str, str], required: bool) -> None:
    """Raises PrivacyError where kingfisher is `required` and absent, ConfigError where it is misnamed."""
    if find_kingfisher(environ) is None and required:
        raise PrivacyError(
            "kingfisher is not installed and release.require_second_opinion is set",
            "a second opinion",
            "pip install kingfisher-bin, or unset it",
        )


def kingfisher_version(binary: Path) -> str:
    """`2.14.0`. Raises PrivacyError where the binary does not run."""
    done = _run([str(binary), "--version"], {}, 60)
    words = done.stdout.decode("utf-8", "replace").split()
    return words[1] if done.returncode == 0 and len(words) > 1 else "of unknown version"


def run_kingfisher(binary: Path, folder: Path, environ: Mapping[str, str]) -> list[Match]:
    """Everything kingfisher finds in the files of a folder.

    Raises PrivacyError where it does not run or does not finish; what it says is never shown, since it
    quotes what it reads.
    """
    home = folder.parent / "home"
    home.mkdir(exist_ok=True)
    given = {"HOME": str(home), "LANG": "C.UTF-8", "KF_RULE_CACHE_DIR": str(_cache(environ, home))}
    nowhere = "http://127.0.0.1:9"
    given |= dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), nowhere)
    done = _run([str(binary), *_OPTIONS, str(folder)], given, _TIMEOUT_S)
    if done.returncode not in _FOUND:
        raise _failed(f"ended with {done.returncode}")
    return [match for line in done.stdout.splitlines() if (match := _match(line))]


def _run(command: list[str], environ: dict[str, str], timeout_s: float) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=environ,
            timeout=timeout_s,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _failed(f"did not run ({type(error).__name__})") from None


def _failed(what: str) -> PrivacyError:
    return PrivacyError(
        f"the second opinion failed: kingfisher {what}",
        "a binary that runs here",
        f"install kingfisher-bin anew, or set {VARIABLE}=none to go without it",
    )


def _cache(environ: Mapping[str, str], home: Path) -> Path:
    """Where compiled rules are kept, no text among them; they take seconds to make."""
    base = environ.get("XDG_CACHE_HOME") or (
        f"{environ['HOME']}/.cache" if environ.get("HOME") else str(home)
    )
    folder = Path(base) / "tracemill" / "kingfisher"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return home
    return folder


def _match(line: bytes) -> Match | None:
    try:
        record: Any = orjson.loads(line)
    except ValueError:
        return None
    finding = record.get("finding") if isinstance(record, dict) else None
    if not isinstance(finding, dict) or "rule" not in record:
        return None
    rule = str(record["rule"].get("id", "unknown")).rpartition(".")[2]
    return Match(f"kingfisher:{rule}", str(finding["path"]), int(finding["line"]), str(finding["snippet"]))
