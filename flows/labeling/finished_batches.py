"""Which traces are finished with: asked about, answered and labelled as they would be today.

`settled.jsonl` in the workspace: a JSON object a line for a batch of traces, with the shards its rows
lie in and what was counted. A batch is taken up again as soon as its traces, the teachers, the vote, the
versions behind them, the redaction or one of its shards is another one, and as long as any question is
open. Only the run that holds the workspace writes it; a line that is lost is a batch that is gone through
again, which costs nothing.
"""

import hashlib
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from tracemill.agreement.voting.vote import VOTE_VERSION
from tracemill.flows.admission.reading_version import RedactionVersion
from tracemill.flows.admission.stage_versions import versions_text
from tracemill.flows.config.run_settings import RunSettings
from tracemill.flows.labeling.cap_room import capped_by
from tracemill.flows.labeling.gate_run import gate_version
from tracemill.flows.run_state.jsonl_log import append_lines, read_jsonl_log, rewrite_lines
from tracemill.flows.run_state.run_summary import Summary
from tracemill.harnesses.presentation import PRESENTATION_VERSION
from tracemill.pairs.sources import HINDSIGHT
from tracemill.pairs.teacher_pairs import PAIRS_VERSION
from tracemill.records.errors import WorkspaceError
from tracemill.records.identity import canonical_json, digest
from tracemill.records.label_source import sources_of_traces
from tracemill.records.reply import FINAL_FAILURES
from tracemill.records.storage.workspace import Workspace

FILE = "settled.jsonl"
_VERSIONS = {"presentation": PRESENTATION_VERSION, "vote": VOTE_VERSION, "pairs": PAIRS_VERSION}
_TABLES = ("traces", "decisions", "replies", "pairs", "votes")
_SPARE_LINES = 500


class Settled:
    """The batches of a workspace that are finished with, as a run of these settings would leave them."""

    def __init__(self, work: Workspace, settings: RunSettings, redaction: RedactionVersion) -> None:
        self._work = work
        self._path = work.root / FILE
        self._version = _version_of(settings)
        self._redaction = redaction
        self._newest = {name: _newest(work, name) for name in _TABLES}
        self._found: dict[str, dict[str, Any]] = {}
        lines = 0
        for value in read_jsonl_log(self._path):
            lines += 1
            with suppress(KeyError, TypeError):
                RedactionVersion.from_json(value["redaction"])
                self._found[value["batch"]] = value
        if lines > 2 * len(self._found) + _SPARE_LINES:
            rewrite_lines(self._path, list(self._found.values()))

    def summary_of(self, trace_ids: Sequence[str]) -> Summary | None:
        """What was counted of a batch that is finished with; None where it has to be gone through."""
        value = self._found.get(_batch(trace_ids))
        if value is None or value.get("version") != self._version:
            return None
        if not RedactionVersion.from_json(value["redaction"]).covers(self._redaction):
            return None
        shards = {name: {self._newest[name].get(i) for i in trace_ids} for name in _TABLES}
        if any(shards[name] != {value["shards"].get(name)} for name in _TABLES):
            return None
        return Summary.from_json(value["summary"])

    def add(self, trace_ids: Sequence[str], summary: Summary) -> None:
        """A batch was gone through; it is finished with if no question is open."""
        if summary.stopped or summary.left_over or not summary.failures.keys() <= FINAL_FAILURES:
            return
        covered = frozenset(trace_ids)
        kept = Summary.from_json(summary.to_json())
        kept.calls, kept.reused = 0, summary.asked  # bought by then, whoever asks
        kept.unpriced_calls, kept.unpriced_usd = 0, 0.0
        kept.answered_now, kept.failed_now, kept.failed_first = 0, Counter(), 0
        value = {
            "batch": _batch(trace_ids),
            "version": self._version,
            "redaction": self._redaction.to_json(),
            "shards": {name: _last(self._work, name, covered) for name in _TABLES},
            "summary": {name: one for name, one in kept.to_json().items() if one},
        }
        self._found[value["batch"]] = value
        append_lines(self._path, [value])


def _version_of(settings: RunSettings) -> str:
    """Teachers, replay, gate and vote of a run, and the versions of what goes by them."""
    dumped = settings.model_dump(mode="json", include={"preset", "teachers", "replay", "gate", "agreement"})
    dumped["replay"] = settings.replay.what_is_asked()
    dumped["gate"] = gate_version(settings)
    if caps := capped_by(settings):
        dumped["caps"] = caps
    dumped["asked"] = [teacher.model_dump(mode="json") for teacher in settings.asked()]
    for teacher in (*dumped["teachers"], *dumped["asked"]):
        if teacher["type"] == "openrouter":
            teacher.pop("local")  # newer than stored batches, and decides only whether consent is asked for
    added = (each for each in sources_of_traces() if each is not HINDSIGHT)
    others = {f"label source {each.name}": each.version for each in added}
    return digest(versions_text("labels", _VERSIONS | others), canonical_json(dumped), size=8)


def _batch(trace_ids: Sequence[str]) -> str:
    return hashlib.blake2b("\0".join(sorted(trace_ids)).encode(), digest_size=12).hexdigest()


def _newest(work: Workspace, name: str) -> dict[str, str]:
    """The shard of a table that speaks for each trace."""
    found: dict[str, str] = {}
    for shard in work.live(name):
        with suppress(WorkspaceError):
            found |= dict.fromkeys(work.covers(name, shard), shard.path)
    return found


def _last(work: Workspace, name: str, covered: frozenset[str]) -> str | None:
    """The shard of a table that speaks for these traces, None where none does."""
    for shard in reversed(work.live(name)):
        here = work.covers(name, shard)
        if covered <= here:
            return shard.path
        if covered & here:
            return ""  # no shard is called so: the batch will be gone through again
    return None
