"""Tasks made of a repository: what they hold, and what they give."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from pathlib import Path

import hacks
import orchard
import pytest

from tracemill.environments.episodes.verify_task import judge_candidate, verify_task
from tracemill.environments.episodes.workspace import TaskWorkspace
from tracemill.environments.feature_deletion.make_tasks import TaskReport, make_tasks
from tracemill.environments.sandbox.plain_process import PlainProcess
from tracemill.environments.sandbox.python_runtime import PYTHON, copy_packages
from tracemill.environments.sandbox.sandbox import Limits, Mount
from tracemill.environments.task import VERSION, Origin, Task, read_tasks
from tracemill.records.errors import EnvironmentTaskError


def test_a_task_of_each_kind_gives_0_without_its_feature_and_1_with_it(orchard_tasks: list[Task]) -> None:
    assert [task.difficulty.kind for task in orchard_tasks] == ["function", "class", "module", "group"]
    assert [task.difficulty.files for task in orchard_tasks] == [1, 1, 1, 2]
    for task in orchard_tasks:
        rewards = verify_task(task, orchard.sandbox(), repeat=2)
        assert (rewards.deleted, rewards.restored) == (0.0, 1.0)
        assert len(task.exam.fail_to_pass) >= 3
        assert len(task.exam.pass_to_pass) >= 39
        assert len(task.exam.canaries) >= 50
    assert len({tuple(task.deleted) for task in orchard_tasks}) == 4


@pytest.mark.slow
@pytest.mark.long  # the one above is the same with four tasks
def test_twenty_tasks_are_restored_in_ten_fresh_runs(tmp_path: Path) -> None:
    made, report = orchard.tasks_of_orchard(tmp_path / "tasks", 20, faults=None)
    assert (len(made), report.made) == (20, 20)
    assert {*report.refused} <= {"a planted fault solves it", "too few failing tests expect a value"}
    assert report.refused["a planted fault solves it"] > 0
    assert report.refused.total() == report.tried - 20
    rewards = [verify_task(task, orchard.sandbox(), repeat=10) for task in made]
    assert [each.deleted for each in rewards] == [0.0] * 20
    assert sum(each.restored for each in rewards) / 20 >= 0.988
    assert len({tuple(task.deleted) for task in made}) == 20


def test_a_plain_process_verifies_what_is_trusted(orchard_tasks: list[Task]) -> None:
    rewards = verify_task(orchard_tasks[0], PlainProcess())
    assert (rewards.deleted, rewards.restored) == (0.0, 1.0)


def test_what_an_agent_sees_holds_neither_tests_nor_the_answer(orchard_tasks: list[Task]) -> None:
    for task in orchard_tasks:
        names = {path.relative_to(task.repository).as_posix() for path in task.repository.rglob("*")}
        assert not [name for name in names if "test" in name or ".git" in name or "__pycache__" in name]
        for symbol in task.deleted:
            file, _, name = symbol.partition("::")
            assert "raise NotImplementedError" in (task.repository / file).read_text()
            assert name in task.texts["terse"] or "more" in task.texts["terse"]
            assert f"`{name}`" in task.texts["detailed"]
        assert len(task.texts["terse"]) < len(task.texts["detailed"])


def test_a_plausible_but_wrong_answer_earns_less_than_1(orchard_tasks: list[Task], worktree: Path) -> None:
    for number, task in enumerate(orchard_tasks):
        candidate = worktree / str(number)
        shutil.copytree(task.repository, candidate)
        for file in {symbol.partition("::")[0] for symbol in task.deleted}:
            text = (candidate / file).read_text().replace("raise NotImplementedError", "return None")
            (candidate / file).write_text(text)
        verdict, findings = judge_candidate(task, candidate, orchard.sandbox())
        assert verdict.reward < 1.0
        assert not verdict.forged
        assert not findings


def test_a_pipe_in_a_candidate_is_left_out(orchard_tasks: list[Task], worktree: Path) -> None:
    task, candidate = orchard_tasks[0], worktree / "candidate"
    shutil.copytree(task.repository, candidate)
    shutil.copytree(task.original, candidate, dirs_exist_ok=True)
    os.mkfifo(candidate / "orchard" / "pipe.py")
    assert judge_candidate(task, candidate, orchard.sandbox())[0].reward == 1.0
    with TaskWorkspace(task, orchard.sandbox()) as workspace:
        workspace.change(lambda folder: os.mkfifo(folder / "pipe"))
        workspace.save(worktree / "saved")
    assert not (worktree / "saved" / "repository" / "pipe").exists()
    assert (worktree / "saved" / "repository" / "orchard").is_dir()


def test_what_breaks_the_rest_earns_nothing(orchard_tasks: list[Task], worktree: Path) -> None:
    task, candidate = orchard_tasks[0], worktree / "candidate"
    shutil.copytree(task.repository, candidate)
    shutil.copytree(task.original, candidate, dirs_exist_ok=True)
    deleted = {symbol.partition("::")[0] for symbol in task.deleted}
    other = next(
        path for path in sorted((candidate / "orchard").glob("*.py")) if f"orchard/{path.name}" not in deleted
    )
    other = candidate / "orchard" / "labels.py" if "orchard/labels.py" not in deleted else other
    other.write_text("raise RuntimeError\n")
    verdict, _ = judge_candidate(task, candidate, orchard.sandbox())
    assert verdict.reward == 0.0
    assert len(verdict.broken) >= 5


def test_a_task_is_read_back_as_it_was_written(orchard_tasks: list[Task]) -> None:
    again = read_tasks(orchard_tasks[0].folder.parent)
    assert [task for task in again if task in orchard_tasks] == sorted(
        orchard_tasks, key=lambda each: each.name
    )
    assert read_tasks(orchard_tasks[2].folder) == [orchard_tasks[2]]


def test_a_task_is_in_harbors_format_and_its_verifier_agrees(
    orchard_tasks: list[Task], worktree: Path
) -> None:
    task = orchard_tasks[1]
    settings = tomllib.loads((task.folder / "task.toml").read_text())
    assert settings["schema_version"] == "1.1"
    assert settings["task"]["name"] == f"tracemill/{task.name}"
    assert settings["environment"]["allow_internet"] is False
    assert settings["metadata"]["licence"] == "MIT"
    for file in ("instruction.md", "environment/Dockerfile", "tests/test.sh", "solution/solve.sh"):
        assert (task.folder / file).is_file()
    restored = worktree / "restored"
    shutil.copytree(task.repository, restored)
    shutil.copytree(task.original, restored, dirs_exist_ok=True)
    packages, logs, sandbox = worktree / "packages", worktree / "logs", orchard.sandbox()
    copy_packages(task.packages, packages)
    logs.mkdir()
    sandbox.hand_over(logs)
    for repository, reward in ((task.repository, 0.0), (restored, 1.0)):
        mounts = [Mount(repository, "/repository"), Mount(task.folder / "tests", "/tests")]
        mounts += [Mount(packages, "/packages"), Mount(logs, "/logs", writable=True)]
        more = {"PACKAGES": "/packages", "REWARD_FILE": "/logs/reward.txt"}
        ended = sandbox.run(
            [PYTHON, "-I", "/tests/verify.py"], mounts, environment=more, limits=Limits(seconds=400)
        )
        assert (ended.code, ended.text) == (0, "")
        assert float((logs / "reward.txt").read_text()) == reward
        said = json.loads((logs / "verdict.json").read_text())
        assert (said["reward"], said["forged"]) == (reward, [])


def test_programs_with_more_rights_give_none_in_harbors_verifier(orchard_tasks: list[Task]) -> None:
    code = (
        "import subprocess, verify\n"
        "print(subprocess.run(['grep', 'NoNewPrivs', '/proc/self/status'], "
        "preexec_fn=verify.forgo_privileges, capture_output=True, text=True).stdout)"
    )
    folder = orchard_tasks[0].folder / "tests"
    ended = subprocess.run([sys.executable, "-Bc", code], cwd=folder, capture_output=True, text=True)
    assert ended.stdout.split() == ["NoNewPrivs:", "1"], ended.stderr


def test_harbors_verifier_names_the_folder_that_keeps_its_user_from_python(
    orchard_tasks: list[Task],
) -> None:
    said = []
    with tempfile.TemporaryDirectory() as name:
        closed = Path(name)
        program = closed / "bin" / "python"
        program.parent.mkdir()
        program.touch()
        code = f"import verify\nprint(verify.closed_to_others(verify.Path({str(program)!r})))"
        for mode in (0o755, 0o700):
            closed.chmod(mode)
            folder = orchard_tasks[0].folder / "tests"
            ended = subprocess.run([sys.executable, "-Bc", code], cwd=folder, capture_output=True, text=True)
            said.append(ended.stdout.strip() or ended.stderr)
    assert said == ["None", str(closed)]


def test_changed_tests_are_refused(orchard_tasks: list[Task], tmp_path: Path) -> None:
    copied = tmp_path / "task"
    shutil.copytree(orchard_tasks[0].folder, copied)
    (copied / "tests" / "right" / "tests" / "test_beds.py").write_text("def test_nothing():\n    pass\n")
    with pytest.raises(EnvironmentTaskError, match=r"the tests of .* were changed"):
        Task.read(copied)
    settings = orchard_tasks[1].folder / "task.toml"
    shutil.copytree(orchard_tasks[1].folder, tmp_path / "older")
    (tmp_path / "older" / "task.toml").write_text(
        settings.read_text().replace(f"version = {VERSION}\n", f"version = {VERSION - 1}\n")
    )
    with pytest.raises(
        EnvironmentTaskError, match=rf"of version {VERSION - 1}, whose verdict can be forged; .*again"
    ):
        Task.read(tmp_path / "older")
    with pytest.raises(EnvironmentTaskError, match="holds no task"):
        read_tasks(tmp_path / "elsewhere")


def test_caches_history_and_second_copies_are_left_out(tmp_path: Path) -> None:
    source = tmp_path / "orchard"
    shutil.copytree(orchard.ORCHARD, source)
    copies = [".git/HEAD", ".mypy_cache/orchard.json", "build/lib/orchard/beds.py", "orchard/beds.pyi"]
    copies += [".history/beds_1.py", "htmlcov/beds_py.html", "orchard/beds.py.orig", "orchard/beds.py~"]
    for name in (*copies, "orchard.egg-info/SOURCES.txt", "orchard/__pycache__/beds.cpython-311.pyc"):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text("def draw(self): ...")
    tasks = [
        *make_tasks(source, Origin("orchard"), tmp_path / "tasks", orchard.sandbox(), most=1, restorations=0)
    ]
    names = {path.name for path in tasks[0].repository.rglob("*")}
    assert names & {".git", ".mypy_cache", "build", "orchard.egg-info", "__pycache__", "beds.pyi"} == set()
    assert names & {".history", "htmlcov", "beds.py.orig", "beds.py~"} == set()


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"orchard.py": "def one():\n    return 1\n"}, "the repository has no test file"),
        (
            {"test_it.py": "def test_it():\n    assert True\n"},
            "the repository has no Python function outside",
        ),
        (
            {"it.py": "def one():\n    return 1\n", "test_it.py": "def test_it():\n    assert False\n"},
            "no test of the repository passes twice \\(1 failed\\)",
        ),
    ],
)
def test_a_repository_that_makes_no_task_says_why(tmp_path: Path, files: dict[str, str], said: str) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for name, text in files.items():
        (source / name).write_text(text)
    with pytest.raises(EnvironmentTaskError, match=said):
        next(make_tasks(source, Origin("it"), tmp_path / "tasks", orchard.sandbox()))


def test_a_feature_of_which_a_copy_remains_is_no_task(tmp_path: Path) -> None:
    body = "    total = 0\n    for each in range(number):\n        total += each * 3\n    return total\n"
    code = f'def one(number):\n    """Add."""\n{body}\n\ndef two():\n    return 2\n'
    tests = "import it\n\n\ndef test_it():\n    assert it.one(5) == 30\n"
    tests += "\n\ndef test_two():\n    assert it.two() == 2\n"
    cells = json.dumps({"cells": [{"source": code.splitlines(keepends=True)}]})
    copies = {
        "notes.md": f"Earlier:\n\n    # as it was\n{body}",
        "old/it.py": f"class It:\n{code.replace('    ', '        ')}",
        "it.patch": "".join(f"+{line}\n" for line in code.splitlines()),
        "it.ipynb": cells,
        "it.zip:lib/it.py": code,
    }
    for number, (name, text) in enumerate({**copies, "": ""}.items()):
        source = tmp_path / f"source-{number}"
        source.mkdir()
        (source / "it.py").write_text(code)
        (source / "test_it.py").write_text(tests)
        file, _, member = name.partition(":")
        if member:
            with zipfile.ZipFile(source / file, "w") as archive:
                archive.writestr(member, text)
        elif file:
            (source / file).parent.mkdir(exist_ok=True)
            (source / file).write_text(text)
        told: list[str] = []
        report = TaskReport(tell_refused=lambda name, why, told=told: told.append(f"{name}: {why}"))
        folder, sandbox = tmp_path / f"tasks-{number}", orchard.sandbox()
        made = make_tasks(source, Origin("it"), folder, sandbox, restorations=0, faults=0, report=report)
        assert len([*made]) == (not name)
        assert told == ([f"it.py::one: a copy of it remains: {name}"] if name else [])


def test_features_that_pass_no_gate_are_counted(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "it.py").write_text(
        "def one(x):\n    y = x\n    z = y\n    return z\n\n\ndef two():\n    return 2\n"
    )
    (source / "test_it.py").write_text(
        "import it\n\n\ndef test_it():\n    assert it.one(1)\n\n\ndef test_two():\n    assert it.two() == 2\n"
    )
    report = TaskReport()
    assert [*make_tasks(source, Origin("it"), tmp_path / "tasks", orchard.sandbox(), report=report)] == []
    assert (report.tried, report.made, dict(report.refused)) == (
        1,
        0,
        {"too few failing tests expect a value": 1},
    )


@pytest.mark.slow
def test_harbors_verifier_does_not_say_which_tests_are_right(
    orchard_tasks: list[Task], worktree: Path
) -> None:
    task, sandbox = orchard_tasks[0], orchard.sandbox()
    candidate, packages, logs = worktree / "candidate", worktree / "packages", worktree / "logs"
    shutil.copytree(task.repository, candidate)
    path = candidate / task.deleted[0].partition("::")[0]
    tell = hacks.TELLS["by folder, command line and environment"]
    path.write_text(f"{path.read_text()}{tell}\nif is_right():{hacks.PASS_EVERYTHING}")
    copy_packages(task.packages, packages)
    logs.mkdir()
    sandbox.hand_over(logs)
    mounts = [Mount(candidate, "/repository"), Mount(task.folder / "tests", "/tests")]
    mounts += [Mount(packages, "/packages"), Mount(logs, "/logs", writable=True)]
    more = {"PACKAGES": "/packages", "REWARD_FILE": "/logs/reward.txt"}
    ended = sandbox.run(
        [PYTHON, "-I", "/tests/verify.py"], mounts, environment=more, limits=Limits(seconds=400)
    )
    assert (ended.code, ended.text) == (0, "")
    assert float((logs / "reward.txt").read_text()) == 0.0


def test_a_body_that_returns_nothing_solves_no_task(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "it.py").write_text(
        "def one(x):\n    y = x\n    z = [y]\n    z.clear()\n\n\ndef two():\n    return 2\n"
    )
    (source / "test_it.py").write_text(
        "import it\n\n\ndef test_it():\n    assert [it.one(1)] == [None]\n"
        "\n\ndef test_two():\n    assert it.two() == 2\n"
    )
    report = TaskReport()
    assert [*make_tasks(source, Origin("it"), tmp_path / "tasks", orchard.sandbox(), report=report)] == []
    assert dict(report.refused) == {"too few failing tests expect a value": 1}


def tasks_of_module(
    tmp_path: Path, code: str, tests: str, faults: int | None = None
) -> tuple[list[list[str]], dict[str, int]]:
    """Make tasks of a module `it` with a function `two`; give their functions, and counts of refusals."""
    source, report = tmp_path / "source", TaskReport()
    source.mkdir(parents=True, exist_ok=True)
    (source / "it.py").write_text(f"{code}\n\ndef two():\n    return 2\n")
    tests = f"import it\n\n\n{tests}\n\ndef test_two():\n    assert it.two() == 2\n"
    (source / "test_it.py").write_text(tests)
    folder, sandbox = tmp_path / f"tasks-{faults}", orchard.sandbox()
    made = make_tasks(source, Origin("it"), folder, sandbox, restorations=0, faults=faults, report=report)
    functions = [[symbol.removeprefix("it.py::") for symbol in task.deleted] for task in made]
    return sorted(functions), dict(report.refused)


def test_a_feature_whose_tests_miss_a_fault_at_any_place_is_no_task(tmp_path: Path) -> None:
    names = [f"item{number}" for number in range(12)]
    code = f"def fee(name, amount):\n    fees = {{{', '.join(f'{name!r}: 12' for name in names)}}}\n"
    code += "    base = fees[name]\n    if amount > 100:\n        base = 35\n    return base\n"
    loose = f"def test_fee():\n    for name in {names}:\n        assert it.fee(name, 50) == 12\n"
    loose += "        assert it.fee(name, 500) == 35\n"
    edge = "    assert (it.fee('item0', 100), it.fee('item0', 101)) == (12, 35)\n"
    assert tasks_of_module(tmp_path, code, loose, 8) == ([["fee"]], {})
    assert tasks_of_module(tmp_path, code, loose) == ([], {"a planted fault solves it": 1})
    assert tasks_of_module(tmp_path / "close", code, loose + edge) == ([["fee"]], {})


def test_a_feature_without_a_place_for_a_fault_is_no_task(tmp_path: Path) -> None:
    code = "def fee(amount):\n    fee = hex(amount)\n    fee = fee.upper()\n    return fee\n"
    tests = "def test_fee():\n    assert it.fee(48879) == '0XBEEF'\n    assert it.fee(51966) == '0XCAFE'\n"
    assert tasks_of_module(tmp_path, code, tests) == ([], {"no place for a fault": 1})
    assert tasks_of_module(tmp_path, code, tests, 0) == ([["fee"]], {})


def test_a_feature_is_tried_again_without_the_function_whose_fault_was_missed(tmp_path: Path) -> None:
    code = "def loud(name):\n    name = name.upper()\n    name = name + '!'\n    return name\n"
    code += "\n\ndef mark(name):\n    name = '<' + name\n    name = name + '>'\n    return name\n"
    code += "\n\ndef rate(amount):\n    if amount > 100:\n        return 'above'\n    return 'below'\n"
    tests = "def test_loud():\n    assert it.loud('plum') == 'PLUM!'\n    assert it.loud('fig') == 'FIG!'\n"
    tests += (
        "\n\ndef test_mark():\n    assert it.mark('plum') == '<plum>'\n    assert it.mark('fig') == '<fig>'\n"
    )
    tests += "\n\ndef test_rate():\n    assert it.rate(50) == 'below'\n    assert it.rate(500) == 'above'\n"
    made, refused = tasks_of_module(tmp_path, code, tests)
    assert made == [["loud"], ["loud", "mark"], ["mark"]]
    assert {*refused} == {"a planted fault solves it"}


FEES = """
def fee(amount):
    base = 12
    if amount > 100:
        base = 35
    return base


