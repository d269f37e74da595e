"""Read spans of calls of models into traces: one for every conversation and agent.

The messages are those of the conventions for generative AI: `gen_ai.input.messages`,
`gen_ai.output.messages`, `gen_ai.system_instructions` and `gen_ai.tool.definitions`, as attributes of a span
or of its event. An agent that another one calls is a side trace.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tracemill.harnesses.agents.registry import GENERIC, harness_for
from tracemill.ingesters.common.flags import BROKEN_OFF, NO_ACTION
from tracemill.ingesters.common.growing_context import StepMetadata
from tracemill.ingesters.common.openai_messages import collect_message_calls, first_text, parse_openai_tools
from tracemill.ingesters.common.report_counts import count_traces_in_report
from tracemill.ingesters.otel.contexts import ExactContexts, PromptTurn
from tracemill.ingesters.otel.messages import PromptReader, read_messages, result_message, system_message
from tracemill.ingesters.otel.spans import (
    AGENT_CALLS,
    OPERATIONS,
    TOOL_CALL,
    OtelSpan,
    has_content,
    read_spans,
    structured,
)
from tracemill.ingesters.reading.result_text import error_kind_of
from tracemill.ingesters.reading.row_files import iter_rows
from tracemill.records.identity import make_trace_id
from tracemill.records.ingest_report import IngestReport, record_type
from tracemill.records.message import Message, ToolSpec
from tracemill.records.trace import Trace, Usage

DIALECT = "otel"
NO_STEP = "spans without a step"
NO_MESSAGES = "call of a model without its messages"
NOT_PARSED = "messages that do not parse, as those that were cut"
NOT_READ = "call of a model with content that is not understood"
FAILED_CALL = "call of a model that failed"
CANDIDATES = "call of a model with several answers"
NO_EXPORT = "object that is no export of spans"
TWICE = "span exported twice"
RECORDED_TWICE = "call of a model in a span around another one's"
_BROKEN = ("length", "max_tokens", "error", "content_filter")
_INPUT, _OUTPUT = "gen_ai.input.messages", "gen_ai.output.messages"
_SYSTEM, _TOOLS = "gen_ai.system_instructions", "gen_ai.tool.definitions"


@dataclass(slots=True)
class AgentSession:
    """The calls of models of one agent in one conversation, and the call that started the agent."""

    key: tuple[str, ...]
    parent: tuple[str, ...] | None = None
    parent_call: str | None = None
    spans: list[OtelSpan] = field(default_factory=list)


def iter_traces(path: Path, report: IngestReport) -> Iterator[Trace]:
    """Yield the traces of a file and fill the report. Raises SourceError if it cannot be read."""
    yield from count_traces_in_report(_traces(path, report), report)


def _traces(path: Path, report: IngestReport) -> Iterator[Trace]:
    spans: dict[tuple[str, str], OtelSpan] = {}
    for record in iter_rows(path, report):
        if not isinstance(record, dict):
            report.skipped[NO_EXPORT] += 1
            continue
        for span in read_spans(record):
            report.flags[TWICE] += (span.trace, span.id) in spans
            spans[span.trace, span.id] = span
            report.records[record_type(span.operation or "span")] += 1
            if span.operation and span.operation not in OPERATIONS:
                report.unknown[f"operation {record_type(span.operation)}"] += 1
    sessions = _sessions(spans, report)
    traces = [trace for each in sessions if (trace := _Reader(each, spans, report).trace(path.name))]
    report.flags = +report.flags
    if not traces:
        report.skipped[NO_STEP] += 1
    yield from traces


def _sessions(spans: dict[tuple[str, str], OtelSpan], report: IngestReport) -> list[AgentSession]:
    """Return the sessions by their first spans; of two spans of one call, the inner one counts."""
    found: dict[tuple[str, ...], AgentSession] = {}
    whole = [span for span in spans.values() if span.calls_model and has_content(span)]
    outer = {(each.trace, each.id) for span in whole for each in _above(span, spans) if each.calls_model}
    report.flags[RECORDED_TWICE] += len(outer)
    for span in sorted(spans.values(), key=lambda each: (each.start, each.end)):
        if span.calls_model and (span.trace, span.id) not in outer:
            session = _session_of(span, spans)
            found.setdefault(session.key, session).spans.append(span)
    return list(found.values())


def _session_of(span: OtelSpan, spans: dict[tuple[str, str], OtelSpan]) -> AgentSession:
    """Return the session of a span: its conversation, and the agent whose span is nearest above it."""
    above = _above(span, spans)
    named = (each.text("gen_ai.conversation.id") for each in (span, *above))
    whole = next((name for name in named if name), None) or span.trace
    agents = [at for at, each in enumerate(above) if each.operation in AGENT_CALLS]
    if not agents:
        return AgentSession((whole, span.text("gen_ai.agent.name", "gen_ai.agent.id") or ""))
    keys = [_agent_key(whole, above[at], at != agents[-1]) for at in agents]
    if len(agents) == 1:
        return AgentSession(keys[0])
    between = above[agents[0] : agents[1]]
    called = (each.text("gen_ai.tool.call.id") for each in between if each.operation == TOOL_CALL)
    return AgentSession(keys[0], keys[1], next((call for call in called if call), None))


def _agent_key(whole: str, agent: OtelSpan, is_called: bool) -> tuple[str, ...]:
    """Return the key of an agent: an agent that another one calls is a new one at each call."""
    name = agent.text("gen_ai.agent.name", "gen_ai.agent.id") or ""
    return (whole, name, agent.id) if is_called else (whole, name)


def _above(span: OtelSpan, spans: dict[tuple[str, str], OtelSpan]) -> list[OtelSpan]:
    """Return the spans above one, the nearest first."""
    found: list[OtelSpan] = []
    seen = {span.id}
    while (up := spans.get((span.trace, span.parent))) is not None and up.id not in seen:
        found.append(up)
        seen.add(up.id)
        span = up
    return found


class _Reader:
    """Reader of one session."""

    def __init__(
        self, session: AgentSession, spans: dict[tuple[str, str], OtelSpan], report: IngestReport
    ) -> None:
        self.session, self.spans, self.report = session, spans, report
        self.runs = _tool_runs(session, spans)
        self.harness = _harness_name(session.spans[0], spans)
        self.tools: dict[str, tuple[ToolSpec, ...]] = {}
        self.prompts = PromptReader()

    def trace(self, origin: str) -> Trace | None:
        """Return the trace of the session, None if no span is a step."""
        builder = ExactContexts()
        last: PromptTurn | None = None
        for span in self.session.spans:
            if (turn := self._turn(span)) is not None:
                builder.add(turn)
                last = turn
        if last is not None:
            calls = (call.id for call in last.answer.tool_calls)
            results = [result for call in calls if (result := self._run_result(call)) is not None]
            builder.add_results(results)
        builder.close()
        if not builder.contexts:
            return None
        messages = {id(m): m for context in builder.contexts for m in context.messages}
        self.report.tool_errors += sum(m.is_error is True for m in messages.values())
        starts = Counter(f"contexts_{context.start}" for context in builder.contexts)
        parent = self.session.parent
        first = self.session.spans[0]
        return Trace(
            trace_id=make_trace_id(DIALECT, *self.session.key),
            source=DIALECT,
            dialect=DIALECT,
            harness=self.harness,
            contexts=tuple(builder.contexts),
            harness_version=first_text(first.resource.get("service.version")),
            kind="side" if parent else "main",
            parent_trace_id=make_trace_id(DIALECT, *parent) if parent else None,
            parent_call_id=self.session.parent_call,
            started_at=first.timestamp,
            origin=origin,
            notes=dict(sorted(starts.items())),
        )

    def _turn(self, span: OtelSpan) -> PromptTurn | None:
        """Return the turn of a span; None, and counted, if the span is not a turn."""
        report = self.report
        if not has_content(span) or _OUTPUT not in span.attributes or _INPUT not in span.attributes:
            report.skipped[FAILED_CALL if span.failed else NO_MESSAGES] += 1
            return None
        prompt, unread, parsed = self._prompt(span)
        outputs = structured(span.attributes[_OUTPUT])
        if not parsed or outputs is None:
            report.skipped[NOT_PARSED] += 1
            return None
        answers = read_messages(outputs, span.id)
        unread += answers.unread
        if unread:
            report.skipped[NOT_READ] += 1
            report.unknown.update(f"part {record_type(name)}" for name in unread)
            return None
        if (span.count("gen_ai.request.choice.count") or 1) > 1:
            report.skipped[CANDIDATES] += 1
            return None
        answer = _joined([each for each in answers.messages if each.role == "assistant"])
        if not answer.content.strip() and not answer.tool_calls:
            report.flags[NO_ACTION] += 1
            return None
        broken = span.failed or not _reasons(span, outputs).isdisjoint(_BROKEN)
        report.flags[BROKEN_OFF] += broken
        report.steps_synthetic += broken
        return PromptTurn(prompt, answer, self._tools(span), None if broken else _metadata(span))

    def _prompt(self, span: OtelSpan) -> tuple[list[Message], list[str], bool]:
        """Return the prompt of a span, the names of its unread parts, and whether it parses."""
        inputs = structured(span.attributes[_INPUT])
        read = self.prompts.read(inputs, span.id)
        messages = [self._with_run(message) for message in read.messages]
        system = span.attributes.get(_SYSTEM) or span.attributes.get("gen_ai.system.instructions")
        if system:
            value = structured(system)
            head = system_message(system if value is None else value)
            messages = [each for each in head.messages if each.content] + messages
            read.unread += head.unread
        return messages, read.unread, inputs is not None

    def _with_run(self, message: Message) -> Message:
        """Return a result with the failure that its tool's span records."""
        run = self.runs.get(message.tool_call_id or "") if message.role == "tool" else None
        if run is None or message.is_error:
            return message
        if not run.failed:
            return replace(message, is_error=False, error_kind=None)
        return replace(message, is_error=True, error_kind=error_kind_of(message.content, True))

    def _run_result(self, call_id: str) -> Message | None:
        run = self.runs.get(call_id)
        response = run.attributes.get("gen_ai.tool.call.result") if run else None
        if run is None or response is None:
            return None
        return self._with_run(result_message(call_id, response))

    def _tools(self, span: OtelSpan) -> tuple[ToolSpec, ...]:
        """Return the tools of a span, else those that the span of its agent names."""
        places = [span, *(each for each in _above(span, self.spans) if each.operation in AGENT_CALLS)]
        recorded = next((each.attributes[_TOOLS] for each in places if _TOOLS in each.attributes), None)
        if recorded is None:
            return ()
        key = repr(recorded)
        if key not in self.tools:
            outputs = (structured(each.attributes.get(_OUTPUT)) for each in self.session.spans)
            answers = (message for each in outputs for message in read_messages(each, "").messages)
            calls = collect_message_calls(answers)
            self.tools[key] = parse_openai_tools(structured(recorded), calls, harness_for(self.harness))
        return self.tools[key]


