"""Known kinds and keys of SWE-agent runs: their steps, and the chat messages of their history."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tracemill.ingesters.common.chat_messages import unread_chat_message
from tracemill.ingesters.common.openai_messages import unread_content
from tracemill.ingesters.format import Record, RecordKind
from tracemill.ingesters.swe_agent.ingest_trajectory import STEP_PROMPTS, STEP_TEXTS
from tracemill.ingesters.swe_gym.row_messages import KNOWN_KEYS, ROLES
from tracemill.ingesters.swe_gym.rows import decode_gym_row_value

_STEP_KEYS = frozenset((*STEP_TEXTS, *STEP_PROMPTS, "state", "execution_time", "extra_info"))


def kinds_of_run(record: Record) -> Iterator[RecordKind]:
    """Yield the kinds of a run or of its attempts; other columns of a row are free."""
    yield RecordKind("run", record.keys(), True)
    attempts = record.get("attempts")
    for run in attempts if isinstance(attempts, list) and attempts else (record,):
        if not isinstance(run, dict):
            yield RecordKind(f"run {type(run).__name__}", (), False)
            continue
        for item in _listed(run, "history"):
            yield from kinds_of_message(item, unread_chat_message)
        for step in _listed(run, "trajectory"):
            yield from _kinds_of_step(step)


def kinds_of_message(item: Any, unread: Callable[[Any], list[str]]) -> Iterator[RecordKind]:
    """Yield the kind of a chat message, and its parts that `unread` names."""
    names = unread(item)
    if isinstance(item, dict):
        role = item.get("role")
        if not any(name.startswith("role") for name in names):
            yield RecordKind(f"message {role}", item.keys(), role in ROLES, KNOWN_KEYS)
    yield from (RecordKind(f"message {name}", (), False) for name in names)


def _kinds_of_step(step: Any) -> Iterator[RecordKind]:
    """Yield the kind of a step, and the unread parts of its texts and of its prompt."""
    if not isinstance(step, dict):
        yield RecordKind(f"step {type(step).__name__}", (), False)
        return
    yield RecordKind("step", step.keys(), True, _STEP_KEYS)
    for key in STEP_TEXTS:
        yield from (RecordKind(f"step {name}", (), False) for name in unread_content(step.get(key)))
    for key in STEP_PROMPTS:
        for item in _listed(step, key):
            # A prompt repeats the history: what is read of it is counted there.
            names = unread_chat_message(item) if item != {} else ()
            yield from (RecordKind(f"message {name}", (), False) for name in names)


def _listed(value: Mapping[str, Any], key: str) -> list[Any]:
    listed = decode_gym_row_value(value.get(key))
    return listed if isinstance(listed, list) else []
