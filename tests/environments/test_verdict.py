"""What a candidate can do to its own verdict: nothing."""

import ast
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import orchard
import pytest

from tracemill.environments.episodes.verify_task import judge_candidate
from tracemill.environments.feature_deletion.make_tasks import make_tasks
from tracemill.environments.monitor.hack_finding import HackFinding
from tracemill.environments.task import Origin, Task
from tracemill.environments.verdict.change_expectations import change_expectations
from tracemill.environments.verdict.decide import decide, failed_witnesses, is_lost
from tracemill.environments.verdict.judge import Verdict
from tracemill.environments.verdict.mix_tests import MixedTests, mix_tests, write_mix

Cheat = Callable[[Task, Path], None]


def judged(task: Task, folder: Path, cheat: Cheat) -> tuple[Verdict, tuple[HackFinding, ...]]:
    """The verdict on a candidate that begins as the deleted repository."""
    candidate = folder / "candidate"
    shutil.copytree(task.repository, candidate)
    cheat(task, candidate)
    return judge_candidate(task, candidate, orchard.sandbox())


def module_of(task: Task, candidate: Path) -> Path:
    """The file of the first deleted function."""
    return candidate / task.deleted[0].partition("::")[0]


@pytest.mark.parametrize("name", sorted(orchard.APPENDED))
def test_code_that_a_candidate_runs_beside_the_tests_earns_nothing(
    orchard_tasks: list[Task], worktree: Path, name: str
) -> None:
    def cheat(task: Task, candidate: Path) -> None:
        names = [*task.exam.fail_to_pass, *task.exam.pass_to_pass]
        path = module_of(task, candidate)
        path.write_text(path.read_text() + orchard.APPENDED[name].replace("NAMES", repr(names)))

    verdict, _ = judged(orchard_tasks[0], worktree, cheat)
    assert verdict.reward == 0.0


@pytest.mark.parametrize("name", sorted(orchard.FILES))
def test_a_file_that_a_candidate_adds_earns_nothing_and_is_seen(
    orchard_tasks: list[Task], worktree: Path, name: str
) -> None:
    verdict, findings = judged(
        orchard_tasks[0], worktree, lambda task, candidate: _write(candidate / name, orchard.FILES[name])
    )
    assert verdict.reward == 0.0
    assert name == "json.py" or name in {finding.where for finding in findings}


def _write(path: Path, text: str) -> None:
    path.write_text(text)


@pytest.mark.parametrize(
    "name", ["patched report", "forged result", "recorder found by objects", "patched call of tests"]
)
def test_a_forgery_is_told_by_the_canaries_and_by_the_monitor(
    orchard_tasks: list[Task], worktree: Path, name: str
) -> None:
    task = orchard_tasks[0]

    def cheat(task: Task, candidate: Path) -> None:
        names = [*task.exam.fail_to_pass, *task.exam.pass_to_pass]
        path = module_of(task, candidate)
        path.write_text(path.read_text() + orchard.APPENDED[name].replace("NAMES", repr(names)))

    verdict, findings = judged(task, worktree, cheat)
    assert len(verdict.forged) == len(task.exam.canaries)
    assert any(finding.severity == "hack" for finding in findings)


@pytest.mark.parametrize("number", range(4))
def test_objects_that_equal_everything_earn_nothing(
    orchard_tasks: list[Task], worktree: Path, number: int
) -> None:
    def cheat(task: Task, candidate: Path) -> None:
        for file in {symbol.partition("::")[0] for symbol in task.deleted}:
            text = (candidate / file).read_text().replace("raise NotImplementedError", "return Anything()")
            (candidate / file).write_text(text + orchard.EQUALS_ANYTHING)

    verdict, findings = judged(orchard_tasks[number], worktree, cheat)
    assert verdict.reward == 0.0
    assert "makes objects that equal everything" in {finding.rule for finding in findings}


