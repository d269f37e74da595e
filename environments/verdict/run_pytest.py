"""Run tests beside a candidate and print what each came to: inside a sandbox, with pytest alone.

    python -I -S run_pytest.py < request.json

The process imports the candidate, so nothing that it prints is proof: see `judge.py`.
"""

import builtins
import json
import os
import random
import sys
from pathlib import Path
from typing import Any

REPOSITORY, TESTS, PACKAGES = "/repository", "/tests", "/packages"


class Recorder:
    """A pytest plugin: outcomes and seconds by test id.

    If asked for, it also records the functions that each test calls, and the lines that tests run.
    """

    def __init__(
        self,
        traced: bool,
        folder: str,
        values: Any,
        order: random.Random | None,
    ) -> None:
        """Trace functions below a folder where `traced`.

        `values`, a `ValueRecorder`, is told which test runs. Tests run in the order that `order` draws, or as
        they stand without it.
        """
        self.outcomes: dict[str, str] = {}
        self.seconds: dict[str, float] = {}
        self.calls: dict[str, list[str]] = {}
        self.lines: dict[str, set[int]] = {}
        self._traced, self._folder, self._values = traced, folder, values
        self._order = order
        self._names: dict[str, str] = {}
        self._seen: set[str] = set()

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Identify the cases of a parametrized test by number, since the texts of their values may differ.

        A test's name may say what it expects, and is part of the path of `tmp_path`: there it is a number.
        The order of cases may say it too.
        """
        counts: dict[str, int] = {}
        for place, item in enumerate(items):
            base, bracket, _ = item.nodeid.partition("[")
            number = counts[base] = counts.get(base, -1) + 1
            self._names[item.nodeid] = f"{base}[{number}]" if bracket else base
            if type(item).__name__ != "TestCaseFunction":  # which finds its method by its name
                item.name = f"test_{place}"
        if self._order is not None:
            self._order.shuffle(items)

    def cases(self) -> dict[str, list[str]]:
        """Return the names of the cases of each test function in their order."""
        found: dict[str, list[str]] = {}
        for name in self._names:
            base, _, case = name.partition("[")
            found.setdefault(base, []).append(case)
        return found

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Keep the worst outcome of set-up, call and tear-down."""
        name = self._names.get(report.nodeid, str(report.nodeid))
        self.seconds[name] = self.seconds.get(name, 0.0) + report.duration
        before = self.outcomes.get(name)
        if before in (None, "passed") or report.outcome == "failed":
            self.outcomes[name] = "failed" if hasattr(report, "wasxfail") else report.outcome

    def pytest_runtest_setup(self, item: Any) -> None:
        """Name the test to the recorder of values, and start the trace."""
        self._values.test = self._names.get(item.nodeid, str(item.nodeid))
        if self._traced:
            self._seen = set()
            sys.settrace(self._trace)

    def pytest_runtest_teardown(self, item: Any) -> None:
        """Stop the trace."""
        if self._traced:
            sys.settrace(None)
            self.calls[self._names.get(item.nodeid, str(item.nodeid))] = sorted(self._seen)

    def _trace(self, frame: Any, event: str, argument: Any) -> Any:
        code = frame.f_code
        if not code.co_filename.startswith(self._folder):
            return None
        file = code.co_filename[len(self._folder) :]
        self._seen.add(f"{file}:{code.co_firstlineno}")
        lines = self.lines.setdefault(file, set())

        def trace_line(frame: Any, event: str, argument: Any) -> Any:
            lines.add(frame.f_lineno)
            return trace_line

        return trace_line


def _names_of(script: str) -> dict[str, Any]:
    """Return what a script beside this one defines.

    Its code has built-ins of its own and is in no module, where the candidate could replace it.
    """
    path = Path(__file__).with_name(script)
    names: dict[str, Any] = {"__name__": path.stem, "__builtins__": dict(vars(builtins))}
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), names)
    return names


def main() -> None:
    """Read a request from stdin and write the result, after its marker, to stdout."""
    request = json.loads(sys.stdin.read())
    places = request.get("places", {})
    repository, tests, packages = (
        places.get(name, default)
        for name, default in (("repository", REPOSITORY), ("tests", TESTS), ("packages", PACKAGES))
    )
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    sys.path += [packages, *(str(Path(repository, each)) for each in request["roots"])]
    sys.dont_write_bytecode = True
    os.chdir(tests)
    import pytest
    from _pytest import runner

    runner._update_current_test_var = lambda item, when: None  # it tells the name of the test
    values = _names_of("record_values.py")["ValueRecorder"]()
    values.install()
    order = random.Random(request["order"]) if request.get("order") is not None else None
    recorder = Recorder(request["traced"], repository + "/", values, order)
    arguments = ["-q", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", tests, "--confcutdir", tests]
    arguments += ["-W", "ignore", "--continue-on-collection-errors", "--tb=no", *request["files"]]
    pytest.main(arguments, plugins=[recorder])
    lines = {file: sorted(each) for file, each in recorder.lines.items()}
    found = {
        "cases": recorder.cases() if request.get("named") else {},
        "outcomes": recorder.outcomes,
        "seconds": recorder.seconds,
        "calls": recorder.calls,
        "lines": lines,
        "values": values.values,
    }
    channel.write(f"\n{request['marker']}{json.dumps(found)}\n")
    channel.flush()


if __name__ == "__main__":
    main()
