"""Read whole runs of several models, for the pairs that need no teacher.

One JSON object a line, also gzipped: `instance_id`, `model`, `resolved`, `task` (the text the run began with)
and `steps`, each with its `call` (a tool call, or a command line as its argument `command`), the `thought`
beside it, the `observation` that came back, and `state`, JSON that may name a `working_dir`.
"""

import zlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from tracemill.evaluate.table.recorded_states import recorded_state_calls
from tracemill.ingesters.common.chat_messages import make_chat_observation
from tracemill.pairs.hindsight import hindsight_pairs
from tracemill.pairs.siblings import sibling_pairs
from tracemill.privacy.core.placeholder_keys import strip_placeholder_digits
from tracemill.records.errors import SourceError
from tracemill.records.families import family_of
from tracemill.records.identity import canonical_json, make_trace_id
from tracemill.records.message import Message, ToolCall
from tracemill.records.pair import DPOPair
from tracemill.records.storage.text_lines import lines_of
from tracemill.records.trace import Context, Step, Trace

_FAULTS = (ValueError, KeyError, TypeError, AttributeError)
NO_RUN = "line of the runs that is no run"


@dataclass(frozen=True, slots=True)
class WholeRuns:
    """Runs as traces, in file order, and the number of unreadable lines, by reason."""

    traces: tuple[Trace, ...]
    broken: Counter[str] = field(default_factory=Counter)

    def pairs(self) -> tuple[list[DPOPair], Counter[str]]:
        """Return the self-repair and sibling pairs of the runs, and why there are no more."""
        found, reasons = list[DPOPair](), Counter[str]()
        for trace in self.traces:
            pairs, why = hindsight_pairs(trace)
            found += pairs
            reasons += why
        by_id = {trace.trace_id: trace for trace in self.traces}

        def read(trace_ids: frozenset[str]) -> Iterable[Trace]:
            return (by_id[name] for name in sorted(trace_ids))

        siblings, why = sibling_pairs(frozenset(by_id), read, strip_placeholder_digits)
        return [*found, *siblings], reasons + why


def read_runs(path: Path, harness: str) -> WholeRuns:
    """Read the runs of a file, made by agents in this harness; invalid lines are counted and skipped.

    Raises SourceError if the file cannot be read, or has no run.
    """
    broken, traces = Counter[str](), dict[str, Trace]()
    try:
        for line in lines_of(path):
            try:
                trace = _trace(orjson.loads(line), harness)
            except _FAULTS:
                broken[NO_RUN] += 1
                continue
            traces.setdefault(trace.trace_id, trace)
    except (OSError, EOFError, zlib.error) as error:
        raise SourceError(
            f"{path} cannot be read ({error})", "a file of whole runs", "correct --runs"
        ) from None
    if not traces:
        raise SourceError(f"{path} has no run", "lines with instance_id, model, task and steps")
    return WholeRuns(tuple(traces.values()), broken)


def _trace(row: Mapping[str, Any], harness: str) -> Trace:
    instance, model = str(row["instance_id"]), str(row["model"])
    messages, steps = [Message("user", str(row["task"]))], list[Step]()
    for number, done in enumerate(row["steps"]):
        call_id = f"call-{number}"
        steps.append(Step(number, len(messages), model, family_of(model), cwd=_folder(done.get("state"))))
        messages.append(Message("assistant", done.get("thought") or "", _calls(done, call_id, harness)))
        messages.append(make_chat_observation("tool", done.get("observation") or "", call_id))
    resolved = row.get("resolved")
    return Trace(
        make_trace_id("run", instance, model),
        "swe_agent",
        "runs",
        harness,
        (Context(0, tuple(messages), tuple(steps)),),
        repository=row.get("repository") or instance.rpartition("-")[0] or None,
        instance_id=instance,
        outcome="unknown" if resolved is None else "resolved" if resolved else "not_resolved",
    )


def _calls(done: Mapping[str, Any], call_id: str, harness: str) -> tuple[ToolCall, ...]:
    call = done.get("call")
    if not call:
        return ()
    given = call.get("arguments") or {}
    arguments = given if isinstance(given, str) else canonical_json(given)
    return recorded_state_calls([ToolCall(call_id, str(call["name"]), arguments)], harness)


def _folder(state: Any) -> str | None:
    if isinstance(state, str):
        try:
            state = orjson.loads(state)
        except ValueError:
            return None
    folder = state.get("working_dir") if isinstance(state, dict) else None
    return folder if isinstance(folder, str) and folder else None
