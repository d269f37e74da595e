"""Decide what runs of the tests come to; standard library alone, since tasks carry a copy of this file."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol


class WrongTests(Protocol):
    """The tests that a run executed with deliberately wrong expectations, to detect forged results."""

    def is_wrong(self, test: str) -> bool:
        """Return whether the run used the wrong version of a test."""
        ...


def decide(
    fail_to_pass: Sequence[str],
    pass_to_pass: Sequence[str],
    canaries: Sequence[str],
    mixed: Sequence[tuple[Mapping[str, str], WrongTests]],
) -> tuple[float, list[str], list[str], list[str]]:
    """Return the reward, and the tests that passed, that broke, and whose canaries passed.

    In each run some tests are replaced by a wrong version, whose expectations are deliberately false.
    `mixed` holds the outcomes of each run with its replaced tests. The reward is the share of `fail_to_pass`
    that pass in every run with their right version. It is 0 if a test of `pass_to_pass` fails in the first
    run with its right version, or if a canary passes: a wrong version that fails on the original code.
    """

    def right(test: str) -> list[bool]:
        return [outcomes.get(test) == "passed" for outcomes, mix in mixed if not mix.is_wrong(test)]

    passed = [test for test in fail_to_pass if right(test) and all(right(test))]
    broken = [test for test in pass_to_pass if not any(right(test)[:1])]
    forged = [
        test
        for test in canaries
        if any(mix.is_wrong(test) and outcomes.get(test) == "passed" for outcomes, mix in mixed)
    ]
    reward = 0.0 if broken or forged else len(passed) / len(fail_to_pass)
    return reward, passed, broken, forged


def is_lost(
    fail_to_pass: Sequence[str],
    pass_to_pass: Sequence[str],
    canaries: Sequence[str],
    mixed: Sequence[tuple[Mapping[str, str], WrongTests]],
) -> bool:
    """Return whether the reward is 0 whatever the remaining runs give.

    Runs come in pairs, and each test has its right version in one run of a pair and its wrong one in the
    other. A test that broke, was forged or did not pass in one pair counts as such in the end too, so that
    a reward of 0 after a pair is final.
    """
    return len(mixed) % 2 == 0 and decide(fail_to_pass, pass_to_pass, canaries, mixed)[0] == 0.0


def read_seen(output: str, marker: str) -> frozenset[tuple[str, str]]:
    """Return what the marked lines of an output name: what was done, and in which file and function."""
    found = (line.partition(marker)[2] for line in output.split("\n") if marker in line)
    return frozenset((kind, place) for kind, _, place in (each.partition("\t") for each in found))


def not_allowed(seen: Iterable[Sequence[str]], allowed: Iterable[Sequence[str]]) -> list[tuple[str, str]]:
    """Return what a candidate was seen to do that the original does not do in the same function.

    Both hold pairs of what was done and its place, `file:function`. What belongs to the deleted feature is
    allowed to the whole file, since its functions may get other names: its place is the file alone.
    """
    known = {tuple(each) for each in allowed}
    return sorted(
        (kind, place)
        for kind, place in {tuple(each) for each in seen}
        if not {(kind, place), (kind, place.rpartition(":")[0])} & known
    )
