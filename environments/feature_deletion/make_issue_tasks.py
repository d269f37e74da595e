"""Make tasks of rows of SWE-bench and SWE-Gym: the code before a patch, the tests that came with it.

The repository at the row's commit comes from a checkout of the user, or from the image that the row names.
"""

import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tracemill.environments.feature_deletion.make_tasks import RESTORATIONS, TaskReport, TestedRepository
from tracemill.environments.feature_deletion.read_issue_rows import IssueRow, check_out
from tracemill.environments.feature_deletion.source_tree import SourceTree, read_source_tree
from tracemill.environments.harbor.task_files import IN_IMAGE
from tracemill.environments.sandbox.container import ContainerSandbox
from tracemill.environments.sandbox.python_runtime import make_readable
from tracemill.environments.sandbox.sandbox import Sandbox
from tracemill.environments.task import Difficulty, Origin, Task
from tracemill.environments.verdict.judge import TaskTests
from tracemill.records.errors import EnvironmentTaskError

_DETAILS = """\
{problem}

The repository is in /repository. Tests that you do not see decide; everything that works now must go on
working. There is no network, and no other copy of the code. When you are done, say so."""


def make_issue_tasks(
    rows: Sequence[IssueRow],
    checkouts: Mapping[str, Path],
    folder: Path,
    sandbox: Sandbox,
    *,
    packages: Sequence[str] = (),
    restorations: int = RESTORATIONS,
    seed: int = 0,
    report: TaskReport | None = None,
) -> Iterator[Task]:
    """Write a task below `folder` for each row that passes the checks, and yield each as it is made.

    `checkouts` are git checkouts by the name of their repository, `OWNER/NAME`. A row that gives no task is
    counted in `report` with its reason. Raises EnvironmentTaskError, before anything is made, if a row has
    neither a checkout nor an image that can be run here.
    """
    report = report if report is not None else TaskReport()
    for row in rows:
        if row.repo not in checkouts:
            _image_sandbox(row, sandbox)
    for row in rows:
        report.begin(row.instance_id)
        with tempfile.TemporaryDirectory(prefix="tracemill-rows-") as scratch:
            work = Path(scratch)
            work.chmod(0o755)
            try:
                task = _make(row, checkouts, folder, sandbox, work, packages, restorations, seed, report)
            except EnvironmentTaskError as error:
                report.refuse(str(error))
                continue
        if task is not None:
            report.made += 1
            yield task


def _image_sandbox(row: IssueRow, sandbox: Sandbox) -> ContainerSandbox:
    """Return the sandbox of a row's image."""
    if row.image and isinstance(sandbox, ContainerSandbox):
        return sandbox.of_image(row.image, IN_IMAGE)
    wanted = f"--checkout {row.repo}=FOLDER"
    if row.image:
        raise EnvironmentTaskError(
            f"{row.instance_id} needs the image {row.image} or a checkout of {row.repo}",
            "--sandbox podman or docker, where the image is",
            f"or give a git checkout: {wanted}",
        )
    raise EnvironmentTaskError(
        f"{row.instance_id} names no image, and there is no checkout of {row.repo}",
        "a git checkout that has its commit",
        wanted,
    )


def _make(
    row: IssueRow,
    checkouts: Mapping[str, Path],
    folder: Path,
    sandbox: Sandbox,
    work: Path,
    packages: Sequence[str],
    restorations: int,
    seed: int,
    report: TaskReport,
) -> Task | None:
    image, checkout = "", checkouts.get(row.repo)
    if checkout is None:
        image, sandbox = row.image, _image_sandbox(row, sandbox)
        checkout = sandbox.copy_out(IN_IMAGE, work / "image")
    solved = check_out(checkout, row, work / "solved", row.test_patch, row.patch)
    base = check_out(checkout, row, work / "base", row.test_patch)
    bench = TestedRepository(solved, work, sandbox, packages, seed)
    before = read_source_tree(base, work / "before")
    make_readable(work / "before")
    changed = _changed(before.code, bench.tree.code)
    if not changed or any(not (bench.tree.code / file).exists() for file in changed):
        raise EnvironmentTaskError(
            f"the patch of {row.instance_id} {'removes files' if changed else 'changes no code'}",
            "a patch that changes or adds files that are no tests",
        )
    decide, guard = _names(row.fail_to_pass), _names((*row.fail_to_pass, *row.pass_to_pass))
    if not decide & {_name(test) for test in bench.baseline}:
        raise EnvironmentTaskError(
            f"no test of FAIL_TO_PASS of {row.instance_id} passes with its patch",
            "names as pytest gives them, and the packages that the tests import",
            "name packages with --package",
        )
    exam = bench.gates(
        before.code,
        restorations,
        report,
        _symbols(before, bench.tree, changed),
        may_count=lambda test: _name(test) in decide,
        may_guard=lambda test: not row.pass_to_pass or _name(test) in guard,
    )
    if exam is None:
        return None
    return _write(row, folder, bench, before, changed, exam, image)


def _write(
    row: IssueRow,
    folder: Path,
    bench: TestedRepository,
    before: SourceTree,
    changed: Sequence[str],
    exam: TaskTests,
    image: str,
) -> Task:
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", row.instance_id)
    symbols = _symbols(before, bench.tree, changed)
    lines = sum(line.startswith("+") and not line.startswith("+++") for line in row.patch.splitlines())
    problem = row.problem_statement.strip()
    return Task.write(
        folder / name,
        name=name,
        origin=Origin(row.repo, row.base_commit, licence=row.licence),
        texts={"terse": problem, "detailed": _DETAILS.format(problem=problem)},
        repository=before.code,
        original={file: bench.tree.code / file for file in changed},
        exam=exam,
        packages=bench.packages,
        roots=bench.tree.roots,
        deleted=symbols,
        difficulty=Difficulty("issue", len(symbols), len(changed), lines, len(exam.fail_to_pass)),
        image=image,
    )


def _changed(before: Path, after: Path) -> list[str]:
    """Return the paths of the files that differ between two trees."""
    names = {path.relative_to(root) for root in (before, after) for path in root.rglob("*") if path.is_file()}
    return sorted(
        name.as_posix()
        for name in names
        if not ((before / name).is_file() and (after / name).is_file())
        or (before / name).read_bytes() != (after / name).read_bytes()
    )


def _symbols(before: SourceTree, after: SourceTree, changed: Sequence[str]) -> list[str]:
    """Return the functions that a patch changed or added, as `file::name`; file paths if there are none."""

    def bodies(tree: SourceTree) -> dict[str, list[str]]:
        return {
            function.symbol: (tree.code / function.file)
            .read_text(encoding="utf-8", errors="replace")
            .splitlines()[function.first_line - 1 : function.last_line]
            for function in tree.functions.values()
            if function.file in changed
        }

    old = bodies(before)
    return sorted(name for name, text in bodies(after).items() if old.get(name) != text) or [*changed]


def _names(tests: Sequence[str]) -> set[str]:
    return {_name(test) for test in tests}


def _name(test: str) -> str:
    """Return the name of a test id without the values of its parametrized case."""
    return test.partition("[")[0]
