"""Measure speed and memory of the recipe as a whole process: `python -m benchmarks.normalize [PAIRS]`.

Sides of 1 KB, eight pairs to a context of 60,000 tokens. First each operator by itself over the rows (what it
costs, reading the rows included), then pairs through `DJNormalizer` and cut to 32,768 tokens, as a release
takes them: contexts come one at a time, as they do from the workspace.
"""

import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.process_tree import PeakMemory, cpu_s
from tracemill.normalize.context_length.cut_context import ContextCutter, FittedContext
from tracemill.normalize.context_length.token_counts import estimate_token_count, estimate_token_counts
from tracemill.normalize.datajuicer.recipe import load_recipe
from tracemill.normalize.normalizer import DJNormalizer
from tracemill.normalize.operators.operator_rows import dump_operator_row, to_row
from tracemill.records.message import Message, ToolCall
from tracemill.records.pair import DPOPair, NormalizedDPOPair
from tracemill.records.trace import MessageView

PAIRS = 100_000
SHARED_BY = 8
CONTEXT_TOKENS = 60_000
WORDS = [
    f"{a}{b}" for a in ("lan", "mor", "ti", "ves", "qua", "dre") for b in ("tern", "row", "del", "per", "sin")
]


def pairs(count: int) -> list[DPOPair]:
    """Pairs without their states: of the ones before a twentieth are copies, and a twentieth nearly so."""
    coin = random.Random(20261121)
    made: list[DPOPair] = []
    for number in range(count):
        if made and number % 20 == 7:
            one = replace(made[-1], step_id=_step(number))
        elif made and number % 20 == 13:
            text = made[-1].chosen[0].content.replace(WORDS[0], WORDS[1], 1)
            one = replace(made[-1], step_id=_step(number), chosen=(Message("assistant", text),))
        else:
            one = _pair(number, coin)
        made.append(one)
    return made


def _step(number: int) -> str:
    return f"openhands-{number // SHARED_BY:08}:0:{number % SHARED_BY}"


def _pair(number: int, coin: random.Random) -> DPOPair:
    text, other = (" ".join(coin.choices(WORDS, k=50)) for _ in range(2))
    call = ToolCall(
        f"c{number}", "execute_bash", json.dumps({"command": " ".join(coin.choices(WORDS, k=100))})
    )
    return DPOPair(
        step_id=_step(number),
        label_source="teachers",
        state_messages=(),
        tools=(),
        chosen=(Message("assistant", text, (call,)),),
        rejected=(Message("assistant", other + " " + " ".join(coin.choices(WORDS, k=100))),),
        chosen_operation="run",
        rejected_operation="finish",
        source="openhands",
        harness="openhands",
        presentation="p1",
        student_model=None,
        student_family="unknown",
        state_key=str(number),
    )


def with_contexts(kept: Sequence[NormalizedDPOPair]) -> Iterator[NormalizedDPOPair]:
    """Yield pairs with their states, the messages of one context in memory at a time."""
    name, messages = "", tuple[Message, ...]()
    text = " ".join(WORDS * 20)
    for item in kept:
        trace = item.pair.step_id.split(":")[0]
        if trace != name:
            name, messages = trace, tuple(_context(name, text))
        cut = len(messages) - 2 * (int(item.pair.step_id[-1]) % SHARED_BY)
        yield replace(item, pair=replace(item.pair, state_messages=MessageView(messages, cut)))


def _context(name: str, text: str) -> Iterator[Message]:
    yield Message("system", f"You are {name}.")
    yield Message("user", "Fix it.")
    tokens = 0
    while tokens < CONTEXT_TOKENS:
        content = f"{tokens} {text}"
        yield Message("assistant", "I look.", (ToolCall(str(tokens), "execute_bash", '{"command": "ls"}'),))
        yield Message("tool", content, tool_call_id=str(tokens))
        tokens += estimate_token_count(content)


def operators(count: int) -> None:
    """Seconds of each operator over the rows, in a process of its own: data-juicer swaps stdout."""
    from tracemill.normalize.datajuicer.run_operators import build_operators, run_operators

    recipe = load_recipe()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.jsonl"
        with path.open("wb") as lines:
            lines.writelines(dump_operator_row(to_row(*each)) for each in enumerate(pairs(count)))
        for operator, label in zip(build_operators(recipe.process), recipe.labels, strict=True):
            start = time.process_time()
            outcome = run_operators([operator], [label], path, count)
            took = time.process_time() - start
            dropped = f"{len(outcome.dropped):>7,} dropped"
            sys.stderr.write(f"  {label:58}{count / took:>12,.0f} a second, {dropped}\n")


def cut_all(kept: Sequence[NormalizedDPOPair]) -> tuple[int, int]:
    """Contexts that were cut, and tokens of all of them before."""
    cutter, cut, tokens = ContextCutter(estimate_token_counts, 32_768), 0, 0
    for item in with_contexts(kept):
        fitted = cutter.fit(item.pair.state_messages, item.pair.tools, (item.pair.chosen, item.pair.rejected))
        assert isinstance(fitted, FittedContext)
        cut, tokens = cut + bool(fitted.length.cut), tokens + fitted.length.whole
    return cut, tokens


def main(count: int) -> None:
    """Run both parts and print what they took."""
    command = [sys.executable, "-c", f"from benchmarks.normalize import operators; operators({count})"]
    subprocess.run(command, check=True)
    begun = time.perf_counter()
    DJNormalizer().normalize(pairs(1))
    print(f"start: {time.perf_counter() - begun:.1f} s for one pair")
    made = pairs(count)
    begun, used = time.perf_counter(), cpu_s()
    with PeakMemory() as memory:
        result = DJNormalizer().normalize(made)
        recipe_s, recipe_cpu_s = time.perf_counter() - begun, cpu_s() - used
        cut, tokens = cut_all(result.kept)
    whole_s, whole_cpu_s = time.perf_counter() - begun, cpu_s() - used
    print(f"{len(result.kept):,} of {count:,} kept, {tokens / max(1, len(result.kept)):,.0f} tokens a row")
    for what, wall, cpu in (
        ("recipe", recipe_s, recipe_cpu_s),
        (f"with {cut:,} contexts cut", whole_s, whole_cpu_s),
    ):
        print(f"{what}: {wall:.1f} s, {count / wall:,.0f} pairs a second; {cpu:.1f} s of processor time")
    print(f"memory of all processes at its highest: {memory.peak_gb:.2f} GB")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else PAIRS)
