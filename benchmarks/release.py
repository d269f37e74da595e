"""Measure the stages of a release: `python -m benchmarks.release [PAIRS] [CONFIG ...]`.

Pairs as in `benchmarks.normalize`, in a workspace: sides of 1 KB, eight to a session of 60,000 tokens. They
go the way of `flows.release.release_run`: read, through the recipe, each session onto its side, looked for in
benchmarks, cut to 32,768 tokens, and into Parquet, as pairs alone or with the views that are named. Each
stage has the time that is spent in it and in nothing inside it.
"""

import json
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.normalize import CONTEXT_TOKENS, SHARED_BY, WORDS, pairs
from benchmarks.process_tree import PeakMemory, cpu_s
from tracemill.data_cards.model.release_spec import ReleaseSpec
from tracemill.data_cards.writing.write_release import Release, write_release
from tracemill.flows.config.from_settings import make_reredactor
from tracemill.flows.config.run_settings import RunSettings, load_settings
from tracemill.flows.release.assign_splits import drop_unassigned_pairs, split_sessions
from tracemill.flows.release.fit_context import make_fitting
from tracemill.flows.release.load_pairs import load_pair_states, load_reduced_pairs
from tracemill.flows.release.split_store import SplitState
from tracemill.normalize.contamination import load_benchmarks
from tracemill.normalize.context_length.token_counts import estimate_token_count
from tracemill.normalize.normalizer import DJNormalizer, NormalizedPairs
from tracemill.records.message import Message, ToolCall
from tracemill.records.pair import DPOPair
from tracemill.records.storage.table_rows import pairs_to_table
from tracemill.records.storage.trace_rows import traces_to_table
from tracemill.records.storage.workspace import Workspace
from tracemill.records.trace import Context, Step, Trace

PAIRS = 10_000
STATEMENTS = 2000
_SHARD = 100  # sessions


