"""The second opinion fails closed: a kingfisher that does not do its work is an error, never "no finding"."""

import json
import os
import random
import signal
import string
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tracemill.cli.doctor import run_doctor_checks
from tracemill.flows.config.run_settings import RunSettings
from tracemill.flows.preflight import run_preflight
from tracemill.flows.workspace_commands import replay_workspace
from tracemill.privacy.personal.known_identity import make_known
from tracemill.privacy.publish_gate.kingfisher import (
    find_kingfisher,
    require_kingfisher,
    run_kingfisher,
    try_kingfisher,
)
from tracemill.privacy.publish_gate.private_folder import private_folder
from tracemill.privacy.publish_gate.scan_paths import Scanner, ScanResult
from tracemill.records.errors import PrivacyError

KEY = b"k" * 32
SESSIONS = Path(__file__).resolve().parents[2] / "examples" / "sessions" / "claude_code"
WITH = {name: os.environ[name] for name in ("HOME", "PATH") if name in os.environ}


def token(seed: int = 1) -> str:
    """A token of GitHub's form that nobody was given."""
    letters = string.ascii_letters + string.digits
    return "gh" + "p_" + "".join(random.Random(seed).choices(letters, k=36))


def fake(folder: Path, scan: str, version: str = "echo kingfisher 2.14.0") -> dict[str, str]:
    """The environment of a kingfisher that is a shell script; `$F` is the folder it is given, `$V` the
    canary in it."""
    path = folder / "kingfisher"
    path.write_text(
        f'#!/bin/sh\nif [ "$1" = --version ]; then {version}; exit; fi\n'
        f'for F; do :; done\nV=$(sed s/.*=// "$F/canary.txt")\n{scan}\n'
    )
    path.chmod(0o755)
    return {"TRACEMILL_KINGFISHER": str(path), "PATH": os.environ["PATH"], "HOME": str(folder)}


def scan(path: Path, environ: dict[str, str]) -> ScanResult:
    return Scanner(make_known([]), KEY, environ).scan(path)


def line(file: str, value: str = "$V") -> str:
    """A shell command that prints a finding as kingfisher does."""
    finding = {"snippet": value, "line": 1, "path": f"$F/{file}"}
    text = json.dumps({"rule": {"id": "x.github-pat"}, "finding": finding})
    return 'echo "' + text.replace('"', '\\"') + '"'


CANARY = line("canary.txt")
SILENT = "did not find the canary"


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("exit 0", SILENT),
        ("exit 200", SILENT),
        ("echo {}; exit 0", SILENT),
        ("echo not json; exit 0", "in a form that is not its own"),
        ("echo 7; exit 0", "in a form that is not its own"),
        (f'{CANARY}; echo \'{{"rule": {{}}, "finding": {{}}}}\'; exit 200', "in a form that is not its own"),
        (f"{line('canary.txt', 'x')}; exit 200", SILENT),
        (f"{line('0.txt')}; exit 200", SILENT),
        (f"{CANARY}; {line('other.txt')}; exit 200", "named files that it was not given"),
        (f"{CANARY}; echo '{{\"findings\": 2}}'; exit 200", "counted other findings than it printed"),
        (f'{CANARY}; echo \'{{"findings": 1, "bytes_scanned": 1}}\'; exit 200', "did not read everything"),
        (f"{CANARY}; exit 1", "ended with 1"),
    ],
)
def test_an_answer_that_cannot_be_relied_on_is_an_error_of_one_line(
    tmp_path: Path, script: str, said: str
) -> None:
    (tmp_path / "a.txt").write_text("nothing private here\n")
    with pytest.raises(PrivacyError, match=said) as caught:
        scan(tmp_path / "a.txt", fake(tmp_path, script))
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("version", ["exit 1", "echo hello", "echo kingfisher of-this-week", ":"])
def test_a_version_that_is_not_known_is_an_error(tmp_path: Path, version: str) -> None:
    (tmp_path / "a.txt").write_text("nothing private here\n")
    with pytest.raises(PrivacyError, match="does not say its version"):
        scan(tmp_path / "a.txt", fake(tmp_path, f"{CANARY}; exit 200", version))


def test_one_that_finds_the_canary_is_taken_and_the_canary_is_no_finding(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("nothing private here\n")
    verdict = scan(tmp_path / "a.txt", fake(tmp_path, f"{CANARY}; exit 200"))
    assert (verdict.findings, verdict.second) == ((), "2.14.0")


def test_the_installed_one_finds_the_canary_and_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "texts").mkdir()
    for number in range(3):
        (tmp_path / "texts" / f"{number}.txt").write_text(f"key {token(number)} and {token(9)}\n")
    binary = find_kingfisher(WITH)
    assert binary is not None
    found = run_kingfisher(binary, tmp_path / "texts", WITH)
    assert sorted((Path(each.file).name, each.value) for each in found) == sorted(
        (f"{number}.txt", value) for number in range(3) for value in (token(number), token(9))
    )
    require_kingfisher(WITH, required=True)


