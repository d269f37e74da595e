"""Compute the figures of a report from a release's manifest, its tables and its run."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tracemill.data_cards.model.manifest import Manifest
from tracemill.data_cards.model.release_spec import OperatorDrops, RunFigures
from tracemill.data_cards.model.report_model import (
    DropReport,
    FunnelStage,
    MoneyFigures,
    OperationCell,
    ReportFigures,
)
from tracemill.data_cards.report.agreement_matrix import VoteTally, tally_votes
from tracemill.records.placeholders import head_with_whole_placeholders

_VOTE_COLUMNS_TEXT = "step_id verdict teacher family counted key operation agrees cost_usd"
_VOTE_COLUMNS = tuple(_VOTE_COLUMNS_TEXT.split())
_EXAMPLES = 3
_EXAMPLE_CHARS = 160


def build_figures(folder: Path, manifest: Manifest, run: RunFigures | None) -> ReportFigures:
    """Compute the figures of the release in `folder`; without `run`, figures of the run are missing."""
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
        stand_in=next((each.stand_in for each in manifest.teachers if each.stand_in), "simulated"),
        statement=manifest.statement,
        funnel=tuple(_funnel(manifest, tally, run)),
        verdicts=dict(tally.verdicts.most_common()),
        money=_money(manifest, tally, run),
        agreement=tally.agreement(),
        operations=tuple(map(_cell, manifest.operations.items())),
        votes=manifest.votes,
        dearest=tally.most_expensive(pairs),
        losses=_drop_reports(folder, manifest),
        run=run,
    )


def list_figure_files(folder: Path, config: str) -> list[Path]:
    """Return the files of a config of a release, of all its splits."""
    return sorted((folder / "data" / config).glob("*.parquet"))


def read_figure_rows(folder: Path, config: str, columns: Sequence[str]) -> Iterator[Mapping[str, Any]]:
    """Yield some columns of the rows of a config; nothing if it has no file."""
    for path in list_figure_files(folder, config):
        with pq.ParquetFile(path) as table:
            for batch in table.iter_batches(columns=list(columns)):
                yield from batch.to_pylist()


def _funnel(manifest: Manifest, tally: VoteTally, run: RunFigures | None) -> Iterator[FunnelStage]:
    yield FunnelStage(name="traces", count=manifest.funnel.get("traces", 0), unit="traces")
    yield FunnelStage(name="states", count=manifest.funnel.get("states", 0), unit="steps")
    votes = sum(tally.cast.values())
    asks = run is not None and bool(run.teachers or run.asked)
    if run is not None and asks:
        yield FunnelStage(name="asked", count=run.asked, unit="steps", note=f"{run.questions:,} questions")
        yield FunnelStage(name="answered", count=run.answered, unit="steps", note=f"{run.answers:,} answers")
    if asks or votes:
        note = f"{votes:,} votes count" if votes else ""
        yield FunnelStage(name="votes", count=tally.counted_steps, unit="steps", note=note)
    if run is not None:
        pairs_made = run.pairs_made
        yield FunnelStage(name="pairs", count=sum(pairs_made.values()), unit="pairs", parts=pairs_made)
    yield FunnelStage(name="kept pairs", count=manifest.rows, unit="pairs", parts=manifest.label_sources)


def _money(manifest: Manifest, tally: VoteTally, run: RunFigures | None) -> MoneyFigures:
    paid = {one.name: one.paid_usd for one in run.teachers} if run else dict(tally.paid_usd)
    return MoneyFigures(
        spend_usd=manifest.spend_usd,
        cap_usd=manifest.cap_usd,
        projected_usd=run.projected_usd if run else None,
        usd_per_pair=manifest.usd_per_pair,
        paid_usd=dict(sorted(paid.items(), key=lambda item: (-item[1], item[0]))),
    )


def _cell(item: tuple[str, int]) -> OperationCell:
    rejected, _, chosen = item[0].partition(" -> ")
    return OperationCell(rejected=rejected, chosen=chosen, rows=item[1])


def _drop_reports(folder: Path, manifest: Manifest) -> tuple[DropReport, ...]:
    """Return a report for each operator of the recipe in order, then for other causes of dropped rows."""
    of_recipe = {report.operator: report for report in manifest.losses}
    others: Counter[str] = Counter()
    for drop in manifest.dropped:
        if drop.operator not in of_recipe:
            others[drop.operator] += drop.rows
    examples = _examples(folder)
    before = manifest.rows + sum(drop.rows for drop in manifest.dropped)
    others_by = (OperatorDrops(operator=name, rows_in=before, dropped=n) for name, n in others.items())
    return tuple(
        DropReport(
            operator=report.operator,
            rows_in=report.rows_in,
            dropped=report.dropped,
            share=report.share,
            errors=report.errors,
            examples=tuple(examples.get(report.operator, ())),
        )
        for report in (*of_recipe.values(), *others_by)
    )


def _examples(folder: Path) -> dict[str, list[str]]:
    """Return the first three rows that each operator dropped: step, reason, value, rejected side."""
    examples: dict[str, list[str]] = {}
    columns = ("step_id", "operator", "reason", "value", "rejected_text")
    for row in read_figure_rows(folder, "dropped", columns):
        examples_of = examples.setdefault(row["operator"], [])
        if len(examples_of) < _EXAMPLES:
            value = f" ({row['value']})" if row["value"] else ""
            text = head_with_whole_placeholders(" ".join(row["rejected_text"].split()), _EXAMPLE_CHARS)
            examples_of.append(f"{row['step_id']}: {row['reason']}{value}: {text}")
    return examples
