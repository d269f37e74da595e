"""A dataset that grows: rows and splits of earlier versions stay, also where better rows come in."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from growing_traces import add, pair, rows, task, trace
from kept_pairs import Kept

from tracemill.data_cards.model.manifest import Manifest, read_manifest
from tracemill.flows.config.from_settings import make_reredactor
from tracemill.flows.config.run_settings import RunSettings, load_settings
from tracemill.flows.release.release_run import release_pairs
from tracemill.flows.release.split_store import SplitState
from tracemill.flows.run_state.run_summary import ReleaseOutcome, Summary
from tracemill.records.errors import WorkspaceError
from tracemill.records.message import Message
from tracemill.records.storage.table_rows import pairs_to_table
from tracemill.records.storage.workspace import Workspace


@pytest.fixture
def work(tmp_path: Path) -> Workspace:
    return Workspace.open(tmp_path / "w")


def release(work: Workspace, **changes: Any) -> tuple[ReleaseOutcome, Manifest]:
    outcome = release_pairs(work, *_arguments(work, changes))
    assert outcome.path is not None, outcome.note
    return outcome, read_manifest(Path(outcome.path))


def _arguments(work: Workspace, changes: dict[str, Any]) -> tuple[RunSettings, Kept, Any, str, Summary]:
    pairs = {"siblings": False, "repository_share": 0, **changes.pop("pairs", {})}
    over = {"workspace": str(work.root), "pairs": pairs, "release": {"views": ["sft"], **changes}}
    settings = load_settings(None, over)
    return settings, Kept(), make_reredactor(work, settings), "run", Summary()


def test_old_rows_and_their_splits_are_unchanged_when_sessions_come_in(work: Workspace) -> None:
    first = [trace(n) for n in range(60)]
    add(work, first)
    before, manifest = release(work)
    old = rows(before)
    assert len(old) == 60
    splits = {name: entry.rows for name, entry in manifest.tables["dpo"].splits.items()}
    assert splits.keys() == {"train", "validation", "test"}
    assert {name: split for name, (split, _) in rows(before, "sft").items()} == {
        name: split for name, (split, _) in old.items()
    }
    add(work, [trace(n) for n in range(60, 150)])
    after, manifest = release(work)
    new = rows(after)
    assert len(new) == 150
    assert {name: new[name] for name in old} == old
    by_repository: dict[str, set[str]] = {}
    for split, row in new.values():
        by_repository.setdefault(row["repository"], set()).add(split)
    assert {len(found) for found in by_repository.values()} == {1}
    assert manifest.growth is not None
    assert (manifest.growth.since, manifest.growth.stayed, manifest.growth.new, manifest.growth.gone) == (
        before.version,
        60,
        90,
        0,
    )
    again, _ = release(work)
    assert (again.version, again.created) == (after.version, False)


def test_caps_take_nobody_out_who_is_in(work: Workspace) -> None:
    add(work, [trace(1)], (0, 1))
    caps = {"floor": 0, "per_operation": 2, "repository_share": 0, "cell_share": 0}
    before, _ = release(work, pairs=caps)
    assert len(rows(before)) == 2
    add(work, [trace(1)], (0, 1))
    better = [pair(trace(1), step, n_teachers_agreeing=5, verified="execution") for step in (2, 3)]
    both = [*(pair(trace(1), step) for step in (0, 1)), *better]
    work.write("pairs", pairs_to_table(both), [trace(1).trace_id], "openhands", "2026-11-22")
    after, manifest = release(work, pairs=caps)
    assert rows(after).keys() == rows(before).keys()
    assert sum(entry.rows for entry in manifest.tables["dropped"].splits.values()) == 2
    rebuilt, manifest = release(work, pairs=caps, rebuild=True)
    assert {name.split(":")[2] for name in rows(rebuilt)} == {"2", "3"}
    assert (rebuilt.version or "").startswith("v2-")
    assert manifest.major == 2
    assert SplitState.of(work, "traces").major == 2


def test_a_task_of_the_test_side_is_not_trained_on_under_another_name(work: Workspace) -> None:
    add(work, [trace(n) for n in range(60)])
    before, _ = release(work)
    held = next(row for split, row in rows(before).values() if split == "test")
    number = int(held["trace_id"].split("-")[1])
    train = next(row for split, row in rows(before).values() if split == "train")
    copy = trace(201, task=task(number), repository="new/fork")
    between = trace(202, task=task(number), repository=train["repository"])
    add(work, [copy, between])
    outcome, manifest = release(work)
    after = rows(outcome)
    assert after[f"{copy.trace_id}:0:0:hindsight"][0] == "test"
    assert f"{between.trace_id}:0:0:hindsight" not in after
    [gone] = [loss for loss in manifest.losses if loss.operator == "split"]
    assert (gone.rows_in, gone.dropped) == (62, 1)


def test_a_benchmark_is_kept_out_of_train(work: Workspace) -> None:
    add(work, [trace(1), trace(2, repository="django/django"), trace(3)])
    outcome, manifest = release(work)
    assert {name.split(":")[0]: split for name, (split, _) in rows(outcome).items()} == {
        "openhands-1": "train",
        "openhands-2": "eval_overlap",
        "openhands-3": "train",
    }
    assert manifest.overlaps == {"repository of SWE-bench": 1}
    assert list(manifest.tables["dpo"].splits) == ["train", "eval_overlap"]


def test_what_a_crash_kept_from_being_written_is_read_from_the_release(work: Workspace) -> None:
    add(work, [trace(n) for n in range(60)])
    outcome, _ = release(work)
    grown = SplitState.of(work, "traces")
    grown.path.unlink()
    again = SplitState.of(work, "traces")
    assert (again.rows, again.version, again.major) == (grown.rows, outcome.version, 1)
    assert again.sides == grown.sides


def test_the_file_names_nothing_and_a_broken_one_is_one_line(work: Workspace) -> None:
    add(work, [trace(n) for n in range(3)])
    release(work)
    path = SplitState.of(work, "traces").path
    text = path.read_text()
    assert "owner" not in text
    assert "openhands" not in text
    for broken in ('{"sides": 3}', "{", ""):
        path.write_text(broken)
        with pytest.raises(WorkspaceError, match=r"is damaged; .*--rebuild"):
            SplitState.of(work, "traces")


def test_what_does_not_fit_is_dropped_with_its_length_and_counted_last(work: Workspace) -> None:
    long = trace(2)
    [context] = long.contexts
    said = Message("system", "word " * 5000)
    big = replace(long, contexts=(replace(context, messages=(said, *context.messages[1:])),))
    add(work, [trace(1), big])
    outcome, manifest = release(work, max_tokens=5000)
    assert [name.split(":")[0] for name in rows(outcome)] == ["openhands-1"]
    [loss] = [loss for loss in manifest.losses if loss.operator == "max_tokens"]
    assert (loss.rows_in, loss.dropped, loss.examples[0].pair_id) == (2, 1, "openhands-2:0:0:hindsight")
    [(_, gone)] = rows(outcome, "dropped").values()
    assert (gone["operator"], gone["reason"]) == ("max_tokens", "more than 5000 tokens, however cut")
    assert int(gone["value"]) > 7000
    assert not SplitState.of(work, "traces").holds("openhands-2:0:0:hindsight")
    none = release_pairs(work, *_arguments(work, {"max_tokens": 10, "rebuild": True}))
    assert (none.path, none.note) == (
        None,
        "no pair was left: max_tokens dropped the last 2 of 2; raise `release.max_tokens`",
    )
