"""Measure the ingest of sessions against a process that only parses the same lines.

    python benchmarks/ingest.py [FOLDER] [--copies N] [--gb X] [--one-mb MB] [--runs N] [--jobs N]
    python benchmarks/ingest.py --formats [--mb MB] [--runs N]
    python benchmarks/ingest.py --generated [--only NAME] [--mb MB] [--runs N]

Every side is a whole process, start-up included, as it is from the second run on (Python's modules and the
rules of redaction lie there compiled), measured by the system: CPU seconds of it and its children, wall
seconds, peak resident memory. In a round the short side runs before and after each long
one, so that other load on the machine meets both alike; medians over the rounds are printed.
FOLDER defaults to the Claude Code sessions below TRACEMILL_REAL_TRACES, and without
that to the examples; its files are copied under new ids. `--gb` adds a folder of that size, `--one-mb` a
single session of that size; `--formats` takes each format below TRACEMILL_REAL_TRACES by itself. Everything
lies in a temporary folder and is removed again. `--generated` takes every format, with sessions that
generated_sessions.py writes: of each a folder of MB (150 by default) and one of a single session, in turn.
What a side takes for the single session is its start-up; shares of orjson are printed with it and without,
and by the clock, which counts as many processes as run side by side.
At 150 MB orjson takes 0.2 to 0.4 s beside its start of 0.05 s; below 50 MB the share follows the noise of
these. `--jobs 1` keeps ingest to one process; without it there are as many as a user gets: more CPU seconds,
fewer wall seconds.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from generated_sessions import WRITERS, write_sessions

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parent / "examples" / "sessions" / "claude_code"
DEFAULT_MB = 100.0
GENERATED_MB = 150.0
FORMATS = (
    "claude_code",
    "openhands/eval_v0",
    "openhands/gui_v0",
    "openhands/resolver_v0",
    "openhands/sdk_v1_conv",
    "swe_agent",
    "swe_gym",
)
# An installed program lies there compiled, and what is compiled stays from run to run.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
PARSE = """
import pathlib, sys, orjson
for path in pathlib.Path(sys.argv[1]).rglob("*.*"):
    if path.suffix == ".vscdb":
        import sqlite3
        for (value,) in sqlite3.connect(path).execute("select value from cursorDiskKV"):
            orjson.loads(value)
        continue
    if path.suffix == ".eval":
        import zipfile
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                orjson.loads(archive.read(name))
        continue
    if path.suffix not in (".jsonl", ".json", ".traj") or not path.is_file():
        continue
    with path.open("rb", buffering=1 << 20) as lines:
        for line in lines if path.suffix == ".jsonl" else [lines.read()]:
            try:
                orjson.loads(line)
            except orjson.JSONDecodeError:
                pass
