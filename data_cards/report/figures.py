"""The figures of a report, from a release's manifest and tables, and from what its run counted."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tracemill.data_cards.model.manifest import Manifest
from tracemill.data_cards.model.release_spec import Loss, RunFigures
from tracemill.data_cards.model.report_model import Cell, LossRow, Money, ReportFigures, Stage
from tracemill.data_cards.report.agreement_matrix import VoteTally, tally_votes
from tracemill.records.placeholders import head_with_whole_placeholders

_VOTE_COLUMNS = (
    "step_id",
    "verdict",
    "teacher",
    "family",
    "counted",
    "key",
    "operation",
    "agrees",
    "cost_usd",
)
_EXAMPLES = 3
_EXAMPLE_CHARS = 160


def build_figures(folder: Path, manifest: Manifest, run: RunFigures | None) -> ReportFigures:
    """The figures of the release in `folder`; without `run`, of what the release itself says."""
    tally = tally_votes(read_figure_rows(folder, "votes", _VOTE_COLUMNS))
    pairs = Counter(row["trace_id"] for row in read_figure_rows(folder, "dpo", ("trace_id",)))
    return ReportFigures(
        name=manifest.name,
        version=manifest.version,
        created=manifest.created.isoformat(timespec="seconds"),
        rows=manifest.rows,
        splits=manifest.splits,
        labels=manifest.labels,
        simulated=manifest.simulated,
        statement=manifest.statement,
        funnel=tuple(_funnel(manifest, tally, run)),
        verdicts=dict(tally.verdicts.most_common()),
        money=_money(manifest, tally, run),
        agreement=tally.agreement(),
        operations=tuple(map(_cell, manifest.operations.items())),
        votes=manifest.votes,
        dearest=tally.dearest(pairs),
        losses=_losses(folder, manifest),
        run=run,
    )


def list_figure_files(folder: Path, config: str) -> list[Path]:
    """The files of a config of a release, of all its splits."""
    return sorted((folder / "data" / config).glob("*.parquet"))


def read_figure_rows(folder: Path, config: str, columns: Sequence[str]) -> Iterator[Mapping[str, Any]]:
    """Some columns of the rows of a config, one after the other; nothing where it has no file."""
    for path in list_figure_files(folder, config):
        with pq.ParquetFile(path) as table:
            for batch in table.iter_batches(columns=list(columns)):
                yield from batch.to_pylist()


def _funnel(manifest: Manifest, tally: VoteTally, run: RunFigures | None) -> Iterator[Stage]:
    yield Stage(name="traces", count=manifest.funnel.get("traces", 0), unit="traces")
    yield Stage(name="states", count=manifest.funnel.get("states", 0), unit="steps")
    votes = sum(tally.cast.values())
    if run is not None:
        yield Stage(name="asked", count=run.asked, unit="steps", note=f"{run.questions:,} questions")
        yield Stage(name="answered", count=run.answered, unit="steps", note=f"{run.answers:,} answers")
    yield Stage(
        name="votes", count=tally.counted_steps, unit="steps", note=f"{votes:,} votes count" if votes else ""
    )
    if run is not None:
        made = run.pairs_made
        yield Stage(name="pairs", count=sum(made.values()), unit="pairs", parts=made)
    yield Stage(name="kept pairs", count=manifest.rows, unit="pairs", parts=manifest.label_sources)


def _money(manifest: Manifest, tally: VoteTally, run: RunFigures | None) -> Money:
    paid = {one.name: one.paid_usd for one in run.teachers} if run else dict(tally.paid_usd)
    return Money(
        spend_usd=manifest.spend_usd,
        cap_usd=manifest.cap_usd,
        projected_usd=run.projected_usd if run else None,
        usd_per_pair=manifest.usd_per_pair,
        paid_usd=dict(sorted(paid.items(), key=lambda item: (-item[1], item[0]))),
    )


def _cell(item: tuple[str, int]) -> Cell:
    rejected, _, chosen = item[0].partition(" -> ")
    return Cell(rejected=rejected, chosen=chosen, rows=item[1])


def _losses(folder: Path, manifest: Manifest) -> tuple[LossRow, ...]:
    """The account of losses: operators of the recipe in their order, then what dropped rows beside it."""
    given = {loss.operator: loss for loss in manifest.losses}
    beside: Counter[str] = Counter()
    for drop in manifest.dropped:
        if drop.operator not in given:
            beside[drop.operator] += drop.rows
    examples = _examples(folder)
    before = manifest.rows + sum(drop.rows for drop in manifest.dropped)
    rows = [*given.values(), *(Loss(operator=op, rows_in=before, dropped=n) for op, n in beside.items())]
    return tuple(
        LossRow(
            operator=loss.operator,
            rows_in=loss.rows_in,
            dropped=loss.dropped,
            share=loss.dropped / loss.rows_in if loss.rows_in else 0.0,
            errors=loss.errors,
            examples=tuple(examples.get(loss.operator, ())),
        )
        for loss in rows
    )


def _examples(folder: Path) -> dict[str, list[str]]:
    """The first rows that each operator dropped, at most three each: step, reason, value, rejected side."""
    found: dict[str, list[str]] = {}
    columns = ("step_id", "operator", "reason", "value", "rejected_text")
    for row in read_figure_rows(folder, "dropped", columns):
        some = found.setdefault(row["operator"], [])
        if len(some) < _EXAMPLES:
            value = f" ({row['value']})" if row["value"] else ""
            text = head_with_whole_placeholders(" ".join(row["rejected_text"].split()), _EXAMPLE_CHARS)
            some.append(f"{row['step_id']}: {row['reason']}{value}: {text}")
    return found
