"""Run kingfisher as a second opinion: a scanner of other authors with its own rules.

`kingfisher-bin` on PyPI carries its binary (https://github.com/mongodb/kingfisher). It runs on text files
only, validates nothing against any service and asks for no update, so nothing leaves the machine.

Its result is checked. A canary, a made-up value in the form of a token, lies among the files. Where
kingfisher does not find it, or its summary contradicts what it read or printed, there is no second opinion
and the release is refused.
"""

import hashlib
import os
import re
import signal
import subprocess
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import Any

import orjson

from tracemill.privacy.publish_gate.private_folder import private_folder
from tracemill.records.errors import ConfigError, PrivacyError

VARIABLE = "TRACEMILL_KINGFISHER"
ABSENT = "no second opinion: kingfisher is absent (pip install kingfisher-bin)"
_FOUND = (0, 200, 205)  # exit codes: nothing found, findings, validated findings
_LEAST_S, _S_PER_BYTE = 120.0, 1e-6  # seconds to compile its rules on a busy machine, and for each byte
TRIAL_S = 60.0
"""Seconds for a trial; the first one compiles the rules, which takes 20 s on a busy machine."""
_CANARY = "canary.txt"
_tried: dict[tuple[str, int, int], str] = {}
_VERSION = re.compile(r"\d+\.\d+[\w.+-]*")
_OPTIONS = (
    "scan",
    "--no-validate",
    "--no-update-check",
    "--format=jsonl",
    "--confidence=low",
    "--no-dedup",  # every occurrence
    "--no-ignore",  # `gitleaks:allow` in a session does not count
    "--git-history=none",
    "--no-extract-archives",
    "--max-file-size=0",  # none is too large
)


@dataclass(frozen=True, slots=True)
class KingfisherMatch:
    """One finding of kingfisher; its `repr` does not show the value."""

    rule: str
    file: str
    line: int
    value: str = field(repr=False)


