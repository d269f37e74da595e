"""Laws of the rebuilding, on sessions written record by record together with what the agent saw."""

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ingesters.claude_code import ingest_file
from records.message import Message
from records.state import Trace

SESSION = "5e55104a-0000-4000-8000-000000000001"


class Recorder:
    """Writes records as Claude Code 2.1 does, and keeps the prefix each step was really given."""

    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []
        self.tip: str | None = None
        self.seen: list[str] = []
        self.expected: list[tuple[tuple[str, ...], str]] = []
        self.turns: list[tuple[str | None, list[str]]] = []
        self.count = 0

    def _write(self, kind: str, parent: str | None, **fields: Any) -> str:
        self.count += 1
        uuid = f"u{self.count}"
        base = {"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": SESSION, "isSidechain": False}
        stamp = {
            "version": "2.1.33",
            "cwd": "/project",
            "timestamp": f"2026-01-01T00:00:{self.count % 60:02}Z",
        }
        self.records.append(base | stamp | fields)
        return uuid

    def user(self, meta: bool = False) -> None:
        if not meta:
            self.mark()
        text = f"text {self.count}"
        self.tip = self._write("user", self.tip, message={"role": "user", "content": text}, isMeta=meta)
        self.seen.append(f"user:{text}")

    def queued(self) -> None:
        text = f"queued {self.count}"
        attachment = {"type": "queued_command", "prompt": text, "commandMode": "prompt"}
        self.tip = self._write("attachment", self.tip, attachment=attachment)
        self.seen.append(f"user:{text}")

    def progress(self) -> None:
        self.tip = self._write("progress", self.tip, data={"type": "hook_progress"})

    def synthetic(self) -> None:
        content = [{"type": "text", "text": "No response requested."}]
        message = {"id": f"s{self.count}", "role": "assistant", "model": "<synthetic>", "content": content}
        self.tip = self._write("assistant", self.tip, message=message)

    def step(self, calls: int, streamed: bool, reverse: bool) -> None:
        """Chunks of one message id; results between them or after, each hanging on its own call."""
        number = self.count
        ids = [f"t{number}_{i}" for i in range(calls)]
        self.expected.append((tuple(self.seen), f"assistant:say {number}:{','.join(ids)}"))
        self.tip = self._chunk(number, {"type": "thinking", "thinking": "hm", "signature": "x"})
        self.tip = self._chunk(number, {"type": "text", "text": f"say {number}"})
        answered: list[str] = []
        chunks: list[tuple[str, str]] = []
        last = self.tip
        for call in ids:
            self.tip = self._chunk(number, {"type": "tool_use", "id": call, "name": "Bash", "input": {}})
            chunks.append((call, self.tip))
            if streamed:
                last = self._result(call, self.tip)
                answered.append(call)
        for call, uuid in reversed(chunks) if reverse else chunks:
            if not streamed:
                self._write("progress", uuid, data={"type": "hook_progress"})
                last = self._result(call, uuid)
                answered.append(call)
        self.tip = last
        self.seen.append(f"assistant:say {number}:{','.join(ids)}")
        self.seen.extend(f"tool:{call}:result of {call}" for call in answered)

    def _chunk(self, number: int, block: dict[str, Any]) -> str:
        usage = {"input_tokens": 1, "output_tokens": 1}
        message = {"id": f"m{number}", "role": "assistant", "model": "claude-opus-4-5", "content": [block]}
        return self._write("assistant", self.tip, message=message | {"usage": usage})

    def _result(self, call: str, parent: str) -> str:
        block = {"type": "tool_result", "tool_use_id": call, "content": f"result of {call}"}
        return self._write("user", parent, message={"role": "user", "content": [block]})

    def repeat(self) -> None:
        """A result that is written twice, as an interrupt does; the first one counts."""
        calls = [entry.split(":")[1] for entry in self.seen if entry.startswith("tool:")]
        if calls:
            block = {"type": "tool_result", "tool_use_id": calls[-1], "content": "again"}
            self.tip = self._write("user", self.tip, message={"role": "user", "content": [block]})

    def mark(self) -> None:
        self.turns.append((self.tip, list(self.seen)))

    def rewind(self, pick: int) -> None:
        if self.turns:
            self.tip, seen = self.turns[pick % len(self.turns)]
            self.seen = list(seen)
        self.user()
        self.step(1, False, False)

    def compact(self) -> None:
        self.tip = self._write("system", None, subtype="compact_boundary", logicalParentUuid=self.tip)
        text = f"summary {self.count}"
        message = {"role": "user", "content": text}
        self.tip = self._write("user", self.tip, message=message, isCompactSummary=True)
        self.seen, self.turns = [f"user:{text}"], []

    def microcompact(self) -> None:
        done = [entry for entry in self.seen if entry.startswith("tool:")][:2]
        ids = [entry.split(":")[1] for entry in done]
        metadata = {"compactedToolIds": ids, "clearedAttachmentUUIDs": []}
        fields = {"subtype": "microcompact_boundary", "microcompactMetadata": metadata}
        self.tip = self._write("system", self.tip, **fields)
        blank = "[Old tool result content cleared]"
        self.seen = [f"tool:{e.split(':')[1]}:{blank}" if e in done else e for e in self.seen]
        self.turns = []

    def clear(self) -> None:
        self.tip = self._write(
            "progress", None, data={"type": "hook_progress", "hookName": "SessionStart:clear"}
        )
        self.seen, self.turns = [], []
        self.user()


OPERATIONS = st.one_of(
    st.tuples(st.just("step"), st.integers(0, 3), st.booleans(), st.booleans()),
    st.tuples(st.just("user"), st.booleans()),
    st.tuples(
        st.sampled_from(["queued", "progress", "synthetic", "repeat", "compact", "microcompact", "clear"])
    ),
    st.tuples(st.just("rewind"), st.integers(0, 5)),
)


