"""How near a replay of 200 traces comes to the shortest time its plan allows.

    python benchmarks/replay_makespan.py [--traces N] [--concurrency N] [--plans N] [--stop WHEN]

The replay is a process of its own against a stub server on the loopback: decisions, ledger on disk,
three teachers, early stopping, votes. Lengths are lognormal around 30 steps and one trace has 484;
answers take 8 s (lognormal median, sigma 0.6) divided by 20. The bound is the larger of the longest
path through the questions that were asked, at the latencies they had, and of their sum over the calls in
flight: no order of these questions is faster. With `--plans` the traces are asked in so many plans, one after
the other, as shards are that were not joined.
"""

import argparse
import asyncio
import json
import random
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Collection, Container, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from stub_server import latency_s, place

if TYPE_CHECKING:
    from tracemill.flows.labeling.label_shard import Shown
    from tracemill.records.reply import Decision, TeacherReply
    from tracemill.teachers.core.question import Question
    from tracemill.teachers.core.teacher_settings import CompatibleSettings
    from tracemill.teachers.planning.strand_state import StepWork

HERE = Path(__file__).resolve()
MEDIAN_S = 8.0 / 20
SIGMA = 0.6
STEP_BYTES = 400
PRICES = {"cheap": ("0.21", "0.84"), "middle": ("0.66", "1.98"), "dear": ("2", "10")}


def lengths(traces: int) -> list[int]:
    """Steps of each trace."""
    rng = random.Random(5)
    return [*(min(300, max(2, round(rng.lognormvariate(3.4, 0.8)))) for _ in range(traces - 1)), 484]


