"""Run the tests of a folder against a repository in a sandbox."""

import json
import secrets
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tracemill.environments.sandbox.marked_answer import read_marked_answer
from tracemill.environments.sandbox.python_runtime import PACKAGES, make_readable
from tracemill.environments.sandbox.sandbox import Ending, Limits, Mount, Sandbox
from tracemill.environments.verdict.decide import Values

_SCRIPTS = [Path(__file__).with_name(name) for name in ("run_pytest.py", "record_values.py")]
_INSIDE = "/runner"
TEST_LIMITS = Limits(seconds=120, output_bytes=64_000_000)
_TRACED = 4  # times as long as an untraced run may take: every line is recorded


@dataclass(frozen=True)
class TestRun:
    """The results of one test process: outcome and seconds by test id; empty if it gave no result.

    `values` are what blank tests compared, by test and number: see `record_values.py`. A traced run also has
    the functions that each test calls, and the lines that tests run, by file; a named one has the cases of
    each test function in their order.
    """

    __test__ = False  # pytest takes every class of this name for tests

    outcomes: Mapping[str, str]
    durations: Mapping[str, float]
    calls: Mapping[str, Sequence[str]]
    lines: Mapping[str, Sequence[int]]
    values: Values
    ending: Ending
    seconds: float
    output: str
    cases: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def passed(self, test: str) -> bool:
        """Return whether the process reported that this test passed."""
        return self.outcomes.get(test) == "passed"


@dataclass(frozen=True)
class TestBed:
    """The place where tests run: a sandbox, packages the tests import, import roots, limits."""

    __test__ = False

    sandbox: Sandbox
    packages: Path
    roots: tuple[str, ...] = (".",)
    limits: Limits = TEST_LIMITS

    def run(
        self,
        repository: Path,
        tests: Path,
        files: Sequence[str],
        *,
        traced: bool = False,
        named: bool = False,
        hash_seed: int = 0,
        order: int | None = None,
    ) -> TestRun:
        """Run test files, given relative to `tests`; both folders are read-only for them.

        The tests run in an order drawn by the seed `order`, or as they stand without it.

        The tests are copied first, because path, times and inode of a mounted folder are visible inside and
        would reveal which tests are right.
        """
        with tempfile.TemporaryDirectory(prefix="tracemill-tests-") as copied:
            shutil.copytree(tests, copied, copy_function=shutil.copyfile, dirs_exist_ok=True)
            return self._run(repository, make_readable(Path(copied)), files, traced, named, hash_seed, order)

    def _run(
        self,
        repository: Path,
        tests: Path,
        files: Sequence[str],
        traced: bool,
        named: bool,
        hash_seed: int,
        order: int | None,
    ) -> TestRun:
        marker = secrets.token_hex(16)
        request = {"marker": marker, "files": [*files], "roots": self.roots}
        request |= {"traced": traced, "named": named, "order": order}
        mounts = [
            Mount(repository, "/repository"),
            Mount(tests, "/tests"),
            Mount(self.packages, PACKAGES),
            *(Mount(script, f"{_INSIDE}/{script.name}") for script in _SCRIPTS),
        ]
        if self.sandbox.name == "unsafe-process":
            request["places"] = {
                "repository": str(repository), "tests": str(tests), "packages": str(self.packages)
            }  # fmt: skip
        ended = self.sandbox.run(
            [*self.sandbox.python, f"{_INSIDE}/{_SCRIPTS[0].name}"],
            mounts,
            cwd="/tmp",
            stdin=json.dumps(request).encode(),
            environment={"PYTHONHASHSEED": str(hash_seed)},
            limits=replace(self.limits, seconds=self.limits.seconds * _TRACED) if traced else self.limits,
        )
        found = _result(ended.text, marker)
        return TestRun(
            found.get("outcomes", {}),
            found.get("seconds", {}),
            found.get("calls", {}),
            found.get("lines", {}),
            found.get("values", {}),
            ended.ending,
            ended.seconds,
            ended.text[:20_000],
            found.get("cases", {}),
        )


def _result(output: str, marker: str) -> dict[str, Any]:
    """Return the last result after the marker; empty if none has the right shape."""
    value = read_marked_answer(output, marker)
    try:
        return {
            "outcomes": {str(test): str(outcome) for test, outcome in value["outcomes"].items()},
            "cases": {str(test): [*map(str, names)] for test, names in value.get("cases", {}).items()},
            "seconds": {str(test): float(seconds) for test, seconds in value["seconds"].items()},
            "calls": {str(test): [*map(str, called)] for test, called in value["calls"].items()},
            "lines": {str(file): [*map(int, lines)] for file, lines in value.get("lines", {}).items()},
            "values": {
                str(test): {str(number): [*map(str, texts)] for number, texts in numbered.items()}
                for test, numbered in value.get("values", {}).items()
            },
        }
    except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError):
        return {}
