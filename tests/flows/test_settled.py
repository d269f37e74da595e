"""A batch that is finished with is not gone through again, and one that is not is."""

import json
from pathlib import Path
from typing import Any

import pytest

from tracemill.flows.config.from_settings import make_reredactor
from tracemill.flows.config.run_settings import RunSettings, load_settings
from tracemill.flows.ingest.ingest_order import IngestOptions
from tracemill.flows.ingest.ingest_run import ingest_everything
from tracemill.flows.ingest.reuse_traces import batch_reused_traces
from tracemill.flows.labeling.finished_batches import FILE, FinishedBatches
from tracemill.flows.labeling.label_shard import (
    ShownTrace,
    load_replies,
    load_traces,
    make_pairs,
    write_labels,
)
from tracemill.flows.labeling.vote_policy import build_vote_policy, vote_version
from tracemill.flows.run_state.run_summary import Summary
from tracemill.flows.sources.source_spec import order_of
from tracemill.flows.stages import LABEL
from tracemill.flows.workspace_commands import label_workspace
from tracemill.records.storage.workspace import Workspace

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "sessions"


@pytest.fixture
def work(tmp_path: Path) -> Workspace:
    """The example sessions, read."""
    ingest_everything(IngestOptions(order_of([str(EXAMPLES)]), tmp_path / "w"))
    return Workspace.open(tmp_path / "w")


def settings(work: Workspace, **fields: Any) -> RunSettings:
    return load_settings(None, {"workspace": str(work.root), **fields})


def ids(work: Workspace) -> frozenset[str]:
    return frozenset().union(*(work.covers("traces", shard) for shard in work.live("traces")))


def settled_of(work: Workspace, how: RunSettings) -> FinishedBatches:
    return FinishedBatches(work, LABEL.fingerprint(how), make_reredactor(work, how).version)


def go_through(work: Workspace, batch: list[str], how: RunSettings) -> Summary:
    """What the flow does with a batch, without a teacher."""
    shown = [ShownTrace.of(trace) for trace in load_traces(work, batch)]
    made = make_pairs(shown, load_replies(work, batch), build_vote_policy(how))
    write_labels(work, shown[0].trace.source, batch, made, vote_version(how))
    return made.summary


def test_what_was_counted_comes_back_as_long_as_nothing_changed(work: Workspace) -> None:
    how = settings(work)
    batches = batch_reused_traces(work, ids(work))
    assert sorted(len(batch) for batch in batches) == [2, 2, 3]
    settled, counted = settled_of(work, how), {}
    for batch in batches:
        assert settled.summary_of(batch) is None
        counted[batch[0]] = go_through(work, batch, how)
        settled.add(batch, counted[batch[0]])
    again = settled_of(Workspace.open(work.root), how)
    for batch in batches:
        assert again.summary_of(batch) == counted[batch[0]]
        assert again.summary_of(batch[:-1]) is None
    assert sum(sum(summary.pairs.values()) for summary in counted.values()) > 5


def test_another_vote_another_code_or_another_shard_opens_it_again(work: Workspace) -> None:
    how = settings(work)
    (batch,) = [b for b in batch_reused_traces(work, ids(work)) if b[0].startswith("claude")]
    settled_of(work, how).add(batch, go_through(work, batch, how))
    assert settled_of(work, how).summary_of(batch) is not None
    assert settled_of(work, settings(work, agreement={"threshold": 3})).summary_of(batch) is None
    assert settled_of(work, settings(work, preset="simulated")).summary_of(batch) is None
    assert settled_of(work, settings(work, replay={"concurrency": 3})).summary_of(batch) is not None
    assert settled_of(work, settings(work, privacy={"redact": ["seedling"]})).summary_of(batch) is None

    path = work.root / FILE
    line = json.loads(path.read_text())
    path.write_text(json.dumps(line | {"version": "of another code"}) + "\n")
    assert settled_of(work, how).summary_of(batch) is None
    path.write_text(json.dumps(line) + "\nnot json\n")
    assert settled_of(work, how).summary_of(batch) is not None

    label_workspace(settings(work))
    assert settled_of(work, how).summary_of(batch) is not None  # the same pairs: the same shard
    (shard,) = [s for s in work.live("pairs") if work.covers("pairs", s) >= set(batch)]
    work.set_live("pairs", [s for s in work.live("pairs") if s != shard])
    assert settled_of(work, how).summary_of(batch) is None


def test_that_a_server_sends_nothing_on_opens_nothing_again(work: Workspace) -> None:
    given = {"type": "openrouter", "model": "z-ai/glm-5.3", "base_url": "http://127.0.0.1:9/v1"}
    asks, keeps = (settings(work, teachers=[{**given, "local": local}]) for local in (False, True))
    (batch,) = [b for b in batch_reused_traces(work, ids(work)) if b[0].startswith("claude")]
    settled_of(work, asks).add(batch, go_through(work, batch, asks))
    assert settled_of(work, keeps).summary_of(batch) is not None
    assert asks.fingerprint() == keeps.fingerprint()


@pytest.mark.parametrize("fields", [{"left_over": 1}, {"stopped": "the cap"}, {"failures": {"timeout": 2}}])
def test_a_batch_with_an_open_question_is_not_finished_with(work: Workspace, fields: dict[str, Any]) -> None:
    how = settings(work)
    batch = batch_reused_traces(work, ids(work))[0]
    settled = settled_of(work, how)
    settled.add(batch, Summary.from_json({"asked": 9, **fields}))
    assert settled.summary_of(batch) is None
    assert not (work.root / FILE).exists()


def test_what_was_bought_is_told_as_bought(work: Workspace) -> None:
    how = settings(work)
    batch = batch_reused_traces(work, ids(work))[0]
    settled = settled_of(work, how)
    settled.add(batch, Summary.from_json({"asked": 9, "calls": 11, "not_asked": {"student family": 3}}))
    found = settled.summary_of(batch)
    assert found is not None
    assert (found.asked, found.calls, found.reused, found.not_asked.total()) == (9, 0, 9, 3)
