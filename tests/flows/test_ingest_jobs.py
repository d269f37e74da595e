"""`tracemill ingest` in several processes: how they begin, and that no shard is made twice."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from tracemill.flows.ingest.ingest_order import IngestOptions
from tracemill.flows.ingest.ingest_run import ingest_everything
from tracemill.flows.sources.source_spec import order_of
from tracemill.records.storage.trace_rows import traces_from_table
from tracemill.records.storage.workspace import Workspace

BEGINNING = """
import os, sys, threading
from pathlib import Path
from tracemill.flows.ingest.ingest_order import IngestOptions
from tracemill.flows.ingest.ingest_run import ingest_everything
from tracemill.flows.sources.source_spec import order_of
threads = []
os.register_at_fork(before=lambda: threads.append(threading.active_count()))
source, out = sys.argv[1:]
order = IngestOptions(order_of([source]), Path(out), unredacted=True, jobs=2, shard_mb=1e-6)
print(ingest_everything(order)["totals"]["traces"], threads)
"""

STOPPED = """
import os, signal, sys
from pathlib import Path
from tracemill.cli import main as cli
from tracemill.flows.ingest import parallel_ingest

source, place = sys.argv[1:]

def stop(frame, event, _called):
    if event == "call" and frame.f_code.co_name == "_begin_worker":
        (Path(place) / f"{os.getpid()}.pid").touch()
        os.kill(os.getpid(), signal.SIGSTOP)

def told(tasks, results=parallel_ingest._results):
    (Path(place) / "waits").touch()
    yield from results(tasks)

parallel_ingest._results = told
os.register_at_fork(after_in_child=lambda: sys.setprofile(stop))
sys.argv[1:] = ["ingest", source, "--workspace", place + "/w", "--jobs", "2"]
cli.main()
"""  # its processes stop as soon as they have work, and `waits` tells that it waits for them

PRESSED = """
import multiprocessing, time

def pressed(children=multiprocessing.active_children):
    made = children()
    while made and len(list(Path(place).glob("*.pid"))) < 2:
        time.sleep(0.01)
    if made:
        os.kill(os.getpid(), signal.NUMBER)
    return made

multiprocessing.active_children = pressed
"""  # put into STOPPED: a press while processes are made

KILLED = """
import os, signal, sys
from pathlib import Path
from tracemill.flows.ingest.ingest_order import IngestOptions
from tracemill.flows.ingest.ingest_run import ingest_everything
from tracemill.flows.sources.source_spec import order_of
from tracemill.records.errors import WorkspaceError

def end_in_the_middle(frame, event, _called):
    if event == "call" and frame.f_code.co_name == "_taken":
        os.kill(os.getpid(), signal.SIGKILL)

source, out = sys.argv[1:]
os.register_at_fork(after_in_child=lambda: sys.setprofile(end_in_the_middle))
order = IngestOptions(order_of([source]), Path(out), unredacted=True, jobs=2, shard_mb=1e-6)
try:
    ingest_everything(order)
except WorkspaceError as error:
    print(error)
