"""Known operations, attributes and parts of the conventions for generative AI."""

from collections.abc import Iterator, Mapping
from typing import Any

from tracemill.ingesters.common.chat_messages import unread_chat_message
from tracemill.ingesters.common.openai_messages import as_mapping
from tracemill.ingesters.format import Record, RecordKind
from tracemill.ingesters.otel.messages import ROLES, unread_parts
from tracemill.ingesters.otel.spans import OPERATIONS, read_spans, structured
from tracemill.records.ingest_report import record_type

_NAMES = """agent.description agent.id agent.name agent.version conversation.id data_source.id input.messages
    operation.name output.messages output.type provider.name system system_instructions prompt.name
    request.choice.count request.encoding_formats request.frequency_penalty request.max_tokens request.model
    request.presence_penalty request.seed request.stop_sequences request.temperature request.top_k
    request.top_p request.stream response.finish_reasons response.id response.model
    response.time_to_first_chunk token.type tool.call.arguments tool.call.id tool.call.result
    tool.definitions tool.description tool.name tool.type usage.input_tokens usage.output_tokens
    usage.cache_read.input_tokens usage.cache_creation.input_tokens usage.reasoning.output_tokens
    usage.prompt_tokens usage.completion_tokens usage.cached_tokens system.instructions
    workflow.name embeddings.dimension.count"""
_KEYS = frozenset(f"gen_ai.{name}" for name in _NAMES.split())


def kinds_of_export(record: Record) -> Iterator[RecordKind]:
    """Yield the kinds of the spans of an export with their attributes of these conventions, and of parts."""
    for span in read_spans(record):
        own = [key for key in span.attributes if key.startswith("gen_ai.")]
        if not own:
            continue
        operation = span.operation or "untyped"
        yield RecordKind(f"span {record_type(operation)}", own, operation in (*OPERATIONS, "untyped"), _KEYS)
        yield from _kinds_of_messages(span.attributes)


def _kinds_of_messages(attributes: Mapping[str, Any]) -> Iterator[RecordKind]:
    for name in ("gen_ai.input.messages", "gen_ai.output.messages"):
        listed = structured(attributes.get(name))
        for message in listed if isinstance(listed, list) else ():
            parts, role = as_mapping(message).get("parts"), as_mapping(message).get("role")
            if not isinstance(parts, list):
                unread = unread_chat_message(message)
                yield from (RecordKind(f"part {record_type(each)}", (), False) for each in unread)
                continue
            yield RecordKind(f"message {record_type(role)}", (), role in ROLES)
            yield from (RecordKind(f"part {record_type(each)}", (), False) for each in unread_parts(parts))