def test_an_answer_taken_from_the_asserting_line_earns_nothing(
    orchard_tasks: list[Task], worktree: Path
) -> None:
    def cheat(task: Task, candidate: Path) -> None:
        path = module_of(task, candidate)
        text = path.read_text().replace("raise NotImplementedError", "return answer()")
        path.write_text(text + orchard.CALLER_CONSTANT)

    verdict, findings = judged(orchard_tasks[0], worktree, cheat)
    assert verdict.reward == 0.0
    assert "inspects frames or source" in {finding.rule for finding in findings}


A_WRONG = MixedTests(frozenset("a"), frozenset(), frozenset())
REST_WRONG = MixedTests(frozenset("bc"), frozenset(), frozenset())


def outcomes(**changed: str) -> dict[str, str]:
    """Outcomes of `a`, `b` and `c`, which pass unless told otherwise."""
    return {**dict.fromkeys("abc", "passed"), **changed}


def test_a_reward_counts_what_passes_wherever_it_is_right_and_nothing_where_something_broke() -> None:
    first, second = (outcomes(a="failed"), A_WRONG), (outcomes(b="failed", c="failed"), REST_WRONG)
    honest = [first, second, first, second]
    assert decide(["a", "b"], ["c"], ["a", "b", "c"], [], honest, {}) == (1.0, ["a", "b"], [], [])
    fails_again = [*honest[:3], (outcomes(a="failed", b="failed", c="failed"), REST_WRONG)]
    assert decide(["a", "b"], ["c"], ["a", "b", "c"], [], fails_again, {})[:2] == (0.5, ["b"])
    broken = [(outcomes(a="failed", c="failed"), A_WRONG), *honest[1:]]
    assert decide(["a", "b"], ["c"], [], [], broken, {})[:3] == (0.0, ["a", "b"], ["c"])
    forged = [*honest[:3], (outcomes(c="failed"), REST_WRONG)]
    assert decide(["a", "b"], ["c"], ["a", "b"], [], forged, {}) == (0.0, ["a", "b"], [], ["b"])
    assert decide(["a", "b"], ["c"], ["a"], [], forged, {})[0] == 1.0  # `b` has no canary
    assert decide(["a"], [], [], [], [({}, A_WRONG), ({}, REST_WRONG)], {})[0] == 0.0
    assert decide(["a"], ["c"], [], [], [(outcomes(), A_WRONG)], {})[:3] == (
        0.0,
        [],
        [],
    )  # `a` was never right


def test_a_wrong_answer_that_a_canary_happens_to_expect_is_no_forgery() -> None:
    wrong, right = (outcomes(a="passed"), A_WRONG), (outcomes(a="failed", b="failed", c="failed"), REST_WRONG)
    both = wrong, (outcomes(b="failed", c="failed"), REST_WRONG)
    tests, canaries = ["a", "b"], ["a", "b", "c"]
    values = {"a": False, "b": True}
    assert decide(tests, ["c"], canaries, ["a", "b"], [wrong, right], values) == (0.5, ["b"], [], [])
    assert decide(tests, ["c"], canaries, ["a", "b"], both, values)[::3] == (0.0, ["a"])
    for known in ({"a": None, "b": True}, {"b": True}):
        assert decide(tests, ["c"], canaries, ["b"], [wrong, right], known)[::3] == (0.0, ["a"])


def test_a_guard_with_other_values_is_broken_whatever_its_outcome() -> None:
    runs = [(outcomes(a="failed"), A_WRONG), (outcomes(b="failed", c="failed"), REST_WRONG)]
    guards = ["b", "c"]
    for values, broken in (({"b": False, "c": True}, ["b"]), ({"b": None, "c": True}, ["b"]), ({}, [])):
        assert decide(["a"], guards, [], ["a"], runs, {"a": True, **values})[::2] == (
            0.0 if broken else 1.0,
            broken,
        )
    assert decide(["a"], guards, [], ["a"], [], {"a": False, "b": False})[2] == []  # they were not run


