"""Measure the report of a large release in Chromium: `python -m benchmarks.report_page [PAIRS] [PAGE]`.

Eight pairs to a session of 60,000 tokens: listings, files and test output as agents see them, drawn from this
checkout, and sides that are edits, commands and searches. Prints what the page weighs, what writing it takes,
and when it can be used: when the first pair is shown and keys work, by the clock of the page. PAGE is where
the page is copied to, to be looked at.
"""

import json
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tracemill.data_cards.model.manifest import read_manifest
from tracemill.data_cards.model.release_spec import ReleaseSpec
from tracemill.data_cards.model.report_model import REPORT_PAGE
from tracemill.data_cards.report.example_rows import read_example_rows
from tracemill.data_cards.report.write_report import write_report_from_folder
from tracemill.data_cards.writing.write_release import Release, write_release
from tracemill.records.message import Message, ToolCall
from tracemill.records.pair import DPOPair, NormalizedDPOPair, Vote
from tracemill.records.trace import MessageView

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))
from chromium_page import ChromiumPage, chromium_page  # noqa: E402

PAIRS, SHARED_BY, CONTEXT_CHARS, ROUNDS = 5000, 8, 200_000, 5
_OPERATIONS = ("edit", "read", "search", "run_test", "run", "finish")
_TEACHERS = ("qwen", "zai", "deepseek", "moonshot")


def sources() -> list[list[str]]:
    """Return the lines of the Python files of this checkout."""
    folders = ("data_cards", "flows", "ingesters", "pairs", "privacy", "records", "teachers", "train")
    files = sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))
    return [path.read_text("utf-8").splitlines() for path in files if path.stat().st_size > 2000]


def _cut(coin: random.Random, files: list[list[str]], most: int) -> str:
    lines = coin.choice(files)
    begin = coin.randrange(max(1, len(lines) - 10))
    return "\n".join(lines[begin : begin + coin.randrange(4, most)])


def context(coin: random.Random, files: list[list[str]], trace: int) -> tuple[Message, ...]:
    """Return a session of about `CONTEXT_CHARS` characters."""
    messages = [
        Message("system", f"You are an agent that works in a repository. {_cut(coin, files, 60)}"),
        Message("user", f"Task {trace}: {_cut(coin, files, 20)}"),
    ]
    size = 0
    while size < CONTEXT_CHARS:
        output, number = _cut(coin, files, 120), len(messages)
        call = ToolCall(f"c{number}", "bash", json.dumps({"command": f"sed -n {number},{number + 80}p a.py"}))
        messages.append(Message("assistant", f"I look at {_cut(coin, files, 6)[:120]}.", (call,)))
        messages.append(Message("tool", output, tool_call_id=call.id, name="bash"))
        size += len(output)
    return tuple(messages)


def _side(coin: random.Random, files: list[list[str]], operation: str, text: str) -> Message:
    if operation == "finish":
        return Message("assistant", f"Done: {text}")
    if operation == "edit":
        lines = text.splitlines()
        lines[coin.randrange(len(lines))] = _cut(coin, files, 8)
        values = {"file_path": "src/a.py", "old_string": text, "new_string": "\n".join(lines)}
        return Message("assistant", "I edit.", (ToolCall("e", "Edit", json.dumps(values)),))
    command = f"{operation} {text.split()[0] if text.split() else 'x'} {coin.randrange(1000)}"
    return Message("assistant", "I run it.", (ToolCall("r", "bash", json.dumps({"command": command})),))


