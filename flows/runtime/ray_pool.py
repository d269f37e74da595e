"""Execute shards of stages on Ray: one actor for each worker, results in the order of the jobs.

A worker gives counts, paths and ids; sessions and replies stay in the tables of the workspace. An error of a
job travels as a value, since Ray stores and shows what a task raises. A worker that dies is started again and
does its job anew: what was bought is in the ledger. Ray: https://docs.ray.io/en/latest/ray-core/actors.html
"""

import os
import pickle
import secrets
import shutil
import socket
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from threading import Lock
from typing import Any, TypeVar

from tracemill.flows.runtime.error_masking import MaskedError
from tracemill.flows.runtime.interrupts import hold_interrupts, pass_on_interrupt
from tracemill.records.errors import ClusterError, ConfigError

J = TypeVar("J")
R = TypeVar("R")
OpenWorker = Callable[[], AbstractContextManager[Callable[[J], R]]]
"""Opens, in a worker, what does one job after another; both sides of it are pickled."""
_STORE_BYTES = 100 * 1024 * 1024
"""Memory of a local object store: results are small."""
_RESTARTS = 3
_HOME_S = 10.0
"""Seconds beyond `grace_s` that interrupted workers have to write the answers they got."""
_CONNECT_S = 5.0


def require_ray() -> None:
    """Raise ConfigError if Ray is not installed."""
    if find_spec("ray") is None:
        raise ConfigError(
            "[cluster] is configured and Ray is not installed",
            "the extra `cluster`",
            "pip install 'tracemill[cluster]', or remove [cluster]",
        )


def _ray() -> Any:
    """Import Ray untyped, since its annotations are too loose to check calls."""
    return import_module("ray")


@dataclass(slots=True)
class _Outcome:
    """The result of a job, or the error it raised."""

    value: Any = None
    error: Exception | None = None


class RayWorker:
    """A Ray actor that opens a job function once, and runs jobs one by one."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._busy = Lock()
        self._work: Callable[[Any], Any] | None = None

    def ready(self) -> int:
        """Return the id of this process."""
        return os.getpid()

    def do(self, open_worker: bytes, job: Any) -> _Outcome:
        """Run a job with the function that the pickled `open_worker` opens, once for all jobs.

        An interrupted job returns nothing: its driver only waits for the end.
        """
        try:
            with self._busy:
                if self._work is None:
                    opened: OpenWorker[Any, Any] = pickle.loads(open_worker)
                    self._work = self._stack.enter_context(opened())
                return _Outcome(self._work(job))
        except KeyboardInterrupt:
            return _Outcome()
        except Exception as error:
            return _Outcome(error=_portable(error))

    def interrupt(self) -> None:
        """Stop as after Ctrl-C: no new calls, calls in flight finish."""
        pass_on_interrupt()

    def close(self) -> None:
        """Close the job function, after the running job has ended."""
        with self._busy:
            self._stack.close()


def _portable(error: Exception) -> Exception:
    """Return an error that can be pickled; one that cannot is replaced by the name of its type."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return MaskedError(type(error).__name__)
    return error


@dataclass(frozen=True, slots=True)
class RayPool:
    """A pool of workers on a connected Ray cluster."""

    workers: int
    wait_s: float
    grace_s: float
    pids: list[int] = field(default_factory=list[int])
    """Process ids of the workers that were started, on whatever machine they are."""

    @contextmanager
    def map(self, open_worker: OpenWorker[J, R], jobs: Sequence[J]) -> Iterator[Iterator[R]]:
        """Yield the result of each job in order; an error of a job is raised in its place.

        Jobs that have not started at the end of the block are dropped. Raises ClusterError if the cluster has
        no room for the workers, or loses them too often.
        """
        if not jobs:
            yield iter(())
            return
        ray = _ray()
        actor = ray.remote(num_cpus=1, max_concurrency=2, max_restarts=_RESTARTS, max_task_retries=_RESTARTS)(
            RayWorker
        )
        opened = ray.put(pickle.dumps(open_worker))
        actors = [actor.remote() for _ in range(min(self.workers, len(jobs)))]
        try:
            self._wait_until_ready(actors)
            yield _results(actors, opened, jobs)
            self._each(actors, "close", _HOME_S)
        except BaseException:
            self._each(actors, "interrupt", _HOME_S)
            self._each(actors, "close", self.grace_s + _HOME_S)
            raise
        finally:
            for each in actors:
                ray.kill(each)

    def _wait_until_ready(self, actors: Sequence[Any]) -> None:
        ray = _ray()
        ready, missing = ray.wait(
            [each.ready.remote() for each in actors], num_returns=len(actors), timeout=self.wait_s
        )
        if missing:
            raise ClusterError(
                f"the Ray cluster started {len(ready)} of {len(actors)} workers in {self.wait_s:g} s",
                "one free CPU for each worker",
                "lower cluster.workers, raise cluster.wait_s, or add machines",
            )
        with _ray_errors():
            self.pids.extend(ray.get(ready))

    def _each(self, actors: Sequence[Any], method: str, timeout_s: float) -> None:
        """Call a method of all workers and wait for it; lost workers are skipped."""
        ray = _ray()
        refs = [getattr(each, method).remote() for each in actors]
        with suppress(ray.exceptions.RayError):
            ray.get(refs, timeout=timeout_s)


