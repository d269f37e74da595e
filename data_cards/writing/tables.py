"""The tables of a release, written in one pass over the rows."""

import hashlib
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import orjson

from tracemill.data_cards.card.tallies import Tallies
from tracemill.data_cards.model.columns import CONFIGS, VIEWS
from tracemill.data_cards.model.manifest import TableEntry
from tracemill.data_cards.writing.encode_rows import Row, RowEncoder, encode_other_vote_rows, encode_vote_rows
from tracemill.data_cards.writing.encode_views import action_row, encode_soft_view, pair_view_rows, run_row
from tracemill.data_cards.writing.split_writer import FILE_BYTES, SplitOf, SplitWriter, put_all_in_train
from tracemill.records.pair import DroppedPair, NormalizedDPOPair, StepVotes, Vote
from tracemill.records.views import ActionLabel, SoftStep, StepRun

StepRow = StepRun | SoftStep | ActionLabel
"""What a release holds beside pairs and votes, read one by one."""
_SIDED = ("sft", "kto")


@dataclass(frozen=True, slots=True)
class Written:
    """What was written: the tables that have rows, by config, the counts, and the fingerprint of it."""

    tables: dict[str, TableEntry]
    tallies: Tallies
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
) -> Written:
    """Writes `data/<config>/<split>-00000-of-00001.parquet` and so on for each config and split with rows; of
    the views those that are named. `split_of` says the split of a trace by its id, None where it has none.

    `kept` and `steps` are read once, one by one: the states of a row group are held, never those of all.
    `steps` come first: an action that a label and the chosen side of a pair have in common is a row of the
    label.
    """
    tallies, encoder, sides = Tallies(), RowEncoder(), set[bytes]()
    with ExitStack() as stack:
        names = [name for name in CONFIGS if name not in VIEWS or name in views]
        writers = {name: SplitWriter(folder, name, split_of, file_bytes) for name in names}
        for writer in writers.values():
            stack.callback(writer.close)
        for step in steps:
            _add_step(writers, encoder, tallies, step, sides)
        for pair in kept:
            tallies.keep(pair)
            writers["dpo"].add(encoder.dpo_row(pair))
            _add_views(writers, encoder, pair, sides)
            _add_votes(writers["votes"], tallies, encode_vote_rows(pair.pair, "pair"), pair.pair.votes)
        for gone in dropped:
            tallies.drop(gone)
            writers["dropped"].add(encoder.dropped_row(gone))
            _add_votes(writers["votes"], tallies, encode_vote_rows(gone.pair, "dropped"), gone.pair.votes)
        for votes in other_votes:
            _add_votes(writers["votes"], tallies, encode_other_vote_rows(votes), votes.votes)
    entries = {name: writer.entry() for name, writer in writers.items() if writer.rows}
    return Written(entries, tallies, _fingerprint(writers))


def _add_views(
    writers: dict[str, SplitWriter], encoder: RowEncoder, pair: NormalizedDPOPair, sides: set[bytes]
) -> None:
    """The rows of a pair in every view. A side that another pair or a label of the step has too, as where an
    action failed and was voted down, is one row of `sft` and `kto`; `sides` are those written."""
    for view in VIEWS:
        for row in pair_view_rows(encoder, pair, view) if view in writers else ():
            if view not in _SIDED or _is_new_side(view, row, sides):
                writers[view].add(row)


def _is_new_side(view: str, row: Row, sides: set[bytes]) -> bool:
    """Whether a step has no row of this completion and label in the view yet; it counts as written."""
    said = orjson.dumps([view, row["step_id"], row.get("label"), row["completion"]])
    side = hashlib.blake2b(said, digest_size=16).digest()
    new = side not in sides
    sides.add(side)
    return new


def _add_step(
    writers: dict[str, SplitWriter], encoder: RowEncoder, tallies: Tallies, step: StepRow, sides: set[bytes]
) -> None:
    if isinstance(step, ActionLabel):
        tallies.label(step)
        row = action_row(encoder, step)
        if step.label_source in writers:
            writers[step.label_source].add(row)
        if "sft" in writers and _is_new_side("sft", row, sides):
            writers["sft"].add(row)
    elif isinstance(step, SoftStep):
        if "soft" in writers:
            writers["soft"].add(encode_soft_view(encoder, step))
    elif "prm" in writers:
        writers["prm"].add(run_row(encoder, step))


def _add_votes(writer: SplitWriter, tallies: Tallies, rows: Iterable[Row], votes: Iterable[Vote]) -> None:
    for row in rows:
        writer.add(row)
    for vote in votes:
        tallies.vote(vote)


def _fingerprint(writers: dict[str, SplitWriter]) -> str:
    state = hashlib.blake2b(digest_size=16)
    for name, writer in writers.items():
        state.update(name.encode() + writer.fingerprint())
    return state.hexdigest()
