"""Known roles, items, parts and keys of chat rows, from the lists that the readers use."""

from collections.abc import Iterator, Mapping
from typing import Any

from tracemill.ingesters.format import KindSeen, Record
from tracemill.ingesters.swe_gym.response_items import ITEM_KEYS, is_response_item
from tracemill.ingesters.swe_gym.row_messages import KNOWN_KEYS, READ_PARTS, ROLES, has_no_text
from tracemill.ingesters.swe_gym.rows import decode_gym_row_value
from tracemill.ingesters.swe_gym.sdk_messages import PART_KEYS, UI_KEYS, is_ui_message


def kinds_of_row(row: Record) -> Iterator[KindSeen]:
    """Yield the kinds of a row, its messages and their parts; other columns are free."""
    yield KindSeen("row", row.keys(), True)
    for key in ("messages", "trajectory"):
        listed = decode_gym_row_value(row.get(key))
        for item in listed if isinstance(listed, list) else ():
            if isinstance(item, dict):
                yield from _kinds_of_message(item)


def _kinds_of_message(item: Mapping[str, Any]) -> Iterator[KindSeen]:
    """Yield the kinds of a message and its parts, or of an item of the Responses API."""
    role, content, of_ui = item.get("role"), item.get("content"), is_ui_message(item)
    if is_response_item(item):
        kind = item["type"]
        yield KindSeen(f"item {kind}", item.keys(), kind in ITEM_KEYS, ITEM_KEYS.get(kind))
        return
    known_keys = KNOWN_KEYS | UI_KEYS if of_ui else KNOWN_KEYS
    keys = [key for key, value in item.items() if key in known_keys or not has_no_text(value)]
    yield KindSeen(f"message {role if isinstance(role, str) else ''}", keys, role in ROLES, known_keys)
    parts = item["parts"] if of_ui else content
    for part in parts if isinstance(parts, list) else ():
        if isinstance(part, dict):
            recorded_kind = part.get("type")
            kind = recorded_kind if isinstance(recorded_kind, str) else ""
            read = kind in READ_PARTS or kind in PART_KEYS or (of_ui and kind.startswith("tool-"))
            yield KindSeen(f"part {kind}", part.keys(), read)
