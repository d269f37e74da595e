"""Known roles, items, parts and keys of chat rows, from the lists that the readers use."""

from collections.abc import Iterator, Mapping
from typing import Any

from tracemill.ingesters.format import Record, RecordKind
from tracemill.ingesters.swe_gym.response_items import ITEM_KEYS, is_response_item
from tracemill.ingesters.swe_gym.row_messages import KNOWN_KEYS, READ_PARTS, ROLES, has_no_text
from tracemill.ingesters.swe_gym.row_signs import LISTS, is_turn
from tracemill.ingesters.swe_gym.rows import decode_gym_row_value
from tracemill.ingesters.swe_gym.sdk_messages import PART_KEYS, UI_KEYS, is_core_message, is_ui_message
from tracemill.ingesters.swe_gym.sharegpt_turns import ROLES as TURN_ROLES
from tracemill.ingesters.swe_gym.sharegpt_turns import SWIFT_ROLES, TURN_KEYS
from tracemill.ingesters.swe_gym.valued_parts import VALUED_PARTS, holds_valued_parts


def kinds_of_row(row: Record) -> Iterator[RecordKind]:
    """Yield the kinds of a row, its messages and their parts; other columns are free."""
    yield RecordKind("row", row.keys(), True)
    for key in LISTS:
        listed = decode_gym_row_value(row.get(key))
        for item in listed if isinstance(listed, list) else ():
            if isinstance(item, dict):
                yield from _kinds_of_message(item)


def _kinds_of_message(item: Mapping[str, Any]) -> Iterator[RecordKind]:
    """Yield the kinds of a message and its parts, or of an item of the Responses API."""
    if is_turn(item):
        yield RecordKind(
            f"turn {item['from']}", _nonempty_keys(item, TURN_KEYS), item["from"] in TURN_ROLES, TURN_KEYS
        )
        return
    role, content, of_ui = item.get("role"), item.get("content"), is_ui_message(item)
    if is_response_item(item):
        kind = item["type"]
        yield RecordKind(f"item {kind}", item.keys(), kind in ITEM_KEYS, ITEM_KEYS.get(kind))
        return
    known_keys = KNOWN_KEYS | UI_KEYS if of_ui else KNOWN_KEYS
    kind = f"message {role if isinstance(role, str) else ''}"
    yield RecordKind(kind, _nonempty_keys(item, known_keys), role in ROLES | SWIFT_ROLES, known_keys)
    parts = item["parts"] if of_ui else content
    of_values = holds_valued_parts(item)
    of_sdk = of_ui or (is_core_message(item) and not of_values)
    for part in parts if isinstance(parts, list) else ():
        if isinstance(part, dict):
            recorded_kind = part.get("type")
            kind = recorded_kind if isinstance(recorded_kind, str) else ""
            of_tool = of_ui and kind.startswith("tool-") and kind not in PART_KEYS
            is_read = kind in (VALUED_PARTS if of_values else READ_PARTS) or kind in PART_KEYS or of_tool
            part_keys = PART_KEYS["dynamic-tool"] if of_tool else PART_KEYS.get(kind) if of_sdk else None
            yield RecordKind(
                f"part {kind}", _nonempty_keys(part, part_keys or frozenset()), is_read, part_keys
            )


def _nonempty_keys(item: Mapping[str, Any], known: frozenset[str]) -> list[str]:
    """Return the keys of an item, without unknown empty ones, as a table's empty columns."""
    return [key for key, value in item.items() if key in known or not has_no_text(value)]