"""  # its processes are killed while they read


def session(number: int, steps: int) -> bytes:
    """A Claude Code session of `steps` questions and answers."""
    lines: list[dict[str, Any]] = []
    for step in range(steps):
        for kind in ("user", "assistant"):
            message = {
                "role": kind,
                "content": "hello",
                "id": f"msg_{number}_{step}",
                "model": "claude-opus-4-5",
            }
            line = {"type": kind, "uuid": f"{number}-{step}-{kind}", "sessionId": f"s{number}"}
            line["parentUuid"] = str(lines[-1]["uuid"]) if lines else ""
            lines.append(line | {"message": message})
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def folder_of(folder: Path, *sessions: tuple[int, int]) -> Path:
    """A folder with a file for each number and steps of a session."""
    folder.mkdir()
    for place, (number, steps) in enumerate(sessions):
        (folder / f"{place}.jsonl").write_bytes(session(number, steps))
    return folder


def order(source: Path, out: Path, jobs: int, shard_mb: float = 1e-6) -> IngestOptions:
    return IngestOptions(order_of([str(source)]), out, unredacted=True, jobs=jobs, shard_mb=shard_mb)


def test_processes_begin_as_copies_before_there_is_another_thread(tmp_path: Path) -> None:
    """Copying a process that has another thread may copy a lock that nobody will ever give back."""
    folder = folder_of(tmp_path / "in", (1, 1), (2, 1), (3, 1))
    command = [sys.executable, "-c", BEGINNING, str(folder), str(tmp_path / "w")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split(maxsplit=1) == ["3", "[1, 1]\n"]


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_session_in_two_shards_is_written_once_by_its_fullest_copy(tmp_path: Path, jobs: int) -> None:
    folder = folder_of(tmp_path / "in", (1, 4), (2, 3), (1, 2), (1, 9))
    record = ingest_everything(order(folder, tmp_path / "w", jobs))
    work = Workspace.open(tmp_path / "w", create=False, text="recorded")
    traces = [trace for table in work.current("traces") for trace in traces_from_table(table)]
    assert sorted(trace.step_count for trace in traces) == [3, 9]
    totals = record["totals"]
    assert (
        totals["traces"],
        totals["states"],
        totals["flags"]["same session in two files, the longer kept"],
    ) == (2, 12, 2)
    assert {str(path.relative_to(work.root)) for path in (work.root / "traces").rglob("*.parquet")} == {
        shard.path for shard in work.live("traces")
    }


@pytest.mark.parametrize("jobs", [1, 2])
def test_of_two_copies_of_as_many_steps_the_one_that_has_the_last_result_stays(
    tmp_path: Path, jobs: int
) -> None:
    """A copy made while a tool was at work, whatever its file is called."""
    call = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "true"}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "done"}
    shared = {"sessionId": "s1", "cwd": "/p", "version": "2.1.0"}
    lines: list[dict[str, Any]] = [
        {"type": "user", "uuid": "a", "parentUuid": None, "message": {"role": "user", "content": "go"}},
        {
            "type": "assistant",
            "uuid": "b",
            "parentUuid": "a",
            "message": {"role": "assistant", "id": "msg_1", "model": "claude-opus-4-5", "content": [call]},
        },
        {"type": "user", "uuid": "c", "parentUuid": "b", "message": {"role": "user", "content": [result]}},
    ]
    written = [json.dumps(shared | line).encode() + b"\n" for line in lines]
    for name, contents in {"early": (2, 3), "late": (3, 2)}.items():
        source = tmp_path / name
        source.mkdir()
        for place, count in enumerate(contents):
            (source / f"{place}.jsonl").write_bytes(b"".join(written[:count]))
        work = tmp_path / f"{name}-work"
        ingest_everything(order(source, work, jobs))
        tables = Workspace.open(work, create=False, text="recorded").current("traces")
        (trace,) = (trace for table in tables for trace in traces_from_table(table))
        assert (trace.step_count, trace.contexts[0].messages[-1].content) == (1, "done")


def test_a_shorter_copy_found_later_never_takes_the_place_of_a_longer_one(tmp_path: Path) -> None:
    """The shortest is first by night and last by name: what is remembered of it is not what is there."""
    source = folder_of(tmp_path / "in")
    for place, steps in ((2, 3), (0, 9), (1, 5)):
        (source / f"{place}.jsonl").write_bytes(session(1, steps))
        ingest_everything(order(source, tmp_path / "w", 1))
    tables = Workspace.open(tmp_path / "w", create=False, text="recorded").current("traces")
    assert [trace.step_count for table in tables for trace in traces_from_table(table)] == [9]


def _two_shards(tmp_path: Path) -> Path:
    """Return a folder with sessions for two processes: a shard has 16 MB."""
    source = folder_of(tmp_path / "in", (1, 1))
    with (source / "0.jsonl").open("ab") as large:
        large.write((b"x" * 999 + b"\n") * 17_000)
    (source / "1.jsonl").write_bytes(session(2, 1))
    return source


@pytest.fixture
def stopped(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """`tracemill ingest` whose two processes have stopped, and their ids."""
    command = [sys.executable, "-c", STOPPED, str(_two_shards(tmp_path)), str(tmp_path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as running:
        try:
            _wait_for(lambda: (tmp_path / "waits").exists() and len(list(tmp_path.glob("*.pid"))) == 2)
            yield running, [int(path.stem) for path in tmp_path.glob("*.pid")]
        finally:
            running.kill()
            for pid in (int(path.stem) for path in tmp_path.glob("*.pid")):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def test_a_second_press_ends_what_is_at_work(
    tmp_path: Path, stopped: tuple[subprocess.Popen[str], list[int]]
) -> None:
    running, pids = stopped
    running.send_signal(signal.SIGINT)
    with pytest.raises(subprocess.TimeoutExpired):
        running.wait(0.3)
    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=20)
    assert (running.returncode, said.count("tracemill: interrupted")) == (130, 1)
    assert not any(map(_lives, pids))
    assert sorted(path.name for path in (tmp_path / "w").glob(".*")) == [".gitignore", ".run-lock"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_press_while_processes_are_made_leaves_none(tmp_path: Path, number: signal.Signals) -> None:
    pressed = PRESSED.replace("NUMBER", number.name)
    code = STOPPED.replace("os.register_at_fork", f"{pressed}\nos.register_at_fork")
    command = [sys.executable, "-c", code, str(_two_shards(tmp_path)), str(tmp_path)]
    pids: list[int] = []
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as running:
        try:
            _, said = running.communicate(timeout=30)
        finally:
            running.kill()
            pids += [int(path.stem) for path in tmp_path.glob("*.pid")]
            alive = [pid for pid in pids if _lives(pid)]
            for pid in alive:
                os.kill(pid, signal.SIGKILL)
    assert (running.returncode, said.count("tracemill: interrupted")) == (130, 1)
    assert len(pids) == 2
    assert alive == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_command_that_is_told_to_end_waits_for_its_processes_and_ends(
    stopped: tuple[subprocess.Popen[str], list[int]], number: signal.Signals
) -> None:
    running, pids = stopped
    running.send_signal(number)
    with pytest.raises(subprocess.TimeoutExpired):
        running.wait(0.3)
    for pid in pids:
        os.kill(pid, signal.SIGCONT)
    _, said = running.communicate(timeout=20)
    assert (running.returncode, said.count("tracemill: interrupted")) == (130, 1)
    assert not any(map(_lives, pids))


def test_no_process_outlives_the_one_that_was_killed(
    stopped: tuple[subprocess.Popen[str], list[int]],
) -> None:
    running, pids = stopped
    running.send_signal(signal.SIGKILL)
    assert running.wait(20) == -signal.SIGKILL
    for pid in pids:
        os.kill(pid, signal.SIGCONT)
    _wait_for(lambda: not any(map(_lives, pids)))


def test_a_process_of_the_caller_lives_on(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "in", (1, 1), (2, 1), (3, 1))
    other = get_context("spawn").Process(target=time.sleep, args=(60,))
    other.start()
    try:
        ingest_everything(order(folder, tmp_path / "w", 2))
        assert other.is_alive()
    finally:
        other.kill()
        other.join()


def test_a_killed_process_ends_the_command(tmp_path: Path) -> None:
    source = folder_of(tmp_path / "in", *((number, 1) for number in range(20)))
    command = [sys.executable, "-c", KILLED, str(source), str(tmp_path / "w")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.stdout.startswith("a process of this command was killed"), done.stderr
    assert done.returncode == 0


def _wait_for(holds: Callable[[], bool], most_s: float = 20) -> None:
    end = time.monotonic() + most_s
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
