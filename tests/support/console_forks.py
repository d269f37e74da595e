"""Serves calls of the console script from one process that has imported what they import.

Each call is a process of its own, forked: it has its own environment, files and end, and starts in 20 ms
instead of up to 3 s. A call is a line of JSON on stdin (`argv`, `env`, `cwd`, and the files `stdin`, `stdout`
and `stderr`); its exit code is a line on stdout, negative where a signal ended it.
"""

import atexit
import gc
import importlib
import json
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from typing import Any, NoReturn

LIMIT_S = 240
IMPORTED = (
    "datasets",
    "fastapi.encoders",
    "tracemill.cli.main",
    "tracemill.cli.doctor",
    "tracemill.flows.forget.forget_run",
    "tracemill.flows.run_flow",
    "tracemill.flows.ingest.ingest_run",
    "tracemill.flows.privacy_scan",
    "tracemill.cli.workspace_status",
    "tracemill.flows.workspace_commands",
    "tracemill.ingesters.claude_code.ingest_session",
    "tracemill.ingesters.openhands.ingest_files",
    "tracemill.ingesters.swe_gym.ingest_rows",
    "openai.resources.chat",
    "openai.resources.models",
    "pandas",
    "prefect.concurrency.services",
    "prefect.flow_engine",
    "prefect.task_engine",
    "prefect.utilities.visualization",
    "pyarrow.pandas_compat",
)


def calls() -> Iterator[dict[str, Any]]:
    """The calls, each in the process that is to answer it."""
    for line in iter(sys.stdin.readline, ""):
        child = os.fork()
        if child == 0:
            yield json.loads(line)
            return
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


def become(call: dict[str, Any]) -> None:
    """Take on the arguments, environment and files of a call."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        with open(call[name], mode) as file:  # noqa: PTH123
            os.dup2(file.fileno(), number)
        setattr(sys, name, open(number, mode, closefd=False))  # noqa: SIM115
    os.environ.clear()
    os.environ.update(call["env"])
    os.chdir(call["cwd"])
    sys.argv = ["tracemill", *call["argv"]]
    signal.alarm(LIMIT_S)


def leave(code: int) -> NoReturn:
    """The end of a process without taking apart what its parent imported, which takes up to a second."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    from tracemill.cli.commands import quiet_prefect
    from tracemill.cli.main import main

    quiet_prefect()
    for name in IMPORTED:
        importlib.import_module(name)
    gc.freeze()
    for one in calls():
        become(one)
        try:
            main()
        except SystemExit as stop:
            leave(stop.code if isinstance(stop.code, int) else int(stop.code is not None))
        except BaseException:
            traceback.print_exc()
            leave(1)
        leave(0)
