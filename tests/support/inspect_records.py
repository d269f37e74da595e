"""Write logs as inspect does, in every form of its archives, and read their prompts without the reader."""

import copy
import hashlib
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Event = dict[str, Any]
SPEC = {
    "run_id": "r1",
    "task_id": "t1",
    "created": "2026-03-01T10:00:00+00:00",
    "task": "beds",
    "model": "openai/gpt-5",
    "packages": {"inspect_ai": "0.3.240"},
}
ZSTANDARD = 93


def tool_info(name: str, **parameters: str) -> dict[str, Any]:
    """Return a tool as it is offered, with a description that becomes an attachment."""
    properties = {key: {"type": "string", "description": text} for key, text in parameters.items()}
    schema = {"type": "object", "properties": properties, "required": [*properties]}
    described = (
        f"The tool {name}, which does what its name says and which is described at some length here, once."
    )
    return {"name": name, "description": described, "parameters": schema}


BASH = tool_info("bash", cmd="Command line.")
SUBMIT = tool_info("submit", answer="The answer.")


def call(call_id: str, function: str, **arguments: Any) -> dict[str, Any]:
    """Return a call of a tool."""
    return {"id": call_id, "function": function, "arguments": arguments, "type": "function"}


def assistant(content: Any, *calls: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Return an answer of a model."""
    listed = {"tool_calls": list(calls)} if calls else {}
    return {"role": "assistant", "content": content, "source": "generate"} | listed | fields


def result(call_id: str, content: Any, error: Any = None, function: str = "bash") -> dict[str, Any]:
    """Return the result of a call as a prompt holds it."""
    told = {"error": error} if error else {}
    return {"role": "tool", "content": content, "tool_call_id": call_id, "function": function} | told


class InspectSample:
    """A sample event by event; `talk` is the conversation of its main agent."""

    def __init__(self, name: int = 1, epoch: int = 1, **fields: Any) -> None:
        self.fields = {"id": name, "epoch": epoch, "uuid": f"sample-{name}-{epoch}", "target": "x"} | fields
        self.events: list[Event] = [{"event": "sample_init", "sample": {}, "state": {}}]
        self.talk: list[dict[str, Any]] = []
        self.count = 0

    def add(self, kind: str, **fields: Any) -> Event:
        """Add an event a second behind the one before."""
        self.count += 1
        stamp = f"2026-03-01T10:{self.count // 60:02}:{self.count % 60:02}+00:00"
        self.events.append({"event": kind, "uuid": f"e{self.count}", "timestamp": stamp} | fields)
        return self.events[-1]

    def say(self, *messages: dict[str, Any]) -> None:
        """Add messages to the conversation."""
        self.talk += messages

    def model(
        self, message: dict[str, Any], prompt: list[dict[str, Any]] | None = None, **fields: Any
    ) -> Event:
        """Add a call of a model with the conversation so far, or another prompt, and this answer."""
        stop = fields.pop("stop", "tool_calls" if message.get("tool_calls") else "stop")
        usage = {"input_tokens": 40, "output_tokens": 8, "total_tokens": 158, "input_tokens_cache_read": 90}
        output = {"model": "gpt-5", "choices": [{"message": message, "stop_reason": stop}], "usage": usage}
        sent = copy.deepcopy(self.talk if prompt is None else prompt)
        facts = {"tools": [BASH], "tool_choice": "auto", "config": {}, "output": output}
        event = self.add("model", model="openai/gpt-5", input=sent, **facts | fields)
        if prompt is None:
            self.talk.append(message)
        return event

    def tool(self, call_id: str, text: Any, function: str = "bash", **fields: Any) -> Event:
        """Add the run of a tool, with its result to the conversation."""
        error = fields.get("error")
        self.talk.append(result(call_id, text, error, function))
        return self.add("tool", id=call_id, function=function, arguments={}, result=text, **fields)

    def whole(self) -> dict[str, Any]:
        """Return the sample as it is, every prompt in full."""
        facts = {
            "input": "x",
            "messages": self.talk,
            "output": {},
            "scores": None,
            "metadata": {},
            "store": {},
        }
        return facts | self.fields | {"events": self.events, "attachments": {}}

    def condensed(self, scheme: str = "attachment", pool: str = "events_data") -> dict[str, Any]:
        """Return the sample with long texts as attachments, and with messages in a pool where it is named."""
        sample = json.loads(json.dumps(self.whole()))
        texts: dict[str, str] = {}
        sample["events"] = _condensed(sample["events"], texts, scheme)
        pooled: list[Any] = []
        for event in sample["events"] if pool else ():
            if event["event"] == "model":
                places = []
                for message in event["input"]:
                    if message not in pooled:
                        pooled.append(message)
                    places.append(pooled.index(message))
                event |= {"input": [], "input_refs": [[place, place + 1] for place in places]}
        data = (
            {"message_pool": pooled} if pool == "message_pool" else {pool: {"messages": pooled, "calls": []}}
        )
        return sample | {"attachments": texts} | (data if pool else {})


def _condensed(value: Any, texts: dict[str, str], scheme: str) -> Any:
    if isinstance(value, str) and len(value) > 100:
        name = hashlib.md5(value.encode()).hexdigest()
        texts[name] = value
        return f"{scheme}://{name}"
    if isinstance(value, dict):
        return {key: _condensed(each, texts, scheme) for key, each in value.items()}
    return [_condensed(each, texts, scheme) for each in value] if isinstance(value, list) else value


def write_json(path: Path, *samples: InspectSample, **spec: Any) -> Path:
    """Write a log as one object."""
    log = {"version": 2, "status": "success", "eval": SPEC | spec, "plan": {}, "results": {}, "stats": {}}
    path.write_text(json.dumps(log | {"samples": [sample.whole() for sample in samples]}, indent=2))
    return path


def write_archive(
    path: Path, *samples: dict[str, Any], zstandard: bool = False, finished: bool = True
) -> Path:
    """Write a log as an archive with an entry per sample."""
    start = {"version": 2, "eval": SPEC, "plan": {}}
    entries: dict[str, Any] = {"_journal/start.json": start}
    entries |= {f"samples/{each['id']}_epoch_{each['epoch']}.json": each for each in samples}
    entries["_journal/summaries/1.json"] = []
    if finished:
        entries["header.json"] = start | {"status": "success"}
    return write_entries(path, entries, zstandard)


def write_chunked(path: Path, sample: dict[str, Any], size: int = 2) -> Path:
    """Write a log whose sample lies in several entries, attachments by their number."""
    names = {name: str(place) for place, name in enumerate(sample["attachments"])}
    text = json.dumps(sample)
    for name, place in names.items():
        text = text.replace(f"attachment://{name}", f"attachment://{place}")
    whole = json.loads(text)
    sequences = {
        "events": whole.pop("events"),
        "messages": whole.pop("events_data")["messages"],
        "attachments": [*whole.pop("attachments").values()],
    }
    prefix = f"samples/{whole['id']}_epoch_{whole['epoch']}"
    entries: dict[str, Any] = {
        "_journal/start.json": {"version": 2, "eval": SPEC},
        "header.json": {"eval": SPEC},
    }
    entries[f"{prefix}/sample.json"] = whole
    for name, items in sequences.items():
        for first in range(0, len(items), size):
            entries[f"{prefix}/{name}/{first}.json"] = items[first : first + size]
    entries[f"{prefix}/events/stats.json"] = {}
    return write_entries(path, entries)


def write_entries(path: Path, entries: dict[str, Any], zstandard: bool = False) -> Path:
    """Write an archive, its entries by deflate or by Zstandard in two frames."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, value in entries.items():
            data = json.dumps(value).encode()
            if not zstandard:
                archive.writestr(name, data)
                continue
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_STORED
            archive.writestr(info, _frames(data))
            info.compress_type, info.file_size = ZSTANDARD, len(data)
    if zstandard:
        _mark_zstandard(path)
    return path


def _frames(data: bytes) -> bytes:
    import pyarrow as pa

    half = len(data) // 2
    codec = pa.Codec("zstd")
    return b"".join(codec.compress(part, asbytes=True) for part in (data[:half], data[half:]) if part)


def _mark_zstandard(path: Path) -> None:
    """Set the compression of every entry in its local header, as the central directory has it already."""
    with zipfile.ZipFile(path) as archive:
        offsets = [entry.header_offset for entry in archive.infolist()]
    data = bytearray(path.read_bytes())
    for offset in offsets:
        data[offset + 8 : offset + 10] = ZSTANDARD.to_bytes(2, "little")
    path.write_bytes(data)


def recorded_prompts(sample: dict[str, Any]) -> Iterator[tuple[Event, list[tuple[str, str]]]]:
    """Yield every model event that stands in no other event, with role and text of each message it was sent.

    The text of a failed result is its error; parts of a content are joined by line breaks, thoughts left out.
    """
    texts = sample.get("attachments") or {}
    pool = (sample.get("events_data") or {}).get("messages") or sample.get("message_pool") or []

    def fill(value: Any) -> Any:
        if isinstance(value, str):
            head, mark, name = value.partition("://")
            return texts[name] if mark and head in ("attachment", "tc") and name in texts else value
        if isinstance(value, dict):
            return {key: fill(each) for key, each in value.items()}
        return [fill(each) for each in value] if isinstance(value, list) else value

    for event in sample.get("events") or ():
        if event["event"] != "model":
            continue
        sent = event["input"] or [
            pool[at] for first, last in event.get("input_refs") or () for at in range(first, last)
        ]
        shown = []
        for message in fill(sent):
            content = message["content"]
            parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
            text = "\n".join(part["text"] for part in parts if part["type"] == "text" and part["text"])
            if message["role"] == "tool" and message.get("error"):
                text = message["error"]["message"]
            shown.append((message["role"], text))
        yield event, shown
