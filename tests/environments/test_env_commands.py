"""`tracemill env` as its users run it: tasks, episodes, sessions, labels of them."""

import json
import shutil
from pathlib import Path

import orchard
import pytest
from orchard import env


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which two tasks were made and an oracle worked on them."""
    folder = tmp_path_factory.mktemp("env")
    ended = env(
        "env", "make", orchard.ORCHARD, "--most", 2, "--restorations", 0, "--licence", "MIT", cwd=folder
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    lines = ended.stdout.splitlines()
    assert lines[0].startswith("tasks/orchard-001  function, 1 functions, ")
    assert lines[2] == "tasks made 2 of 2 features tried"
    return folder


def test_tasks_that_were_made_hold(made: Path) -> None:
    ended = env("env", "verify", "tasks", "--repeat", 2, cwd=made)
    assert ended.stdout.splitlines() == [
        "orchard-001  deleted 0.00  restored 1.00",
        "orchard-002  deleted 0.00  restored 1.00",
        "tasks that hold 2 of 2",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("harness", ["claude_code", pytest.param("openhands", marks=pytest.mark.long)])
@pytest.mark.long
def test_episodes_become_sessions_that_teachers_answer_to(made: Path, harness: str) -> None:
    out = f"sessions-{harness}"
    ran = env("env", "run", "tasks", "--policy", "oracle", "--harness", harness, "--out", out, cwd=made)
    assert ran.stdout.splitlines()[2:] == [
        "episodes 2, solved 2, hacks 0, malformed calls 0",
        f"sessions in {out}",
    ]
    source = {"claude_code": "--claude-code", "openhands": "--swe-gym"}[harness]
    flags = [
        "--preset",
        "simulated",
        "--max-usd",
        1,
        "--yes",
        "--min-age",
        0,
        "--workspace",
        f"ws-{harness}",
        "--json",
    ]
    labelled = env("run", source, out, *flags, cwd=made)
    assert labelled.returncode == 0, labelled.stderr
    summary = json.loads(labelled.stdout)["summary"]
    assert summary["traces"] == 2
    assert summary["states"] == {"claude_code": 4, "openhands": 6}[harness]
    assert summary["calls"] > 0


def test_a_candidate_is_judged_and_what_the_monitor_sees_is_said(made: Path) -> None:
    candidate = made / "candidate"
    shutil.copytree(made / "tasks" / "orchard-001" / "environment" / "repository", candidate)
    (candidate / "conftest.py").write_text("import os\n")
    ended = env("env", "verify", "tasks/orchard-001", "--repository", candidate, cwd=made)
    assert ended.stdout.splitlines()[0].startswith("reward 0.000  0 of ")
    assert ended.stdout.splitlines()[-1] == "  hack  steers tests or the interpreter  conftest.py"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["make", "nowhere"], "nowhere is no folder; expected a repository, or NAME==VERSION"),
        (["make", orchard.ORCHARD, "--sandbox", "chroot"], "there is no sandbox 'chroot'; expected auto, "),
        (["make", orchard.ORCHARD, "--package", "no-such-thing"], "package no-such-thing is not installed; "),
        (["verify", "nowhere"], "nowhere holds no task; expected folders that `tracemill env make` wrote"),
        (
            ["verify", "tasks", "--repository", "."],
            "tasks holds 2 tasks; expected a single task where --repository is given; ",
        ),
        (
            ["run", "tasks", "--policy", "nobody"],
            "'nobody' is no policy; expected oracle, nothing or module:function",
        ),
        (["run", "tasks", "--policy", "no.such:thing"], "the policy no.such:thing cannot be loaded"),
        (
            ["run", "tasks", "--policy", "oracle", "--harness", "vim"],
            "--harness 'vim' is unknown; expected claude_code or ",
        ),
    ],
)
def test_bad_input_gets_one_line(made: Path, arguments: list[object], said: str) -> None:
    ended = env("env", *arguments, cwd=made)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith(f"tracemill: {said}")
    assert len(ended.stderr.splitlines()) == 1


def test_tasks_are_made_again_into_a_new_folder_alone(made: Path) -> None:
    ended = env("env", "make", orchard.ORCHARD, "--most", 1, "--restorations", 0, cwd=made)
    assert ended.returncode == 2
    assert "tasks/orchard-001 exists already; expected a new folder" in ended.stderr
