"""Spans of OpenTelemetry with the conventions for generative AI as a format of the registry."""

import re
from collections.abc import Iterator
from typing import Any

from tracemill.ingesters.format import FormatInfo, Record, SessionFormat, lazy_function

_HEAD = re.compile(rb'\{\s*"resource_?[sS]pans":\s*\[.*?"spans":\s*\[\s*\{.*?"key":\s*"gen_ai\.', re.DOTALL)


def _detect(record: Record) -> str | None:
    """Detect an export of spans of which one has an attribute of these conventions."""
    listed = record.get("resourceSpans", record.get("resource_spans"))
    return "otel" if isinstance(listed, list) and any(map(_is_generative, _spans(listed))) else None


def _spans(listed: list[Any]) -> Iterator[Any]:
    for group in listed:
        for scoped in _values(group, "scopeSpans", "scope_spans", "instrumentationLibrarySpans"):
            yield from _values(scoped, "spans")


def _values(value: Any, *names: str) -> Iterator[Any]:
    for name in names:
        listed = value.get(name) if isinstance(value, dict) else None
        if isinstance(listed, list):
            yield from listed


def _is_generative(span: Any) -> bool:
    named = list(_values(span, "attributes"))
    named += [each for event in _values(span, "events") for each in _values(event, "attributes")]
    keys = (each.get("key") for each in named if isinstance(each, dict))
    return any(isinstance(key, str) and key.startswith("gen_ai.") for key in keys)


def _detect_head(head: bytes) -> str | None:
    return "otel" if _HEAD.match(head) else None


FORMAT = SessionFormat(
    name="otel",
    version=6,
    dialects=("otel",),
    detect=_detect,
    detect_head=_detect_head,
    read=lazy_function("tracemill.ingesters.otel.ingest_spans:iter_traces"),
    kinds=lazy_function("tracemill.ingesters.otel.vocabulary:kinds_of_export"),
    growing=frozenset({"otel"}),
    facts=FormatInfo(
        of="OpenTelemetry: exports of spans (OTLP JSON) with the conventions for generative AI",
        recognised="resourceSpans of which a span has a gen_ai attribute",
        prompt="all: messages, system instructions and tools, where the program records its content",
        page="docs/formats/otel.md",
        keys=frozenset(("resourceSpans", "scopeSpans", "spans", "traceId", "spanId", "attributes")),
    ),
)
