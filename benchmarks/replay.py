"""What a call costs in CPU, and how near to its ideal a replay of independent calls comes.

    python benchmarks/replay.py [--calls N] [--kb 2 100] [--flight 64 512] [--latency 1.0]

Every measurement is a process of its own against a stub server on the loopback: decisions, ledger on
disk, request, reply, answer stored, vote. CPU a call is the slope between a short and a long run, so
that start-up is left out; the span is from the first request to the last reply over calls x latency /
calls in flight.
"""

import argparse
import asyncio
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve()


def child(port: int, calls: int, kb: float, flight: int, folder: str) -> None:
    """One replay; prints CPU seconds, peak memory in MB and how many answered."""
    from agreement.policy import Policy
    from agreement.vote import tally
    from records.message import Message, ToolCall, ToolSpec
    from records.state import Context, Step, Trace
    from teachers.build import build_teachers
    from teachers.gate import decide
    from teachers.ledger import Ledger, sqlite_url
    from teachers.question import Question
    from teachers.replay import replay
    from teachers.settings import CompatibleSettings, GateSettings, PriceSettings, ReplaySettings

    tool = ToolSpec("read_file", "reads", {"type": "object", "properties": {"path": {"type": "string"}}})
    filler = "the lantern glows in the hall of records\n" * int(kb * 1000 / 41)
    traces = []
    for number in range(calls):
        call = ToolCall("c0", "read_file", json.dumps({"path": f"src/other_{number}.py"}))
        ask = Message("user", f"task {number}\n{filler}")
        done = Message("assistant", "", tool_calls=(call,))
        context = Context(index=0, messages=(ask, done), steps=(Step(index=0, cut=1, family="meta"),))
        traces.append(
            Trace(
                trace_id=f"t{number}",
                source="openhands",
                dialect="bench",
                harness="openhands",
                contexts=(context,),
            )
        )
    states = [next(iter(trace.states())) for trace in traces]
    questions = [
        Question(
            str(s.step_id), s.trace.trace_id, s.context.messages[:1], (tool,), f"p{n}", "1", "r1", "meta"
        )
        for n, s in enumerate(states)
    ]
    settings = CompatibleSettings(
        model="stub-model",
        base_url=f"http://127.0.0.1:{port}/v1",
        prices=PriceSettings.model_validate({"prompt_usd": 0.3, "completion_usd": 0.9}),
    )
    before = time.process_time()
    with Ledger(sqlite_url(Path(folder) / "ledger.sqlite")) as ledger:
        ledger.open_run("bench", 10**15)
        decisions = decide(questions, [settings], 0, GateSettings())
        teachers = build_teachers([settings], {})
        result = asyncio.run(
            replay(
                questions,
                decisions,
                teachers,
                ledger,
                "bench",
                ReplaySettings(concurrency=flight),
            )
        )
    policy = Policy(threshold=1, min_families=1)
    for state, reply in zip(states, result.replies, strict=True):
        tally(state, (tool,), [reply], policy)
    cpu = time.process_time() - before
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    answered = result.counters["answered"]
    print(json.dumps({"cpu_s": cpu, "mb": peak, "answered": answered}))


def run(calls: int, kb: float, flight: int, latency_s: float, times: int = 1) -> dict[str, float]:
    """A server and a replay against it, each a process of its own; of several on one ledger the last."""
    server = subprocess.Popen(
        [sys.executable, str(HERE.parent / "stub_server.py"), str(latency_s)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    port = server.stdout.readline().strip()
    try:
        with tempfile.TemporaryDirectory() as folder:
            given = [port, str(calls), str(kb), str(flight), folder]
            command = [sys.executable, str(HERE), "--child", *given]
            out = ""
            for _ in range(times):
                out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/stats", timeout=10) as page:
            found = json.loads(out) | json.load(page)
    finally:
        server.kill()
        server.wait()
    if found["answered"] != calls:
        raise SystemExit(f"{found['answered']} of {calls} answered")
    return found


def cpu_a_call(kb: float, calls: int, runs: int) -> tuple[float, float]:
    """CPU milliseconds a call, by the slope, and the peak memory of the long run in MB; medians."""
    slopes, peaks = [], []
    for _ in range(runs):
        short, long = run(calls // 10, kb, 64, 0.05), run(calls, kb, 64, 0.05)
        slopes.append((long["cpu_s"] - short["cpu_s"]) / (calls - calls // 10) * 1e3)
        peaks.append(long["mb"])
    return statistics.median(slopes), statistics.median(peaks)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--kb", type=float, nargs="*", default=[2, 100])
    parser.add_argument("--flight", type=int, nargs="*", default=[64, 512])
    parser.add_argument("--latency", type=float, default=1.0)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--child", nargs=5, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        port, calls, kb, flight, folder = given.child
        child(int(port), int(calls), float(kb), int(flight), folder)
        return
    for kb in given.kb:
        calls = given.calls if kb < 50 else given.calls // 4
        cpu_ms, peak_mb = cpu_a_call(kb, calls, given.runs)
        print(f"{kb:g} KB prompts: {cpu_ms:.2f} ms CPU a call, {peak_mb:.0f} MB at the peak")
    again = run(given.calls, 2, 64, 0.05, times=2)
    print(
        f"{given.calls:,} settled states again: {again['cpu_s']:.2f} s CPU,"
        f" {again['received'] - given.calls:.0f} requests"
    )
    for flight in given.flight:
        calls = flight * 8
        spans = [run(calls, 2, flight, given.latency)["span_s"] for _ in range(given.runs)]
        ideal = calls * given.latency / flight
        print(
            f"{flight} in flight at {given.latency:g} s: {statistics.median(spans) / ideal:.3f} x the ideal"
            f" {ideal:.1f} s"
        )


if __name__ == "__main__":
    main()
