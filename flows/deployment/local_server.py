"""Start a Prefect server for as long as a command lasts, where the user has none."""

import fcntl
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from prefect.settings import PREFECT_API_URL, PREFECT_HOME

from tracemill.flows.runtime.interrupts import on_interrupt, raise_if_interrupted
from tracemill.flows.runtime.orphan_servers import end_leftover_servers, tag_possible_orphan_servers
from tracemill.records.errors import WorkspaceError
from tracemill.records.identity import digest

_START_S = 180.0
LOCK = ".tracemill-serve-{}.lock"
"""In PREFECT_HOME: held while a `server` starts, and by whoever serves a configuration, by its digest."""


@contextmanager
def prefect_server(for_one_run: bool = False) -> Iterator[str]:
    """Yield the address of a Prefect server: the configured one, else one started for the block.

    The server runs in its own session, so that signals to the process group do not reach it and an
    interrupted flow can report its end. With `for_one_run` the server has no scheduling services.
    """
    if (named := PREFECT_API_URL.value()) is not None:
        yield named
        return
    end_leftover_servers()
    tag_possible_orphan_servers()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "uvicorn", "--factory", "prefect.server.api.server:create_app"]
    command += ["--host", "127.0.0.1", "--port", str(port), "--log-level", "error"]
    quiet = subprocess.DEVNULL
    environment = dict(os.environ) | {"PREFECT_UI_ENABLED": "0"}
    if for_one_run:
        environment["PREFECT__SERVER_EPHEMERAL"] = "1"  # as Prefect starts its own
    with lock_prefect_home(PREFECT_HOME.value()):
        with on_interrupt(lambda: None):  # what is pressed now is raised where the server can be ended
            server = subprocess.Popen(
                command, env=environment, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True
            )
        try:
            raise_if_interrupted()
            _await(f"http://127.0.0.1:{port}/api/health", server)
        except BaseException:
            _end(server)
            raise
    try:
        yield f"http://127.0.0.1:{port}/api"
    finally:
        _end(server)


def _end(server: "subprocess.Popen[bytes]") -> None:
    server.terminate()
    try:
        server.wait(10)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


@contextmanager
def lock_served_config(home: Path, config: Path) -> Iterator[None]:
    """Hold the lock for serving the configuration file `config` during the block.

    Two such processes under one PREFECT_HOME would each start a run at every time. Raises WorkspaceError if
    another one holds it, or the folder cannot be written.
    """
    with _locked(home, LOCK.format(digest("config", str(config), size=4)), wait=False) as free:
        if not free:
            raise WorkspaceError(
                f"another `tracemill schedule` of {config} is running",
                "one at a time",
                "end it, or give all times in one --cron",
            )
        yield


@contextmanager
def lock_prefect_home(home: Path) -> Iterator[None]:
    """Keep any other `tracemill schedule` from starting a server on the same PREFECT_HOME during the block.

    One of two servers that create its tables at once fails. Raises WorkspaceError if it cannot be written.
    """
    with _locked(home, LOCK.format("server"), wait=True):
        yield


@contextmanager
def _locked(home: Path, name: str, wait: bool) -> Iterator[bool]:
    """Hold the lock of this name during the block; yields whether it is held, with `wait` always True."""
    try:
        home.mkdir(parents=True, exist_ok=True)
        lock = (home / name).open("w")
    except OSError as error:
        raise WorkspaceError(
            f"{home} cannot be written ({error.strerror})", "a folder for Prefect", "set PREFECT_HOME"
        ) from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


def _await(url: str, server: "subprocess.Popen[bytes]") -> None:
    until = time.monotonic() + _START_S
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    while time.monotonic() < until and server.poll() is None:
        with suppress(OSError), opener.open(url, timeout=5):
            return
        time.sleep(0.2)
    raise WorkspaceError(
        "could not start the Prefect server", do="run `prefect server start` and set PREFECT_API_URL"
    )
