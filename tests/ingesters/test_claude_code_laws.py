"""Laws of the rebuilding, on sessions written record by record together with what the agent saw."""

import io
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tracemill.ingesters.claude_code.ingest_session import ingest_file
from tracemill.records.message import Message
from tracemill.records.storage.trace_rows import traces_from_table, traces_to_table
from tracemill.records.trace import Trace

SESSION = "5e55104a-0000-4000-8000-000000000001"
BLANK = "[Old tool result content cleared]"
Prefix = tuple[str, ...]
Said = tuple[str, list[str]]
"""The uuid of a message, and its shape; of a step with the shapes of its results."""


class Recorder:
    """Writes records as Claude Code does, and keeps the prefix each step was really given."""

    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []
        self.tip: str | None = None
        self.said: list[Said] = []
        self.expected: list[tuple[Prefix, str]] = []
        self.agents: list[list[tuple[Prefix, str]]] = []
        self.calls: list[str] = []
        self.turns: list[tuple[str | None, list[Said]]] = []
        self.blanked: set[str] = set()
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

    @property
    def seen(self) -> Prefix:
        return tuple(shape for _, shapes in self.said for shape in shapes)

    def _blank(self, shape: str) -> str:
        call = shape.split(":")[1]
        return f"tool:{call}:{BLANK}" if shape.startswith("tool:") and call in self.blanked else shape

    def user(self, meta: bool = False) -> None:
        if not meta:
            self.mark()
        text = f"text {self.count}"
        self.tip = self._write("user", self.tip, message={"role": "user", "content": text}, isMeta=meta)
        self.said.append((self.tip, [f"user:{text}"]))

    def queued(self) -> None:
        text = f"queued {self.count}"
        attachment = {"type": "queued_command", "prompt": text, "commandMode": "prompt"}
        self.tip = self._write("attachment", self.tip, attachment=attachment)
        self.said.append((self.tip, [f"user:{text}"]))

    def typed(self, gap: bool) -> None:
        """A prompt of which only the queue tells."""
        text = f"typed {self.count}"
        self.count += 1
        self.records.append({"type": "queue-operation", "operation": "enqueue", "content": text})
        if gap:
            self.progress()
        self.records.append({"type": "queue-operation", "operation": "remove"})
        self.said.append(("", [f"user:{text}"]))

    def progress(self) -> None:
        self.tip = self._write("progress", self.tip, data={"type": "hook_progress"})

    def synthetic(self) -> None:
        content = [{"type": "text", "text": "No response requested."}]
        message = {"id": f"s{self.count}", "role": "assistant", "model": "<synthetic>", "content": content}
        self.tip = self._write("assistant", self.tip, message=message)

    def interrupt(self) -> None:
        """A response that the user breaks off: shown from then on, and no action."""
        number = self.count
        self.tip = self._chunk(number, {"type": "text", "text": f"cut {number}"})
        self.said.append((self.tip, [f"assistant:cut {number}:"]))
        text = "[Request interrupted by user]"
        content = [{"type": "text", "text": text}]
        self.tip = self._write("user", self.tip, message={"role": "user", "content": content})
        self.said.append((self.tip, [f"user:{text}"]))

    def step(self, calls: int, streamed: bool, reverse: bool, name: str = "Bash") -> None:
        """Chunks of one message id; results between them or after, each hanging on its own call."""
        number = self.count
        ids = [f"t{number}_{i}" for i in range(calls)]
        action = f"assistant:say {number}:{','.join(ids)}"
        self.expected.append((self.seen, action))
        first = self.tip = self._chunk(number, {"type": "thinking", "thinking": "hm", "signature": "x"})
        self.tip = self._chunk(number, {"type": "text", "text": f"say {number}"})
        answered: list[str] = []
        chunks: list[tuple[str, str]] = []
        last = self.tip
        for call in ids:
            given = {"prompt": f"look {call}"}
            self.tip = self._chunk(number, {"type": "tool_use", "id": call, "name": name, "input": given})
            chunks.append((call, self.tip))
            if streamed:
                last = self._result(call, self.tip)
                answered.append(call)
        for call, uuid in reversed(chunks) if reverse else chunks:
            if not streamed:
                self._write("progress", uuid, data={"type": "hook_progress"})
                if name == "Task":
                    self._agent(call)
                last = self._result(call, uuid)
                answered.append(call)
        self.tip = last
        self.said.append((first, [action, *(f"tool:{call}:result of {call}" for call in answered)]))

    def agent(self, calls: int) -> None:
        """A step that starts subagents, which are recorded in the same file."""
        self.step(calls, False, False, "Task")

    def _agent(self, call: str) -> None:
        tip = self._write("user", None, message={"role": "user", "content": f"look {call}"}, isSidechain=True)
        seen, steps = [f"user:look {call}"], []
        for _ in range(2):
            number = self.count
            inner = f"t{number}"
            action = f"assistant::{inner}"
            steps.append((tuple(seen), action))
            block = {"type": "tool_use", "id": inner, "name": "Read", "input": {}}
            tip = self._chunk(number, block, parent=tip, isSidechain=True)
            tip = self._result(inner, tip, isSidechain=True)
            seen += [action, f"tool:{inner}:result of {inner}"]
        self.agents.append(steps)
        self.calls.append(call)

    def _chunk(self, number: int, block: dict[str, Any], parent: str | None = None, **fields: Any) -> str:
        message = {"id": f"m{number}", "role": "assistant", "model": "claude-opus-4-5", "content": [block]}
        return self._write("assistant", parent or self.tip, message=message, **fields)

    def _result(self, call: str, parent: str, **fields: Any) -> str:
        block = {"type": "tool_result", "tool_use_id": call, "content": f"result of {call}"}
        return self._write("user", parent, message={"role": "user", "content": [block]}, **fields)

    def repeat(self) -> None:
        """A result that is written twice, as an interrupt does; the first one counts."""
        calls = [shape.split(":")[1] for shape in self.seen if shape.startswith("tool:")]
        if calls:
            block = {"type": "tool_result", "tool_use_id": calls[-1], "content": "again"}
            self.tip = self._write("user", self.tip, message={"role": "user", "content": [block]})

    def mark(self) -> None:
        self.turns.append((self.tip, list(self.said)))

    def rewind(self, pick: int) -> None:
        if self.turns:
            self.tip, said = self.turns[pick % len(self.turns)]
            self.said = list(said)
        self.user()
        self.step(1, False, False)

    def compact(self, keep: int = 0, listed: bool = True) -> None:
        """A compaction that keeps the last messages, named one by one or by their ends."""
        kept = [said for said in self.said if said[0]][-keep:] if keep else []
        metadata: dict[str, Any] = {"trigger": "auto"}
        anchor = f"u{self.count + 2}"
        if kept and listed:
            metadata["preservedMessages"] = {"anchorUuid": anchor, "uuids": [uuid for uuid, _ in kept]}
            metadata["preservedSegment"] = {"anchorUuid": anchor, "headUuid": "no", "tailUuid": "such"}
        elif kept:
            kept = kept[-1:]
            metadata["preservedSegment"] = {
                "anchorUuid": anchor,
                "headUuid": kept[0][0],
                "tailUuid": kept[0][0],
            }
        fields = {"subtype": "compact_boundary", "compactMetadata": metadata, "logicalParentUuid": self.tip}
        self.tip = self._write("system", None, **fields)
        text = f"summary {self.count}"
        message = {"role": "user", "content": text}
        self.tip = self._write("user", self.tip, message=message, isCompactSummary=True)
        self.said, self.turns = [(self.tip, [f"user:{text}"]), *kept], []

    def microcompact(self) -> None:
        done = [shape.split(":")[1] for shape in self.seen if shape.startswith("tool:")][:2]
        metadata = {"compactedToolIds": done, "clearedAttachmentUUIDs": []}
        fields = {"subtype": "microcompact_boundary", "microcompactMetadata": metadata}
        self.tip = self._write("system", self.tip, **fields)
        self.blanked.update(done)
        self.said = [(uuid, [self._blank(shape) for shape in shapes]) for uuid, shapes in self.said]
        self.turns = []

    def clear(self) -> None:
        data = {"type": "hook_progress", "hookName": "SessionStart:clear"}
        self.tip = self._write("progress", None, data=data)
        self.said, self.turns = [], []
        self.user()


