"""A clean environment (no keys, no proxies, no telemetry, no real services) and what tests share: the
command line, a Prefect server, whole runs.
"""

import atexit
import importlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from subprocess import PIPE, CompletedProcess
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import hub_stub
import lone_network
import orchard
import package_index
import postgres_server
import pytest
from console_says import NO_BROWSER, Call
from prefect_database import prefect_home

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples" / "sessions"
_CLEARED = ("OPENROUTER_API_KEY", "TRACEMILL_OPENROUTER_URL", "HF_TOKEN", "PREFECT_API_URL")
collect_ignore = ["data"]
_HUB = pytest.StashKey[hub_stub.Hub]()


def pytest_configure(config: pytest.Config) -> None:
    """The only Hub this process ever knows is one on loopback: its address is read when
    `huggingface_hub` is imported. Signals that whoever started the tests ignored, as nohup and a shell's
    background do, are none that a process of a test ignores."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    hub, _ = hub_stub.serve()
    config.stash[_HUB] = hub
    home = tempfile.mkdtemp(prefix="tracemill-hf-")
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    os.environ |= {
        "HF_ENDPOINT": hub.url,
        "HF_HOME": home,
        "HF_HUB_OFFLINE": "0",
        "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    }
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # threads of tiny models wait for each other, computing
    importlib.import_module("huggingface_hub.constants")


@pytest.fixture
def hub(request: pytest.FixtureRequest) -> Iterator[hub_stub.Hub]:
    """The Hub on loopback, empty."""
    hub = request.config.stash[_HUB]
    yield hub
    hub.clear()


@pytest.fixture(scope="session")
def postgres_cluster() -> Iterator[postgres_server.Server]:
    """A real PostgreSQL server, one for all tests of a process."""
    if postgres_server.binaries() is None and not os.environ.get(postgres_server.WANTED):
        pytest.skip(postgres_server.ABSENT)
    with postgres_server.serving() as server:
        yield server


@pytest.fixture
def postgres(postgres_cluster: postgres_server.Server) -> Iterator[postgres_server.Server]:
    """A real PostgreSQL server without databases, for tests marked `slow`."""
    yield postgres_cluster
    postgres_cluster.drop_databases()


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def ledger_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty ledger, of each kind of database in turn."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'ledger.db'}"
    return request.getfixturevalue("postgres").new_database()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What was not run for want of something on this machine is said in words: it proves nothing."""
    skipped = [str(report.longrepr) for report in terminalreporter.stats.get("skipped", [])]
    absent = (postgres_server.ABSENT, NO_BROWSER, lone_network.ABSENT, orchard.ABSENT, package_index.ABSENT)
    for reason in absent:
        if count := sum(reason in said for said in skipped):
            terminalreporter.write_line(f"NOT RUN: {count} tests; {reason}", red=True, bold=True)


_SHARED = {
    "whole runs": re.compile(r"[(,]\s*(demo|alone): Any\b"),
    "Prefect server": re.compile(r"[(,]\s*prefect_server: "),
}
"""Files with these fixtures go to one worker: the runs take long, and what is done at the server adds up."""
_LONGEST = (
    "Prefect server",
    "whole runs",
    "tests/benchmarks/test_teaching.py",
    "tests/environments/test_trl_rollout.py",
    "tests/environments/test_replayed_episodes.py",
    "tests/flows/test_consent.py",
    "tests/train/test_child.py",
    "tests/train/test_composer.py",
    "tests/train/test_composer_method.py",
    "tests/flows/test_action_labels.py",
    "tests/environments/test_verified_runs.py",
    "tests/environments/test_hacks.py",
    "tests/test_packaging.py",
    "tests/flows/test_own_modules.py",
    "tests/environments/test_verdict.py",
    "tests/flows/test_leftovers.py",
    "tests/flows/test_judge.py",
    "tests/flows/test_growth.py",
    "tests/environments/test_tasks.py",
)
"""What takes more than a minute, the longest first: it begins first, so that none ends alone."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Files that share something go to one worker, each other file to any."""
    from xdist.scheduler import LoadScopeScheduling

    scopes: dict[str, str] = {}
    for path in Path(__file__).parent.rglob("test_*.py"):
        name, text = str(path.relative_to(ROOT)), path.read_text()
        scopes[name] = next((scope for scope, shared in _SHARED.items() if shared.search(text)), name)
    assert {*_LONGEST} <= {*scopes.values()}

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return scopes[nodeid.split("::")[0]]

        def _assign_work_unit(self, node: Any) -> None:
            for scope in reversed(_LONGEST):
                if scope in self.workqueue:
                    self.workqueue.move_to_end(scope, last=False)
            super()._assign_work_unit(node)

    return ByFile(config, log)


@pytest.fixture(autouse=True)
def same_safe_path() -> Iterator[None]:
    """Let no test leave the PYTHONSAFEPATH behind that `main` sets for what it starts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONSAFEPATH", "")
        patch.delenv("PYTHONSAFEPATH")
        yield


@pytest.fixture(autouse=True, scope="session")
def clean_environment() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name in _CLEARED or name.lower().endswith("_proxy"):
                patch.delenv(name)
        patch.setenv("DO_NOT_TRACK", "1")
        patch.setenv("HF_HUB_OFFLINE", "1")
        yield


def free_port() -> int:
    """A port nobody listens on at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="session")
