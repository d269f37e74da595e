"""Tasks of rows as SWE-bench and SWE-Gym have them, on a git repository that is written here."""

import shutil
from pathlib import Path

import orchard
import pytest
from issue_rows import BEFORE, row_of, write_checkout, written
from orchard import env

from tracemill.environments.episodes.verify_task import judge_candidate, verify_task
from tracemill.environments.feature_deletion.make_issue_tasks import make_issue_tasks
from tracemill.environments.feature_deletion.make_tasks import TaskReport
from tracemill.environments.feature_deletion.read_issue_rows import IssueRow, read_issue_rows
from tracemill.environments.task import read_tasks
from tracemill.records.errors import EnvironmentTaskError


@pytest.fixture
def checkout(worktree: Path) -> Path:
    """A repository of one commit."""
    return write_checkout(worktree / "checkout")


def test_a_row_becomes_a_task_that_its_patch_solves(checkout: Path, worktree: Path) -> None:
    rows = [*read_issue_rows(written(worktree, row_of(checkout)))]
    sandbox, report = orchard.sandbox(), TaskReport()
    (task,) = make_issue_tasks(
        rows, {"dev/spans": checkout}, worktree / "tasks", sandbox, restorations=0, report=report
    )
    assert (report.tried, report.made, dict(report.refused)) == (1, 1, {})
    file = "tests/test_spans.py"
    decide = (f"{file}::test_hours[0]", f"{file}::test_hours[1]", f"{file}::test_hours_are_shown")
    assert (task.name, sorted(task.exam.fail_to_pass)) == ("dev__spans-7", [*decide])
    assert task.exam.pass_to_pass == tuple(
        f"{file}::test_{each}" for each in ("parse[0]", "parse[1]", "show")
    )
    assert task.deleted == ("spans.py::parse", "spans.py::show")
    assert (task.difficulty.kind, task.difficulty.lines, task.origin.name) == ("issue", 2, "dev/spans")
    assert task.texts["detailed"].startswith("`parse` does not know hours, and `show` does not write them.\n")
    assert [path.name for path in task.repository.iterdir()] == ["spans.py"]
    assert (task.repository / "spans.py").read_text() == BEFORE
    rewards = verify_task(task, sandbox)
    assert (rewards.deleted, rewards.runs) == (0.0, (1.0,))
    half = worktree / "half"
    half.mkdir()
    (half / "spans.py").write_text(BEFORE.replace('"m": 60', '"m": 60, "h": 3600'))
    assert judge_candidate(task, half, sandbox)[0].reward == pytest.approx(2 / 3)
    assert read_tasks(worktree / "tasks") == [task]


def test_rows_that_give_no_task_are_counted_with_their_reason(checkout: Path, worktree: Path) -> None:
    good = row_of(checkout)
    rows = [
        row_of(checkout, instance_id="a", base_commit="0" * 40),
        row_of(checkout, instance_id="b", patch=good["patch"].replace("int(number)", "float(number)")),
        row_of(checkout, instance_id="c", FAIL_TO_PASS=["tests/test_spans.py::test_days"]),
        row_of(checkout, instance_id="d", FAIL_TO_PASS=["tests/test_spans.py::test_show"]),
    ]
    report = TaskReport()
    path = written(worktree, *rows)
    found = make_issue_tasks(
        [*read_issue_rows(path)], {"dev/spans": checkout}, worktree, orchard.sandbox(), report=report
    )
    assert ([*found], report.tried, report.made) == ([], 4, 0)
    reasons = "\n".join(report.refused)
    assert f"{checkout} has no commit 000000000000 of dev/spans" in reasons
    assert "a patch of b does not apply (error: patch failed: spans.py:1" in reasons
    assert "no test of FAIL_TO_PASS of c passes with its patch" in reasons
    assert report.refused["no test fails without the feature"] == 1


def test_a_row_without_checkout_or_image_is_refused_before_anything_is_made(worktree: Path) -> None:
    row = IssueRow("it", "dev/spans", "0" * 40, "", "", "Fix it.", ("test",), ())
    with pytest.raises(EnvironmentTaskError, match=r"no image, .* no checkout of dev/spans; .*--checkout"):
        [*make_issue_tasks([row], {}, worktree, orchard.sandbox())]
    with_image = IssueRow("it", "dev/spans", "0" * 40, "", "", "Fix it.", ("test",), (), "example.org/it:1")
    with pytest.raises(EnvironmentTaskError, match=r"it needs the image example.org/it:1 or a checkout"):
        [*make_issue_tasks([with_image], {}, worktree, orchard.sandbox())]


def test_a_file_that_holds_other_things_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"instance_id": "it", "repo": "dev/spans"}\n')
    with pytest.raises(EnvironmentTaskError, match=r"row 1 of .* has no base_commit, patch, test_patch, p"):
        [*read_issue_rows(path)]
    path.write_text("no row\n")
    with pytest.raises(EnvironmentTaskError, match=r"cannot be read \(JSONDecodeError\)"):
        [*read_issue_rows(path)]


def test_the_command_makes_tasks_of_rows(checkout: Path, worktree: Path) -> None:
    path = written(worktree, row_of(checkout), row_of(checkout, instance_id="dev__spans-8"))
    options = ["--rows", path, "--restorations", 0, "--most", 1]
    ended = env("env", "make", *options, "--checkout", f"dev/spans={checkout}", cwd=worktree)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.splitlines() == [
        "tasks/dev__spans-7  issue, 2 functions, 2 lines, 3 tests decide, 3 beyond a guess, 3 guard",
        "tasks made 1 of 1 rows tried",
        "  1 more row not tried: --most 1",
    ]
    shutil.rmtree(worktree / "tasks")
    ended = env("env", "make", *options, "--checkout", "dev/spans=nowhere", cwd=worktree)
    assert ended.returncode != 0
    assert "--checkout dev/spans=nowhere is no checkout" in ended.stderr
