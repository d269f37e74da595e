"""Write the tables of a release in one pass over the rows."""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

import orjson

from tracemill.data_cards.card.tallies import RowCounts
from tracemill.data_cards.model.columns import SHORTENED, VIEWS, base_config, short_config
from tracemill.data_cards.model.manifest import TableEntry
from tracemill.data_cards.writing.encode_rows import Row, RowEncoder, encode_other_vote_rows, encode_vote_rows
from tracemill.data_cards.writing.encode_views import action_row, encode_soft_view, pair_view_rows, run_row
from tracemill.data_cards.writing.split_writer import FILE_BYTES, SplitOf, SplitWriter, put_all_in_train
from tracemill.records.message import Message, ToolSpec
from tracemill.records.pair import DroppedPair, NormalizedDPOPair, RowTokens, StepVotes, Vote
from tracemill.records.views import ActionLabel, SoftStep, StepRun

StepRow = StepRun | SoftStep | ActionLabel
"""Rows other than pairs and votes."""
_SIDED = ("sft", "kto")
Shorten = Callable[
    [Sequence[Message], tuple[ToolSpec, ...], Sequence[Sequence[Message]]],
    tuple[Sequence[Message], tuple[ToolSpec, ...], RowTokens] | None,
]
"""Cuts messages and tools so that they fit a length with the sides of a row; None if they cannot."""


@dataclass(frozen=True, slots=True)
class WrittenTables:
    """The tables that have rows, by config, their counts and their fingerprint."""

    tables: dict[str, TableEntry]
    tallies: RowCounts
    fingerprint: str


def write_tables(
    folder: Path,
    kept: Iterable[NormalizedDPOPair],
    dropped: Iterable[DroppedPair],
    other_votes: Iterable[StepVotes],
    steps: Iterable[StepRow] = (),
    views: Sequence[str] = VIEWS,
    split_of: SplitOf = put_all_in_train,
    file_bytes: int = FILE_BYTES,
    short: Mapping[int, Shorten] | None = None,
) -> WrittenTables:
    """Write `data/<config>/<split>-00000-of-00001.parquet` and so on, for each config and split with rows.

    Of the views only those in `views` are written. `split_of` returns the split of a trace id, None if it has
    none. `short` cuts rows for the configs with short contexts, by tokens.

    `kept` and `steps` are read once and one by one, so that only the states of a row group are in memory.
    `steps` are written first: an action of a label and of the chosen side of a pair is a row of the label.
    """
    short = short or {}
    views = [name for name in VIEWS if name in views]
    shorts = [short_config(name, most) for most in short for name in SHORTENED if name in ("dpo", *views)]
    with ExitStack() as stack:
        names = ("dpo", *views, *shorts, "votes", "dropped")
        writers = {name: SplitWriter(folder, name, split_of, file_bytes) for name in names}
        for writer in writers.values():
            stack.callback(writer.close)
        tables = _Tables(writers, short)
        for step in steps:
            tables.add_step(step)
        for pair in kept:
            tables.add_pair(pair)
        for each in dropped:
            tables.add_dropped(each)
        for votes in other_votes:
            tables.add_votes(encode_other_vote_rows(votes), votes.votes)
    entries = {name: writer.entry() for name, writer in writers.items() if writer.rows}
    return WrittenTables(entries, tables.tallies, _fingerprint(writers))


@dataclass(slots=True)
class _Tables:
    """The tables of a release being written; `sides` are digests of the actions written for a step."""

    writers: Mapping[str, SplitWriter]
    short: Mapping[int, Shorten]
    encoder: RowEncoder = field(default_factory=RowEncoder)
    tallies: RowCounts = field(default_factory=RowCounts)
    sides: set[bytes] = field(default_factory=set)

    def add_pair(self, kept: NormalizedDPOPair) -> None:
        """Add a pair to every config, and its votes."""
        self.tallies.keep(kept)
        for name in ("dpo", *VIEWS):
            self._put(name, self._rows(kept, name))
        pair = kept.pair
        for most, shorten in self.short.items():
            if shortened := shorten(pair.state_messages, pair.tools, (pair.chosen, pair.rejected)):
                messages, tools, length = shortened
                length = replace(length, whole=kept.length.whole) if kept.length else length
                fitted = replace(
                    kept, pair=replace(pair, state_messages=messages, tools=tools), length=length
                )
                for name in SHORTENED:
                    self._put(short_config(name, most), self._rows(fitted, name))
        self.add_votes(encode_vote_rows(pair, "pair"), pair.votes)

    def add_step(self, step: StepRow) -> None:
        """Add a label, a run of judged steps or a distribution of votes."""
        if isinstance(step, ActionLabel):
            self._add_label(step)
        elif isinstance(step, SoftStep):
            self._put("soft", (encode_soft_view(self.encoder, each) for each in (step,)))
        else:
            self._put("prm", (run_row(self.encoder, each) for each in (step,)))

    def add_dropped(self, dropped: DroppedPair) -> None:
        """Add a dropped pair and its votes."""
        self.tallies.drop(dropped)
        self._put("dropped", (self.encoder.dropped_row(each) for each in (dropped,)))
        self.add_votes(encode_vote_rows(dropped.pair, "dropped"), dropped.pair.votes)

    def add_votes(self, rows: Iterable[Row], votes: Iterable[Vote]) -> None:
        """Add the votes at a step."""
        self._put("votes", rows)
        for vote in votes:
            self.tallies.vote(vote)

    def _add_label(self, label: ActionLabel) -> None:
        self.tallies.label(label)
        row = action_row(self.encoder, label)
        for name in (label.label_source, "sft"):
            self._put(name, (row,))
        for most, shorten in self.short.items() if "sft" in self.writers else ():
            if shortened := shorten(label.state_messages, label.tools, ((label.message,),)):
                fitted = replace(label, state_messages=shortened[0], tools=shortened[1])
                self._put(short_config("sft", most), (action_row(self.encoder, fitted),))

    def _rows(self, kept: NormalizedDPOPair, name: str) -> Iterable[Row]:
        if name == "dpo":
            return (self.encoder.dpo_row(each) for each in (kept,))
        return pair_view_rows(self.encoder, kept, name)

    def _put(self, name: str, rows: Iterable[Row]) -> None:
        """Write rows of a config if it is wanted.

        A side that two pairs or a label of a step share is one row of `sft` and of `kto`.
        """
        writer = self.writers.get(name)
        if writer is None:
            return
        for row in rows:
            if base_config(name) not in _SIDED or self._is_new_side(name, row):
                writer.add(row)

    def _is_new_side(self, name: str, row: Row) -> bool:
        """Return whether a config has no row with this step, completion and label yet, and record it."""
        side = orjson.dumps([name, row["step_id"], row.get("label"), row["completion"]])
        key = hashlib.blake2b(side, digest_size=16).digest()
        is_new = key not in self.sides
        self.sides.add(key)
        return is_new


def _fingerprint(writers: Mapping[str, SplitWriter]) -> str:
    state = hashlib.blake2b(digest_size=16)
    for name, writer in writers.items():
        state.update(name.encode() + writer.fingerprint())
    return state.hexdigest()
