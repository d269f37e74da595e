"""Read a log of inspect: every sample is a trace, every agent that a tool of it started a side trace.

A model event holds the exact prompt, the tools and the answer. Calls of scorers are no actions of the agent.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from tracemill.harnesses.agents.registry import unknown_harness
from tracemill.ingesters.common.flags import NO_ACTION, OVER_LIMIT
from tracemill.ingesters.common.growing_context import StepMetadata
from tracemill.ingesters.common.openai_messages import as_mapping, collect_message_calls, first_text
from tracemill.ingesters.common.report_counts import traces_of_rows
from tracemill.ingesters.inspect_ai.agents import AgentIdentity, SampleAgents
from tracemill.ingesters.inspect_ai.contexts import AgentContexts, ModelCall
from tracemill.ingesters.inspect_ai.log_files import SampleTexts, read_log
from tracemill.ingesters.inspect_ai.messages import (
    content_list,
    has_unread_arguments,
    parse_message,
    parse_outcome,
    parse_tools,
    parse_usage,
    result_message,
    result_text,
    unread_message,
)
from tracemill.records.identity import make_trace_id
from tracemill.records.ingest_report import IngestReport, record_type
from tracemill.records.message import Message, ToolSpec
from tracemill.records.trace import Trace

DIALECT = "inspect_ai"
NO_STEP = "sample without a step"
BY_A_SCORER = "model call of a scorer"
FAILED = "model call that failed"
NOT_AS_EMITTED = "call whose arguments did not parse"
OTHER_CHOICES = "answer with further choices, which are not read"
MISSING_TEXT = "text that the log refers to and does not hold"
AT_A_LIMIT = "sample that ended at a limit"
WITH_AN_ERROR = "sample that ended with an error"
ERROR_EVENT = "error in a sample, of its agent or tools"
_CUT = ("max_tokens", "model_length", "content_filter")
EVENTS_TEXT = """model tool sample_init sample_limit sandbox state store anchor approval branch checkpoint
    compaction input interrupt score score_edit error logger info span_begin span_end step subtask"""
EVENTS = frozenset(EVENTS_TEXT.split())


def iter_traces(path: Path, report: IngestReport) -> Iterator[Trace]:
    """Yield the traces of a log and fill the report. Raises SourceError if it cannot be read."""
    log = read_log(path, report)
    yield from traces_of_rows(
        log.samples, lambda sample: SampleReader(sample, log.spec, path.name, report).traces(), report
    )


@dataclass(frozen=True, slots=True)
class _ParsedMessage:
    """A message, the names of its unread parts, and whether a text of it is missing from the log."""

    message: Message
    unread: list[str]
    lacks: bool


@dataclass(slots=True)
class SampleReader:
    """Reader of one sample; `agents` are the contexts of its agents by key, of the main one by ""."""

    sample: Mapping[str, Any]
    spec: Mapping[str, Any]
    origin: str
    report: IngestReport
    texts: SampleTexts = field(init=False)
    agents: dict[str, AgentContexts] = field(default_factory=dict)
    parents: dict[str, str | None] = field(default_factory=dict)
    results: dict[str, Message] = field(default_factory=dict)
    read: dict[bytes, _ParsedMessage] = field(default_factory=dict)
    tools: dict[bytes, tuple[ToolSpec, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.texts = SampleTexts.of(self.sample)

    def traces(self) -> list[Trace]:
        """Return the traces of the sample, the main one first."""
        flags = self.report.flags
        flags[AT_A_LIMIT] += bool(self.sample.get("limit"))
        flags[WITH_AN_ERROR] += bool(self.sample.get("error"))
        events = content_list(self.sample.get("events"))
        places = SampleAgents.of(events)
        for event, agent in places.walk(events):
            self._add(event, agent)
        self.report.flags = +flags
        made = {key: agent.finish(self.results) for key, agent in self.agents.items()}
        if not made:
            self.report.skipped[NO_STEP] += 1
        return [
            self._trace(key, contexts) for key, contexts in sorted(made.items(), key=lambda each: each[0])
        ]

    def _add(self, event: Mapping[str, Any], agent: AgentIdentity) -> None:
        kind = record_type(event.get("event"))
        self.report.records[kind] += 1
        if kind not in EVENTS:
            self.report.unknown[f"event {kind}"] += 1
        elif kind == "tool":
            self._add_result(event)
        elif kind == "error":
            self.report.flags[ERROR_EVENT] += 1
        elif kind == "compaction" and agent.key in self.agents:
            self.report.compactions += 1
            self.agents[agent.key].compacted = True
        elif kind == "model" and agent.scores:
            self.report.flags[BY_A_SCORER] += 1
        elif kind == "model" and (call := self._call(event)) is not None:
            self.agents.setdefault(agent.key, AgentContexts()).add(call)
            self.parents.setdefault(agent.key, agent.call_id)

    def _add_result(self, event: Mapping[str, Any]) -> None:
        call_id = first_text(event.get("id"))
        if call_id is None or event.get("pending"):
            return
        missing = self.texts.missing
        text = result_text(self.texts.resolve(event.get("result")))
        error = self.texts.resolve(event.get("error"))
        self.report.flags[MISSING_TEXT] += self.texts.missing - missing
        self.results[call_id] = result_message(call_id, first_text(event.get("function")), text, error)
        self.report.tool_errors += bool(as_mapping(error))

    def _call(self, event: Mapping[str, Any]) -> ModelCall | None:
        """Return a model call with a whole action, None and a count for any other."""
        flags, missing = self.report.flags, self.texts.missing
        output = as_mapping(event.get("output"))
        choices = content_list(output.get("choices"))
        if event.get("error") or event.get("pending") or output.get("error") or not choices:
            flags[FAILED] += 1
            self.report.steps_synthetic += 1
            return None
        flags[OTHER_CHOICES] += len(choices) > 1
        choice = as_mapping(choices[0])
        answer = self._message(choice.get("message"))
        action = answer.message
        if answer.unread or answer.lacks:
            self._count_unread(answer)
            return None
        if not action.content.strip() and not action.tool_calls:
            flags[NO_ACTION] += 1
            return None
        cut, unparsed = choice.get("stop_reason") in _CUT, has_unread_arguments(choice["message"])
        flags[OVER_LIMIT] += cut
        flags[NOT_AS_EMITTED] += unparsed
        if cut or unparsed:
            return None
        prompt = [self._message(each) for each in self.texts.prompt(event)]
        for each in prompt:
            self._count_unread(each)
        tools = self._tools(event.get("tools"))
        flags[MISSING_TEXT] += self.texts.missing - missing
        whole = self.texts.missing == missing and not any(each.unread or each.lacks for each in prompt)
        return ModelCall(
            [each.message for each in prompt], tools, action, self._metadata(event, output), whole
        )

    def _metadata(self, event: Mapping[str, Any], output: Mapping[str, Any]) -> StepMetadata:
        return StepMetadata(
            model=first_text(event.get("model"), output.get("model")),
            native_id=first_text(event.get("uuid")),
            usage=parse_usage(output.get("usage")),
            timestamp=first_text(event.get("timestamp")),
        )

    def _message(self, raw: Any) -> _ParsedMessage:
        """Parse a message; equal ones become one object."""
        key = orjson.dumps(raw)
        if key not in self.read:
            before = self.texts.missing
            whole = self.texts.resolve(raw)
            lacks, self.texts.missing = self.texts.missing > before, before
            self.read[key] = _ParsedMessage(parse_message(as_mapping(whole)), unread_message(whole), lacks)
        return self.read[key]

    def _tools(self, listed: Any) -> tuple[ToolSpec, ...]:
        key = orjson.dumps(listed)
        if key not in self.tools:
            self.tools[key] = parse_tools(self.texts.resolve(listed))
        return self.tools[key]

    def _count_unread(self, read: _ParsedMessage) -> None:
        self.report.flags[MISSING_TEXT] += read.lacks
        for name in read.unread:
            kind, _, what = name.partition(" ")
            self.report.unknown[f"{kind} {record_type(what)}" if what else kind] += 1

    def _trace(self, key: str, contexts: tuple[Any, ...]) -> Trace:
        sample, spec = self.sample, self.spec
        names = [tool.name for context in contexts for tool in context.tools]
        names += [call.name for context in contexts for call in collect_message_calls(context.messages)]
        notes = Counter(f"contexts_{context.start}" for context in contexts)
        first = contexts[0].steps[0].timestamp
        return Trace(
            trace_id=self._trace_id(key),
            source=DIALECT,
            dialect=DIALECT,
            harness=unknown_harness(dict.fromkeys(names)).name,
            contexts=contexts,
            harness_version=first_text(as_mapping(spec.get("packages")).get("inspect_ai")),
            kind="side" if key else "main",
            parent_trace_id=self._trace_id("") if key else None,
            parent_call_id=self.parents.get(key),
            instance_id=f"{spec.get('task')}/{sample.get('id')}",
            outcome="unknown" if key else parse_outcome(sample.get("scores")),
            started_at=first if key else first_text(sample.get("started_at"), first),
            origin=self.origin,
            notes=dict(sorted(notes.items())),
        )

    def _trace_id(self, key: str) -> str:
        sample, spec = self.sample, self.spec
        metadata = [spec.get(name) for name in ("run_id", "task_id", "created")]
        named = [first_text(sample.get("uuid")) or str([*metadata, sample.get("id"), sample.get("epoch")])]
        return make_trace_id(DIALECT, *named, *([key] if key else []))
