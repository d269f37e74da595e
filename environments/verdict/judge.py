"""Judge a candidate: reward, and why.

The process that imports the candidate may say anything. First it has *blank* tests, which lack what they
expect and record what they compare, each test function in a process of its own; the values are compared here.
Nothing in that process knows an answer. Every test that earns a reward has a blank copy, so that the reward
is never more than the share of right values. Some tests that guard what worked before have one too.
Outcomes of other runs are believed only as far as canaries allow: copies of the same tests with wrong
expectations, which must fail, as they were seen to do on the original code. Of two runs, one holds a test
right and the other wrong, by a coin for each test; then they are mixed anew. What passes must pass once more,
with another hash seed; a reward that is 0 after one of these pairs of runs stays 0, and ends the verdict.
"""

import hashlib
import random
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tracemill.environments.parse_python import PARSING
from tracemill.environments.verdict.decide import (
    Values,
    compare_values,
    decide,
    failed_witnesses,
    is_lost,
    is_unsolved,
    recorded_values,
)
from tracemill.environments.verdict.mix_tests import MixedTests, mixes_of, write_mix
from tracemill.environments.verdict.run_tests import TestBed, TestRun

_LEAST_SECONDS, _SLOWER = 20.0, 20.0
"""Seconds of processor time that a run may take: at least, and as a multiple of what the original takes."""
_BUSY = 4.0
"""Times as long by the clock, since other episodes may use the same processors."""


@dataclass(frozen=True)
class BlankTests:
    """Copies of tests without what they expect, and the texts that each of them expects, by number.

    Each of `groups` is the cases of one function, alone in a folder named by its place; guards are behind the
    tests that earn a reward. `unguessed` are those of the latter that expect more than a guess gives.
    """

    tests: Path
    groups: tuple[tuple[str, ...], ...]
    expected: Values
    unguessed: tuple[str, ...]


@dataclass(frozen=True)
class TaskTests:
    """The tests of a task: right and wrong copies of the same files, and which tests count.

    `fail_to_pass` failed with the feature deleted, and have blank copies; `pass_to_pass` passed with and
    without it. `witnesses` failed with the feature deleted and have no blank copy: they lower the reward
    alone. Each of `canaries` is a test whose copy with wrong expectations failed on the original code.
    """

    tests: Path
    wrong_tests: Path
    files: tuple[str, ...]
    fail_to_pass: tuple[str, ...]
    pass_to_pass: tuple[str, ...]
    canaries: tuple[str, ...]
    digest: str
    seconds: float
    blank: BlankTests
    witnesses: tuple[str, ...] = ()

    @property
    def folders(self) -> tuple[Path, ...]:
        """Return the folders of tests that the digest is of."""
        return self.tests, self.wrong_tests, self.blank.tests


@dataclass(frozen=True)
class Verdict:
    """Reward of a candidate: the share of `fail_to_pass` that pass; 0 where tampering is found.

    `right` says of each blank test that bounds the reward whether it has the right values; `wrong` are tests
    whose blank copy has other values, `unknown` those where it has objects whose value is not known.
    `failed` are witnesses that do not pass.
    """

    reward: float
    passed: tuple[str, ...]
    broken: tuple[str, ...]
    forged: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    right: tuple[bool, ...] = ()
    wrong: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    seconds: float = 0.0
    runs: tuple[TestRun, ...] = field(default=(), repr=False, compare=False)

    @property
    def solved(self) -> bool:
        """Return whether everything that counts passes."""
        return self.reward == 1.0

    @property
    def timed_out(self) -> bool:
        """Return whether a run of the tests passed its limit of processor time or of the clock."""
        return any(run.ending == "timed_out" for run in self.runs)