def _results(actors: Sequence[Any], opened: Any, jobs: Sequence[Any]) -> Iterator[Any]:
    """Keep every worker busy, and yield the results in the order of the jobs."""
    pool = import_module("ray.util").ActorPool(list(actors))
    with _ray_errors():
        for done in pool.map(lambda actor, job: actor.do.remote(opened, job), jobs):
            if done.error is not None:
                raise done.error
            yield done.value


@contextmanager
def _ray_errors() -> Iterator[None]:
    """Raise ClusterError, without Ray's message, if workers are lost."""
    ray = _ray()
    try:
        yield
    except ray.exceptions.RayError as error:
        raise ClusterError(
            f"workers of the Ray cluster were lost ({type(error).__name__})",
            "workers that stay alive, with the same tracemill as here",
            "run the same command again: nothing is paid for twice",
        ) from None


@contextmanager
def open_ray_pool(
    workers: int, address: str | None = None, wait_s: float = 300.0, grace_s: float = 30.0
) -> Iterator[RayPool]:
    """Connect to the Ray cluster at `address`, or start Ray on this machine, during the block.

    `grace_s` is the number of seconds that interrupted workers may wait for calls in flight. Raises
    ConfigError without Ray, ClusterError if there is no cluster.
    """
    require_ray()
    with ExitStack() as stack:
        stack.enter_context(_environment({"RAY_USAGE_STATS_ENABLED": "0"}))
        if address is None:
            stack.enter_context(_environment({"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": _token()}))
            folder = tempfile.mkdtemp(prefix="tm-", dir=_short_temporary_folder())
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            how: dict[str, Any] = {
                "num_cpus": workers,
                "num_gpus": 0,
                "object_store_memory": _STORE_BYTES,
                "include_dashboard": False,
                "_node_ip_address": "127.0.0.1",
                "_temp_dir": folder,
            }
        else:
            _require_open_port(address)
            how = {"address": address}
        _connect(address, how)
        stack.callback(_disconnect)
        yield RayPool(workers, wait_s, grace_s)


def _connect(address: str | None, how: dict[str, Any]) -> None:
    ray = _ray()
    try:
        with hold_interrupts():
            ray.init(**how, log_to_driver=False, configure_logging=False)
    except (ray.exceptions.RayError, ConnectionError, RuntimeError, ValueError, OSError) as error:
        raise ClusterError(
            f"Ray cannot be used at {address or 'this machine'} ({type(error).__name__})",
            "a Ray cluster that answers, of the same versions of Python and Ray",
            "check cluster.address and RAY_AUTH_TOKEN",
        ) from None


def _disconnect() -> None:
    ray = _ray()
    with hold_interrupts():
        ray.shutdown()


def _require_open_port(address: str) -> None:
    """Raise ClusterError if nothing listens at HOST:PORT; Ray itself would retry for a minute."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdigit():
        return  # `auto`, or the name of a cluster: Ray says at once whether there is one
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_S).close()
    except OSError as error:
        raise ClusterError(
            f"nothing answers at the Ray address {address} ({error.strerror or type(error).__name__})",
            "the address of a running Ray cluster",
            "start one with `ray start --head`, or set cluster.address",
        ) from None


@cache
def _token() -> str:
    """Return a token for a Ray cluster of this process: its ports are open to other machines and users."""
    return secrets.token_hex(32)


def _short_temporary_folder() -> str:
    """Return a folder with a short name, since paths of Ray's sockets have at most 107 characters."""
    folder = tempfile.gettempdir()
    return folder if len(folder) < 30 else "/tmp"


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables that are not set, during the block."""
    fresh = {name: value for name, value in values.items() if name not in os.environ}
    os.environ.update(fresh)
    try:
        yield
    finally:
        for name in fresh:
            os.environ.pop(name, None)