OPERATIONS = st.one_of(
    st.tuples(st.just("step"), st.integers(0, 3), st.booleans(), st.booleans()),
    st.tuples(st.just("agent"), st.integers(1, 2)),
    st.tuples(st.just("user"), st.booleans()),
    st.tuples(st.just("typed"), st.booleans()),
    st.tuples(st.just("compact"), st.integers(0, 4), st.booleans()),
    st.tuples(st.sampled_from(["queued", "progress", "synthetic", "interrupt", "repeat"])),
    st.tuples(st.sampled_from(["microcompact", "clear"])),
    st.tuples(st.just("rewind"), st.integers(0, 5)),
)
SLOW = [HealthCheck.function_scoped_fixture]


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


def steps(trace: Trace) -> list[tuple[Prefix, str]]:
    return [
        (tuple(map(shape, state.messages)), shape(state.context.messages[state.step.cut]))
        for state in trace.states()
    ]


def check_laws(trace: Trace) -> None:
    """What holds for every trace, however it was recorded."""
    ids = [str(state.step_id) for state in trace.states()]
    assert len(ids) == len(set(ids))
    for number, context in enumerate(trace.contexts):
        assert context.index == number
        cuts = [step.cut for step in context.steps]
        assert cuts == sorted(set(cuts))
        assert [step.index for step in context.steps] == list(range(len(cuts)))
        assert 0 <= context.lost_from < len(cuts)
        called = [call.id for message in context.messages for call in message.tool_calls]
        assert len(called) == len(set(called))
        answered = Counter(m.tool_call_id for m in context.messages if m.role == "tool")
        assert not [call for call, count in answered.items() if count > 1 and call in called]
        for place, message in enumerate(context.messages):
            own = {call.id for call in message.tool_calls}
            behind = {m.tool_call_id for m in context.messages[place + 1 : place + 1 + len(own)]}
            assert not own & {m.tool_call_id for m in context.messages[:place]}
            assert own & answered.keys() <= behind
        for step in context.steps:
            action = context.messages[step.cut]
            assert action.role == "assistant"
            assert action.content or action.tool_calls


