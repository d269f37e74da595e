"""Verify a candidate inside Harbor's container, which `test.sh` starts: standard library alone.

The tests run in child processes as another user each time, who can read a copy of them and write nowhere but
in /tmp. Copies have names that say nothing, the folder they come from is closed to that user, and what a run
leaves behind is removed: no run may learn whether it has the right tests or the wrong ones.
"""

import contextlib
import ctypes
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from decide import (  # noqa: E402  # pyright: ignore
    compare_values,
    decide,
    failed_witnesses,
    is_lost,
    is_unsolved,
    recorded_values,
)
from mix_tests import MixedTests, mixes_of, write_mix  # noqa: E402  # pyright: ignore

REPOSITORY = Path(os.environ.get("REPOSITORY", "/repository"))
REWARD = Path(os.environ.get("REWARD_FILE", "/logs/verifier/reward.txt"))
PACKAGES = os.environ.get("PACKAGES", "/nonexistent")  # the image has them installed
PR_SET_NO_NEW_PRIVS = 38
WITHOUT_NAME = "unknown"
FIXTURES = Path(f"/tmp/pytest-of-{WITHOUT_NAME}")
"""The folder of `tmp_path`, which values may name: of a user without a name, and empty in each run."""
SCRATCH = ("/tmp", "/var/tmp", "/dev/shm", "/run/lock")


def run(exam: dict, files: list, copied: Path, mix: MixedTests | None = None) -> tuple[dict, dict]:
    """Run a copy of tests in a child process; return outcomes and values.

    They are mixed with wrong ones, or run in an order that is drawn.
    """
    order = secrets.randbits(64) if mix is None else None
    user = 100_000 + secrets.randbelow(1_000_000)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "runner").mkdir()
        shutil.copytree(copied, folder / "tests", copy_function=shutil.copyfile)
        if mix is not None:
            write_mix(mix, HERE / "right", HERE / "wrong", folder / "tests")
        for script in ("run_pytest.py", "record_values.py"):
            shutil.copyfile(HERE / script, folder / "runner" / script)
        if os.getuid() == 0:
            remove(FIXTURES)
        try:
            return outcomes(exam, files, folder, user, order)
        finally:
            if os.getuid() == 0:
                clear(user)


def clear(user: int) -> None:
    """Kill the processes of a user and remove its files."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if process.stat().st_uid == user:
                os.kill(int(process.name), signal.SIGKILL)
    for folder in SCRATCH:
        for path in Path(folder).glob("*"):
            with contextlib.suppress(OSError):
                if path.lstat().st_uid == user:
                    remove(path)


def remove(path: Path) -> None:
    """Remove a file, a link or a folder, if it is there."""
    with contextlib.suppress(OSError):
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def outcomes(exam: dict, files: list, folder: Path, number: int, order: int | None) -> tuple[dict, dict]:
    """Run the tests in a folder in a child process; return outcomes and values."""
    marker, tests = secrets.token_hex(16), folder / "tests"
    places = {"repository": str(REPOSITORY), "tests": str(tests), "packages": PACKAGES}
    request = {
        "marker": marker,
        "files": files,
        "roots": exam["roots"],
        "traced": False,
        "order": order,
        "places": places,
    }
    user = {"user": number, "group": number, "extra_groups": []} if os.getuid() == 0 else {}
    user["preexec_fn"] = forgo_privileges
    try:
        ended = subprocess.run(
            [sys.executable, str(folder / "runner" / "run_pytest.py")],
            input=json.dumps(request),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=max(60.0, 20 * exam["seconds"]),
            env={"PATH": os.defpath, "HOME": "/tmp", "PYTHONHASHSEED": str(secrets.randbelow(1 << 32))},
            cwd="/tmp",
            start_new_session=True,
            **user,
        )
    except subprocess.TimeoutExpired:
        return {}, {}
    _, found, rest = ended.stdout.rpartition(marker)
    try:
        result = json.loads(rest.partition("\n")[0]) if found else {"outcomes": {}, "values": {}}
        values = {
            test: {number: [*map(str, texts)] for number, texts in numbered.items()}
            for test, numbered in result["values"].items()
        }
        return dict(result["outcomes"]), values
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}, {}


def closed_to_others(program: Path) -> Path | None:
    """Return the folder that keeps other users from a program; None if they can run it."""
    for path in (program, program.resolve()):
        for folder in reversed(path.parents):
            if not folder.stat().st_mode & 0o001:
                return folder
    return None


def forgo_privileges() -> None:
    """Let the process and its children gain no privileges by programs that they start."""
    ctypes.CDLL(None).prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def main() -> None:
    """Write the reward, and a report of the runs beside it; the reward is 0 until it is known."""
    os.umask(0o022)
    report = REWARD.with_name("verdict.json")
    REWARD.parent.mkdir(parents=True, exist_ok=True)
    remove(REWARD)
    REWARD.write_text("0.0\n", encoding="utf-8")
    report.unlink(missing_ok=True)
    exam = json.loads((HERE / "exam.json").read_text(encoding="utf-8"))
    if os.getuid() == 0:
        if closed := closed_to_others(Path(sys.executable)):
            sys.exit(f"tests run as another user, who may not enter {closed}: install Python elsewhere")
        with contextlib.suppress(OSError):  # mounted read-only
            HERE.chmod(0o700)
    names = ("fail_to_pass", "pass_to_pass", "canaries", "unguessed")
    known = [exam[name] for name in names]
    counted, canaries, witnesses = exam["fail_to_pass"], exam["canaries"], exam["witnesses"]
    mixes = mixes_of(counted, canaries, HERE / "right", HERE / "wrong", lambda: bool(secrets.randbits(1)))
    mixed: list[tuple[dict, MixedTests]] = []
    found, values, guards = {}, {}, {*exam["pass_to_pass"]}
    deciding = sum(group[0] not in guards for group in exam["groups"])
    # before any others, so that nothing in reach of the candidate ever held an answer
    for place, group in enumerate(exam["groups"]):
        if place == deciding and is_unsolved(exam["unguessed"], found, compare_values(exam["blank"], values)):
            break
        ended, compared = run(exam, [group[0].partition("::")[0]], HERE / "blank" / str(place))
        found |= {test: ended.get(test, "") for test in group}
        values |= {test: recorded_values(compared.get(test, {}), ended.get(test)) for test in group}
        if not ended:  # out of time, or no result
            mixes = []
            break
    right_values = compare_values(exam["blank"], values)
    if is_unsolved(exam["unguessed"], found, right_values):
        mixes = []
    for mix in mixes:
        found, _ = run(exam, exam["files"], HERE / "right", mix)
        mixed.append((found, mix))
        if is_lost(*known, mixed, right_values, witnesses):
            break
    reward, passed, broken, forged = decide(*known, mixed, right_values, witnesses)
    REWARD.write_text(f"{reward}\n", encoding="utf-8")
    failed = failed_witnesses(witnesses, mixed)
    details = {"reward": reward, "passed": passed, "broken": broken, "forged": forged, "failed": failed}
    report.write_text(json.dumps(details, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
