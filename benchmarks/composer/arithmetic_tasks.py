"""Tasks of one line and of two: functions of a number whose names say what they do."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tracemill.environments.feature_deletion.make_tasks import make_tasks
from tracemill.environments.sandbox.sandbox import Sandbox
from tracemill.environments.task import Origin, Task
from tracemill.train.hints.hint_rows import add_hint

WORDS = ("two", "three", "four", "five", "six")
OPERATIONS = {"plus": "+", "minus": "-", "times": "*"}
FILE = "numbers_of.py"
Message = dict[str, Any]
ONE_LINE = ("plus_three", "times_four", "minus_two")
TWO_LINES = ("plus_two_times_five", "times_six_minus_three", "minus_four_plus_five")


def random_name(rng: random.Random) -> str:
    """Return a name of one or of two operations, that of no task."""
    while (name := _random_name(rng)) in (*ONE_LINE, *TWO_LINES):
        pass
    return name


def _random_name(rng: random.Random) -> str:
    parts = rng.choice((1, 2))
    return "_".join(f"{rng.choice([*OPERATIONS])}_{rng.choice(WORDS)}" for _ in range(parts))


def expression(name: str, rng: random.Random | None = None, errors: float = 0.0) -> str:
    """Return what a function of this name gives; with errors of these odds in every operation and number."""
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


def make(folder: Path, sandbox: Sandbox) -> list[Task]:
    """Make a task of each function."""
    source = write_library(folder / "library")
    made = make_tasks(
        source,
        Origin("numbers", licence="MIT"),
        folder / "tasks",
        sandbox,
        most=len(ONE_LINE) + len(TWO_LINES),
        restorations=0,
        faults=0,  # every function is to be a task
        least_lines=1,
    )
    return [*made]


def text_of(name: str) -> str:
    """Return the terse text of the task of a function."""
    return f"`{name}` in {FILE} does nothing but raise NotImplementedError. Make it work again."


def command_of(answer: str) -> str:
    """Return the command that writes an answer."""
    return f"sed -i 's/raise NotImplementedError/return {answer}/' {FILE}"


def call_of(answer: str) -> Message:
    """Return the action of an agent that writes an answer."""
    function = {"name": "Bash", "arguments": {"command": command_of(answer)}}
    return {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"type": "function", "function": function}],
    }


def hint_of(answer: str) -> str:
    """Return a hint that holds an answer."""
    return f"A better next action is:\nBash {command_of(answer)}"


def error_of(name: str, answer: str) -> str:
    """Return what a check of a wrong answer says: the first number that it gives another result for."""
    for number in (7, 20):
        found, wanted = (eval(text, {"number": number}) for text in (answer, expression(name)))
        if found != wanted:
            return f"AssertionError: {name}({number}) is {found}, not {wanted}"
    return f"AssertionError: {name} is wrong"


def words_of(answer: str) -> str:
    """Return a hint that says in words what an answer does."""
    return f"The result should be {answer}."


def episodes(count: int, errors: float, seed: int = 0, hinted: float = 0.0) -> list[Sequence[Message]]:
    """Return episodes of a scripted agent: one command, and a word when it is done.

    With odds of `hinted` the task ends with a hint, which the agent follows.
    """
    rng, found = random.Random(seed), list[Sequence[Message]]()
    for _ in range(count):
        name = random_name(rng)
        asked = [{"role": "user", "content": text_of(name)}]
        if hinted and rng.random() < hinted:
            answer = expression(name)
            asked = add_hint(asked, hint_of(answer))
        else:
            answer = expression(name, rng, errors)
        done = {"role": "assistant", "content": "Done."}
        found.append([*asked, call_of(answer), {"role": "tool", "name": "Bash", "content": ""}, done])
    return found