def pairs(count: int) -> Iterator[NormalizedDPOPair]:
    """Yield pairs, those of a session side by side."""
    coin, files, messages = random.Random(20261124), sources(), tuple[Message, ...]()
    for number in range(count):
        trace, step = divmod(number, SHARED_BY)
        if step == 0:
            messages = context(coin, files, trace)
        chosen, rejected = coin.choice(_OPERATIONS), coin.choice(_OPERATIONS)
        text = _cut(coin, files, 24)
        votes = tuple(
            Vote(name, name, 0, True, "", "k", chosen, agrees, 0.001, "q")
            for name, agrees in zip(_TEACHERS, (True, True, coin.random() < 0.5, False), strict=True)
        )
        values: dict[str, Any] = {
            "step_id": f"openhands-{trace:08}:0:{step}",
            "label_source": "teachers",
            "state_messages": MessageView(messages, len(messages) - 2 * (SHARED_BY - 1 - step)),
            "tools": (),
            "chosen": (_side(coin, files, chosen, text),),
            "rejected": (_side(coin, files, rejected, text),),
            "chosen_operation": chosen,
            "rejected_operation": rejected,
            "source": "openhands",
            "harness": "openhands",
            "presentation": "p1",
            "student_model": "example/model",
            "student_family": "unknown",
            "votes": votes,
            "n_teachers_agreeing": sum(vote.agrees for vote in votes),
            "repository": f"owner/repository-{trace % 200}",
            "evidence": "2 of 4 votes agree by intent: the same operation and target",
            "cost_usd": 0.004,
        }
        yield NormalizedDPOPair(DPOPair(**values), text, text, "bench")


def browse(page: Path) -> dict[str, list[float]]:
    """Return milliseconds: until list and texts are there, CPU of its thread, a step, a search."""
    ready, whole, used, steps, searches = (list[float]() for _ in range(5))
    with chromium_page() as tab:
        tab.call("Performance.enable", timeDomain="threadTicks")
        for _ in range(ROUNDS):
            tab.open("about:blank", 1440, 900)
            before = _thread_ms(tab)
            tab.open(page.as_uri(), 1440, 900)
            tab.wait("document.documentElement && document.documentElement.dataset.whole !== undefined")
            used.append(_thread_ms(tab) - before)
            ready.append(float(tab.evaluate("document.documentElement.dataset.ready")))
            whole.append(float(tab.evaluate("document.documentElement.dataset.whole")))
            timed = "(() => {{ const t = performance.now(); {}; return performance.now() - t; }})()"
            steps.append(tab.evaluate(timed.format("document.getElementById('on').click()")))
            seek = "const f = document.getElementById('by-did'); f.value = 'edit'; "
            seek += "document.getElementById('search').value = 'return'; f.dispatchEvent(new Event('change'))"
            searches.append(tab.evaluate(timed.format(seek)))
        assert tab.errors == []
    return {
        "ready, by the clock": ready,
        "texts there, by the clock": whole,
        "texts there, CPU of the page": used,
        "next pair": steps,
        "filter and search": searches,
    }


def _thread_ms(tab: ChromiumPage) -> float:
    metrics = {each["name"]: each["value"] for each in tab.call("Performance.getMetrics")["metrics"]}
    return 1000 * metrics["TaskDuration"]


def main(count: int, copy: str | None) -> None:
    """Make a release, write its report again, and open it."""
    with tempfile.TemporaryDirectory(prefix="tracemill-bench-") as name:
        spec = ReleaseSpec(name="bench", redaction="r1", created=datetime(2026, 11, 24, tzinfo=UTC), views=())
        made = write_release(spec, pairs(count), (), Path(name))
        assert isinstance(made, Release)
        begun = time.process_time()
        write_report_from_folder(made.path)
        took = time.process_time() - begun
        page = made.path / REPORT_PAGE
        said = read_example_rows(made.path, read_manifest(made.path)).statement
        times = browse(page)
        print(f"{count:,} pairs: {page.stat().st_size:,} bytes, written in {took:.1f} s of CPU")
        print(said)
        for what, ms in times.items():
            print(f"{what}: median {statistics.median(ms):.0f} ms, longest {max(ms):.0f} ms")
        if copy:
            shutil.copy(page, copy)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else PAIRS, sys.argv[2] if len(sys.argv) > 2 else None)
