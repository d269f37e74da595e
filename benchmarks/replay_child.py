"""The child processes of `replay.py`; each prints its measurements as one line of JSON.

    python benchmarks/replay_child.py replay|load|bare PORT FLIGHT FOLDER

The states lie in FOLDER as shards of sessions, and one shard at a time is in memory, as in a run. `replay`
asks them all: decisions, ledger on disk, request, reply, answer stored, vote. `load` only reads them, and so
has what the same process takes without a replay. `bare` sends the same texts through aiohttp alone, with as
many calls in flight: what no engine on this machine can beat by much.
"""

import asyncio
import json
import resource
import sys
import time
from pathlib import Path
from typing import NamedTuple

import orjson
from aiohttp import ClientSession, ClientTimeout, TCPConnector

from tracemill.agreement.voting.policy import VotePolicy
from tracemill.agreement.voting.vote import tally_votes
from tracemill.records.message import Message, ToolCall, ToolSpec
from tracemill.records.trace import Context, Step, Trace, TraceState
from tracemill.teachers.build_teachers import build_teachers
from tracemill.teachers.core.question import Question
from tracemill.teachers.core.teacher_settings import (
    CompatibleTeacherSettings,
    GateSettings,
    PriceSettings,
    ReplaySettings,
)
from tracemill.teachers.gate.gate_decisions import make_gate_decisions
from tracemill.teachers.ledger.ledger import Ledger, sqlite_url
from tracemill.teachers.replay.replay_run import ReplayRequest, replay

RUN = "bench"
TOOL = ToolSpec("read_file", "reads", {"type": "object", "properties": {"path": {"type": "string"}}})


class Case(NamedTuple):
    """A state with what is asked there."""

    state: TraceState
    question: Question


def case_of(number: int, text: str) -> Case:
    """Build a session of one step whose student reads a file of its own."""
    call = ToolCall("c0", TOOL.name, json.dumps({"path": f"src/other_{number}.py"}))
    messages = (Message("user", text), Message("assistant", "", tool_calls=(call,)))
    context = Context(index=0, messages=messages, steps=(Step(index=0, cut=1, family="meta"),))
    trace = Trace(f"t{number}", "openhands", "bench", "openhands", (context,))
    state = next(iter(trace.states()))
    shown = state.messages
    return Case(
        state, Question(str(state.step_id), trace.trace_id, shown, (TOOL,), f"p{number}", "1", "r1", "meta")
    )


def shards_in(folder: Path) -> list[Path]:
    """Return the files of the states."""
    return sorted(folder.glob("*.jsonl"))


def cases_of(shard: Path) -> list[Case]:
    """Return the states of a shard."""
    with shard.open("rb") as lines:
        return [case_of(*orjson.loads(line)) for line in lines]


def teacher_at(port: int) -> CompatibleTeacherSettings:
    """Return the stub server as a teacher with a price."""
    prices = PriceSettings.model_validate({"prompt_usd": 0.3, "completion_usd": 0.9})
    return CompatibleTeacherSettings(
        model="stub-model", base_url=f"http://127.0.0.1:{port}/v1", prices=prices
    )


def run_replay(port: int, flight: int, folder: Path) -> dict[str, float]:
    """Every state asked and voted on; the CPU seconds of that, and how many answered."""
    with Ledger(sqlite_url(folder / "ledger.sqlite")) as ledger:
        ledger.open_run(RUN, 10**15)
        done = [replay_shard(ledger, teacher_at(port), flight, shard) for shard in shards_in(folder)]
    return {"cpu_s": sum(cpu_s for cpu_s, _ in done), "answered": sum(answered for _, answered in done)}


def replay_shard(
    ledger: Ledger, teacher: CompatibleTeacherSettings, flight: int, shard: Path
) -> tuple[float, int]:
    """Replay one shard."""
    cases, policy = cases_of(shard), VotePolicy(threshold=1, min_families=1)
    before = time.process_time()
    questions = [case.question for case in cases]
    decisions = make_gate_decisions(questions, [teacher], 0, GateSettings())
    built, settings = build_teachers([teacher], {}), ReplaySettings(concurrency=flight)
    replies = asyncio.run(replay(ReplayRequest(questions, decisions, built, ledger, RUN, settings))).replies
    for case, reply in zip(cases, replies, strict=True):
        tally_votes(case.state, (TOOL,), [reply], policy)
    return time.process_time() - before, sum(reply.failure is None for reply in replies)


def run_load(port: int, flight: int, folder: Path) -> dict[str, float]:
    """Read the same states and ask nothing."""
    return {"cpu_s": 0.0, "answered": sum(len(cases_of(shard)) for shard in shards_in(folder))}


async def post_all(port: int, flight: int, folder: Path) -> int:
    """Post the texts of all states with aiohttp, `flight` at once; return how many were answered."""
    cases = (case for shard in shards_in(folder) for case in cases_of(shard))
    url, answered = f"http://127.0.0.1:{port}/v1/chat/completions", 0
    connector, timeout = TCPConnector(limit=0), ClientTimeout(total=None)
    async with ClientSession(connector=connector, timeout=timeout) as session:

        async def work() -> None:
            nonlocal answered
            for case in cases:
                body = {"model": "stub-model", "messages": case.question.wire_messages()}
                async with session.post(url, data=orjson.dumps(body)) as answer:
                    answered += "choices" in orjson.loads(await answer.read())

        await asyncio.gather(*(work() for _ in range(flight)))
    return answered


def run_bare(port: int, flight: int, folder: Path) -> dict[str, float]:
    """Send the same texts with aiohttp alone."""
    before = time.process_time()
    answered = asyncio.run(post_all(port, flight, folder))
    return {"cpu_s": time.process_time() - before, "answered": answered}


if __name__ == "__main__":
    what, at, wide, place = sys.argv[1:]
    found = {"replay": run_replay, "load": run_load, "bare": run_bare}[what](int(at), int(wide), Path(place))
    print(json.dumps(found | {"mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))