def test_tests_without_a_blank_copy_lower_the_reward_and_never_raise_it() -> None:
    second = outcomes(b="failed", c="failed"), REST_WRONG
    for skipped, reward in ((["b", "c"], 1 / 3), (["c"], 2 / 3), ([], 1.0)):
        runs = [({**outcomes(a="failed"), **dict.fromkeys(skipped, "skipped")}, A_WRONG), second]
        assert failed_witnesses(["b", "c"], runs) == skipped
        assert decide(["a"], [], [], ["a"], runs, {"a": True}, ["b", "c"])[0] == reward
    wrong = [(outcomes(a="failed", b="failed"), A_WRONG), (outcomes(a="failed", b="failed"), REST_WRONG)]
    values = {"a": True, "b": False}
    assert failed_witnesses(["c"], wrong) == []
    wrong[1] = (outcomes(b="failed"), REST_WRONG)
    assert decide(["a", "b"], [], [], ["a", "b"], wrong, values, ["c"] * 98)[0] == 0.5  # of those that decide
    assert decide(["a"], [], [], ["a"], [(outcomes(), REST_WRONG)] * 2, {"a": True}, ["new"])[0] == 0.5


def test_a_reward_of_0_is_final_after_a_pair_of_runs_and_no_sooner() -> None:
    first, second = (outcomes(a="failed"), A_WRONG), (outcomes(b="failed", c="failed"), REST_WRONG)
    counts = ["a", "b"], ["c"], ["a", "b", "c"], []
    assert not is_lost(*counts, [first], {})  # `a` was not right yet
    assert not is_lost(*counts, [first, second], {})
    fails = [(outcomes(a="failed", b="failed"), A_WRONG), (outcomes(a="failed", b="failed"), REST_WRONG)]
    forged, broken = [first, (outcomes(), REST_WRONG)], [(outcomes(a="failed", c="failed"), A_WRONG), second]
    for lost in (fails, forged, broken):
        assert not is_lost(*counts, lost[:1], {})
        assert is_lost(*counts, lost, {})
        assert is_lost(*counts, [*lost, first, second], {})


def test_a_verdict_ends_with_the_pair_of_runs_that_settles_it(
    orchard_tasks: list[Task], worktree: Path
) -> None:
    task = orchard_tasks[0]
    alone = len(task.exam.blank.groups)
    counting = len([group for group in task.exam.blank.groups if group[0] in task.exam.fail_to_pass])
    assert 0 < counting < alone

    def restore(task: Task, candidate: Path) -> None:
        shutil.copytree(task.original, candidate, dirs_exist_ok=True)

    def guess(task: Task, candidate: Path) -> None:
        path = module_of(task, candidate)
        path.write_text(path.read_text().replace("raise NotImplementedError", "return Weight(3)"))

    verdict, _ = judged(task, worktree / "deleted", lambda task, candidate: None)
    assert (verdict.reward, len(verdict.runs)) == (0.0, counting)
    verdict, _ = judged(task, worktree / "guess", guess)
    assert (verdict.reward, len(verdict.runs)) == (0.0, alone + 2)
    verdict, _ = judged(task, worktree / "restored", restore)
    assert (verdict.reward, len(verdict.runs)) == (1.0, alone + 4)


MIXED = {
    "test_one.py": "import it\n\n\n@it.mark([('x', 1)])\ndef test_a(x):\n    assert x == 1\n\n\n"
    "class TestB:\n    def test_b(self):\n        assert 2 == 2\n\n    def test_same(self):\n        pass\n",
    "test_table.py": "TABLE = [1]\n\n\ndef test_c():\n    assert it == 3\n",
    "test_equal.py": "def test_d():\n    pass\n",
}


