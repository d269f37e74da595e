"""Write the traces of a workspace as files that other programs read."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tracemill.flows.config.from_settings import make_reredactor
from tracemill.flows.config.run_settings import RunSettings
from tracemill.flows.export.atif import trajectory_of_context
from tracemill.flows.export.chat_rows import context_name, row_of_context, sole_model
from tracemill.flows.export.session_traces import lines_of_context
from tracemill.flows.run_state.run_records import read_workspace
from tracemill.flows.run_state.stored_traces import read_traces
from tracemill.records.errors import ConfigError
from tracemill.records.trace import Context, Step, Trace, Usage

MESSAGES, ATIF, STS = "messages", "atif", "sts"
EXPORT_FORMATS = (MESSAGES, ATIF, STS)
NO_STEP = "contexts without a step, left out"
_USAGE = "tokens or cost of a step"
_FOLDER = "working folder of a step"
_TIME = "time of a step"
_MODEL = "model of a step: a row names one"
_PARENT = "link of a subagent to its session"
_FACTS_OF_STEPS: Mapping[str, Callable[[Context, Step], bool]] = {
    _USAGE: lambda _, step: step.usage != Usage(),
    _FOLDER: lambda _, step: step.cwd is not None,
    _TIME: lambda _, step: step.timestamp is not None,
    _MODEL: lambda context, step: step.model is not None and sole_model(context) is None,
}
_NO_PLACE: Mapping[str, Sequence[str]] = {
    MESSAGES: (_USAGE, _FOLDER, _TIME, _MODEL),
    ATIF: (_FOLDER,),
    STS: (_USAGE, _FOLDER),
}
"""Facts of steps that a format has no place for."""


def export_traces(settings: RunSettings, name: str, out: Path) -> dict[str, Any]:
    """Write every stored trace in a format to a new or empty folder; return a record of the files.

    Text that was redacted by another version is redacted again. The record counts under `no_place` what the
    format cannot hold, or its reader does not read again. Raises ConfigError for an unknown format
    and for a folder that holds files, WorkspaceError if there is no workspace of redacted text.
    """
    if name not in EXPORT_FORMATS:
        raise ConfigError(f"there is no format {name!r} to export", " | ".join(EXPORT_FORMATS))
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ConfigError(f"{out} holds other files", "a new or empty folder", "choose another with --out")
    work = read_workspace(settings.workspace)
    reredactor = make_reredactor(work, settings)
    traces = (reredactor.redact_again(stored).trace for stored in read_traces(work))
    try:
        counts = _write(traces, name, out)
    except OSError as error:
        problem = f"{out} cannot be written: {error.strerror or error}"
        raise ConfigError(problem, "a folder with room", "remove it and export again") from None
    told = {key: counts.pop(key, 0) for key in ("traces", "contexts", "steps", "files")}
    left_out = Counter({NO_STEP: counts.pop(NO_STEP, 0)})
    return {"format": name, "out": str(out), **told, "left_out": +left_out, "no_place": +counts}


def _write(traces: Iterable[Trace], name: str, out: Path) -> Counter[str]:
    """Write the files and return the counts. Raises OSError if writing fails."""
    out.mkdir(parents=True, exist_ok=True)
    counts: Counter[str] = Counter()
    if name == MESSAGES:
        _write_lines(out / "messages.jsonl", _rows(traces, counts))
        counts["files"] = 1
    else:
        for trace in traces:
            counts["files"] += _write_files(trace, name, out, counts)
    return counts


def contexts_of(trace: Trace, counts: Counter[str]) -> list[Context]:
    """Return the contexts that have steps; count them and the parts left out."""
    kept = [context for context in trace.contexts if context.steps]
    counts["traces"] += bool(kept)
    counts["contexts"] += len(kept)
    counts["steps"] += trace.step_count
    counts[NO_STEP] += len(trace.contexts) - len(kept)
    return kept


def _count_no_place(trace: Trace, contexts: Iterable[Context], name: str, counts: Counter[str]) -> None:
    """Count what a format has no place for."""
    counts[_PARENT] += trace.parent_trace_id is not None
    for fact in _NO_PLACE[name]:
        holds = _FACTS_OF_STEPS[fact]
        counts[fact] += sum(holds(context, step) for context in contexts for step in context.steps)


def _rows(traces: Iterable[Trace], counts: Counter[str]) -> Iterator[Mapping[str, Any]]:
    for trace in traces:
        contexts = contexts_of(trace, counts)
        _count_no_place(trace, contexts, MESSAGES, counts)
        yield from (row_of_context(trace, context) for context in contexts)


def _write_files(trace: Trace, name: str, out: Path, counts: Counter[str]) -> int:
    """Write a file for each context; return their number."""
    contexts = contexts_of(trace, counts)
    _count_no_place(trace, contexts, name, counts)
    suffix = ".json" if name == ATIF else ".jsonl"
    names = [context_name(trace, context) + suffix for context in contexts]
    for context, here, then in zip(contexts, names, [*names[1:], None], strict=True):
        if name == ATIF:
            value = trajectory_of_context(trace, context, then)
            (out / here).write_text(json.dumps(value, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
        else:
            _write_lines(out / here, lines_of_context(trace, context))
    return len(names)


def _write_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
