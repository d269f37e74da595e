"""Pairs in memory as a dataset, with the columns of a release's config `dpo`."""

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tracemill.data_cards.model.columns import column_features, storage_column_schema
from tracemill.data_cards.writing.encode_rows import Row, RowEncoder
from tracemill.records.message import render_turn
from tracemill.records.pair import DPOPair, NormalizedDPOPair

if TYPE_CHECKING:
    from datasets import Dataset


def pairs_to_dataset(pairs: "Iterable[DPOPair | NormalizedDPOPair]") -> "Dataset":
    """Return pairs as a `datasets.Dataset` in the conversational format of TRL's DPOTrainer.

    Its columns are those of a release's config `dpo`: `prompt`, `chosen`, `rejected` and `tools`, and what is
    known of each pair. It is in memory; columns that only normalising or releasing fills are empty.
    """
    from datasets import Dataset

    schema = column_features("dpo").arrow_schema
    storage = storage_column_schema(schema)
    batches = pa.Table.from_pylist(list(_stored_rows(pairs)), schema=storage).to_batches()
    empty = pa.RecordBatch.from_pylist([], schema=storage)  # a table without a chunk cannot be hashed
    return Dataset(pa.Table.from_batches([batch.cast(schema) for batch in batches or [empty]]))


def pair_rows(pairs: "Iterable[DPOPair | NormalizedDPOPair]") -> Iterator[dict[str, Any]]:
    """Yield the row of each pair as `pairs_to_dataset` has it, one at a time.

    For what does not fit into memory: `Dataset.from_generator(pair_rows, gen_kwargs={"pairs": pairs},
    features=pairs_to_dataset([]).features)`.
    """
    yield from map(_decoded, _stored_rows(pairs))


def _stored_rows(pairs: "Iterable[DPOPair | NormalizedDPOPair]") -> Iterator[Row]:
    """Yield rows as tables hold them: calls and tools are JSON texts."""
    encoder = RowEncoder()
    for pair in pairs:
        if isinstance(pair, DPOPair):
            pair = NormalizedDPOPair(pair, render_turn(pair.chosen), render_turn(pair.rejected), "")
        yield encoder.dpo_row(pair)


def _decoded(row: Row) -> Row:
    """Return a row whose calls and tools are objects, as `datasets` gives them."""
    sides = {
        name: [_decoded_message(each) for each in row[name]] for name in ("prompt", "chosen", "rejected")
    }
    return {**row, **sides, "tools": [json.loads(tool) for tool in row["tools"]]}


def _decoded_message(message: Row) -> Row:
    calls = message["tool_calls"]
    return message if calls is None else {**message, "tool_calls": [json.loads(call) for call in calls]}
