"""Kingfisher as a second opinion: a scanner by other people with rules of its own.

`kingfisher-bin` on PyPI carries its binary (https://github.com/mongodb/kingfisher). It runs on text files
alone, validates nothing against any service and asks for no update, so that nothing leaves the machine.

It is not taken at its word: a canary lies among what it reads, a value of a token's form that nobody was
given. Where it does not find that, or says in its summary that it read or found something else than it
printed, there is no second opinion, and what was to be judged is refused.
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
_FOUND = (0, 200, 205)  # exit codes: nothing found, findings, findings that hold
_LEAST_S, _S_PER_BYTE = 120.0, 1e-6  # to compile its rules on a busy machine, and for each byte
TRIAL_S = 60.0
"""Seconds that a trial has; the first one compiles the rules, which takes a machine that is busy 20."""
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
    "--no-ignore",  # a session that says `gitleaks:allow` is not believed
    "--git-history=none",
    "--no-extract-archives",
    "--max-file-size=0",  # none is too large
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


def require_kingfisher(
    environ: Mapping[str, str], required: bool, why: str = "release.require_second_opinion is set"
) -> None:
    """Raises ConfigError where kingfisher is misnamed; where it is `required`, PrivacyError where it is
    absent, or does not find a canary. `why` it is required, for the message."""
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
    """The version of a kingfisher that finds its canary, None where there is none.

    Tried once a process, within `limit_s` seconds. Raises ConfigError where it is misnamed, PrivacyError
    where it does not run, does not end or does not find the canary.
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
    """`2.14.0`. Raises PrivacyError where the binary does not run or does not say."""
    code, said = _run([str(binary), "--version"], {}, limit_s)
    words = said.decode("utf-8", "replace").split()
    if code != 0 or len(words) < 2 or not _VERSION.fullmatch(words[1]):
        raise _failed("does not say its version")
    return words[1]


def run_kingfisher(
    binary: Path, folder: Path, environ: Mapping[str, str], least_s: float = _LEAST_S
) -> list[Match]:
    """Everything kingfisher finds in the files of a folder, to which a canary is added.

    It has `least_s` seconds and one more for each MB. Raises PrivacyError where it does not run, does not
    finish, does not read everything, or answers in another form; what it says is never shown, since it
    quotes what it reads.
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
    code, said = _run([str(binary), *_OPTIONS, str(folder)], given, least_s + size * _S_PER_BYTE)
    if code not in _FOUND:
        raise _failed(f"ended with {code}")
    found = _read(said, sizes, size)
    if not any(Path(each.file).name == _CANARY and canary in each.value for each in found):
        raise _failed("did not find the canary, a token that was put there for it")
    return [each for each in found if Path(each.file).name != _CANARY]


def _canary() -> str:
    return "gh" + "p_" + hashlib.sha256(b"a token that nobody was given").hexdigest()[:36]


def _run(command: list[str], environ: dict[str, str], limit_s: float) -> tuple[int, bytes]:
    """Exit code and stdout. Nothing that it started outlives an exception here."""
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
        said, _ = process.communicate(timeout=limit_s)
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
    return process.returncode, said


@contextmanager
def _signals_wait() -> Iterator[None]:
    """Signals that would end this process wait: one that comes between the start of a child and its being
    known here would leave the child behind."""
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


def _read(said: bytes, names: Collection[str], size: int) -> list[Match]:
    """The findings, checked against the summary that ends them. `names` and `size` (bytes) are what it
    was given."""
    found: list[Match] = []
    summaries: list[dict[str, Any]] = []
    for line in said.splitlines():
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


def _match(record: dict[str, Any]) -> Match:
    finding, rule = record["finding"], str(record["rule"]["id"]).rpartition(".")[2]
    return Match(f"kingfisher:{rule}", str(finding["path"]), int(finding["line"]), str(finding["snippet"]))
