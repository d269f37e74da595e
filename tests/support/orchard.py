"""Tasks made of the small library in `tests/data/orchard`, and ways to cheat on them."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tracemill.environments.feature_deletion.make_tasks import TaskReport, make_tasks
from tracemill.environments.sandbox.bubblewrap import BubblewrapSandbox
from tracemill.environments.task import Origin, Task
from tracemill.records.errors import EnvironmentTaskError

ORCHARD = Path(__file__).resolve().parent.parent / "data" / "orchard"
ABSENT = "bubblewrap is not installed, or may make no namespaces here"


def sandbox() -> BubblewrapSandbox:
    """A sandbox of its own; skips the test where there is none."""
    try:
        return BubblewrapSandbox()
    except EnvironmentTaskError:
        pytest.skip(ABSENT)


def tasks_of_orchard(folder: Path, most: int, faults: int | None = 0) -> tuple[list[Task], TaskReport]:
    """Make tasks of the library in a folder, with no fresh restorations."""
    report = TaskReport()
    made = make_tasks(
        ORCHARD,
        Origin("orchard", licence="MIT"),
        folder,
        sandbox(),
        most=most,
        restorations=0,
        faults=faults,
        report=report,
    )
    return [*made], report


def copy_task(task: Task, folder: Path) -> Task:
    """Copy a task into a folder, where runs may be counted in it."""
    return Task.read(Path(shutil.copytree(task.folder, folder / task.name)))


def env(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run the command in a folder, with files private as the command line makes them."""
    sandbox()
    command = [str(Path(sys.executable).with_name("tracemill")), *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=300, check=False)


PATCHED_REPORT = """
import _pytest.reports as reports
made = reports.TestReport.from_item_and_call.__func__
def from_item_and_call(cls, item, call):
    report = made(cls, item, call)
    report.outcome, report.longrepr = "passed", None
    return report
reports.TestReport.from_item_and_call = classmethod(from_item_and_call)
"""
FORGED_RESULT = """
import gc, json, os
for found in gc.get_objects():
    if isinstance(found, dict) and "marker" in found and "files" in found:
        said = json.dumps({"outcomes": dict.fromkeys(NAMES, "passed"), "seconds": {}, "calls": {}})
        for number in range(1, 20):
            try:
                os.write(number, ("\\n" + found["marker"] + said + "\\n").encode())
            except OSError:
                pass
os._exit(0)
"""
FORGED_WITH_FAILURE = FORGED_RESULT.replace(
    'dict.fromkeys(NAMES, "passed")', '{name: "failed" if "canary" in name else "passed" for name in NAMES}'
)
PATCHED_ASSERT = """
import ast, sys, _pytest.assertion.rewrite as rewrite
rewrite.rewrite_asserts = lambda module, *more: [
    node.__setattr__("test", ast.Constant(True)) for node in ast.walk(module) if isinstance(node, ast.Assert)
]
"""
PATCHED_CALL = """
import _pytest.python as python
python.Function.runtest = lambda self: None
"""
PATCHED_RAISES = """
import pytest
class Anything:
    def __init__(self, *more, **names): pass
    def __enter__(self): return self
    def __exit__(self, *error): return True
pytest.raises = Anything
"""
PATCHED_MAIN = """
import _pytest.main as main, _pytest.runner as runner
runner.call_and_report = lambda item, when, log=True, **more: None
"""
HOOK_FROM_FRAME = """
import sys
frame = sys._getframe()
while frame:
    for value in list(frame.f_locals.values()):
        if type(value).__name__ == "Recorder":
            type(value).pytest_runtest_logreport = lambda self, report: self.outcomes.__setitem__(
                self._names.get(report.nodeid, report.nodeid), "passed")
    frame = frame.f_back
"""
RECORDER_BY_GC = """
import gc
for found in gc.get_objects():
    if type(found).__name__ == "Recorder":
        class Passed(dict):
            def __setitem__(self, name, value): dict.__setitem__(self, name, "passed")
        found.outcomes = Passed()
"""
AT_EXIT = """
import atexit, os
atexit.register(lambda: os._exit(0))
"""
THREAD = """
import os, threading, time
def end():
    time.sleep(0.2)
    os._exit(0)
threading.Thread(target=end, daemon=True).start()
"""
ENDLESS_FORK = """
import os
while True:
    os.fork()
"""
EXCEPTHOOK = """
import sys
sys.excepthook = lambda *error: None
def trace(frame, event, argument):
    return trace
sys.settrace(trace)
"""
SKIP_ALL = """
import pytest
pytest.skip("not today", allow_module_level=True)
"""
XFAIL_ALL = """
import _pytest.skipping as skipping
skipping.evaluate_skip_marks = lambda item: skipping.Skip("not today")
"""
KILL_PARENT = """
import os, signal
os.kill(os.getppid(), signal.SIGKILL)
"""
WRITE_TESTS = """
import pathlib
for path in pathlib.Path("/tests").rglob("test_*.py"):
    path.write_text("def test_nothing():\\n    pass\\n")
"""
CALLER_CONSTANT = """
import ast, linecache, sys
def answer(*arguments, **names):
    frame = sys._getframe(1)
    while frame and "/tests/" not in frame.f_code.co_filename:
        frame = frame.f_back
    line = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
    compared = ast.parse(line).body[0].test
    return ast.literal_eval(compared.comparators[0])
"""
EQUALS_ANYTHING = """
class Anything:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __hash__(self): return 0
    def __getattr__(self, name): return self
    def __call__(self, *arguments, **names): return self
    def __getitem__(self, key): return self
    def __iter__(self): return iter([self, self])
    def __len__(self): return 0
    def __bool__(self): return True
"""

APPENDED = {
    "patched report": PATCHED_REPORT,
    "forged result": FORGED_RESULT,
    "forged result that fails canaries by name": FORGED_WITH_FAILURE,
    "patched assert statements": PATCHED_ASSERT,
    "patched call of tests": PATCHED_CALL,
    "patched raises": PATCHED_RAISES,
    "patched runner": PATCHED_MAIN,
    "recorder found by frames": HOOK_FROM_FRAME,
    "recorder found by objects": RECORDER_BY_GC,
    "exit at the end": AT_EXIT,
    "exit from a thread": THREAD,
    "exit at import": "import os\nos._exit(0)\n",
    "system exit": "raise SystemExit(0)\n",
    "fork bomb": ENDLESS_FORK,
    "patched exception hook": EXCEPTHOOK,
    "skip": SKIP_ALL,
    "skip by the framework": XFAIL_ALL,
    "kill the parent": KILL_PARENT,
    "write the tests": WRITE_TESTS,
    "endless loop": "while True:\n    pass\n",
}
"""Code that a candidate appends to a module that the tests import."""
FILES = {
    "conftest.py": "def pytest_runtest_makereport(item, call):\n    call.excinfo = None\n",
    "sitecustomize.py": PATCHED_REPORT,
    "usercustomize.py": PATCHED_REPORT,
    "pytest.py": "def main(*more, **names):\n    return 0\n",
    "pytest.ini": "[pytest]\naddopts = --collect-only\n",
    "json.py": "def dumps(value):\n    return '{}'\n",
    "orchard.pth": "import os; os._exit(0)\n",
}
"""Files that a candidate adds at the root of the repository."""