def sessions(traces: int) -> "list[Shown]":
    """The traces with what is shown of them; the student reads a file of its own at every step."""
    from tracemill.flows.labeling.label_shard import Shown
    from tracemill.records.message import Message, ToolCall, ToolSpec
    from tracemill.records.trace import Context, Step, Trace

    tool = ToolSpec("read_file", "reads", {"type": "object", "properties": {"path": {"type": "string"}}})
    shown: list[Shown] = []
    for number, count in enumerate(lengths(traces)):
        messages = [Message("user", f"task {number} {place(number, 0)}")]
        steps: list[Step] = []
        for step in range(count):
            steps.append(Step(step, len(messages), "student", "meta"))
            call = ToolCall(f"c{step}", "read_file", json.dumps({"path": "src/student.py"}))
            result = "lantern " * (STEP_BYTES // 8) + place(number, step + 1)
            messages += [
                Message("assistant", "", (call,)),
                Message("tool", result, tool_call_id=call.id),
            ]
        context = Context(0, tuple(messages), tuple(steps), tools=(tool,))
        trace = Trace(f"t{number}", "openhands", "bench", "openhands", (context,), redaction="r1")
        shown.append(Shown.of(trace))
    return shown


def teachers_at(port: int) -> "list[CompatibleSettings]":
    """Three teachers of three families behind the stub server."""
    from tracemill.teachers.core.teacher_settings import CompatibleSettings, PriceSettings

    return [
        CompatibleSettings(
            model=name,
            family=name,
            base_url=f"http://127.0.0.1:{port}/v1",
            prices=PriceSettings.model_validate({"prompt_usd": prompt, "completion_usd": answer}),
        )
        for name, (prompt, answer) in PRICES.items()
    ]


def child(port: int, traces: int, flight: int, stop: str, folder: str, plans: int) -> None:
    """One replay; prints what it asked, the bounds, and its CPU seconds."""
    from tracemill.teachers.core.teacher_settings import GateSettings
    from tracemill.teachers.gate.gate_decisions import make_gate_decisions

    shown, asked = sessions(traces), teachers_at(port)
    questions = [question for item in shown for question in item.questions()]
    decisions = make_gate_decisions(questions, asked, 0, GateSettings())
    before = time.process_time()
    replies = asyncio.run(ask(shown, decisions, asked, flight, stop, folder, plans))
    figures = {
        "states": len(questions),
        "cpu_s": time.process_time() - before,
        "failed": sum(reply.failure is not None for reply in replies),
    }
    went = {(reply.step_id, reply.teacher) for reply in replies}
    print(json.dumps(figures | bounds(questions, decisions, asked, flight, stop, went)))


async def ask(
    shown: "Sequence[Shown]",
    decisions: "Sequence[Decision]",
    asked: "Sequence[CompatibleSettings]",
    flight: int,
    stop: str,
    folder: str,
    plans: int,
) -> "list[TeacherReply]":
    """The replay of all questions in as many plans, one after another, with a ledger on disk."""
    from tracemill.agreement.voting.early_stop import Referee
    from tracemill.agreement.voting.policy import Policy
    from tracemill.teachers.build_teachers import build_teachers
    from tracemill.teachers.core.teacher_settings import ReplaySettings
    from tracemill.teachers.ledger.ledger import Ledger, sqlite_url
    from tracemill.teachers.replay.replay_run import replay

    states = {str(s.step_id): (s, i.presentations[0].tools) for i in shown for s in i.trace.states()}
    referee = Referee(states, Policy(), stop) if stop != "off" else None  # type: ignore[arg-type]
    settings = ReplaySettings(concurrency=flight)
    with Ledger(sqlite_url(Path(folder) / "ledger.sqlite")) as ledger:
        ledger.open_run("bench", 10**15)
        replies: list[TeacherReply] = []
        for part in parts_of(shown, plans):
            some = [question for item in part for question in item.questions()]
            built = build_teachers(asked, {})
            replies += (
                await replay(some, decisions, built, ledger, "bench", settings, referee=referee)
            ).replies
    return replies


def bounds(
    questions: "Sequence[Question]",
    decisions: "Sequence[Decision]",
    asked: "Sequence[CompatibleSettings]",
    flight: int,
    stop: str,
    went: Collection[tuple[str, str]],
) -> dict[str, float]:
    """The shortest time the questions that went out allow: by the longest path, and by the work."""
    from tracemill.teachers.build_teachers import build_teachers
    from tracemill.teachers.gate.gate_decisions import EXPLORED
    from tracemill.teachers.planning.replay_plan import plan_items, plan_replay_strands, replay_plan_teachers

    items = plan_items(questions, decisions, build_teachers(asked, {}), 1)
    order = replay_plan_teachers(items)
    strands = [works for _, works in plan_replay_strands(items, order, flight, None)]
    usual = {"off": 3, "lossless": 2, "tiered": 1}[stop]
    alone = {d.step_id: 3 if d.reason == EXPLORED else usual for d in decisions}
    paths = [path_s(works, went, [teacher.name for teacher in order], alone) for works in strands]
    work_s = sum(takes_s(step, teacher) for step, teacher in went)
    return {"asked": len(went), "strands": len(strands), "path_s": max(paths), "work_s": work_s / flight}


def parts_of(shown: "Sequence[Shown]", plans: int) -> "list[list[Shown]]":
    """The traces, in an order that depends on nothing, in parts of as many each."""
    mixed = random.Random(7).sample(list(shown), len(shown))
    return [mixed[start::plans] for start in range(plans)]


def takes_s(step_id: str, teacher: str) -> float:
    """How long the answer took."""
    trace, _, step = step_id.split(":")
    return latency_s(teacher, f"{trace[1:]}:{step}", MEDIAN_S, SIGMA)


def path_s(
    works: "Sequence[StepWork]",
    went: Container[tuple[str, str]],
    order: Sequence[str],
    alone: Mapping[str, int],
) -> float:
    """The longest path along a strand: a teacher's questions one after the other, and behind the first
    `alone` teachers of a step each of the others after all before it, whose answers made it needed."""
    free = dict.fromkeys(order, 0.0)
    for work in works:
        heard = 0.0
        for number, teacher in enumerate(name for name in order if (work.step_id, name) in went):
            waits = heard if number >= alone[work.step_id] else 0.0
            free[teacher] = max(free[teacher], waits) + takes_s(work.step_id, teacher)
            heard = max(heard, free[teacher])
    return max(free.values())


def run(traces: int, flight: int, stop: str, plans: int = 1) -> dict[str, float]:
    """A server and a replay against it, each a process of its own."""
    server = subprocess.Popen(
        [sys.executable, str(HERE.parent / "stub_server.py"), str(MEDIAN_S), str(SIGMA)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    port = server.stdout.readline().strip()
    try:
        with tempfile.TemporaryDirectory() as folder:
            given = [port, str(traces), str(flight), stop, folder, str(plans)]
            out = subprocess.run(
                [sys.executable, str(HERE), "--child", *given], check=True, stdout=subprocess.PIPE, text=True
            ).stdout
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/stats", timeout=10) as page:
            return json.loads(out) | json.load(page)
    finally:
        server.kill()
        server.wait()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--traces", type=int, default=200)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--stop", choices=["lossless", "tiered", "off"], default="lossless")
    parser.add_argument("--plans", type=int, default=1)
    parser.add_argument("--child", nargs=6, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        port, traces, flight, stop, folder, plans = given.child
        child(int(port), int(traces), int(flight), stop, folder, int(plans))
        return
    found = run(given.traces, given.concurrency, given.stop, given.plans)
    bound_s = max(found["path_s"], found["work_s"])
    print(
        f"{given.traces} traces, {found['states']:,} states, {found['strands']} strands, stop = {given.stop}:"
        f" {found['asked']:,} of {3 * found['states']:,} asked, {found['failed']} failed"
    )
    print(
        f"longest path {found['path_s']:.1f} s, work over {given.concurrency} in flight"
        f" {found['work_s']:.1f} s"
    )
    print(
        f"makespan {found['span_s']:.1f} s = {found['span_s'] / bound_s:.3f} x the bound;"
        f" {found['cpu_s'] / found['asked'] * 1e3:.2f} ms CPU a call"
    )


if __name__ == "__main__":
    main()
