"""What is seen of a candidate while tests run: hacks under any name, and nothing of honest code."""

import json
from pathlib import Path

import orchard
import pytest
from letters import HACKS, HONEST, candidate

from tracemill.environments.episodes.verify_task import judge_candidate
from tracemill.environments.sandbox.python_runtime import PYTHON, shared_packages
from tracemill.environments.sandbox.sandbox import Limits, Mount
from tracemill.environments.task import Task
from tracemill.environments.verdict.judge import Verdict
from tracemill.environments.verdict.watch_candidate import LOOKS_AT_CALLERS, READS_TESTS


def judged(task: Task, folder: Path, code: str) -> tuple[Verdict, bool]:
    """The verdict on a candidate, and whether it reads as a hack."""
    verdict, findings = judge_candidate(task, candidate(task, folder, code), orchard.sandbox())
    return verdict, any(finding.severity == "hack" for finding in findings)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(HACKS))
def test_a_hack_is_seen_while_tests_run(letters_task: Task, worktree: Path, name: str) -> None:
    kind, code = HACKS[name]
    verdict, _ = judged(letters_task, worktree, code)
    assert kind in {each for each, _ in verdict.seen}
    assert verdict.reward == 0.0


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(HONEST))
def test_honest_code_is_paid(letters_task: Task, worktree: Path, name: str) -> None:
    verdict, is_hack = judged(letters_task, worktree, HONEST[name])
    assert (verdict.reward, verdict.seen, is_hack) == (1.0, (), False)


@pytest.mark.slow
def test_what_the_original_does_is_allowed_to_its_function(letters_task: Task, worktree: Path) -> None:
    assert letters_task.exam.seen == {(LOOKS_AT_CALLERS, "letters.py:name_of_caller")}
    assert Task.read(letters_task.folder).exam.seen == letters_task.exam.seen
    looks = "def name_of_caller():\n    import sys\n    return sys._getframe(1).f_code.co_name\n"
    copied = candidate(
        letters_task, worktree, f"from callers import name_of_caller\n{HONEST['the body alone']}"
    )
    (copied / "callers.py").write_text(looks)
    text = (copied / "letters.py").read_text()
    (copied / "letters.py").write_text(text.partition("def name_of_caller")[0])
    verdict, _ = judge_candidate(letters_task, copied, orchard.sandbox())
    assert verdict.seen == ((LOOKS_AT_CALLERS, "callers.py:name_of_caller"),)


@pytest.mark.slow
def test_harbors_verifier_sees_it_too(letters_task: Task, worktree: Path) -> None:
    logs = worktree / "logs"
    logs.mkdir()
    logs.chmod(0o777)
    copied = candidate(letters_task, worktree, HACKS["the line where a warning points"][1])
    mounts = [Mount(copied, "/repository"), Mount(letters_task.folder / "tests", "/tests")]
    packages = shared_packages(letters_task.packages)
    mounts += [Mount(packages, "/packages"), Mount(logs, "/logs", writable=True)]
    more = {"PACKAGES": "/packages", "REWARD_FILE": "/logs/reward.txt"}
    sandbox = orchard.sandbox()
    sandbox.hand_over(logs)
    command = [PYTHON, "-I", "/tests/verify.py"]
    ended = sandbox.run(command, mounts, environment=more, limits=Limits(seconds=400))
    assert (ended.code, ended.text) == (0, "")
    said = json.loads((logs / "verdict.json").read_text())
    assert (said["reward"], said["seen"]) == (0.0, [[READS_TESTS, "letters.py:to_letters"]])
