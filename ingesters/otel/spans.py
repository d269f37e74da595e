"""Read spans of an OTLP export: values of attributes, operations, the agent a span belongs to."""

import ast
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from tracemill.ingesters.common.openai_messages import as_mapping, first_text
from tracemill.ingesters.common.times import iso_utc
from tracemill.ingesters.reading.json_reading import repair_json

MODEL_CALLS = ("chat", "generate_content", "text_completion", "completion")
AGENT_CALLS = ("invoke_agent", "invoke_workflow")
TOOL_CALL = "execute_tool"
OPERATIONS = frozenset(
    (*MODEL_CALLS, *AGENT_CALLS, TOOL_CALL, "create_agent", "embeddings", "retrieval", "plan")
)
DETAILS = "gen_ai.client.inference.operation.details"
"""The event that may hold the messages instead of the span."""
_FAILED = (2, "STATUS_CODE_ERROR", "ERROR")
_PYTHON = re.compile(r"\s*[\[(]?\s*\{\s*'")
"""The beginning of one dict or several as Python writes them."""
_CONTENT = ("gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.system_instructions")


@dataclass(slots=True)
class OtelSpan:
    """One span, with the attributes of its details event and of its resource separately."""

    trace: str
    id: str
    parent: str
    start: int
    end: int
    attributes: dict[str, Any]
    resource: Mapping[str, Any] = field(default_factory=dict)
    scope: str = ""
    failed: bool = False
    name: str = ""

    @property
    def operation(self) -> str:
        """Return the operation of a span, "" if it names none."""
        return first_text(self.attributes.get("gen_ai.operation.name")) or ""

    @property
    def calls_model(self) -> bool:
        """Return whether a model was called: by the operation, else by its messages."""
        if self.operation in OPERATIONS:
            return self.operation in MODEL_CALLS
        return "gen_ai.output.messages" in self.attributes and "gen_ai.input.messages" in self.attributes

    @property
    def timestamp(self) -> str | None:
        """Return the time of the start, None if none is recorded."""
        return iso_utc(self.start / 1e9) if self.start else None

    def text(self, *names: str) -> str | None:
        """Return the first attribute of some names that is a text."""
        return first_text(*(self.attributes.get(name) for name in names))

    def count(self, *names: str) -> int | None:
        """Return the first attribute of some names that is a whole number."""
        numbers = (self.attributes.get(name) for name in names)
        return next((n for n in numbers if isinstance(n, int) and not isinstance(n, bool)), None)


def span_objects(record: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], Any, Any]]:
    """Yield the spans of an export with their resource and scope, as they are in the file."""
    for group in _listed(record, "resourceSpans", "resource_spans"):
        for scoped in _listed(group, "scopeSpans", "scope_spans", "instrumentationLibrarySpans"):
            for span in _listed(scoped, "spans"):
                yield span, group.get("resource"), scoped.get("scope")


def _listed(value: Any, *names: str) -> Iterator[Mapping[str, Any]]:
    for name in names:
        listed = as_mapping(value).get(name)
        if isinstance(listed, list):
            yield from (each for each in listed if isinstance(each, dict))
            return


def read_spans(record: Mapping[str, Any]) -> Iterator[OtelSpan]:
    """Yield the spans of an export."""
    for span, resource, scope in span_objects(record):
        attributes = read_attributes(span.get("attributes"))
        for event in _listed(span, "events"):
            if event.get("name") == DETAILS:
                attributes = read_attributes(event.get("attributes")) | attributes
        status = as_mapping(span.get("status"))
        yield OtelSpan(
            trace=first_text(span.get("traceId"), span.get("trace_id")) or "",
            id=first_text(span.get("spanId"), span.get("span_id")) or "",
            parent=first_text(span.get("parentSpanId"), span.get("parent_span_id")) or "",
            start=_nanoseconds(span.get("startTimeUnixNano", span.get("start_time_unix_nano"))),
            end=_nanoseconds(span.get("endTimeUnixNano", span.get("end_time_unix_nano"))),
            attributes=attributes,
            resource=read_attributes(as_mapping(resource).get("attributes")),
            scope=first_text(as_mapping(scope).get("name")) or "",
            failed=status.get("code") in _FAILED or "error.type" in attributes,
            name=first_text(span.get("name")) or "",
        )


def read_attributes(listed: Any) -> dict[str, Any]:
    """Return attributes as plain values by name; a mapping of plain values stays as it is."""
    if isinstance(listed, dict):
        return dict(listed)
    pairs = (as_mapping(each) for each in listed) if isinstance(listed, list) else ()
    return {each["key"]: read_value(each.get("value")) for each in pairs if isinstance(each.get("key"), str)}


def read_value(value: Any) -> Any:
    """Return a value of OTLP as a plain one."""
    typed = as_mapping(value)
    for name in ("stringValue", "boolValue", "doubleValue", "bytesValue"):
        if name in typed:
            return typed[name]
    if "intValue" in typed:  # a number of 64 bits is a text in JSON
        number = typed["intValue"]
        return int(number) if isinstance(number, str) and number.lstrip("-").isdigit() else number
    if "arrayValue" in typed:
        values = as_mapping(typed["arrayValue"]).get("values")
        return [read_value(each) for each in values] if isinstance(values, list) else []
    if "kvlistValue" in typed:
        return read_attributes(as_mapping(typed["kvlistValue"]).get("values") or [])
    return None


def structured(value: Any) -> Any:
    """Return a structured attribute, which may be written as JSON or as Python; None if it does not parse.

    The distribution of AWS writes `str(value)` where a value is not all JSON.
    """
    if not isinstance(value, str):
        return value
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError:
        if _PYTHON.match(value):
            return _python_value(value)
        return repair_json(value.encode("utf-8", "surrogatepass"))[0]


def _python_value(text: str) -> Any:
    """Parse a Python literal as a JSON value, None if it is not one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a backslash in a text
        try:
            return orjson.loads(orjson.dumps(ast.literal_eval(text.strip()), option=orjson.OPT_NON_STR_KEYS))
        except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
            return None


def has_content(span: OtelSpan) -> bool:
    """Return whether a span holds any of the messages."""
    return any(name in span.attributes for name in _CONTENT)


def _nanoseconds(value: Any) -> int:
    if isinstance(value, str) and value.isdigit():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
