"""Measure how well and how fast the Claude Code ingester reads the sessions of a folder.

    python benchmarks/claude_code.py FOLDER [--runs N]

One line a session: Pearson's r of prefix characters and reported prompt tokens (the worst of its traces;
`-` where too few steps report any), its steps, and from how many of them on something that the agent saw is
not in the file. Then CPU seconds of reading all of it, beside `orjson.loads` on the same lines: the smallest
of N runs of each file, the two in turn.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import orjson

from tracemill.ingesters.claude_code.ingest_session import ingest_file
from tracemill.ingesters.claude_code.token_check import MIN_CORRELATION
from tracemill.ingesters.detect_format import detect
from tracemill.records.errors import SourceError


def parse(path: Path) -> None:
    """Parse every line, and nothing else."""
    with path.open("rb") as stream:
        for line in stream:
            try:
                orjson.loads(line)
            except orjson.JSONDecodeError:
                continue


def fit(path: Path) -> float | None:
    """Print the line of a session and return its ratio to parsing alone."""
    traces, report = ingest_file(path)
    noted = [trace.notes.get("prefix_tokens_r_permille") for trace in traces]
    known = [r / 1000 for r in noted if r is not None]
    states = [state for trace in traces for state in trace.states()]
    lost, near = (sum(state.fidelity.context == kind for state in states) for kind in ("lost", "approximate"))
    r = min(known, default=None)
    figure = "    -" if r is None else f"{r:5.3f}"
    why = {reason: n for reason, n in report.flags.items() if "record" in reason or "missing" in reason}
    mark = " *" if r is not None and r < MIN_CORRELATION else "  "
    print(
        f"{figure}{mark} {len(states):5} steps {lost:5} lost {near:5} approximate  {path.name:44.44}",
        why or "",
    )
    return r


def cpu_seconds(call: Callable[[Path], object], path: Path) -> float:
    """CPU seconds of one call."""
    began = time.process_time()
    call(path)
    return time.process_time() - began


def main() -> None:
    """Figures of every session, then the speed over all of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--runs", type=int, default=9)
    given = parser.parse_args()
    files = [path for path in sorted(given.folder.rglob("*.jsonl")) if detect(path) == "claude_code"]
    if not files:
        raise SourceError(f"{given.folder} holds no Claude Code session", "a folder of sessions", "check it")
    known = [r for r in map(fit, files) if r is not None]
    if known:
        low = sum(r < MIN_CORRELATION for r in known)
        print(f"\nr: median {median(known):.4f} of {len(known)} sessions, {low} below {MIN_CORRELATION} (*)")
    ours = theirs = 0.0
    for path in files:
        times = [(cpu_seconds(ingest_file, path), cpu_seconds(parse, path)) for _ in range(given.runs)]
        ours += min(mine for mine, _ in times)
        theirs += min(other for _, other in times)
    size_mb = sum(path.stat().st_size for path in files) / 1e6
    print(f"{size_mb:.1f} MB: traces {ours:.3f} CPU s, orjson.loads {theirs:.3f}, ratio {theirs / ours:.2f}")


if __name__ == "__main__":
    main()
