"""Recorded sessions: the share of tool-call arguments that redaction changes, by type."""

import itertools
import random
from collections import Counter
from pathlib import Path

from judging import changes
from scores import PERSONAL_TYPES

from tracemill.ingesters.discover import discover
from tracemill.ingesters.read_source import ingest_source
from tracemill.privacy.redaction.redactor import Redactor
from tracemill.records.trace import Trace


def leaf_texts(folder: Path, seed: int, megabytes: float) -> list[str]:
    """Return texts of messages and call arguments of the sessions below `folder`, in seeded order.

    They have the wanted size, and repeat if there is less.
    """
    texts: dict[str, None] = {}
    for source in discover([folder]):
        for trace in ingest_source(source)[0]:
            for context in trace.contexts:
                for message in context.messages:
                    texts.setdefault(message.content)
                    texts.update(dict.fromkeys(call.arguments for call in message.tool_calls))
    once = sorted(texts)
    random.Random(f"{seed} sessions").shuffle(once)
    chosen, size = [], 0
    for text in itertools.cycle(once):
        if size >= megabytes * 1e6:
            return chosen
        chosen.append(text)
        size += len(text.encode("utf-8", "surrogatepass"))
    return chosen


def arguments_changed(folder: Path) -> dict[str, object]:
    """Count the distinct tool calls whose arguments redaction changes, in the sessions below `folder`.

    Also counts those changed by a type that claims a secret, and changed calls by type.
    """
    redactor = Redactor(key=b"benchmark")
    calls, touched, secret = 0, 0, 0
    types: Counter[str] = Counter()
    for source in discover([folder]):
        for trace in ingest_source(source)[0]:
            for before, after in _pairs(trace, redactor.redact_trace(trace)[0]):
                calls += 1
                if before != after:
                    kinds = {change.type for change in changes(before, after)}
                    touched += 1
                    secret += bool(kinds - PERSONAL_TYPES)
                    types.update(kinds)
    share = touched / calls if calls else 0.0
    return {"calls": calls, "changed": touched, "share": share, "for_secrets": secret, "types": dict(types)}


def _pairs(trace: Trace, redacted: Trace) -> list[tuple[str, str]]:
    seen: set[int] = set()
    pairs = []
    for old, new in zip(trace.contexts, redacted.contexts, strict=True):
        for before, after in zip(old.messages, new.messages, strict=True):
            if id(before) in seen:
                continue
            seen.add(id(before))
            pairs += [
                (a.arguments, b.arguments) for a, b in zip(before.tool_calls, after.tool_calls, strict=True)
            ]
    return pairs