def test_each_test_is_right_in_one_mix_and_wrong_in_the_other(tmp_path: Path) -> None:
    right, wrong = tmp_path / "right", tmp_path / "wrong"
    for folder in (right, wrong):
        folder.mkdir()
        for file, text in MIXED.items():
            text = (
                text.replace("1", "7").replace("2 == 2", "2 == 9").replace("3", "8")
                if folder == wrong
                else text
            )
            (folder / file).write_text(text)
    seen = set()
    for seed in range(40):
        rng = random.Random(seed)
        mixes = mix_tests(right, wrong, lambda rng=rng: bool(rng.getrandbits(1)))
        ids = ("test_one.py::test_a[0]", "test_one.py::TestB::test_b", "test_table.py::test_c")
        for mix, opposite in (mixes, mixes[::-1]):
            said = tuple(mix.is_wrong(test) for test in ids)
            assert tuple(opposite.is_wrong(test) for test in ids) == tuple(not each for each in said)
            assert not any(
                mix.is_wrong(f"test_{each}") for each in ("equal.py::test_d", "one.py::TestB::test_same")
            )
            folder = tmp_path / f"{seed}-{len(seen)}-{said}"
            shutil.copytree(right, folder)
            write_mix(mix, right, wrong, folder)
            one, table = (folder / "test_one.py").read_text(), (folder / "test_table.py").read_text()
            assert ("('x', 7)" in one, "x == 7" in one, "2 == 9" in one) == (said[0], said[0], said[1])
            assert ("[7]" in table, "it == 8" in table) == (said[2], said[2])
            seen.add(said)
    assert len(seen) == 8


SOURCE = """
import pytest
TABLE = [("a", 1), ("b", 2)]


@pytest.mark.parametrize(("text", "number"), [("x", 7), pytest.param("y", "eight")])
def test_rows(text, number):
    assert read(text) == number


@pytest.mark.parametrize("row", TABLE)
def test_table(row):
    assert 3 == read(row)
    assert read(row) is None
    assert read("unchanged") == [1, "two"]
    assert read(4) == {}
    with pytest.raises(ValueError):
        read("no")


class TestIt:
    def test_equal(self):
        self.assertEqual(read(5), "five")
        self.assertTrue(read(6))
"""


def test_expectations_change_and_nothing_else_does() -> None:
    changed = change_expectations(SOURCE, 3)
    before, after = SOURCE.splitlines(), changed.splitlines()
    differing = [number for number, pair in enumerate(zip(before, after, strict=True)) if pair[0] != pair[1]]
    assert [before[number].strip() for number in differing] == [
        'TABLE = [("a", 1), ("b", 2)]',
        '@pytest.mark.parametrize(("text", "number"), [("x", 7), pytest.param("y", "eight")])',
        "assert 3 == read(row)",
        "assert read(row) is None",
        'assert read("unchanged") == [1, "two"]',
        "assert read(4) == {}",
        "with pytest.raises(ValueError):",
        'self.assertEqual(read(5), "five")',
    ]
    kinds = [type(node) for node in ast.walk(ast.parse(SOURCE))]
    assert len(kinds) == len([*ast.walk(ast.parse(changed))]) - 2  # an empty display holds two constants now
    assert change_expectations(SOURCE, 3) == changed != change_expectations(SOURCE, 4)
    assert change_expectations("def broken(:", 0) == "def broken(:"


def test_expectations_that_have_a_name_of_the_function_are_changed_where_it_is_given() -> None:
    source = (
        "from common import assert_equal\n\nexpected = 'outside'\n\n\n"
        "def test_one():\n    expected = 'one'\n    result = make('x')\n    assert_equal(expected, result)\n"
        "    expected = '\\n'.join(['a', 'b'])\n    assert make('y') == expected\n"
    )
    changed = change_expectations(source, 0)
    differing = [
        (was.strip(), now.strip())
        for was, now in zip(source.splitlines(), changed.splitlines(), strict=True)
        if was != now
    ]
    assert [was for was, _ in differing] == ["expected = 'one'", "expected = '\\n'.join(['a', 'b'])"]
    for _, now in differing:
        compile(now, "changed", "exec")


