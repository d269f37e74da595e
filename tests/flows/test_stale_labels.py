"""Pairs of another vote than the configuration's are not released unsaid."""

import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tracemill.flows.config.run_settings import RunSettings, load_settings
from tracemill.flows.ingest.ingest_order import IngestOptions
from tracemill.flows.ingest.ingest_run import ingest_everything
from tracemill.flows.labeling.label_shard import write_replies
from tracemill.flows.labeling.vote_policy import require_labels
from tracemill.flows.release.load_pairs import load_pairs
from tracemill.flows.run_state.closing_table import closing_table_rows
from tracemill.flows.run_state.run_summary import ReleaseOutcome, Summary
from tracemill.flows.run_state.stale_labels import count_stale_labels
from tracemill.flows.sources.source_spec import order_of
from tracemill.flows.workspace_commands import (
    label_workspace,
    preview_release,
    release_workspace,
    replay_workspace,
)
from tracemill.records.errors import WorkspaceError
from tracemill.records.identity import StepId
from tracemill.records.reply import FailureKind, TeacherReply
from tracemill.records.storage.shard_rewrite import drop_traces
from tracemill.records.storage.table_rows import replies_from_table
from tracemill.records.storage.workspace import Workspace

SESSIONS = Path(__file__).resolve().parents[2] / "examples" / "sessions"
STRICT = {"policy": "strict"}


@pytest.fixture(scope="module")
def voted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The workspace of some sessions at which simulated teachers were asked."""
    root = tmp_path_factory.mktemp("voted") / "w"
    ingest_everything(IngestOptions(order_of([str(SESSIONS / "claude_code")]), root))
    replay_workspace(settings(root), yes=True)
    return root


def settings(root: Path, **agreement: Any) -> RunSettings:
    given = {"preset": "simulated", "budget": {"max_total_usd": 1}, "pairs": {"siblings": False}}
    return load_settings(None, {"workspace": str(root), "agreement": agreement, **given})


def test_a_release_of_another_vote_is_refused_until_pairs_are_made_anew(voted: Path) -> None:
    label_workspace(settings(voted))
    work = Workspace.open(voted)
    before, runs = len(load_pairs(work)), sorted((voted / "runs").iterdir())
    for refused in (release_workspace, preview_release):
        with pytest.raises(WorkspaceError) as said:
            refused(settings(voted, **STRICT))
        assert re.search(r"holds pairs made under other \[agreement\].*`tracemill label`", str(said.value))
        assert "\n" not in str(said.value)
    assert sorted((voted / "runs").iterdir()) == runs
    assert not work.releases_dir.exists()
    require_labels(work, settings(voted, threshold=2))  # what the policy says anyhow
    label_workspace(settings(voted, **STRICT))
    require_labels(work, settings(voted, **STRICT))
    assert 0 < len(load_pairs(work)) < before
    with pytest.raises(WorkspaceError):
        require_labels(work, settings(voted))


def test_forgetting_keeps_by_which_vote_the_rest_was_made(voted: Path) -> None:
    label_workspace(settings(voted))
    work = Workspace.open(voted)
    trace_id = next(iter(work.covers("pairs", work.live("pairs")[-1])))
    assert drop_traces(work, "pairs", frozenset((trace_id,))) > 0
    require_labels(work, settings(voted))
    with pytest.raises(WorkspaceError, match="holds pairs made under other"):
        require_labels(work, settings(voted, **STRICT))


def test_pairs_of_hindsight_rest_on_no_vote(tmp_path: Path) -> None:
    ingest_everything(IngestOptions(order_of([str(SESSIONS)]), tmp_path / "w"))
    label_workspace(settings(tmp_path / "w"))
    work = Workspace.open(tmp_path / "w")
    assert {pair.label_source for pair in load_pairs(work)} == {"hindsight"}
    require_labels(work, settings(tmp_path / "w", **STRICT))


def test_a_release_says_how_many_answers_came_after_the_pairs(voted: Path, tmp_path: Path) -> None:
    work = Workspace.open(shutil.copytree(voted, tmp_path / "w"))
    shutil.rmtree(work.root / "pairs", ignore_errors=True)  # as a replay leaves it
    bought = [reply for table in work.current("replies") for reply in replies_from_table(table)]
    assert count_stale_labels(work) == sum(reply.failure is None for reply in bought) > 100
    label_workspace(settings(work.root))
    assert count_stale_labels(work) == 0
    first = next(reply for reply in bought if reply.failure is None)
    trace = StepId.parse(first.step_id).trace_id
    failed = replace(first, sample=8, action=None, failure=FailureKind.TIMEOUT)
    _write(work, trace, failed)
    assert count_stale_labels(work) == 0
    _write(work, trace, replace(first, sample=8), replace(first, sample=9))
    assert count_stale_labels(work) == 2
    _write(work, trace, failed, replace(failed, sample=9), replace(first, request_key="to another text"))
    assert count_stale_labels(work) == 1
    other = next(iter({StepId.parse(reply.step_id).trace_id for reply in bought} - {trace}))
    for table in ("pairs", "votes", "replies"):
        drop_traces(work, table, frozenset((other,)))
    assert count_stale_labels(work) == 1
    outcome = ReleaseOutcome(None, None, 0, False, {}, {}, newer_answers=count_stale_labels(work))
    said = dict(closing_table_rows(Summary(), None, [], outcome))["stale answers"]
    assert said == "1 answer is newer than the pairs: `tracemill label` takes them in, at no cost"
    label_workspace(settings(work.root))
    assert count_stale_labels(work) == 0
    assert not any(other in work.made_of("pairs", shard) for shard in work.live("pairs"))


def _write(work: Workspace, trace: str, *replies: TeacherReply) -> None:
    """More replies at the steps of a trace, in place of those of the same sample."""
    (source,) = (t["source"].to_pylist()[0] for t in work.current("traces", frozenset((trace,))))
    write_replies(work, source, [trace], replies)