def test_a_required_second_opinion_is_tried_at_the_start(tmp_path: Path) -> None:
    environ = fake(tmp_path, "exit 0")
    require_kingfisher(environ, required=False)
    with pytest.raises(PrivacyError, match=SILENT):
        require_kingfisher(environ, required=True)


def test_it_is_tried_once_a_process_and_within_its_time(tmp_path: Path) -> None:
    environ = fake(tmp_path, f'echo x >> "{tmp_path}/times"; {CANARY}; exit 200')
    assert try_kingfisher({"TRACEMILL_KINGFISHER": "none"}) is None
    assert [try_kingfisher(environ), try_kingfisher(environ)] == ["2.14.0"] * 2
    require_kingfisher(environ, required=True)
    assert (tmp_path / "times").read_text() == "x\n"
    with pytest.raises(PrivacyError, match="did not end within 1 s"):
        try_kingfisher(fake(tmp_path, "sleep 300  # hangs"), 1)
    with pytest.raises(PrivacyError, match="did not end within 1 s"):
        try_kingfisher(fake(tmp_path, "exit 0", version="sleep 300"), 1)


AWAY = [
    {"type": "openai_compatible", "model": m, "family": m, "base_url": "http://gpu.example:1/v1"}
    for m in "abc"
]


@pytest.mark.parametrize("script", ["exit 1", "exit 0"])
def test_a_broken_one_ends_a_run_and_a_replay_before_anything_is_read_or_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in fake(tmp_path, script).items():
        monkeypatch.setenv(name, value)
    given = {"workspace": tmp_path / "w", "teachers": AWAY, "budget": {"max_total_usd": 1.0}}
    given["sources"] = {"paths": [SESSIONS], "min_age_minutes": 0}
    settings = RunSettings.model_validate(given)
    for command in (run_preflight, replay_workspace):
        with pytest.raises(PrivacyError, match="the second opinion failed: kingfisher") as caught:
            command(settings)
        assert len(str(caught.value).splitlines()) == 1
    assert not (tmp_path / "w").exists()
    assert run_doctor_checks(settings) == 2
    assert "FAIL  publish gate: the second opinion failed: kingfisher" in capsys.readouterr().out


def test_one_that_hangs_is_ended_with_what_it_started(tmp_path: Path) -> None:
    environ = fake(tmp_path, f'sleep 300 & echo $! > "{tmp_path}/child"; wait')
    (tmp_path / "texts").mkdir()
    with pytest.raises(PrivacyError, match="did not end within 1 s"):
        run_kingfisher(Path(environ["TRACEMILL_KINGFISHER"]), tmp_path / "texts", environ, least_s=1)
    assert _ended(int((tmp_path / "child").read_text()))


def _ended(process: int) -> bool:
    """The process ends within some seconds (or is a zombie that nobody waits for)."""
    for _ in range(100):
        with suppress(FileNotFoundError):
            if Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
                time.sleep(0.05)
                continue
        return True
    return False


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_leaves_no_decoded_text_and_no_kingfisher(tmp_path: Path, number: int) -> None:
    (tmp_path / "a.txt").write_text("nothing private here\n")
    (tmp_path / "tmp").mkdir()
    environ = fake(
        tmp_path,
        f'sleep 300 & echo $! > "{tmp_path}/child.new"; mv "$F/../../../child.new" "{tmp_path}/child"; wait',
    )
    code = (
        "import os, signal, sys\nfrom pathlib import Path\n"
        "from tracemill.privacy.personal.known_identity import make_known\n"
        "from tracemill.privacy.publish_gate.scan_paths import Scanner\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background of a shell\n"
        "signal.signal(signal.SIGHUP, signal.SIG_DFL)  # ignored below nohup\n"
        "Scanner(make_known([]), b'k', os.environ).scan(Path(sys.argv[1]))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "a.txt")],
        env=environ | {"TMPDIR": str(tmp_path / "tmp")},
        stderr=subprocess.DEVNULL,
    )
    while not (tmp_path / "child").exists() and process.poll() is None:
        time.sleep(0.01)
    assert len(list((tmp_path / "tmp").iterdir())) == 1
    process.send_signal(number)
    assert process.wait(30) in (128 + number, -number)
    assert list((tmp_path / "tmp").iterdir()) == []
    assert _ended(int((tmp_path / "child").read_text()))


def test_a_folder_that_vanishes_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("nothing private here\n")
    environ = fake(tmp_path, f'rm -r "${{F%/*}}"; {CANARY}; exit 200')
    with pytest.raises(PrivacyError, match="removed before the end") as caught:
        scan(tmp_path / "a.txt", environ)
    assert len(str(caught.value).splitlines()) == 1


def test_a_place_for_it_that_cannot_be_written_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(PrivacyError, match="No such file"), private_folder():
        pass
