"""Decide what runs of the tests come to; standard library alone, since tasks carry a copy of this file."""

from collections.abc import Mapping, Sequence


def decide(
    fail_to_pass: Sequence[str],
    pass_to_pass: Sequence[str],
    canaries: Sequence[str],
    right: Mapping[str, str],
    wrong: Mapping[str, str],
    again: Mapping[str, str],
) -> tuple[float, list[str], list[str], list[str]]:
    """Return the reward, and the tests that passed, that broke, and whose canaries passed.

    Outcomes are those of the right tests, of the wrong ones, and of the right ones once more. The reward is
    the share of `fail_to_pass` that pass both times; it is 0 where a test of `pass_to_pass` fails, and where
    a canary passes, which none does on right code.
    """
    passed = [test for test in fail_to_pass if right.get(test) == again.get(test) == "passed"]
    broken = [test for test in pass_to_pass if right.get(test) != "passed"]
    forged = [test for test in canaries if wrong.get(test) == "passed"]
    reward = 0.0 if broken or forged else len(passed) / len(fail_to_pass)
    return reward, passed, broken, forged