def prefect_env(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a run that reports to the session's Prefect server."""
    return {
        "PREFECT_HOME": str(prefect_home(tmp_path_factory.mktemp("prefect"))),
        "PREFECT_API_URL": f"http://127.0.0.1:{free_port()}/api",
        "DO_NOT_TRACK": "1",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    }


@pytest.fixture(scope="session")
def prefect_server(prefect_env: dict[str, str]) -> Iterator[dict[str, str]]:
    """One real Prefect server for the session: the environment of a run that reports to it."""
    url = urlsplit(prefect_env["PREFECT_API_URL"])
    log = Path(prefect_env["PREFECT_HOME"]) / "server.log"
    command = [sys.executable, "-c", _SERVE, str(url.port)]
    with log.open("wb") as said:
        server = subprocess.Popen(command, env=dict(os.environ) | prefect_env, stdout=said, stderr=said)
    try:
        _wait_for(f"{url.geturl()}/health", server, log)
        yield prefect_env
    finally:
        server.kill()
        server.wait()


_SERVE = """
import sys, uvicorn
from prefect.server.api.server import create_app
uvicorn.run(create_app(ephemeral=True, final=True), port=int(sys.argv[1]), log_level="error")
"""


def _wait_for(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 180
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except OSError:
            time.sleep(0.2)
    raise RuntimeError(f"the Prefect server did not start: {log.read_text()[-500:]}")


@pytest.fixture(scope="session")
def console(prefect_env: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Call]:
    """Runs the command line in a process of its own, forked from one that has imported it:
    `console("status", "-w", work, stdin="", NAME="value")`. No Prefect server: for all but `run`."""
    folder = tmp_path_factory.mktemp("console")
    command = [sys.executable, str(Path(__file__).parent / "support" / "console_forks.py")]
    env = dict(os.environ) | prefect_env
    with subprocess.Popen(command, stdin=PIPE, stdout=PIPE, text=True, env=env) as forks:

        def call(*arguments: object, stdin: str = "", **environment: str) -> CompletedProcess[str]:
            files = {name: folder / name for name in ("stdin", "stdout", "stderr")}
            files["stdin"].write_text(stdin)
            argv = [str(argument) for argument in arguments]
            asked: dict[str, object] = {name: str(path) for name, path in files.items()}
            asked |= {"argv": argv, "cwd": str(Path.cwd())}
            asked["env"] = dict(os.environ) | prefect_env | environment
            assert forks.stdin is not None
            assert forks.stdout is not None
            forks.stdin.write(json.dumps(asked) + "\n")
            forks.stdin.flush()
            code = int(forks.stdout.readline())
            said = (files[name].read_text() for name in ("stdout", "stderr"))
            return CompletedProcess(["tracemill", *argv], code, *said)

        yield call


@pytest.fixture(scope="session")
def tracemill(console: Call, prefect_server: dict[str, str]) -> Call:
    """As `console`, with the Prefect server: `tracemill("run", "--json", OPENROUTER_API_KEY="k")`."""
    return console


class Finished(NamedTuple):
    """A whole run that tests share. To be read only: copy `folder` to go on with it."""

    folder: Path
    """`sessions` beside the workspace `w`."""
    done: CompletedProcess[str]

    @property
    def record(self) -> dict[str, Any]:
        """What `--json` gave."""
        assert self.done.returncode == 0, self.done.stderr[-2000:]
        return json.loads(self.done.stdout)


SIMULATED = ROOT / "tests" / "data" / "simulated.toml"
PLANTED = 'Werk: "Käthe Müßig"\nVertrag Nordlicht-77'


@pytest.fixture(scope="session")
def demo(tracemill: Call, tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """Simulated teachers over the examples, with a text of two lines planted in one session."""
    folder = tmp_path_factory.mktemp("demo")
    shutil.copytree(EXAMPLES, folder / "sessions")
    source = next((folder / "sessions" / "claude_code").glob("*almanac/*.jsonl"))
    records = [json.loads(line) for line in source.read_text().splitlines()]
    for record in records:
        content = record.get("message", {}).get("content")
        if record["type"] == "user" and isinstance(content, list):
            content[0]["content"] = PLANTED
    source.write_text("\n".join(json.dumps(record) for record in records))
    flags = ("--path", folder / "sessions", "--workspace", folder / "w", "--json")
    return Finished(folder, tracemill("run", SIMULATED, *flags))


@pytest.fixture(scope="session")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """The console script itself, without teachers, behind a proxy that leads nowhere and with a Prefect
    server of the run's own, over the sessions since April."""
    folder = tmp_path_factory.mktemp("alone")
    script = str(Path(sys.executable).parent / "tracemill")
    flags = ["--path", str(EXAMPLES), "--since", "2026-04-01", "--workspace", str(folder / "w"), "--json"]
    proxies = dict.fromkeys(("https_proxy", "http_proxy"), "http://127.0.0.1:9")
    env = dict(os.environ) | proxies | {"PREFECT_HOME": str(prefect_home(folder / "prefect"))}
    command = [script, "run", *flags]
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=240, check=False)
    return Finished(folder, done)


@pytest.fixture(autouse=True)
def umask_as_it_was() -> Iterator[None]:
    """The command line makes files for their owner alone; a test that calls it here leaves no such umask."""
    before = os.umask(0o022)
    os.umask(before)
    yield
    os.umask(before)