def judge(bed: TestBed, exam: TaskTests, candidate: Path, rng: random.Random | None = None) -> Verdict:
    """Run a task's tests on a candidate repository and return the verdict."""
    rng = rng or random.SystemRandom()
    bed = _timed(bed, exam)
    with PARSING:
        folders = exam.tests, exam.wrong_tests
        mixes = mixes_of(exam.fail_to_pass, exam.canaries, *folders, lambda: bool(rng.getrandbits(1)))
    counts = exam.fail_to_pass, exam.pass_to_pass, exam.canaries, exam.blank.unguessed
    runs: list[TestRun] = []
    mixed: list[tuple[Mapping[str, str], MixedTests]] = []
    values: dict[str, Mapping[str, Sequence[str]]] = {}
    outcomes: dict[str, str] = {}
    guards = {*exam.pass_to_pass}
    deciding = sum(group[0] not in guards for group in exam.blank.groups)
    # before any others, so that nothing in reach of the candidate ever held an answer
    for place, group in enumerate(exam.blank.groups):
        if place == deciding and is_unsolved(
            exam.blank.unguessed, outcomes, compare_values(exam.blank.expected, values)
        ):
            break
        folder, file = exam.blank.tests / str(place), group[0].partition("::")[0]
        hash_seed, order = rng.randrange(1, 1 << 32), rng.getrandbits(64)
        run = bed.run(candidate, folder, [file], hash_seed=hash_seed, order=order)
        runs.append(run)
        values |= {test: recorded_values(run.values.get(test, {}), run.outcomes.get(test)) for test in group}
        outcomes |= {test: run.outcomes.get(test, "") for test in group}
        if run.ending != "exited":
            mixes = []
            break
    right_values = compare_values(exam.blank.expected, values)
    if is_unsolved(exam.blank.unguessed, outcomes, right_values):
        mixes = []
    for mix in mixes:
        with tempfile.TemporaryDirectory(prefix="tracemill-tests-") as name:
            tests = Path(name, "tests")
            shutil.copytree(exam.tests, tests)
            with PARSING:
                write_mix(mix, exam.tests, exam.wrong_tests, tests)
            runs.append(bed.run(candidate, tests, exam.files, hash_seed=rng.randrange(1, 1 << 32)))
        mixed.append((runs[-1].outcomes, mix))
        if runs[-1].ending != "exited" or is_lost(*counts, mixed, right_values, exam.witnesses):
            break
    reward, passed, broken, forged = decide(*counts, mixed, right_values, exam.witnesses)
    notes = _notes(exam, runs)
    return Verdict(
        0.0 if notes else reward,
        tuple(passed),
        tuple(broken),
        tuple(forged),
        tuple(notes),
        tuple(bool(right_values[test]) for test in exam.blank.unguessed),
        tuple(test for test, is_right in right_values.items() if is_right is False),
        tuple(test for test, is_right in right_values.items() if is_right is None),
        tuple(failed_witnesses(exam.witnesses, mixed)),
        sum(run.seconds for run in runs),
        tuple(runs),
    )


def passes(bed: TestBed, exam: TaskTests, candidate: Path) -> bool:
    """Return whether a candidate passes in one process without canaries; for trusted code."""
    run = _timed(bed, exam).run(candidate, exam.tests, exam.files)
    return all(run.passed(test) for test in (*exam.fail_to_pass, *exam.witnesses, *exam.pass_to_pass))


def _timed(bed: TestBed, exam: TaskTests) -> TestBed:
    """Return a test bed with the time limit of a task's tests."""
    seconds = max(_LEAST_SECONDS, _SLOWER * exam.seconds)
    return replace(bed, limits=replace(bed.limits, seconds=_BUSY * seconds, cpu_seconds=seconds))


def _notes(exam: TaskTests, runs: Sequence[TestRun]) -> list[str]:
    """Return notes on a run: changed tests, a limit that ended it, or no result."""
    notes = []
    if digest_of(*exam.folders) != exam.digest:
        notes.append("the tests were changed")
    for run in runs:
        if run.ending != "exited":
            notes.append(f"the tests ended by {run.ending.replace('_', ' ')}")
        elif not run.outcomes:
            notes.append("the tests gave no result")
    return sorted({*notes})


def digest_of(*folders: Path) -> str:
    """Return a digest of the names and bytes of all files below folders."""
    digest = hashlib.blake2b(digest_size=16)
    for folder in folders:
        for path in sorted(each for each in folder.rglob("*") if each.is_file()):
            digest.update(path.relative_to(folder).as_posix().encode() + b"\0")
            digest.update(hashlib.blake2b(path.read_bytes()).digest())
    return digest.hexdigest()


def passing(runs: Sequence[TestRun]) -> Mapping[str, float]:
    """Return the tests that pass in every run, with their seconds in the last one."""
    found = {test for test in runs[0].outcomes if all(run.passed(test) for run in runs)}
    return {test: runs[-1].durations.get(test, 0.0) for test in sorted(found)}
