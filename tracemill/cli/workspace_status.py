"""A workspace on a terminal: its last run, its releases, the report of the last one, some of its pairs."""

import json
import shlex
import sys
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from tracemill.cli.commands import program_name
from tracemill.cli.pair_output import pair_panel
from tracemill.cli.report_output import print_figures
from tracemill.data_cards.model.audit_sample import Precision, read_audit
from tracemill.data_cards.model.find_release import find_release
from tracemill.data_cards.model.report_model import ReportFigures, read_figures
from tracemill.data_cards.model.versions import versions_by_release
from tracemill.flows.labeling.label_shard import name_pair_kind
from tracemill.flows.record_table import record_rows
from tracemill.flows.release.load_pairs import find_siblings, load_pairs
from tracemill.flows.run_state.closing_table import print_closing
from tracemill.flows.run_state.recent_runs import is_locked, print_recent_runs, recent_runs
from tracemill.flows.run_state.run_records import RUNNING, last_error, last_run, read_workspace
from tracemill.flows.run_state.stored_traces import StoredTraces
from tracemill.flows.short_table import short_rows
from tracemill.records.identity import StepId
from tracemill.records.label_source import LABEL_SOURCES
from tracemill.records.pair import DPOPair
from tracemill.records.printable import printable, printable_count, printable_lines
from tracemill.records.storage.workspace import Workspace

_SHOWN_VERSIONS = 5
"""Versions of a release that are named without `-v`."""


def show_workspace(
    root: Path | None,
    count: int,
    source: str | None,
    nights: int,
    as_json: bool,
    verbose: bool = False,
) -> None:
    """Print `count` pairs; with 0 the last run, the last `nights` runs and the releases.

    With `verbose` every figure of the run and the newest report are printed. The pairs are those of
    `source` if one is named. JSON has everything but their text. Raises WorkspaceError if `root` is not a
    workspace, ConfigError if there is no such source.
    """
    if source is not None:
        LABEL_SOURCES.get(source)
    work = read_workspace(root)
    if as_json:
        sys.stdout.write(json.dumps(_as_json(work, _stored_pairs(work, source), nights)) + "\n")
        return
    console = Console(width=None if sys.stdout.isatty() else 100, highlight=False)
    if count:
        _print_pairs(console, work, _stored_pairs(work, source), count)
    else:
        _print_runs(console, work, nights, verbose)


def _stored_pairs(work: Workspace, source: str | None) -> list[DPOPair]:
    """Return the pairs that were made, those of `source` if one is named."""
    stored = load_pairs(work) + find_siblings(work)[0]
    return [pair for pair in stored if source in (None, pair.label_source)]


def _as_json(work: Workspace, pairs: list[DPOPair], nights: int) -> dict[str, Any]:
    figures, precision = _newest_figures(work)
    return {
        "run": last_run(work),
        "stored": _stored_traces(work),
        "releases": versions_by_release(work.releases_dir),
        "pairs": Counter(map(name_pair_kind, pairs)),
        "report": figures and figures.model_dump(mode="json"),
        "nights": [asdict(run) for run in recent_runs(work, nights)],
        "audit": precision and precision.model_dump(mode="json"),
    }


def _print_pairs(console: Console, work: Workspace, pairs: list[DPOPair], count: int) -> None:
    """Print `count` pairs and how many there are."""
    traces, shown = StoredTraces(work), spread_shown_pairs(pairs, count)
    for pair in shown:
        step_id = StepId.parse(pair.step_id)
        trace = traces.get(step_id.trace_id)
        console.print(pair_panel(pair, () if trace is None else tuple(trace.state(step_id).messages)))
    told = f"{len(shown):,} of the {len(pairs):,} pairs before the filters of a release"
    none = "no pairs: `self-repairs not used` in `tracemill status` says why"
    if last_run(work) is None:
        none = "no pairs: none were made, or `tracemill label` said why"
    console.print(told if pairs else none)


