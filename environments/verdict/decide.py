"""Decide what runs of the tests come to; standard library alone, since tasks carry a copy of this file."""

from collections.abc import Mapping, Sequence
from typing import Protocol


class WrongTests(Protocol):
    """Says which tests of a run were the wrong version."""

    def is_wrong(self, test: str) -> bool:
        """Return whether the run had the wrong version of a test."""
        ...


def decide(
    fail_to_pass: Sequence[str],
    pass_to_pass: Sequence[str],
    canaries: Sequence[str],
    mixed: Sequence[tuple[Mapping[str, str], WrongTests]],
) -> tuple[float, list[str], list[str], list[str]]:
    """Return the reward, and the tests that passed, that broke, and whose canaries passed.

    `mixed` holds the outcomes of runs and which tests were wrong in each. The reward is the share of
    `fail_to_pass` that pass wherever they are right; it is 0 where a test of `pass_to_pass` fails in the
    first run that has it right, and where a canary passes, which none does on right code.
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
    """Return whether the reward is 0 whatever further runs say.

    Runs come in pairs, in which each test is right once and wrong once. What `decide` finds broken, forged or
    not passed after a pair it finds after all of them too.
    """
    return len(mixed) % 2 == 0 and decide(fail_to_pass, pass_to_pass, canaries, mixed)[0] == 0.0