@dataclass(slots=True)
class Stages:
    """Seconds of wall and of processor time by stage, without those of stages inside it."""

    wall_s: dict[str, float] = field(default_factory=dict)
    cpu_s: dict[str, float] = field(default_factory=dict)
    _inside: list[list[float]] = field(default_factory=list)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time the block as a part of a stage."""
        begun = time.perf_counter(), cpu_s()
        self._inside.append([0.0, 0.0])
        try:
            yield
        finally:
            took = time.perf_counter() - begun[0], cpu_s() - begun[1]
            inside = self._inside.pop()
            for at, spent in enumerate((self.wall_s, self.cpu_s)):
                spent[name] = spent.get(name, 0.0) + took[at] - inside[at]
                if self._inside:
                    self._inside[-1][at] += took[at]

    def each(self, name: str, items: Iterator[Any]) -> Iterator[Any]:
        """Yield the items, and time how long they take to produce as a part of a stage."""
        while True:
            with self.stage(name):
                item = next(items, self)
            if item is self:
                return
            yield item


class Timed(DJNormalizer):
    """The recipe as a stage of its own."""

    def __init__(self, stages: Stages) -> None:
        super().__init__()
        self._stages = stages

    def normalize(self, pairs: Sequence[DPOPair]) -> NormalizedPairs:
        """As the normaliser does."""
        with self._stages.stage("recipe"):
            return super().normalize(pairs)


def sessions(count: int, notes: dict[str, int]) -> Iterator[Trace]:
    """Sessions, their last eight steps those of the pairs; `notes` say how they are redacted."""
    coin = random.Random(7)
    for number in range(count):
        name = f"{number:08}"
        messages = [
            Message("system", f"You are {name}."),
            Message("user", " ".join(coin.choices(WORDS, k=40))),
        ]
        tokens = 0
        while tokens < CONTEXT_TOKENS:
            output = f"{name} {' '.join(coin.choices(WORDS, k=600))}"
            call = ToolCall(f"c{len(messages)}", "execute_bash", json.dumps({"command": f"ls {tokens}"}))
            messages += [
                Message("assistant", "I look.", (call,)),
                Message("tool", output, tool_call_id=call.id),
            ]
            tokens += estimate_token_count(output)
        cuts = range(len(messages) - 2 * SHARED_BY, len(messages), 2)
        steps = tuple(Step(index, cut) for index, cut in enumerate(cuts))
        yield Trace(
            f"openhands-{name}",
            "openhands",
            "eval_v0",
            "openhands",
            (Context(0, tuple(messages), steps),),
            repository=f"owner-{number % 200}/repo",
            instance_id=f"task-{number}",
            redaction="r1",
            notes=notes,
        )


def fill(work: Workspace, settings: RunSettings, count: int) -> None:
    """Fill the workspace as a run leaves it."""
    some: list[Trace] = []
    notes = make_reredactor(work, settings).notes
    for trace in sessions(-(-count // SHARED_BY), notes):
        some.append(trace)
        if len(some) == _SHARD:
            work.write("traces", traces_to_table(some), [t.trace_id for t in some], "openhands", "2026-11-21")
            some = []
    if some:
        work.write("traces", traces_to_table(some), [t.trace_id for t in some], "openhands", "2026-11-21")
    made = [replace(pair, repository=_repository(pair)) for pair in pairs(count)]
    ids = sorted({pair.step_id.split(":")[0] for pair in made})
    work.write("pairs", pairs_to_table(made), ids, "openhands", "2026-11-21")


def _repository(pair: DPOPair) -> str:
    return f"owner-{int(pair.step_id.split(':')[0].split('-')[1]) % 200}/repo"


def benchmark_file(path: Path) -> Path:
    """Tasks of a benchmark of 200 words each, none of which is in a session."""
    coin = random.Random(9)
    rows = (
        {
            "instance_id": f"bench-{number}",
            "base_commit": f"{coin.getrandbits(160):040x}",
            "problem_statement": " ".join(f"{coin.choice(WORDS)}{coin.randrange(1000)}" for _ in range(200)),
        }
        for number in range(STATEMENTS)
    )
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
    return path


def release(
    work: Workspace, settings: RunSettings, folder: Path, stages: Stages
) -> tuple[Release, SplitState]:
    """Run the stages of `flows.release.release_run`, without privacy check and run report."""
    reredactor, grown = make_reredactor(work, settings), SplitState.of(work, "bench")
    with stages.stage("load benchmarks"):
        benchmarks = load_benchmarks([benchmark_file(folder / "tasks.jsonl")])

    def overlap(trace: Trace) -> str:
        with stages.stage("decontamination"):
            return benchmarks.overlap(trace)

    with stages.stage("read pairs, redact them as today, caps"):
        reduced = load_reduced_pairs(work, settings.pairs, Timed(stages), reredactor, grown.holds)
    with stages.stage("splits (sessions read, tasks compared)"):
        kept = reduced.normalized.kept
        split = split_sessions(work, grown, kept, {"validation": 0.05, "test": 0.05}, overlap)
        kept, between = drop_unassigned_pairs(kept, split)
    fitting = make_fitting(settings)
    states = stages.each("sessions read and presented", load_pair_states(work, kept, reredactor))
    fitted = stages.each("contexts cut", fitting.pairs(states))
    spec = ReleaseSpec(name="bench", redaction="r1", views=settings.release.views)
    with stages.stage("Parquet, card, report"):
        made = write_release(
            spec, fitted, [*reduced.normalized.dropped, *between], folder / "releases", split_of=split.of
        )
    assert isinstance(made, Release)
    return made, split.grown


def main(count: int, views: Sequence[str]) -> None:
    """Make a workspace, release it, and print what that took."""
    with tempfile.TemporaryDirectory(prefix="tracemill-bench-") as name:
        folder, stages = Path(name), Stages()
        work = Workspace.open(folder / "w")
        free = {"siblings": False, "repository_share": 0, "cell_share": 0, "per_operation": 0, "per_trace": 0}
        over = {"workspace": str(work.root), "pairs": free, "release": {"views": list(views)}}
        settings = load_settings(None, over)
        fill(work, settings, count)
        begun, used = time.perf_counter(), cpu_s()
        with PeakMemory() as memory:
            made, _ = release(work, settings, folder, stages)
        wall_s, used = time.perf_counter() - begun, cpu_s() - used
        size = sum(path.stat().st_size for path in made.path.rglob("*.parquet"))
        configs = ", ".join(path.name for path in sorted((made.path / "data").iterdir()))
    print(f"{'stage':44}{'CPU s':>8}{'wall s':>8}{'pairs a CPU second':>20}")
    for stage, seconds in stages.cpu_s.items():
        print(f"{stage:44}{seconds:8.1f}{stages.wall_s[stage]:8.1f}{count / max(seconds, 1e-9):20,.0f}")
    print(f"{'all of it':44}{used:8.1f}{wall_s:8.1f}{count / used:20,.0f}")
    print(f"{made.rows:,} rows of {count:,} pairs; {configs}: {size / 1e6:,.0f} MB")
    print(f"memory of all processes at its highest: {memory.peak_gb:.2f} GB")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else PAIRS, sys.argv[2:])
