"""Skip batches whose labels are up to date.

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
from dataclasses import replace
from typing import Any

from tracemill.flows.admission.reading_version import RedactionVersion
from tracemill.flows.run_state.jsonl_log import append_lines, read_jsonl_log, rewrite_lines
from tracemill.flows.run_state.run_summary import Summary
from tracemill.records.errors import WorkspaceError
from tracemill.records.reply import FINAL_FAILURES
from tracemill.records.storage.workspace import Workspace

FILE = "settled.jsonl"
_TABLES = ("traces", "decisions", "replies", "pairs", "votes")
_SPARE_LINES = 500


class FinishedBatches:
    """The batches of a workspace whose labels are up to date under the run's settings."""

    def __init__(self, work: Workspace, version: str, redaction: RedactionVersion) -> None:
        """Read the batches of a workspace.

        `version` is the fingerprint of the labelling, `redaction` today's version of redaction.
        """
        self._work = work
        self._path = work.root / FILE
        self._version = version
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
        """Return the counts of a finished batch; None if it must be processed."""
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
        """Record that a batch was processed; it is finished if no question is left."""
        if summary.stopped or summary.left_over or not summary.failures.keys() <= FINAL_FAILURES:
            return
        covered = frozenset(trace_ids)
        kept = replace(
            summary,
            calls=0,
            reused=summary.asked,  # bought by then, whoever asks
            unpriced_calls=0,
            unpriced_usd=0.0,
            answered_now=0,
            failed_now=Counter(),
            failed_first=0,
        )
        value = {
            "batch": _batch(trace_ids),
            "version": self._version,
            "redaction": self._redaction.to_json(),
            "shards": {name: _last(self._work, name, covered) for name in _TABLES},
            "summary": {name: one for name, one in kept.to_json().items() if one},
        }
        self._found[value["batch"]] = value
        append_lines(self._path, [value])


def _batch(trace_ids: Sequence[str]) -> str:
    return hashlib.blake2b("\0".join(sorted(trace_ids)).encode(), digest_size=12).hexdigest()


def _newest(work: Workspace, name: str) -> dict[str, str]:
    """Return the shard of a table that covers each trace."""
    found: dict[str, str] = {}
    for shard in work.live(name):
        with suppress(WorkspaceError):
            found |= dict.fromkeys(work.covers(name, shard), shard.path)
    return found


def _last(work: Workspace, name: str, covered: frozenset[str]) -> str | None:
    """Return the shard of a table that covers these traces, None if no shard does."""
    for shard in reversed(work.live(name)):
        here = work.covers(name, shard)
        if covered <= here:
            return shard.path
        if covered & here:
            return ""  # no shard is called so: the batch will be gone through again
    return None