"""


@dataclass(frozen=True)
class Cost:
    """Resources of a finished process and its children; `peak_mb` is that of the largest of them."""

    cpu_s: float
    wall_s: float
    peak_mb: float


def cost_of(command: list[str]) -> tuple[Cost, str]:
    """Run a command to its end; gives its cost and what it printed."""
    started = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT) as process:
        assert process.stdout is not None
        printed = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{command[:3]} ended with {process.returncode}")
    wall = time.perf_counter() - started
    return Cost(used.ru_utime + used.ru_stime, wall, used.ru_maxrss * 1024 / 1e6), printed


@dataclass(frozen=True)
class Bench:
    """Folders of a benchmark, and the number of runs of each side."""

    folder: Path
    scratch: Path
    runs: int
    jobs: int | None

    def copies(self, name: str, mb: float, *flags: str) -> tuple[Path, dict[str, float]]:
        """Make a folder of copies, in another process to keep this one small."""
        target = self.scratch / name
        command = [sys.executable, str(HERE / "session_copies.py"), str(self.folder), str(target), str(mb)]
        return target, json.loads(cost_of([*command, *flags])[1])

    def ingest(self, source: Path, *flags: str) -> tuple[Cost, dict[str, int]]:
        """`tracemill ingest` of a folder, into a workspace that is removed again."""
        out = self.scratch / "workspace"
        command = [str(Path(sys.executable).parent / "tracemill"), "ingest", str(source)]
        jobs = ["--jobs", str(self.jobs)] if self.jobs else []
        cost, printed = cost_of([*command, "--workspace", str(out), "--json", *jobs, *flags])
        shutil.rmtree(out)
        return cost, json.loads(printed)["totals"]

    def parse(self, source: Path) -> Cost:
        """orjson on the same lines."""
        return cost_of([sys.executable, "-c", PARSE, str(source)])[0]

    def rounds(self, source: Path, redacted: bool = True) -> Iterator[dict[str, list[Cost]]]:
        """Yield the cost of each side per round: orjson twice before and twice after each of the others."""
        for _ in range(self.runs):
            sides: dict[str, list[Cost]] = {"orjson": [self.parse(source), self.parse(source)]}
            for side, flags in SIDES.items() if redacted else [("unredacted", SIDES["unredacted"])]:
                sides[side] = [self.ingest(source, *flags)[0]]
                sides["orjson"] += [self.parse(source), self.parse(source)]
            yield sides


SIDES = {"unredacted": ("--unredacted",), "redacted": ()}
NAMES = {
    "orjson": "orjson.loads on the same lines",
    "unredacted": "tracemill ingest --unredacted",
    "redacted": "tracemill ingest",
}


def share(rounds: list[dict[str, list[Cost]]], side: str, kind: str) -> float:
    """Return the median over rounds of a side's MB/s divided by orjson's, by `cpu_s` or `wall_s`."""

    def mean(costs: list[Cost]) -> float:
        return statistics.mean(getattr(cost, kind) for cost in costs)

    return statistics.median(mean(each["orjson"]) / mean(each[side]) for each in rounds)


def table(rounds: list[dict[str, list[Cost]]], made: dict[str, float], base_mb: float) -> dict[str, float]:
    """Print a line a side; gives the MB/s of each."""
    mb, speeds = made["mb"], dict[str, float]()
    print(f"\n{mb:.0f} MB in {made['files']:.0f} files, the largest {made['largest_mb']:.1f} MB")
    print("| | CPU s | MB/s by CPU | of orjson, CPU | wall s | of orjson, wall | peak MB | above start-up |")
    print("|---|---|---|---|---|---|---|---|")
    for side in rounds[0]:
        costs = [cost for each in rounds for cost in each[side]]
        cpu, wall = (statistics.median(getattr(cost, kind) for cost in costs) for kind in ("cpu_s", "wall_s"))
        by_cpu, by_wall = share(rounds, side, "cpu_s"), share(rounds, side, "wall_s")
        peak = max(cost.peak_mb for cost in costs)
        over = f"{(peak - base_mb) / made['largest_mb']:.1f} x the largest" if side != "orjson" else ""
        speeds[side] = mb / cpu
        print(
            f"| {NAMES[side]} | {cpu:.2f} | {mb / cpu:.0f} | {by_cpu:.3f} | {wall:.2f} | {by_wall:.3f} "
            f"| {peak:.0f} | {over} |"
        )
    return speeds


def main() -> None:
    """Measure what the arguments ask for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--copies", type=int, help="copies of every file; else as many as make 100 MB")
    parser.add_argument("--gb", type=float, help="also a folder of this size")
    parser.add_argument("--one-mb", type=float, help="also one session of this size")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--jobs", type=int, help="processes of tracemill ingest; else as many as it takes")
    parser.add_argument("--formats", action="store_true", help="a line for each format instead")
    parser.add_argument("--generated", action="store_true", help="a line for each format, generated sessions")
    parser.add_argument("--only", help="the only format to take of these")
    parser.add_argument("--mb", type=float, help="size of each format's folder")
    given = parser.parse_args()
    real = os.environ.get("TRACEMILL_REAL_TRACES")
    folder = given.folder or (Path(real) / "claude_code" if real else EXAMPLES)
    with tempfile.TemporaryDirectory(prefix="tracemill-bench-") as scratch:
        bench = Bench(folder, Path(scratch), given.runs, given.jobs)
        bench.ingest(EXAMPLES)
        if given.generated:
            by_generated_format(bench, given.only, given.mb or GENERATED_MB)
        elif given.formats:
            if not real:
                raise SystemExit("TRACEMILL_REAL_TRACES names no folder of sessions")
            by_format(bench, Path(real), given.mb or DEFAULT_MB)
        else:
            measure(bench, given.copies, given.gb, given.one_mb)


