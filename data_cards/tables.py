"""The tables of a release, written in one pass over the rows."""

import hashlib
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from data_cards.encode import Row, RowEncoder, other_vote_rows, vote_rows
from data_cards.encode_views import pair_view_rows, run_row, soft_row
from data_cards.features import CONFIGS, VIEWS, features_of
from data_cards.manifest import TableEntry
from data_cards.table_writer import TableWriter
from data_cards.tallies import Tallies
from records.pair import DroppedPair, NormalizedDPOPair, StepVotes, Vote
from records.views import SoftStep, StepRun


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
    steps: Iterable[StepRun | SoftStep] = (),
    views: Sequence[str] = VIEWS,
) -> Written:
    """Writes `data/<config>/train-00000-of-00001.parquet` for each config with rows; of the views those that
    are named.

    `kept` and `steps` are read once, one by one: the states of a row group are held, never those of all.
    """
    tallies, encoder = Tallies(), RowEncoder()
    with ExitStack() as stack:
        names = [name for name in CONFIGS if name not in VIEWS or name in views]
        writers = {name: TableWriter(folder / _path(name), features_of(name)) for name in names}
        for writer in writers.values():
            stack.callback(writer.close)
        for pair in kept:
            tallies.keep(pair)
            writers["dpo"].add(encoder.dpo_row(pair))
            _add_views(writers, encoder, pair)
            _add_votes(writers["votes"], tallies, vote_rows(pair.pair, "pair"), pair.pair.votes)
        for gone in dropped:
            tallies.drop(gone)
            writers["dropped"].add(encoder.dropped_row(gone))
            _add_votes(writers["votes"], tallies, vote_rows(gone.pair, "dropped"), gone.pair.votes)
        for votes in other_votes:
            _add_votes(writers["votes"], tallies, other_vote_rows(votes), votes.votes)
        for step in steps:
            _add_step(writers, encoder, step)
    entries = {name: _entry(folder, name, writer) for name, writer in writers.items() if writer.rows}
    return Written(entries, tallies, _fingerprint(writers))


def _add_views(writers: dict[str, TableWriter], encoder: RowEncoder, pair: NormalizedDPOPair) -> None:
    for view in VIEWS:
        if view in writers:
            for row in pair_view_rows(encoder, pair, view):
                writers[view].add(row)


def _add_step(writers: dict[str, TableWriter], encoder: RowEncoder, step: StepRun | SoftStep) -> None:
    if isinstance(step, SoftStep):
        if "soft" in writers:
            writers["soft"].add(soft_row(encoder, step))
    elif "prm" in writers:
        writers["prm"].add(run_row(encoder, step))


def _path(config: str) -> str:
    return f"data/{config}/train-00000-of-00001.parquet"


def _add_votes(writer: TableWriter, tallies: Tallies, rows: Iterable[Row], votes: Iterable[Vote]) -> None:
    for row in rows:
        writer.add(row)
    for vote in votes:
        tallies.vote(vote)


def _entry(folder: Path, config: str, writer: TableWriter) -> TableEntry:
    path = folder / _path(config)
    with path.open("rb") as handle:
        digest = hashlib.file_digest(handle, lambda: hashlib.blake2b(digest_size=16))
    return TableEntry(
        path=_path(config),
        rows=writer.rows,
        file_bytes=path.stat().st_size,
        memory_bytes=writer.bytes,
        blake2b=digest.hexdigest(),
    )


def _fingerprint(writers: dict[str, TableWriter]) -> str:
    state = hashlib.blake2b(digest_size=16)
    for name, writer in writers.items():
        state.update(name.encode() + writer.fingerprint())
    return state.hexdigest()
