"""Encode pairs, votes and dropped pairs as rows of a release."""

import json
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import asdict
from typing import Any, TypeVar

from tracemill.data_cards.model.columns import PAIR_COLUMNS
from tracemill.records.identity import StepId
from tracemill.records.message import Message, ToolCall, ToolSpec
from tracemill.records.pair import DPOPair, DroppedPair, NormalizedDPOPair, StepVotes, Vote

T = TypeVar("T")
_CACHED = 20_000
Row = dict[str, Any]


class RowEncoder:
    """An encoder of pairs as rows, with a cache: the steps of a context share their messages."""

    def __init__(self) -> None:
        self._cache: dict[Hashable, tuple[object, Any]] = {}

    def dpo_row(self, kept: NormalizedDPOPair) -> Row:
        """Return the row of a pair in `dpo`."""
        pair = kept.pair
        return {
            "prompt": self.messages(pair.state_messages),
            "chosen": self.messages(pair.chosen),
            "rejected": self.messages(pair.rejected),
            "tools": self.tools(pair.tools),
            **pair_columns(pair),
            "n_teachers_agreeing": pair.n_teachers_agreeing,
            "weight": pair.weight,
            "simulated": pair.simulated,
            "cost_usd": pair.cost_usd,
            "chosen_chars": len(kept.chosen_text),
            "rejected_chars": len(kept.rejected_text),
            "n_tokens": kept.length.tokens if kept.length else None,
            "n_tokens_whole": kept.length.whole if kept.length else None,
            "cut": kept.length.cut if kept.length else None,
            "recipe": kept.recipe,
            "chosen_wire": _wire(pair.chosen),
            "rejected_wire": _wire(pair.rejected),
            "families": list(pair.families),
            "teachers": agreeing_teachers(pair),
        }

    def dropped_row(self, dropped: DroppedPair) -> Row:
        """Return the row of a dropped pair, without its state."""
        return {
            **pair_columns(dropped.pair),
            "operator": dropped.operator,
            "reason": dropped.reason,
            "value": encode_clean_text(dropped.value),
            "simulated": dropped.pair.simulated,
            "chosen_text": encode_clean_text(dropped.chosen_text),
            "rejected_text": encode_clean_text(dropped.rejected_text),
            "chosen": self.messages(dropped.pair.chosen),
            "rejected": self.messages(dropped.pair.rejected),
        }

    def messages(self, messages: Sequence[Message]) -> list[Row]:
        """Encode messages; fields that a message does not have are None."""
        return [self.cached(message, encode_message_row) for message in messages]

    def tools(self, tools: tuple[ToolSpec, ...]) -> list[str]:
        """Encode tools as JSON texts."""
        return self.cached(tools, _tools)

    def cached(self, value: T, encode: Callable[[T], Any]) -> Any:
        """Return `encode(value)`, cached by the identity of the value."""
        if (id(value), encode) not in self._cache:
            if len(self._cache) >= _CACHED:
                self._cache.clear()
            self._cache[id(value), encode] = value, encode(value)  # holds the value, so that its id stays
        return self._cache[id(value), encode][1]


def agreeing_teachers(pair: DPOPair) -> list[str]:
    """Return the teachers whose votes are for the chosen side, sorted."""
    return sorted({vote.teacher for vote in pair.votes if vote.counted and vote.agrees})


def encode_vote_rows(pair: DPOPair, verdict: str) -> Iterator[Row]:
    """Yield the votes of a pair, one row each."""
    for vote in pair.votes:
        yield _vote(vote, pair.step_id, pair.pair_id, verdict, pair.label_source, pair.simulated)


def encode_other_vote_rows(step: StepVotes) -> Iterator[Row]:
    """Yield the votes of a step without a pair, one row each."""
    for vote in step.votes:
        yield _vote(vote, step.step_id, None, step.verdict, "teachers", step.simulated)


def encode_arguments(arguments: str) -> Any:
    """Return call arguments as the object that TRL and chat templates take.

    Returns the string itself if it is no JSON object, or if the JSON reader of `datasets` would change it.
    """
    from datasets.utils.json import ujson_loads

    try:
        value = json.loads(arguments)
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        same = isinstance(value, dict) and _dumped(ujson_loads(text)) == text
    except (ValueError, RecursionError):
        return arguments
    return value if same else arguments


def encode_clean_text(text: str) -> str:
    """Replace lone surrogates, which no Parquet file can hold."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def encode_message_row(message: Message) -> Row:
    """Encode a message."""
    return {
        "role": message.role,
        "content": encode_clean_text(message.content),
        "tool_calls": [_call(call) for call in message.tool_calls] or None,
        "tool_call_id": message.tool_call_id,
        "name": message.name,
    }


def _call(call: ToolCall) -> str:
    function = {"name": call.name, "arguments": encode_arguments(encode_clean_text(call.arguments))}
    return encode_clean_text(_dumped({"id": call.id, "type": "function", "function": function}))


def _tools(tools: tuple[ToolSpec, ...]) -> list[str]:
    return [encode_clean_text(_dumped(tool.to_wire())) for tool in tools]


def _wire(messages: Sequence[Message]) -> str:
    return json.dumps([message.to_wire() for message in messages])


def pair_columns(pair: DPOPair) -> Row:
    """Return the columns that all rows of a pair have."""
    row = {name: getattr(pair, name) for name in PAIR_COLUMNS if name != "trace_id"}
    return clean_texts({**row, "trace_id": StepId.parse(pair.step_id).trace_id})


def clean_texts(row: Row) -> Row:
    """Apply `encode_clean_text` to the texts of a row."""
    return {
        name: encode_clean_text(value) if isinstance(value, str) else value for name, value in row.items()
    }


def _vote(
    vote: Vote, step_id: str, pair_id: str | None, verdict: str, label_source: str, simulated: bool
) -> Row:
    of_step = {"step_id": step_id, "pair_id": pair_id, "verdict": verdict, "label_source": label_source}
    return {**clean_texts(asdict(vote)), **of_step, "simulated": simulated}
