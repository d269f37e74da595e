"""Find the trajectories that continue another one in files of their own, and join them to one session.

A trajectory names the next file (`continued_trajectory_ref`) at its end. The file is read with the first one
where it lies beside it and its name begins with the first one's: `trajectory.json`, `trajectory.cont-1.json`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from tracemill.ingesters.reading.json_reading import read_json
from tracemill.ingesters.reading.source_file import SourceFile
from tracemill.records.errors import SourceError
from tracemill.records.ingest_report import IngestReport
from tracemill.records.trace import Trace

MISSING = "continued trajectory that is not beside it"
_NEXT = re.compile(rb'"continued_trajectory_ref":\s*"([^"\\/]{1,200})"')
_TAIL_BYTES = 1 << 16


def continuation_paths(path: Path) -> Iterator[Path]:
    """Yield the paths of files that continue a trajectory, in order, whether they exist or not."""
    met, here = {path.name}, path
    while (name := _next_name(here)) and name not in met and _is_named_after(path, name):
        met.add(name)
        here = path.with_name(name)
        yield here


def without_continuations(sources: list[SourceFile]) -> list[SourceFile]:
    """Remove the trajectories that continue another one, since they are read with it."""
    own = {source.path for source in sources if source.dialect == "atif" and not source.url}
    claimed = {each for path in own for each in continuation_paths(path)} & own
    return [source for source in sources if source.path not in claimed]


def read_continuations(path: Path, report: IngestReport) -> Iterator[Mapping[str, object]]:
    """Yield the trajectories that continue that of a file; an unreadable one is flagged and ends them."""
    for each in continuation_paths(path):
        value = None
        with suppress(SourceError):
            value = read_json(each, report)
        if not isinstance(value, dict):
            report.flags[MISSING] += 1
            return
        report.bytes += each.stat().st_size
        yield value


def join_traces(parts: Sequence[list[Trace]]) -> list[Trace]:
    """Join the traces of a session's parts: their contexts in order, then subagents."""
    mains = [part[0] for part in parts if part and part[0].kind == "main"]
    if len(mains) < 2:
        return [trace for part in parts for trace in part]
    contexts = [context for main in mains for context in main.contexts]
    numbered = tuple(replace(context, index=place) for place, context in enumerate(contexts))
    first = replace(mains[0], contexts=numbered, notes={"live_context": len(numbered) - 1})
    ids = {main.trace_id for main in mains}
    sides = [trace for part in parts for trace in part if trace not in mains]
    return [
        first,
        *(replace(s, parent_trace_id=first.trace_id) if s.parent_trace_id in ids else s for s in sides),
    ]


def _next_name(path: Path) -> str | None:
    with suppress(OSError), path.open("rb") as stream:
        stream.seek(max(0, path.stat().st_size - _TAIL_BYTES))
        named = _NEXT.findall(stream.read())
        return named[-1].decode("utf-8", "replace") if named else None
    return None


def _is_named_after(path: Path, name: str) -> bool:
    return name.startswith(path.stem) and name[len(path.stem) : len(path.stem) + 1] in (".", "-", "_")