def find_kingfisher(environ: Mapping[str, str]) -> Path | None:
    """Return the binary that `TRACEMILL_KINGFISHER` names, of the installed package, or on the path.

    None where there is none, or the variable is `none`. Raises ConfigError where the variable names no file.
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


def require_kingfisher(
    environ: Mapping[str, str], required: bool, why: str = "release.require_second_opinion is set"
) -> None:
    """Raise an error where kingfisher is misnamed, or required and does not work.

    ConfigError where it is misnamed; PrivacyError where it is `required` and absent or does not find a
    canary. `why` tells in the message who requires it.
    """
    binary = find_kingfisher(environ)
    if not required:
        return
    if binary is None:
        raise PrivacyError(
            f"kingfisher is not installed and {why}",
            "a second opinion",
            f"pip install kingfisher-bin, or set {VARIABLE} to its binary",
        )
    try_kingfisher(environ)


def try_kingfisher(environ: Mapping[str, str], limit_s: float = TRIAL_S) -> str | None:
    """Return the version of a kingfisher that finds its canary, None where there is none.

    It is tried once in a process, within `limit_s` seconds. Raises ConfigError where it is misnamed,
    PrivacyError where it does not run, does not end or does not find the canary.
    """
    binary = find_kingfisher(environ)
    if binary is None:
        return None
    stat = binary.stat()
    key = (str(binary), stat.st_mtime_ns, stat.st_size)
    if key not in _tried:
        version = kingfisher_version(binary, limit_s)
        with private_folder() as private:
            (private / "texts").mkdir()
            run_kingfisher(binary, private / "texts", environ, limit_s)
        _tried[key] = version
    return _tried[key]


def kingfisher_version(binary: Path, limit_s: float = TRIAL_S) -> str:
    """Return the version, as in `2.14.0`.

    Raises PrivacyError where the binary does not run or prints no version.
    """
    code, output = _run([str(binary), "--version"], {}, limit_s)
    words = output.decode("utf-8", "replace").split()
    if code != 0 or len(words) < 2 or not _VERSION.fullmatch(words[1]):
        raise _failed("does not say its version")
    return words[1]


def run_kingfisher(
    binary: Path, folder: Path, environ: Mapping[str, str], least_s: float = _LEAST_S
) -> list[KingfisherMatch]:
    """Run kingfisher on the files of a folder and a canary, and return its findings.

    It gets `least_s` seconds and one more for each MB. Raises PrivacyError where it does not run, does not
    finish, does not read everything, or answers in another form. Its output is never shown, since it quotes
    what it reads.
    """
    home = folder.parent / "home"
    home.mkdir(exist_ok=True)
    canary = _canary()
    (folder / _CANARY).write_text(f"GITHUB_TOKEN={canary}\n", "ascii")
    sizes = {path.name: path.stat().st_size for path in folder.iterdir()}
    given = {"HOME": str(home), "LANG": "C.UTF-8", "KF_RULE_CACHE_DIR": str(_cache(environ, home))}
    nowhere = "http://127.0.0.1:9"
    given |= dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), nowhere)
    size = sum(sizes.values())
    code, output = _run([str(binary), *_OPTIONS, str(folder)], given, least_s + size * _S_PER_BYTE)
    if code not in _FOUND:
        raise _failed(f"ended with {code}")
    found = _read(output, sizes, size)
    if not any(Path(each.file).name == _CANARY and canary in each.value for each in found):
        raise _failed("did not find the canary, a token that was put there for it")
    return [each for each in found if Path(each.file).name != _CANARY]


def _canary() -> str:
    return "gh" + "p_" + hashlib.sha256(b"a token that nobody was given").hexdigest()[:36]


def _run(command: list[str], environ: dict[str, str], limit_s: float) -> tuple[int, bytes]:
    """Return exit code and stdout; no process that it started survives an exception."""
    process: subprocess.Popen[bytes] | None = None
    try:
        with _signals_wait():
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environ,
                start_new_session=True,
            )
        output, _ = process.communicate(timeout=limit_s)
    except BaseException as error:
        if process is not None:
            _kill_group(process.pid)
            with process:  # waits for it, closes its pipe
                pass
        if isinstance(error, subprocess.TimeoutExpired):
            raise _failed(f"did not end within {limit_s:,.0f} s") from None
        if isinstance(error, OSError):
            raise _failed(f"did not run ({type(error).__name__})") from None
        raise
    return process.returncode, output


@contextmanager
def _signals_wait() -> Iterator[None]:
    """Block signals that would end this process.

    A signal between the start of a child and the return of its id would leave the child behind.
    """
    held = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, held)


def _kill_group(leader: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def _failed(what: str) -> PrivacyError:
    return PrivacyError(
        f"the second opinion failed: kingfisher {what}",
        "a binary that runs here",
        f"install kingfisher-bin anew, or set {VARIABLE}=none to go without it",
    )


def _read(output: bytes, names: Collection[str], size: int) -> list[KingfisherMatch]:
    """Return the findings, checked against the summary at the end.

    `names` and `size` (bytes) are those of the given files.
    """
    found: list[KingfisherMatch] = []
    summaries: list[dict[str, Any]] = []
    for line in output.splitlines():
        try:
            record: Any = orjson.loads(line)
            if "rule" in record:
                found.append(_match(record))
            elif "findings" in record:
                summaries.append(record)
        except (ValueError, KeyError, TypeError, AttributeError):
            raise _failed("answered in a form that is not its own") from None
    if any(Path(each.file).name not in names for each in found):
        raise _failed("named files that it was not given")
    for summary in summaries:
        if summary["findings"] != len(found):
            raise _failed("counted other findings than it printed")
        if summary.get("bytes_scanned", size) != size:
            raise _failed("did not read everything")
    return found


def _cache(environ: Mapping[str, str], home: Path) -> Path:
    """Return the folder for compiled rules, which take seconds to make and hold no text."""
    base = environ.get("XDG_CACHE_HOME") or (
        f"{environ['HOME']}/.cache" if environ.get("HOME") else str(home)
    )
    folder = Path(base) / "tracemill" / "kingfisher"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return home
    return folder


def _match(record: dict[str, Any]) -> KingfisherMatch:
    finding, rule = record["finding"], str(record["rule"]["id"]).rpartition(".")[2]
    return KingfisherMatch(
        f"kingfisher:{rule}", str(finding["path"]), int(finding["line"]), str(finding["snippet"])
    )