def parquet(traces: list[Trace]) -> bytes:
    sink = io.BytesIO()
    pq.write_table(traces_to_table(traces), sink)
    return sink.getvalue()


@settings(max_examples=200, deadline=None, suppress_health_check=SLOW)
@given(operations=st.lists(OPERATIONS, max_size=25))
def test_every_prefix_is_what_the_agent_saw(operations: list[tuple[Any, ...]], tmp_path: Path) -> None:
    recorder = record(operations)
    traces, report = ingest_file(write(tmp_path / "s.jsonl", recorder.records))
    main, *sides = traces
    assert steps(main) == recorder.expected
    assert [steps(side) for side in sides] == recorder.agents
    assert [side.parent_call_id for side in sides] == recorder.calls
    assert {side.parent_trace_id for side in sides} <= {main.trace_id}
    assert report.states == len(recorder.expected) + 2 * len(recorder.agents)
    for trace in traces:
        check_laws(trace)
        assert {state.fidelity.context for state in trace.states()} == {"complete"}


@settings(max_examples=60, deadline=None, suppress_health_check=SLOW)
@given(operations=st.lists(OPERATIONS, max_size=15))
def test_the_same_file_gives_the_same_bytes(operations: list[tuple[Any, ...]], tmp_path: Path) -> None:
    path = write(tmp_path / "s.jsonl", record(operations).records)
    first, second = ingest_file(path)[0], ingest_file(path)[0]
    assert first == second
    assert parquet(first) == parquet(second)
    assert traces_from_table(traces_to_table(first)) == first


