"""Convert replies to the JSON that the ledger stores, and back."""

from dataclasses import replace
from functools import cache

import orjson
from pydantic import TypeAdapter, ValidationError

from tracemill.records.errors import LedgerError
from tracemill.records.reply import TeacherReply


@cache
def _adapter() -> TypeAdapter[TeacherReply]:
    return TypeAdapter(TeacherReply)


def dump_reply_json(reply: TeacherReply) -> str:
    """Return the reply as JSON."""
    return orjson.dumps(reply).decode()


def load_reply(text: str) -> TeacherReply:
    """Parse a reply from JSON. Raises LedgerError for other text."""
    try:
        return _adapter().validate_json(text)
    except ValidationError:
        raise LedgerError("an answer in the ledger is not a reply", "one written by this version") from None


def answer_from_reply_json(text: str, step_id: str, teacher: str) -> TeacherReply:
    """Return a stored reply as the answer to one question; it is free if another step paid for it."""
    stored = load_reply(text)
    if stored.step_id == step_id and stored.teacher == teacher:
        return stored
    return replace(stored, step_id=step_id, teacher=teacher, cost_usd=0.0)
