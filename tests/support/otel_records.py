"""Write exports of spans, and count calls of models without the reader."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

START = 1_772_359_200_000_000_000
"""Time of the first span, in nanoseconds."""


def text_part(text: str) -> dict[str, Any]:
    """Return a part of text."""
    return {"type": "text", "content": text}


def call_part(call_id: str, name: str, **arguments: Any) -> dict[str, Any]:
    """Return a part that calls a tool."""
    return {"type": "tool_call", "id": call_id, "name": name, "arguments": arguments}


def result_part(call_id: str, response: Any) -> dict[str, Any]:
    """Return a part with the result of a call."""
    return {"type": "tool_call_response", "id": call_id, "response": response}


def said(role: str, *parts: dict[str, Any] | str) -> dict[str, Any]:
    """Return a message of the conventions."""
    return {"role": role, "parts": [text_part(part) if isinstance(part, str) else part for part in parts]}


def value_of(value: Any) -> dict[str, Any]:
    """Return a value as OTLP writes it in JSON."""
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, list):
        return {"arrayValue": {"values": [value_of(each) for each in value]}}
    if isinstance(value, dict):
        return {"kvlistValue": {"values": attributes_of(value)}}
    return {"stringValue": value}


def attributes_of(values: dict[str, Any]) -> list[dict[str, Any]]:
    """Return attributes as OTLP writes them in JSON."""
    return [{"key": key, "value": value_of(value)} for key, value in values.items() if value is not None]


class Export:
    """Spans of one service. `structured` writes messages as values of OTLP instead of JSON."""

    def __init__(self, service: str = "garden-agent", structured: bool = False, **resource: Any) -> None:
        self.spans: list[dict[str, Any]] = []
        self.resource = {"service.name": service} | resource
        self.structured = structured
        self.count = 0

    def span(self, operation: str | None, parent: str = "", trace: str = "a1", **fields: Any) -> str:
        """Add a span and return its id; a name with `__` for a dot is an attribute."""
        self.count += 1
        span_id = f"{self.count:016x}"
        own = {key.replace("__", "."): value for key, value in fields.items() if "__" in key}
        rest = {key: value for key, value in fields.items() if "__" not in key}
        named = {} if operation is None else {"gen_ai.operation.name": operation}
        self.spans.append(
            {
                "traceId": trace,
                "spanId": span_id,
                "parentSpanId": parent,
                "name": f"{operation} x",
                "startTimeUnixNano": str(START + self.count * 10**9),
                "endTimeUnixNano": str(START + self.count * 10**9 + 5),
                "attributes": attributes_of(named | own),
                "status": {},
            }
            | rest
        )
        return span_id

    def chat(
        self,
        prompt: list[dict[str, Any]],
        answer: dict[str, Any] | list[dict[str, Any]],
        system: str | None = "You water beds.",
        tools: list[dict[str, Any]] | None = None,
        operation: str | None = "chat",
        **fields: Any,
    ) -> str:
        """Add a call of a model and return the id of its span."""
        outputs = answer if isinstance(answer, list) else [answer]
        content = {
            "gen_ai.input.messages": prompt,
            "gen_ai.output.messages": outputs,
            "gen_ai.system_instructions": [text_part(system)] if system else None,
            "gen_ai.tool.definitions": tools,
        }
        if not self.structured:
            content = {
                key: None if value is None else json.dumps(value, ensure_ascii=False)
                for key, value in content.items()
            }
        facts = {
            "gen_ai__request__model": "qwen3-coder",
            "gen_ai__usage__input_tokens": 100,
            "gen_ai__usage__output_tokens": 7,
            "gen_ai__usage__cache_read__input_tokens": 80,
        }
        dotted: dict[str, Any] = {key.replace(".", "__"): value for key, value in content.items()}
        return self.span(operation, **(facts | dotted | fields))

    def record(self, *spans: dict[str, Any]) -> dict[str, Any]:
        """Return the export of some spans, by default of all."""
        scoped = {"scope": {"name": "instrumentation"}, "spans": list(spans) or self.spans}
        return {
            "resourceSpans": [
                {"resource": {"attributes": attributes_of(self.resource)}, "scopeSpans": [scoped]}
            ]
        }

    def write(self, path: Path) -> Path:
        """Write one object, or a line for every span where the name ends with `.jsonl`."""
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [self.record(span) for span in self.spans] if path.suffix == ".jsonl" else []
        text = "".join(json.dumps(line) + "\n" for line in lines) or json.dumps(self.record(), indent=1)
        path.write_text(text)
        return path


def recorded_calls(path: Path) -> list[dict[str, Any]]:
    """Return of every call of a model its attributes, those that hold JSON parsed, in the order of time."""
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines() if path.suffix == ".jsonl" else [text]
    found: dict[str, tuple[int, dict[str, Any]]] = {}
    for record in map(json.loads, lines):
        for span in (s for r in record["resourceSpans"] for c in r["scopeSpans"] for s in c["spans"]):
            own = {each["key"]: _plain(each["value"]) for each in span.get("attributes", ())}
            for event in span.get("events", ()):
                own |= {each["key"]: _plain(each["value"]) for each in event.get("attributes", ())}
            if "gen_ai.input.messages" in own and own.get("gen_ai.operation.name") != "invoke_agent":
                found[span["spanId"]] = (int(span["startTimeUnixNano"]), own)
    return [own for _, own in sorted(found.values(), key=lambda each: each[0])]


def _plain(value: dict[str, Any]) -> Any:
    (kind, given), *_ = value.items()
    if kind == "arrayValue":
        return [_plain(each) for each in given.get("values", ())]
    if kind == "kvlistValue":
        return {each["key"]: _plain(each["value"]) for each in given.get("values", ())}
    if kind == "intValue":
        return int(given)
    if kind == "stringValue" and given[:1] in ("[", "{"):
        return json.loads(given)
    return given


def plain_messages(own: dict[str, Any]) -> list[tuple[str, str, list[tuple[str, str, Any]]]]:
    """Return the recorded prompt as (role, text, calls), a result by its call; nothing is left out."""
    system = own.get("gen_ai.system_instructions")
    rows: list[tuple[str, str, list[tuple[str, str, Any]]]] = []
    if system:
        rows.append(("system", "\n".join(part["content"] for part in system), []))
    for message in own["gen_ai.input.messages"]:
        texts = [part["content"] for part in message["parts"] if part["type"] == "text"]
        calls = [(p["id"], p["name"], p["arguments"]) for p in message["parts"] if p["type"] == "tool_call"]
        results = [part for part in message["parts"] if part["type"] == "tool_call_response"]
        for part in results:
            response = part["response"]
            text = response if isinstance(response, str) else json.dumps(response)
            rows.append((f"tool {part['id']}", text, []))
        if texts or calls or not results:
            rows.append((message["role"], "\n".join(texts), calls))
    return rows


def count_calls(path: Path) -> Counter[str]:
    """Count calls of models, and calls of tools in their answers."""
    calls = recorded_calls(path)
    parts = [p for own in calls for m in own["gen_ai.output.messages"] for p in m["parts"]]
    return Counter(answers=len(calls), tool_calls=sum(part["type"] == "tool_call" for part in parts))
