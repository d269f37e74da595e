"""Sessions into a workspace, beside a process that only parses the same lines.

    python benchmarks/ingest.py [FOLDER] [--copies N]

Each side is a whole process, timed by the CPU seconds the system accounts to it; they alternate and the
median ratio is printed. FOLDER defaults to the example Claude Code sessions, copied under new ids until
there is enough to time.
"""

import argparse
import json
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parent.parent / "examples" / "sessions" / "claude_code"
PARSE = (
    "import orjson, pathlib, sys\n"
    "for path in pathlib.Path(sys.argv[1]).rglob('*.jsonl'):\n"
    "    for line in path.read_bytes().splitlines():\n"
    "        orjson.loads(line)\n"
)


def copies(source: Path, target: Path, count: int) -> float:
    """Copy the sessions `count` times, each time under new ids; gives the size in MB."""
    size = 0
    for path in sorted(source.rglob("*.jsonl")):
        text = path.read_text(encoding="utf-8")
        first = json.loads(next(line for line in text.splitlines() if '"sessionId"' in line))
        for _ in range(count):
            fresh = str(uuid.uuid4())
            copy = target / f"{fresh}.jsonl"
            copy.write_text(text.replace(first["sessionId"], fresh), encoding="utf-8")
            size += copy.stat().st_size
    return size / 1e6


def cpu_seconds(command: list[str]) -> tuple[float, float]:
    """CPU seconds and wall seconds of a finished process and its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    wall = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall


def main() -> None:
    """Alternate the two sides and print medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=EXAMPLES)
    parser.add_argument("--copies", type=int, default=400)
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    script = Path(sys.executable).parent / "tracemill"
    with tempfile.TemporaryDirectory() as folder:
        sessions = Path(folder) / "sessions"
        sessions.mkdir()
        size_mb = copies(given.folder, sessions, given.copies)
        ours, parser_only = [], []
        for run in range(given.runs):
            out = Path(folder) / f"w{run}"
            ours.append(cpu_seconds([str(script), "ingest", str(sessions), "--out", str(out), "--json"])[0])
            parser_only.append(cpu_seconds([sys.executable, "-c", PARSE, str(sessions)])[0])
            shutil.rmtree(out)
    mine, theirs = statistics.median(ours), statistics.median(parser_only)
    print(f"{size_mb:.1f} MB, median of {given.runs} runs, CPU seconds of the whole process")
    print(f"tracemill ingest (read, redact, Parquet)  {mine:7.2f} s  {size_mb / mine:7.1f} MB/s")
    print(f"orjson.loads on the same lines            {theirs:7.2f} s  {size_mb / theirs:7.1f} MB/s")
    print(f"ratio                                     {mine / theirs:7.2f}")


if __name__ == "__main__":
    main()
