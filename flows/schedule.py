"""A whole run at the times of a cron schedule, as a served Prefect deployment.

It reports to the user's own Prefect server where one is named, else to one that is started here and ends with
this process. This process keeps the clock: the scheduler of a Prefect 3.8.8 server makes no run under
SQLAlchemy 2.1, which refuses its bulk insert, and says nothing of it. So a time that passes while nobody
serves is not made up for. A run that is due while one is going on the same workspace fails with a line on
stderr and starts nothing, as does one that text would have to be accepted for.
"""

import asyncio
import fcntl
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self
from uuid import UUID

from prefect import flow
from prefect.client.orchestration import get_client
from prefect.deployments import arun_deployment
from prefect.deployments.runner import RunnerDeployment
from prefect.runner import Runner
from prefect.runner._process_manager import ProcessManager
from prefect.server.schemas.schedules import CronSchedule
from prefect.settings import PREFECT_API_URL, PREFECT_HOME, temporary_settings
from prefect.types.entrypoint import EntrypointType
from pydantic import ValidationError

from tracemill.flows.config.run_settings import load_settings
from tracemill.flows.run_flow import harvest
from tracemill.flows.run_state.run_records import utc_now
from tracemill.flows.runtime.error_masking import Unsaid
from tracemill.flows.runtime.interrupts import remembered
from tracemill.flows.runtime.orphan_servers import end_leftover_servers, tag_possible_orphan_servers
from tracemill.flows.training.training_run import why_not_trained
from tracemill.records.errors import ConfigError, TracemillError, WorkspaceError
from tracemill.records.identity import digest
from tracemill.records.printable import printable

_START_S = 180.0
_WATCH_S = 2.0
_LOOK_S = 1.0
_SAVING_S = 30.0
"""Seconds a run that was told to stop has to write what it has, after its calls came home."""
LOCK = ".tracemill-serve-{}.lock"
"""In PREFECT_HOME: held while a `server` starts, and by whoever serves a configuration, by its digest."""
_FOLDER = "TRACEMILL_SERVE_FOLDER"
"""Variable of a scheduled run: where `tracemill serve` was called, and relative paths begin."""


@flow(name="tracemill-serve", persist_result=False, validate_parameters=False)
def serve_scheduled_run(config: str) -> None:
    """One run of a schedule over the configuration in the file `config`; says on stderr what came of it.
    Raises Unsaid where it failed."""
    _say(f"run of {config}")
    os.chdir(os.environ.get(_FOLDER, Path(config).parent))
    try:
        with remembered(terminated=True):
            record = harvest.fn(config)
    except Unsaid as failed:
        error = failed.error
        _say(f"failed: {error if isinstance(error, TracemillError) else failed}")
        raise
    _say(f"run {record['run_id']} ended: {_outcome(record)}")


def _outcome(record: dict[str, Any]) -> str:
    release, trained = record["release"], record.get("training")
    if release["path"] is None:
        said = release["note"] or "no release"
    else:
        made = "written" if release["created"] else "unchanged"
        said = f"{release['path']} ({release['rows']:,} rows, {made})"
    if record["summary"]["stopped"]:
        said += f"; not everything was asked: {record['summary']['stopped']}"
    return said if trained is None else f"{said}; training {why_not_trained(trained) or trained['path']}"


def _say(text: str) -> None:
    sys.stderr.write(f"{utc_now()} {printable(text, 2_000)}\n")
    sys.stderr.flush()


def serve_schedule(config: Path, cron: str, timezone: str) -> None:
    """Runs the configuration in the file `config` at the times of `cron`, until Ctrl-C.

    Raises ConfigError for a schedule or time zone that there is not or a broken configuration, WorkspaceError
    where no Prefect server comes up or this user serves the file already, KeyboardInterrupt at its end.
    """
    schedule = read_schedule(cron, timezone)
    with (
        lock_served_config(PREFECT_HOME.value(), config),
        _server() as url,
        temporary_settings({PREFECT_API_URL: url}),
    ):
        os.environ["PREFECT_API_URL"] = url
        grace_s = load_settings(config, {}).replay.come_home_s + _SAVING_S
        deployment: Any = serve_scheduled_run.to_deployment(
            f"{config.stem}-{digest('config', str(config), size=4)}",
            parameters={"config": str(config)},
            entrypoint_type=EntrypointType.MODULE_PATH,
        )
        _say(f"{config} runs at {cron!r} ({timezone}); Ctrl-C ends this")
        os.environ[_FOLDER] = str(Path.cwd())
        # asyncio takes a Ctrl-C in an orderly way only where nobody else's handler stands
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            with suppress(KeyboardInterrupt):
                asyncio.run(_serve(deployment, schedule, grace_s))
        finally:
            signal.signal(signal.SIGINT, before)
    raise KeyboardInterrupt


class _Runner(Runner):
    """Ends at SIGTERM, which supervisors of services send, as at Ctrl-C; Prefect's own way leaves a task
    that nobody awaits, and says so at length. A run that is told to stop has `grace_s` seconds for that."""

    def __init__(self, grace_s: float) -> None:
        super().__init__(limit=None)
        self._grace_s = grace_s

    async def __aenter__(self) -> Self:
        entered = await super().__aenter__()
        give_grace(self._process_manager, self._grace_s)
        return entered

    def handle_sigterm(self, *_: Any, **__: Any) -> None:
        """The signal handler."""
        signal.raise_signal(signal.SIGINT)