def by_format(bench: Bench, real: Path, mb: float) -> None:
    """Print a line a format: MB/s by CPU seconds of each side, and their shares of orjson's."""
    print("| | MB | files | orjson MB/s | unredacted MB/s | CPU | wall | MB/s | CPU | wall |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for name in FORMATS:
        each = replace(bench, folder=real / name)
        source, made = each.copies("format", mb)
        rounds = list(each.rounds(source))
        cells = [f"{made['mb'] / median_s(rounds, 'orjson'):.0f}"]
        for side in SIDES:
            cpu_s = median_s(rounds, side)
            cells += [f"{made['mb'] / cpu_s:.0f}"]
            cells += [f"{share(rounds, side, kind):.3f}" for kind in ("cpu_s", "wall_s")]
        shutil.rmtree(source)
        print(f"| `{name}` | {made['mb']:.0f} | {made['files']:.0f} | {' | '.join(cells)} |", flush=True)


def by_generated_format(bench: Bench, only: str | None, mb: float) -> None:
    """Print a line a format: each side's start-up and MB/s by CPU seconds, and the share with and without it.

    MB/s are those without start-up. The last columns are seconds by the clock and their share, start-up
    included.
    """
    print("| | MB | orjson start s | MB/s | unredacted start s | MB/s | of orjson | without start ", end="")
    print("| orjson wall s | unredacted wall s | of orjson, wall |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for name in [only] if only else WRITERS:
        single, large = bench.scratch / f"{name}-single", bench.scratch / f"{name}-large"
        single_mb, large_mb = write_sessions(name, single, 0.001), write_sessions(name, large, mb)
        in_turn = zip(bench.rounds(single, redacted=False), bench.rounds(large, redacted=False), strict=True)
        starts, wholes = map(list, zip(*in_turn, strict=True))
        sides = ("orjson", "unredacted")
        parse_start, start = (median_s(starts, side) for side in sides)
        parse, whole = (median_s(wholes, side) for side in sides)
        parse_wall, wall = (median_s(wholes, side, "wall_s") for side in sides)
        more, parsed, read = large_mb - single_mb, parse - parse_start, whole - start
        cells = f"{large_mb:.0f} | {parse_start:.2f} | {more / parsed:.0f} | {start:.2f} | {more / read:.0f}"
        cells += f" | {parse / whole:.3f} | {parsed / read:.3f} | {parse_wall:.2f} | {wall:.2f}"
        print(f"| `{name}` | {cells} | {share(wholes, 'unredacted', 'wall_s'):.3f} |", flush=True)
        shutil.rmtree(single)
        shutil.rmtree(large)


def median_s(rounds: list[dict[str, list[Cost]]], side: str, kind: str = "cpu_s") -> float:
    """Return the seconds of a side by `cpu_s` or `wall_s`, the median over all rounds."""
    return statistics.median(getattr(cost, kind) for each in rounds for cost in each[side])


def measure(bench: Bench, copies: int | None, gb: float | None, one_mb: float | None) -> None:
    """Print every comparison."""
    own_mb = sum(path.stat().st_size for path in bench.folder.rglob("*.json*")) / 1e6
    base_mb = bench.ingest(EXAMPLES, "--unredacted")[0].peak_mb
    print(f"{bench.folder}; medians of {bench.runs} rounds; start-up alone peaks at {base_mb:.0f} MB")
    source, made = bench.copies("sessions", own_mb * copies if copies else DEFAULT_MB)
    speeds = table(list(bench.rounds(source)), made, base_mb)
    traces = bench.ingest(source, "--unredacted")[1]["traces"]
    print(f"{traces} traces; the copies are taken for {made['copies']:.0f} times the sessions")
    if gb:
        large, made = bench.copies("large", gb * 1000)
        few = replace(bench, runs=min(3, bench.runs))
        again = table(list(few.rounds(large, redacted=False)), made, base_mb)
        shutil.rmtree(large)
        print(
            f"MB/s of it: {again['unredacted'] / speeds['unredacted']:.2f} times that of the smaller folder"
        )
    if one_mb:
        single, made = bench.copies("one", one_mb, "--one")
        table(list(replace(bench, runs=1).rounds(single)), made, base_mb)


if __name__ == "__main__":
    main()