def _tool_runs(session: AgentSession, spans: dict[tuple[str, str], OtelSpan]) -> dict[str, OtelSpan]:
    """Return the spans of tools by the call they ran."""
    traces = {span.trace for span in session.spans}
    runs = (span for span in spans.values() if span.operation == TOOL_CALL and span.trace in traces)
    return {call: run for run in runs if (call := run.text("gen_ai.tool.call.id"))}


def _joined(messages: list[Message]) -> Message:
    """Return the messages of one answer as one."""
    if len(messages) == 1:
        return messages[0]
    text = "\n".join(message.content for message in messages if message.content)
    calls = tuple(call for message in messages for call in message.tool_calls)
    thoughts = "\n".join(message.reasoning for message in messages if message.reasoning)
    return Message("assistant", text, calls, reasoning=thoughts or None)


def _reasons(span: OtelSpan, outputs: Any) -> set[str]:
    """Return why an answer ended, by the span and by its messages."""
    listed = span.attributes.get("gen_ai.response.finish_reasons")
    reasons = structured(listed) if isinstance(listed, str) and listed[:1] == "[" else listed
    named = reasons if isinstance(reasons, list) else [reasons]
    items = outputs if isinstance(outputs, list) else [outputs]
    named = [*named, *(item.get("finish_reason") for item in items if isinstance(item, dict))]
    return {name.lower() for name in named if isinstance(name, str)}


def _metadata(span: OtelSpan) -> StepMetadata:
    usage = Usage(
        span.count("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"),
        span.count("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"),
        span.count("gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cached_tokens"),
    )
    model = span.text("gen_ai.response.model", "gen_ai.request.model")
    return StepMetadata(model, span.text("gen_ai.response.id") or span.id, usage, timestamp=span.timestamp)


def _harness_name(span: OtelSpan, spans: dict[tuple[str, str], OtelSpan]) -> str:
    """Return the first name of a known harness, else that of the service, else `unknown`."""
    agents = (each.text("gen_ai.agent.name") for each in (span, *_above(span, spans)))
    service = first_text(span.resource.get("service.name"))
    names = [name.lower().replace("-", "_") for name in (*agents, service, span.scope) if name]
    known = (name for name in names if harness_for(name) is not GENERIC)
    return next(known, None) or (service or "unknown").lower().replace("-", "_")