def give_grace(processes: ProcessManager, grace_s: float) -> None:
    """Have Prefect kill no process of a run before it had `grace_s` seconds since SIGTERM to end; Prefect's
    own 30 s cannot be set."""
    kill = processes.kill

    async def kill_late(flow_run_id: UUID, grace_seconds: float = 30, *, force: bool = False) -> None:
        handle = processes.get(flow_run_id)
        if force or handle is None or handle.pid is None:
            await kill(flow_run_id, grace_seconds, force=force)
            return
        with suppress(ProcessLookupError):
            handle.graceful_kill()
        until = time.monotonic() + max(grace_seconds, grace_s)
        while time.monotonic() < until:
            if await processes.wait_for_exit(flow_run_id, _LOOK_S):
                return
        await kill(flow_run_id, force=True)

    processes.kill = kill_late


async def _serve(deployment: RunnerDeployment, schedule: CronSchedule, grace_s: float) -> None:
    runner = _Runner(grace_s)
    await runner.aadd_deployment(deployment)
    clock = asyncio.create_task(_start_at(schedule, f"{deployment.flow_name}/{deployment.name}"))
    served = asyncio.create_task(runner.start())
    try:
        await asyncio.wait({served})
        served.result()
    except asyncio.CancelledError:
        clock.cancel()
        if runner.started:
            _say("ending; a run that is going on is told to stop")
            await runner.astop()  # with SIGTERM, and after its grace with SIGKILL
        raise
    finally:
        served.cancel()
        clock.cancel()


async def _start_at(schedule: CronSchedule, name: str) -> None:
    """Makes a run of the deployment at every time of the schedule; a server that does not answer costs that
    time alone."""
    watching: set[asyncio.Task[None]] = set()
    async for due in schedule_times(schedule):
        try:
            begun = await arun_deployment(name, timeout=0, as_subflow=False)
        except Exception as error:
            _say(f"run of {due:%Y-%m-%d %H:%M} not started: {type(error).__name__}")
            continue
        watch = asyncio.create_task(_say_death(begun.id, f"run of {due:%Y-%m-%d %H:%M}"))
        watching.add(watch)
        watch.add_done_callback(watching.discard)


async def _say_death(run_id: UUID, name: str) -> None:
    """Say on stderr that the process of a run died: by a signal, or before it came to the flow. A run that
    fails says so itself."""
    async with get_client() as client:
        while True:
            await asyncio.sleep(_WATCH_S)
            with suppress(Exception):  # a server that does not answer is asked again
                state = (await client.read_flow_run(run_id)).state
                if state is not None and state.is_final():
                    if state.is_crashed():
                        _say(f"{name} died: {state.message or 'its process ended without a word'}")
                    return


async def schedule_times(schedule: CronSchedule) -> AsyncIterator[datetime]:
    """The times of a schedule from now on, each when it has come; those that passed meanwhile are left
    out."""
    after = datetime.now(UTC)
    while True:
        [found] = await schedule.get_dates(1, start=after + timedelta(seconds=1))
        due = datetime.fromtimestamp(found.timestamp(), UTC)
        while (left_s := (due - datetime.now(UTC)).total_seconds()) > 0:  # noqa: ASYNC110
            await asyncio.sleep(min(left_s, 60.0))  # the wall clock may be set, or the machine sleep
        yield due
        after = max(due, datetime.now(UTC))


def read_schedule(cron: str, timezone: str) -> CronSchedule:
    """The schedule of five fields in a time zone. Raises ConfigError where there is none such; a sixth field
    is a second to some and a year to others. Or where none of its times ever comes."""
    wanted = "five fields, minute hour day month weekday, such as '0 3 * * *'"
    if len(cron.split()) != 5 and not cron.startswith("@"):
        raise ConfigError(f"--cron {cron!r} is none", wanted)
    try:
        CronSchedule(cron=cron, timezone="UTC")
    except ValidationError:
        raise ConfigError(f"--cron {cron!r} is none", wanted) from None
    try:
        schedule = CronSchedule(cron=cron, timezone=timezone)
    except ValidationError:
        raise ConfigError(f"--timezone {timezone!r} is none", "a name such as Europe/Berlin") from None
    try:
        asyncio.run(schedule.get_dates(1, start=datetime.now(UTC)))
    except ValueError:
        raise ConfigError(f"--cron {cron!r} never comes", "a day and month that there are") from None
    return schedule


@contextmanager
def _server() -> Iterator[str]:
    """The address of a Prefect server: the user's own, else one of this process while the block lasts. Its
    own session keeps a Ctrl-C from it, so that the schedule can be taken back at the end."""
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
    with lock_prefect_home(PREFECT_HOME.value()):
        server = subprocess.Popen(
            command, env=environment, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True
        )
        try:
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
    """While the block lasts this is what serves the configuration in the file `config`, of all that have this
    PREFECT_HOME: each of two would start a run at every time. Raises WorkspaceError where another one does,
    or the folder cannot be written."""
    with _locked(home, LOCK.format(digest("config", str(config), size=4)), wait=False) as free:
        if not free:
            raise WorkspaceError(
                f"another `tracemill serve` of {config} is running",
                "one at a time",
                "end it, or give all times in one --cron",
            )
        yield


@contextmanager
def lock_prefect_home(home: Path) -> Iterator[None]:
    """While the block lasts no other `tracemill serve` starts a server on the database of the same
    PREFECT_HOME: of two that make its tables at once one fails. Raises WorkspaceError where it cannot be
    written."""
    with _locked(home, LOCK.format("server"), wait=True):
        yield


@contextmanager
def _locked(home: Path, name: str, wait: bool) -> Iterator[bool]:
    """Whether the lock of this name is held, for as long as the block lasts; with `wait` it always is."""
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
        "the Prefect server did not start", "one", "try `prefect server start`, and set PREFECT_API_URL"
    )