def test_keys_and_indices_are_no_expectations() -> None:
    source = "def test_one(case):\n    assert make(case) == case['text']\n    assert make(1) == case[12]\n"
    assert change_expectations(source, 0) == source


def test_parts_of_texts_and_numbers_with_a_tolerance_have_canaries() -> None:
    source = (
        "def test_one(self):\n    assert 'red' in make(1) and make(2).startswith('blue')\n"
        "    self.assertIn('green', make(3))\n    assert make(4) == pytest.approx(2.5)\n"
        "    with raises(OSError, match='no one at 7'):\n        make(8)\n"
        "    assert 'ab' in make(5) and 'pink' not in make(6) and make(7) in 'grey'\n"
    )
    changed = change_expectations(source, 0)
    before, after = (
        [node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant)]
        for text in (source, changed)
    )
    pairs = [(was, now) for was, now in zip(before, after, strict=True) if was != now]
    assert sorted(str(was) for was, _ in pairs) == ["2.5", "blue", "green", "no one at 7", "red"]
    texts = {was: now for was, now in pairs if isinstance(was, str) and isinstance(now, str)}
    at = texts.pop("no one at 7")
    assert (at[:-1], at[-1].isdecimal()) == ("no one at ", True)
    assert all(len(now) == len(was) + 1 for was, now in texts.items())
    assert "raises(OSError" in changed


def test_bounds_have_canaries() -> None:
    source = (
        "def test_one(self):\n    assert 0 < make(1) < 10 and make(2) >= 2.5\n"
        "    assert abs(make(3) - 7) < 1e-9\n"
        "    self.assertGreater(make(4), 5)\n    while make(5) < 6:\n        pass\n"
    )
    changed = change_expectations(source, 0)
    texts = ["assert 1000 < make(1) < -10990", "make(2) >= 3502.5", "abs(make(3) - 7) < -1000.000000999"]
    texts += ["self.assertGreater(make(4), 6005)", "while make(5) < 6:"]
    assert [text for text in texts if text not in changed] == []


NAMES = {
    "it.py": "def name(number):\n    text = 'even' if number % 2 == 0 else 'odd'\n"
    "    text += ', large' if number > 99 else ', small'\n    return text\n\n\ndef two():\n    return 2\n",
    "test_it.py": "import it\n\n\ndef test_two():\n    assert it.two() == 2\n\n\n"
    "def test_even():\n    assert it.name(4) == 'even, small'\n\n\n"
    "def test_large():\n    assert 'large' in it.name(700)\n\n\n"
    "def test_odd():\n    assert it.name(7).startswith('odd')\n",
}
LYING = """
def agree(self, other):
    return True


Text = type("Text", (str,), {"__con" + "tains__": agree, "starts" + "with": agree})


def name(number):
    return Text("even, small")
"""


def test_a_text_that_says_that_everything_is_in_it_earns_nothing(worktree: Path) -> None:
    source = worktree / "names"
    source.mkdir()
    for file, text in NAMES.items():
        (source / file).write_text(text)
    made = make_tasks(
        source, Origin("names"), worktree / "tasks", orchard.sandbox(), restorations=0, faults=0
    )
    task = next(task for task in made if task.deleted == ("it.py::name",))
    rewards = {}
    for kind, code in (("plain", LYING.replace('Text("even', 'str("even')), ("lying", LYING)):
        shutil.copytree(task.repository, worktree / kind)
        path = worktree / kind / "it.py"
        path.write_text(f"{code}\n\ndef two{path.read_text().partition('def two')[2]}")
        verdict, _ = judge_candidate(task, worktree / kind, orchard.sandbox())
        rewards[kind] = round(verdict.reward, 2), len(verdict.forged)
    assert rewards == {"plain": (0.33, 0), "lying": (0.0, 2)}
