"""Tasks of one line and of two: functions of a number whose names say what they do."""

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orchard

from tracemill.environments.feature_deletion.make_tasks import make_tasks
from tracemill.environments.task import Origin, Task

WORDS = ("two", "three", "four", "five", "six")
OPERATIONS = {"plus": "+", "minus": "-", "times": "*"}
FILE = "numbers_of.py"
ONE_LINE = ("plus_three", "times_four", "minus_two")
TWO_LINES = ("plus_two_times_five", "times_six_minus_three", "minus_four_plus_five")


def names_of(rng: random.Random) -> str:
    """A name of one or of two operations."""
    parts = rng.choice((1, 2))
    return "_".join(f"{rng.choice([*OPERATIONS])}_{rng.choice(WORDS)}" for _ in range(parts))


def expression(name: str, rng: random.Random | None = None, errors: float = 0.0) -> str:
    """What a function of this name returns; with errors of these odds in every operation and number."""
    words, text = name.split("_"), "number"
    for operation, word in zip(words[::2], words[1::2], strict=True):
        sign, value = OPERATIONS[operation], WORDS.index(word) + 2
        if rng and rng.random() < errors:
            sign = rng.choice([*OPERATIONS.values()])
        if rng and rng.random() < errors:
            value = rng.randrange(2, 7)
        text = f"{text} {sign} {value}" if text == "number" else f"({text}) {sign} {value}"
    return text


def write_library(folder: Path) -> Path:
    """Write the functions, of a line or of two, with two tests each."""
    code, tests = list[str](), [f"import {FILE.removesuffix('.py')} as library\n"]
    for name in (*ONE_LINE, *TWO_LINES):
        if name in ONE_LINE:
            body = [f"return {expression(name)}"]
        else:
            body = [f"number = {expression('_'.join(name.split('_')[:2]))}"]
            body += [f"return {expression('_'.join(name.split('_')[2:]))}"]
        code.append(f"def {name}(number):\n" + "".join(f"    {line}\n" for line in body))
        for number in (7, 20):
            value = eval(expression(name), {"number": number})
            tests.append(f"def test_{name}_{number}():\n    assert library.{name}({number}) == {value}\n")
    folder.mkdir(parents=True)
    (folder / FILE).write_text("\n\n".join(code))
    (folder / "test_numbers.py").write_text("\n\n".join(tests))
    return folder


def make(folder: Path) -> list[Task]:
    """Make a task of each function."""
    source = write_library(folder / "library")
    made = make_tasks(
        source,
        Origin("numbers", licence="MIT"),
        folder / "tasks",
        orchard.sandbox(),
        most=len(ONE_LINE) + len(TWO_LINES),
        restorations=0,
        least_lines=1,
    )
    return [*made]


def text_of(name: str) -> str:
    """The terse text of the task of a function."""
    return f"`{name}` in {FILE} does nothing but raise NotImplementedError. Make it work again."


def episodes(count: int, errors: float, seed: int = 0) -> list[Sequence[Mapping[str, Any]]]:
    """Episodes of a scripted agent: one command, and a word when it is done."""
    rng, found = random.Random(seed), list[Sequence[Mapping[str, Any]]]()
    for _ in range(count):
        name = names_of(rng)
        answer = expression(name, rng, errors)
        command = f"sed -i 's/raise NotImplementedError/return {answer}/' {FILE}"
        call = {"type": "function", "function": {"name": "Bash", "arguments": {"command": command}}}
        found.append(
            [
                {"role": "user", "content": text_of(name)},
                {"role": "assistant", "content": "", "tool_calls": [call]},
                {"role": "tool", "name": "Bash", "content": ""},
                {"role": "assistant", "content": "Done."},
            ]
        )
    return found
