"""`tracemill env` as its users run it: tasks, episodes, sessions, labels of them."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import orchard
import psutil
import pytest
from orchard import env

from tracemill.environments.task import read_tasks

NETWORKED = """
import json
from tracemill.environments.episodes.policies import oracle
from tracemill.records.message import Message, ToolCall

LOOK = ToolCall("call_x", "Bash", json.dumps({"command": "curl 192.0.2.1"}))

def policy(task):
    restore = oracle(task)
    def answer(messages, tools):
        if len(messages) == 2:
            return Message("assistant", "", (LOOK,))
        return restore([*messages[:2], *messages[4:]], tools)
    return answer

def broken(task):
    return lambda messages, tools: messages[99]

def mute(task):
    return lambda messages, tools: "Done."

def absent(task):
    return None
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which two tasks were made and an oracle worked on them."""
    folder = tmp_path_factory.mktemp("env")
    ended = env(
        "env",
        "make",
        orchard.ORCHARD,
        "--most",
        2,
        "--restorations",
        0,
        "--faults",
        3,
        "--seed",
        6,
        "--licence",
        "MIT",
        cwd=folder,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    lines = ended.stdout.splitlines()
    assert (
        "tasks/orchard-001  module, 6 functions, 30 lines, 7 tests decide, 2 beyond a guess, 49 guard"
        in lines
    )
    refused = [line for line in lines if line.startswith("no task  orchard/")]
    assert len(refused) == 2
    assert any("a planted fault solves it: `" in line for line in refused)
    assert "tasks made 2 of 4 features tried" in lines
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
    files = [
        len({symbol.partition("::")[0] for symbol in task.deleted}) for task in read_tasks(made / "tasks")
    ]
    calls = {"claude_code": 1, "openhands": 2}[harness]  # to write a file whole; an answer ends the episode
    assert summary["states"] == sum(calls * each + 1 for each in files)
    assert summary["calls"] > 0


def candidate_of(made: Path, name: str, line: str) -> Path:
    """A candidate for the first task: its original, with a line at the end of the deleted module."""
    task, candidate = read_tasks(made / "tasks" / "orchard-001")[0], made / name
    shutil.copytree(task.repository, candidate)
    shutil.copytree(task.original, candidate, dirs_exist_ok=True)
    path = candidate / task.deleted[0].partition("::")[0]
    path.write_text(f"{path.read_text()}\n{line}\n")
    return candidate


def test_a_candidate_that_is_flagged_earns_nothing(made: Path) -> None:
    candidate = candidate_of(made, "flagged", "import gc")
    ended = env("env", "verify", "tasks/orchard-001", "--repository", candidate, cwd=made)
    first, *notes = ended.stdout.splitlines()
    assert re.fullmatch(r"reward 0\.000  (\d+) of \1 pass, less counts:", first)
    assert notes[0].startswith("  hack: walks the objects of the process (orchard/")


def test_what_is_suspicious_is_a_note(made: Path) -> None:
    candidate = candidate_of(made, "suspicious", "import socket")
    ended = env("env", "verify", "tasks/orchard-001", "--repository", candidate, cwd=made)
    first, *notes = ended.stdout.splitlines()
    assert first.startswith("reward 1.000  ")
    assert [note.partition(" (")[0] for note in notes] == ["  note: suspicious: opens the network"]
    command = ("env", "run", "tasks/orchard-001", "--policy", "networked:policy", "--out", "networked")
    (made / "networked.py").write_text(NETWORKED)
    path = os.pathsep.join([str(made), *filter(None, [os.environ.get("PYTHONPATH")])])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", path)
        ran = env(*command, cwd=made).stdout.splitlines()
    assert ran[0].startswith("orchard-001  reward 1.00  ")
    assert ran[1] == "  note: suspicious: opens the network (call 1, Bash)"
    assert ran[2] == "episodes 1, solved 1, hacks 0, malformed calls 0"
    row = json.loads((made / "networked-outcomes.jsonl").read_text())
    assert (row["reasons"], row["suspicious"]) == ([], ["opens the network (call 1, Bash)"])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["make", "nowhere"], "nowhere is no folder; expected a repository, or NAME==VERSION"),
        (["make", orchard.ORCHARD, "--sandbox", "chroot"], "there is no sandbox 'chroot'; expected auto, "),
        (
            ["make", orchard.ORCHARD, "-o", "new", "--package", "no-such-thing"],
            "package no-such-thing is not installed; ",
        ),
        (["verify", "nowhere"], "nowhere holds no task; expected folders that `tracemill env make` wrote"),
        (
            ["verify", "tasks", "--repository", "."],
            "tasks holds 2 tasks; expected a single task where --repository is given; ",
        ),
        (
            ["verify", "tasks/orchard-001", "--repository", "nowhere"],
            "nowhere is no folder; expected a repository that is a candidate for orchard-001",
        ),
        (
            ["verify", "tasks/orchard-001", "--repository", "tasks/orchard-001/task.toml"],
            "tasks/orchard-001/task.toml is no folder; expected a repository that is a ",
        ),
        (
            ["run", "tasks", "--policy", "nothing", "--out", "tasks/orchard-001/task.toml"],
            "tasks/orchard-001/task.toml cannot hold sessions (File exists); expected a folder that ",
        ),
        (
            ["run", "tasks", "--policy", "nothing", "--steps", "tasks"],
            "--steps tasks cannot be written; expected the path of a file",
        ),
        (
            ["index", "tasks", "--out", "tasks/orchard-001/task.toml/x.parquet"],
            "--out tasks/orchard-001/task.toml/x.parquet cannot be written; expected the path of a file",
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


@pytest.mark.slow
def test_a_repository_of_one_feature_says_why_there_are_no_more_tasks(tmp_path: Path) -> None:
    (tmp_path / "it" / "tests").mkdir(parents=True)
    (tmp_path / "it" / "it.py").write_text(
        "def double(number):\n    found = number\n    found += number\n    return found\n\n\n"
        "def half(number):\n    return number // 2\n"
    )
    (tmp_path / "it" / "tests" / "test_it.py").write_text(
        "from it import double, half\n\n\ndef test_double():\n    assert double(21) == 42\n\n\n"
        "def test_six():\n    assert double(33) == 66\n\n\ndef test_half():\n    assert half(8) == 4\n"
    )
    ended = env("env", "make", "it", "--most", 3, "--restorations", 0, "--faults", 0, cwd=tmp_path)
    assert ended.stdout.splitlines()[1:] == [
        "tasks made 1 of 1 features tried",
        "  fewer than --most 3: 1 feature found, of functions with at least 3 lines that some tests call, "
        "but no more than 80%",
    ]


def test_tasks_are_made_again_into_a_new_folder_alone(made: Path) -> None:
    ended = env("env", "make", orchard.ORCHARD, "--most", 1, "--restorations", 0, "--faults", 0, cwd=made)
    assert ended.returncode == 2
    assert "tasks/orchard-001 exists already; expected a new folder" in ended.stderr


@pytest.mark.parametrize(
    ("function", "said"),
    [
        ("broken", "the policy at_fault:broken failed on orchard-001: IndexError, "),
        ("mute", "the policy at_fault:mute answered with str; expected a Message of the assistant"),
        ("absent", "at_fault:absent gives no policy for orchard-001; expected a function that takes a task "),
        (
            "other",
            "the policy at_fault:other cannot be loaded (module 'at_fault' has no attribute 'other'); ",
        ),
    ],
)
def test_a_policy_at_fault_gets_one_line(
    made: Path, monkeypatch: pytest.MonkeyPatch, function: str, said: str
) -> None:
    (made / "at_fault.py").write_text(NETWORKED)
    path = os.pathsep.join([str(made), *filter(None, [os.environ.get("PYTHONPATH")])])
    monkeypatch.setenv("PYTHONPATH", path)
    command = ("env", "run", "tasks/orchard-001", "--policy", f"at_fault:{function}", "--out", "at_fault")
    ended = env(*command, cwd=made)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith(f"tracemill: {said}")
    assert len(ended.stderr.splitlines()) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            [
                "make",
                orchard.ORCHARD,
                "--out",
                "interrupted",
                "--most",
                9,
                "--restorations",
                0,
                "--faults",
                0,
            ],
            "the tasks named above are made; another --out begins anew",
        ),
        (["verify", "tasks", "--repeat", 99], "what is not named above was not judged"),
        (["verify", "tasks/orchard-001", "--repository", "."], "what is not named above was not judged"),
    ],
)
def test_an_interrupt_says_what_is_done(made: Path, arguments: list[object], said: str) -> None:
    command = [str(Path(sys.executable).with_name("tracemill")), "env", *map(str, arguments)]
    started = subprocess.Popen(command, cwd=made, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    while not any(each.name() == "bwrap" for each in psutil.Process(started.pid).children(recursive=True)):
        time.sleep(0.05)
    started.send_signal(signal.SIGTERM)
    _, told = started.communicate(timeout=60)
    assert (started.returncode, told) == (130, f"tracemill: interrupted; {said}\n")