def two():
    return 2
"""
FEE_TESTS = """
import json
from pathlib import Path

import it

EDGES = json.loads((Path(__file__).parent / "edges.json").read_text())


def test_fee():
    assert it.fee(50) == 12
    assert it.fee(500) == 35


def test_edges():
    for amount, fee in EDGES:
        assert it.fee(amount) == fee


def test_two():
    assert it.two() == 2
"""


def test_tests_with_answers_in_files_lower_the_reward_alone(tmp_path: Path) -> None:
    source, sandbox = tmp_path / "source", orchard.sandbox()
    (source / "tests").mkdir(parents=True)
    (source / "it.py").write_text(FEES)
    (source / "tests" / "test_it.py").write_text(FEE_TESTS)
    (source / "tests" / "edges.json").write_text("[[100, 12], [101, 35]]")
    [task] = make_tasks(source, Origin("it"), tmp_path / "tasks", sandbox, restorations=0, faults=8)
    fee, two = (f"tests/test_it.py::test_{name}" for name in ("fee", "two"))
    assert (task.exam.fail_to_pass, task.exam.canaries) == ((fee,), (fee, two))
    assert task.exam.blank.unguessed == (fee,)
    assert [path.name for path in task.exam.blank.tests.rglob("*.*")] == ["test_it.py"]
    candidate = tmp_path / "candidate"
    shutil.copytree(task.repository, candidate)
    (candidate / "it.py").write_text(FEES.replace("> 100", "> 400"))
    edges = "tests/test_it.py::test_edges"
    assert task.exam.witnesses == (edges,)
    verdict = judge_candidate(task, candidate, sandbox)[0]
    assert (verdict.reward, verdict.passed, verdict.failed) == (0.5, (fee,), (edges,))
    (candidate / "it.py").write_text(FEES)
    assert judge_candidate(task, candidate, sandbox)[0].reward == 1.0


@pytest.mark.slow
@pytest.mark.long
def test_a_file_of_tests_at_the_root_is_no_code(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "it").mkdir(parents=True)
    (source / "it" / "__init__.py").write_text(
        "def one(x):\n    y = x + 1\n    z = y + 1\n    return z\n\n\ndef two():\n    return 2\n"
    )
    (source / "it" / "tests.py").write_text("def is_odd(x):\n    return x % 2 == 1\n")
    (source / "tests.py").write_text(
        "import unittest\n\nimport it\nimport it.tests\n\n\nclass Tests(unittest.TestCase):\n"
        "    def test_one(self):\n        expected = 13\n        self.assertEqual(it.one(11), expected)\n\n"
        "    def test_two(self):\n        self.assertFalse(it.tests.is_odd(it.two()))\n"
    )
    [task] = make_tasks(source, Origin("it"), tmp_path / "tasks", orchard.sandbox(), restorations=0)
    assert sorted(path.name for path in task.repository.rglob("*.py")) == ["__init__.py", "tests.py"]
    assert task.exam.fail_to_pass == ("tests.py::Tests::test_one",)
    assert task.exam.pass_to_pass == ("tests.py::Tests::test_two",)
    rewards = verify_task(task, orchard.sandbox(), repeat=2)
    assert (rewards.deleted, rewards.runs) == (0.0, (1.0, 1.0))


def test_cases_in_an_order_that_changes_are_left_out(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "it.py").write_text(FEES)
    (source / "test_it.py").write_text(
        "import pytest\n\nimport it\n\nCASES = {(f'of {n}', n, 12) for n in range(40)}\n\n\n"
        "@pytest.mark.parametrize('name, amount, fee', CASES)\ndef test_set(name, amount, fee):\n"
        "    assert it.fee(amount) == fee\n\n\n"
        "@pytest.mark.parametrize('amount, fee', [(50, 12), (500, 35), (101, 35)])\n"
        "def test_list(amount, fee):\n"
        "    assert it.fee(amount) == fee\n\n\ndef test_two():\n    assert it.two() == 2\n"
    )
    report, sandbox = TaskReport(), orchard.sandbox()
    [task] = make_tasks(
        source, Origin("it"), tmp_path / "tasks", sandbox, restorations=0, faults=0, report=report
    )
    assert (report.tests, report.left_out) == (44, 40)
    assert sorted(task.exam.fail_to_pass) == [f"test_it.py::test_list[{n}]" for n in range(3)]
    assert (task.exam.pass_to_pass, task.exam.witnesses) == (("test_it.py::test_two",), ())
    assert verify_task(task, sandbox, repeat=3).runs == (1.0, 1.0, 1.0)


def test_a_task_names_the_statements_that_no_test_runs(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "it.py").write_text(
        "def half(x):\n"
        '    """Halve a number."""\n'
        "    try:\n"
        "        found = (\n"
        "            int(x)\n"
        "        )\n"
        "    except TypeError:\n"
        "        if x:\n"
        "            return -1\n"
        "        return 0\n"
        "    if found < 0: found = 0\n"
        "    return found // 2\n\n\n"
        "def two():\n    return 2\n"
    )
    (source / "test_it.py").write_text(
        "import it\n\n\ndef test_half():\n    assert it.half('80') == 40\n\n\n"
        "def test_two():\n    assert it.two() == 2\n"
    )
    [task] = make_tasks(source, Origin("it"), tmp_path / "tasks", orchard.sandbox(), restorations=0, faults=0)
    assert task.deleted == ("it.py::half",)
    assert task.difficulty.untested == ["it.py:10", "it.py:8", "it.py:9"]
    assert Task.read(task.folder).difficulty == task.difficulty


def test_a_task_is_there_as_a_whole_or_not_at_all(
    orchard_tasks: list[Task], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = orchard_tasks[0]

    def write() -> Task:
        return Task.write(
            tmp_path / "again",
            name="again",
            origin=task.origin,
            texts=task.texts,
            repository=task.repository,
            original={file: task.original / file for file in ("orchard/weights.py",)},
            exam=task.exam,
            packages=task.packages,
            roots=task.roots,
            deleted=task.deleted,
            difficulty=task.difficulty,
        )

    def killed(folder: Path, *more: object) -> None:
        (folder / "task.toml").write_text("version = ")
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("tracemill.environments.task.write_harbor_files", killed)
        with pytest.raises(KeyboardInterrupt):
            write()
    with pytest.raises(EnvironmentTaskError, match="holds no task"):
        read_tasks(tmp_path)
    assert write().exam.fail_to_pass == task.exam.fail_to_pass
    assert [each.name for each in read_tasks(tmp_path)] == ["again"]
    assert [path.name for path in tmp_path.iterdir()] == ["again"]