def record(operations: list[tuple[Any, ...]]) -> Recorder:
    recorder = Recorder()
    recorder.user()
    for name, *arguments in [*operations, ("step", 1, False, False)]:
        getattr(recorder, name)(*arguments)
    return recorder


def write(path: Path, records: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def shape(message: Message) -> str:
    if message.role == "tool":
        return f"tool:{message.tool_call_id}:{message.content}"
    if message.role == "assistant":
        return f"assistant:{message.content}:{','.join(call.id for call in message.tool_calls)}"
    return f"user:{message.content}"


def check_laws(trace: Trace) -> None:
    """What holds for every trace, however it was recorded."""
    for context in trace.contexts:
        cuts = [step.cut for step in context.steps]
        assert cuts == sorted(set(cuts))
        assert [step.index for step in context.steps] == list(range(len(cuts)))
        results = Counter(m.tool_call_id for m in context.messages if m.role == "tool")
        assert not [call for call, count in results.items() if count > 1]
        for step in context.steps:
            action = context.messages[step.cut]
            assert action.role == "assistant"
            assert action.content or action.tool_calls
            own = {call.id for call in action.tool_calls}
            assert not own & {m.tool_call_id for m in context.messages[: step.cut]}
        called = [call.id for m in context.messages for call in m.tool_calls]
        assert len(called) == len(set(called))


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(operations=st.lists(OPERATIONS, max_size=25))
def test_every_prefix_is_what_the_agent_saw(operations: list[tuple[Any, ...]], tmp_path: Path) -> None:
    recorder = record(operations)
    traces, report = ingest_file(write(tmp_path / "s.jsonl", recorder.records))
    states = list(traces[0].states())
    found = [
        (tuple(shape(m) for m in state.messages), shape(state.context.messages[state.step.cut]))
        for state in states
    ]
    assert found == recorder.expected
    assert report.states == len(recorder.expected)
    check_laws(traces[0])


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(operations=st.lists(OPERATIONS, max_size=15), places=st.lists(st.integers(0, 200), max_size=8))
def test_unrelated_records_change_nothing(
    operations: list[tuple[Any, ...]], places: list[int], tmp_path: Path
) -> None:
    recorder = record(operations)
    plain, _ = ingest_file(write(tmp_path / "s.jsonl", recorder.records))
    again, _ = ingest_file(tmp_path / "s.jsonl")
    assert plain == again
    noisy = list(recorder.records)
    for place in places:
        noisy.insert(place % (len(noisy) + 1), {"type": "file-history-snapshot", "messageId": "x"})
    assert ingest_file(write(tmp_path / "s.jsonl", noisy))[0] == plain


JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=3)
    | st.sampled_from(["u1", "u2", "tool_result"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["type", "id", "x"]), inner),
    max_leaves=4,
)


def fields(value: Any) -> list[tuple[Any, Any]]:
    """Every place inside a JSON value, as (container, key)."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [found for key, inner in list(items) for found in [(value, key), *fields(inner)]]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    operations=st.lists(OPERATIONS, max_size=8),
    damage=st.lists(st.tuples(st.integers(0, 10_000), JUNK), min_size=1, max_size=12),
)
def test_damaged_records_are_never_fatal(
    operations: list[tuple[Any, ...]], damage: list[tuple[int, Any]], tmp_path: Path
) -> None:
    recorder = record(operations)
    attachment = {"type": "hook_success", "hookName": "x", "hookEvent": "SessionStart", "stdout": "{}"}
    recorder.records.append({"type": "attachment", "uuid": "end", "attachment": attachment})
    for place, junk in damage:
        places = fields(recorder.records)
        container, key = places[place % len(places)]
        container[key] = junk
    whole = {"type": "summary", "leafUuid": "x"}
    traces, report = ingest_file(write(tmp_path / "s.jsonl", [*recorder.records, whole]))
    assert report.states == sum(trace.step_count for trace in traces)
    for trace in traces:
        check_laws(trace)


REAL = os.environ.get("TRACEMILL_REAL_TRACES")

if REAL:
    ROOT = Path(REAL) / "claude_code"
    TRUTH = [
        row
        for row in json.loads((Path(REAL) / "ground_truth.json").read_text())
        if row["format"] == "claude_code"
    ]
    COUNTS = (
        "steps_main",
        "steps_side",
        "steps_synthetic",
        "tool_calls",
        "tool_errors",
        "compactions",
        "branches_real",
    )

    @pytest.mark.parametrize("truth", TRUTH, ids=lambda truth: truth["file"][-40:])
    def test_real_sessions_keep_the_laws_and_the_counts(truth: dict[str, Any]) -> None:
        path = ROOT / truth["file"]
        traces, report = ingest_file(path)
        assert {key: getattr(report, key) for key in COUNTS} == {key: truth[key] for key in COUNTS}
        silent = report.flags["step without action"]
        steps = report.steps_main + report.steps_side - report.steps_synthetic
        if truth["steps_main"] or truth["steps_side"]:
            assert report.states + silent == steps
        assert ingest_file(path)[0] == traces
        for trace in traces:
            check_laws(trace)

    def test_real_prefixes_follow_the_reported_tokens() -> None:
        percents = [
            trace.notes["prefix_tokens_r_percent"]
            for truth in TRUTH
            for trace in ingest_file(ROOT / truth["file"])[0]
            if "prefix_tokens_r_percent" in trace.notes
        ]
        assert len(percents) >= 30
        assert sorted(percents)[len(percents) // 2] >= 99
        assert sum(percent < 90 for percent in percents) <= 1
