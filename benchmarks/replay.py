"""Measure CPU and memory per call, and the time of a replay against its ideal.

    python benchmarks/replay.py [--calls N] [--kb 2 100] [--flight 64 512] [--latency 1.0] [--runs 3]

Every measurement is a process of its own (`replay_child.py`) against a stub server on the loopback. CPU a
call is the slope between a short and a long run, so that start-up is left out; memory is the peak of the
whole process, beside one that only reads the same states. The span is from the first request to the last
reply over calls x latency / calls in flight, beside that of aiohttp alone in turn with it: on a machine that
others use too, only their ratio says anything of the engine.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
SHARD_BYTES = 16_000_000
"""Text of the sessions in one shard, as a run cuts its sources."""


def write_states(folder: Path, calls: int, kb: float) -> None:
    """States whose prompts have so many thousand bytes, in shards."""
    filler = "the lantern glows in the hall of records\n" * int(kb * 1000 / 41)
    per_shard = max(int(SHARD_BYTES / (kb * 1000)), 1)
    for start in range(0, calls, per_shard):
        with (folder / f"{start:09}.jsonl").open("w") as out:
            for number in range(start, min(start + per_shard, calls)):
                out.write(json.dumps([number, f"task {number}\n{filler}"]) + "\n")


@contextmanager
def stub_server(latency_s: float) -> Iterator[str]:
    """Run a stub server during the block and yield its port."""
    command = [sys.executable, str(HERE / "stub_server.py"), str(latency_s)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        yield server.stdout.readline().strip()
    finally:
        server.kill()
        server.wait()


def run(
    calls: int, kb: float, flight: int, latency_s: float, what: str = "replay", times: int = 1
) -> dict[str, float]:
    """Return what a child and the server measured; of several children on one ledger, the last."""
    with stub_server(latency_s) as port, tempfile.TemporaryDirectory() as folder:
        write_states(Path(folder), calls, kb)
        command = [sys.executable, str(HERE / "replay_child.py"), what, port, str(flight), folder]
        out = ""
        for _ in range(times):
            out = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/stats", timeout=10) as page:
            found = json.loads(out) | {f"server_{name}": value for name, value in json.load(page).items()}
    if found["answered"] != calls:
        raise SystemExit(f"{found['answered']} of {calls} answered")
    return found


def print_cpu(kb: float, calls: int, runs: int) -> None:
    """CPU milliseconds a call, by the slope, and the peak memory of the long run in MB; medians."""
    slopes: list[float] = []
    peaks: list[float] = []
    for _ in range(runs):
        short, long = run(calls // 10, kb, 64, 0.05), run(calls, kb, 64, 0.05)
        slopes.append((long["cpu_s"] - short["cpu_s"]) / (calls - calls // 10) * 1e3)
        peaks.append(long["mb"])
    loaded_mb = run(calls, kb, 64, 0.05, "load")["mb"]
    print(
        f"{kb:g} KB prompts: {statistics.median(slopes):.2f} ms CPU a call,"
        f" {statistics.median(peaks):.0f} MB at the peak; {loaded_mb:.0f} MB where the states are only read"
    )


def print_span(flight: int, latency_s: float, runs: int) -> None:
    """Print the median span of independent calls relative to the ideal, and that of aiohttp alone."""
    calls = flight * 8
    ideal_s = calls * latency_s / flight
    spans: dict[str, list[float]] = {"bare": [], "replay": []}
    server_cpu_s: list[float] = []
    for _ in range(runs):
        for what, found in spans.items():
            measured = run(calls, 2, flight, latency_s, what)
            found.append(measured["server_span_s"] / ideal_s)
            server_cpu_s.append(measured["server_cpu_s"])
    bare, ours = (statistics.median(found) for found in spans.values())
    ratio = statistics.median(b / a for a, b in zip(*spans.values(), strict=True))
    print(
        f"{flight} in flight at {latency_s:g} s: {ours:.3f} x the ideal {ideal_s:.1f} s, aiohttp alone"
        f" {bare:.3f} x: ratio {ratio:.3f}; the server took {statistics.median(server_cpu_s):.2f} s CPU"
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--kb", type=float, nargs="*", default=[2, 100])
    parser.add_argument("--flight", type=int, nargs="*", default=[64, 512])
    parser.add_argument("--latency", type=float, default=1.0)
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    for kb in given.kb:
        print_cpu(kb, given.calls if kb < 50 else given.calls // 4, given.runs)
    if given.kb:
        again = run(given.calls, 2, 64, 0.05, times=2)
        asked = again["server_received"] - given.calls
        print(f"{given.calls:,} settled states again: {again['cpu_s']:.2f} s CPU, {asked:.0f} requests")
    for flight in given.flight:
        print_span(flight, given.latency, given.runs)


if __name__ == "__main__":
    main()