@settings(max_examples=60, deadline=None, suppress_health_check=SLOW)
@given(
    operations=st.lists(OPERATIONS, max_size=15),
    places=st.lists(st.integers(0, 200), max_size=8),
    seed=st.integers(0, 99),
)
def test_unrelated_records_change_nothing_wherever_they_stand(
    operations: list[tuple[Any, ...]], places: list[int], seed: int, tmp_path: Path
) -> None:
    recorder = record(operations)
    plain, _ = ingest_file(write(tmp_path / "s.jsonl", recorder.records))
    mixed = interleaved(recorder.records, random.Random(seed))
    for place in places:
        noise = {
            "type": "progress",
            "uuid": f"n{len(mixed)}",
            "parentUuid": "u1",
            "data": {"type": "bash_progress"},
        }
        first = 1 + next(n for n, r in enumerate(mixed) if r.get("uuid") == "u1")
        mixed.insert(first + place % (len(mixed) - first + 1), noise)
        mixed.insert(place % (len(mixed) + 1), {"type": "file-history-snapshot", "messageId": "x"})
    again, _ = ingest_file(write(tmp_path / "s.jsonl", mixed))
    assert {trace.trace_id: trace for trace in again} == {trace.trace_id: trace for trace in plain}


def interleaved(records: list[dict[str, Any]], chance: random.Random) -> list[dict[str, Any]]:
    """The records with those of subagents at other places; each chain keeps its order, and an agent
    begins after its call and may end at any time."""
    main, sides = [], []
    for record in records:
        if not record.get("isSidechain"):
            main.append(record)
        elif record["parentUuid"] is None:
            sides.append([record])
        else:
            sides[-1].append(record)
    for side in sides:
        at = next(n for n, r in enumerate(main) if _calls(r, side[0]["message"]["content"])) + 1
        for record in side:
            at = chance.randint(at, len(main))
            main.insert(at, record)
            at += 1
    return main


def _calls(record: dict[str, Any], prompt: str) -> bool:
    content = record.get("message", {}).get("content", ())
    return any(isinstance(block, dict) and block.get("input") == {"prompt": prompt} for block in content)


@settings(max_examples=60, deadline=None, suppress_health_check=SLOW)
@given(operations=st.lists(OPERATIONS, min_size=1, max_size=15), cut=st.integers(1, 300))
def test_a_session_that_grew_keeps_the_identities_of_its_steps(
    operations: list[tuple[Any, ...]], cut: int, tmp_path: Path
) -> None:
    records = record(operations).records
    whole = {s.step_id: s for t in ingest_file(write(tmp_path / "s.jsonl", records))[0] for s in t.states()}
    part = ingest_file(write(tmp_path / "s.jsonl", records[: 1 + cut % len(records)]))[0]
    states = [state for trace in part for state in trace.states()]
    for state in states:
        last = state.context is state.trace.contexts[-1] and state.step is state.context.steps[-1]
        assert last or whole[state.step_id].messages == state.messages


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


COMPACTED = [("compact", 1, True), ("step", 2, True, False), ("step", 2, True, False), ("compact", 2, True)]
TWO_CALLS: list[tuple[Any, ...]] = [*COMPACTED, ("user", False), ("progress",)]
"""With the damage below two calls of different steps have no id."""


@settings(max_examples=150, deadline=None, suppress_health_check=SLOW)
@given(
    operations=st.lists(OPERATIONS, max_size=8),
    damage=st.lists(st.tuples(st.integers(0, 10_000), JUNK), min_size=1, max_size=12),
)
@example(operations=TWO_CALLS, damage=[(371, None), (0, [None]), (123, None)])
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
