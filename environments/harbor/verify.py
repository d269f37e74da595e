"""Verify a candidate inside Harbor's container, which `test.sh` starts: standard library alone.

The tests run in child processes as another user, who can read them and write nowhere but in /tmp.
"""

import json
import os
import secrets
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from decide import decide  # noqa: E402  # pyright: ignore

REPOSITORY = Path(os.environ.get("REPOSITORY", "/repository"))
REWARD = Path(os.environ.get("REWARD_FILE", "/logs/verifier/reward.txt"))
PACKAGES = os.environ.get("PACKAGES", "/nonexistent")  # the image has them installed
NOBODY = 65534


def run(exam: dict, tests: Path) -> dict:
    """Return what a child process says of the tests."""
    marker = secrets.token_hex(16)
    places = {"repository": str(REPOSITORY), "tests": str(tests), "packages": PACKAGES}
    request = {
        "marker": marker,
        "files": exam["files"],
        "roots": exam["roots"],
        "traced": False,
        "places": places,
    }
    user = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.getuid() == 0 else {}
    try:
        ended = subprocess.run(
            [sys.executable, str(HERE / "run_pytest.py")],
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
        return {}
    _, found, rest = ended.stdout.rpartition(marker)
    try:
        return json.loads(rest.partition("\n")[0])["outcomes"] if found else {}
    except (ValueError, KeyError):
        return {}


def main() -> None:
    """Write the reward, and what it rests on beside it."""
    exam = json.loads((HERE / "exam.json").read_text(encoding="utf-8"))
    folders = [HERE / "right", HERE / "wrong"]
    secrets.SystemRandom().shuffle(folders)
    outcomes = {folder.name: run(exam, folder) for folder in folders}
    again = run(exam, HERE / "right")
    names = ("fail_to_pass", "pass_to_pass", "canaries")
    reward, passed, broken, forged = decide(
        *(exam[name] for name in names), outcomes["right"], outcomes["wrong"], again
    )
    REWARD.parent.mkdir(parents=True, exist_ok=True)
    REWARD.write_text(f"{reward}\n", encoding="utf-8")
    details = {"reward": reward, "passed": passed, "broken": broken, "forged": forged}
    REWARD.with_name("verdict.json").write_text(json.dumps(details, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