def _print_runs(console: Console, work: Workspace, nights: int, verbose: bool) -> None:
    """Print blocking errors, the closing table of the last run, the last `nights` runs and the releases."""
    if (error := last_error(work)) is not None:
        console.print(Text(printable_lines(_error_text(*error))), soft_wrap=True)
    record = last_run(work)
    if record is None:
        _print_without_run(console, work)
    elif record.get("status") != RUNNING:
        rows = (record_rows if verbose else short_rows)(record["summary"])
        print_closing(console, rows, f"last run {record['run_id']}")
    elif "error" not in record:
        goes_on = "goes on" if is_locked(work) else "was interrupted; the same command resumes with it"
        console.print(f"run {record['run_id']} {goes_on}")
    if runs := recent_runs(work, nights):
        print_recent_runs(console, runs)
    for name, versions in versions_by_release(work.releases_dir).items():
        earlier = len(versions) - _SHOWN_VERSIONS
        more = f" and {earlier:,} more" if earlier > 0 and not verbose else ""
        shown = versions if verbose else versions[-_SHOWN_VERSIONS:]
        console.print(Text(printable(f"release {name}: {', '.join(shown)}{more}")), soft_wrap=True)
    if not verbose:
        if (report := _newest_report(work)) is not None:
            console.print(Text(printable(f"report {report}")), soft_wrap=True)
        if record is not None:
            console.print("-v shows every figure, --pairs 3 some pairs")
        return
    figures, precision = _newest_figures(work)
    if figures is not None:
        print_figures(console, figures, precision)


def _stored_traces(work: Workspace) -> Counter[str]:
    """Return the number of stored traces by their format."""
    tables = work.current("traces", columns=["trace_id", "source"])
    return Counter(source for table in tables for source in table["source"].to_pylist())


def _print_without_run(console: Console, work: Workspace) -> None:
    """Print what a workspace holds that no `run` worked in yet, and what comes next."""
    stored = _stored_traces(work)
    console.print("no run yet")
    if not stored:
        console.print("no traces: tracemill ingest PATH stores some, tracemill run PATH does everything")
        return
    by_count = sorted(stored.items(), key=lambda each: (-each[1], each[0]))
    kinds = ", ".join(f"{count:,} {source}" for source, count in by_count)
    count = printable_count(stored.total(), "trace")
    console.print(Text(printable(f"stored   {count} ({kinds})")), soft_wrap=True)
    pairs = sum(table.num_rows for table in work.current("pairs", columns=["step_id"]))
    place, program = shlex.quote(str(work.root)), program_name()
    command = f"label -w {place}   # pairs of one session; asks nobody"
    if pairs:
        command = f"release write -w {place}"
        console.print(f"pairs    {pairs:,} before the filters of a release")
    console.print(Text(f"next     {program} {command}"), soft_wrap=True)


def _error_text(command: str, error: dict[str, Any]) -> str:
    """Return the error that ended a command, as it was printed, and the command that resumes it."""
    ended = "was refused" if error.get("refused") else "stopped"
    return f"tracemill {command} {ended}: {error.get('message', '')}\nThe same command tries again."


def _newest_report(work: Workspace) -> Path | None:
    if not versions_by_release(work.releases_dir):
        return None
    path = find_release(None, work.releases_dir).folder / "report.html"
    return path if path.is_file() else None


def _newest_figures(work: Workspace) -> tuple[ReportFigures | None, Precision | None]:
    """Return the report of the newest release, and the result of its audit."""
    if not versions_by_release(work.releases_dir):
        return None, None
    last = find_release(None, work.releases_dir)
    audit = read_audit(last.folder, last.manifest.content_fingerprint)
    return read_figures(last.folder), audit and audit.precision(last.manifest.rows)


def spread_shown_pairs(pairs: list[DPOPair], count: int) -> list[DPOPair]:
    """Return `count` pairs at even distances, so that the sample is not the first trace alone."""
    if count <= 0 or not pairs:
        return []
    step = max(1, len(pairs) // count)
    return pairs[::step][:count]
