"""Configs `agreed`, `solved` and `sft`: one action at a step, and the account of those that are not there."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from growing_traces import add, task, trace
from kept_pairs import Kept
from labelled_sessions import ANSWERS, SESSIONS, fill
from sibling_runs import bash, run

from tracemill.data_cards.model.manifest import Manifest, read_manifest
from tracemill.flows.config.from_settings import make_reredactor
from tracemill.flows.config.run_settings import load_settings
from tracemill.flows.forget.find_targets import find_target
from tracemill.flows.release.release_run import release_pairs
from tracemill.flows.release.split_store import SplitState
from tracemill.flows.run_state.closing_table import closing_table_rows
from tracemill.flows.run_state.run_summary import ReleaseOutcome, Summary
from tracemill.records.message import Message
from tracemill.records.storage.workspace import Workspace
from tracemill.records.trace import Trace


@pytest.fixture
def work(tmp_path: Path) -> Workspace:
    return Workspace.open(tmp_path / "w")


def labelled(work: Workspace, *sessions: Trace) -> None:
    fill(
        work, make_reredactor(work, load_settings(None, {"workspace": str(work.root)})), sessions or SESSIONS
    )


def release(work: Workspace, **changes: Any) -> tuple[ReleaseOutcome, Manifest]:
    outcome = attempt(work, **changes)
    assert outcome.path is not None, outcome.note
    return outcome, read_manifest(Path(outcome.path))


def attempt(work: Workspace, pairs: Any = None, **changes: Any) -> ReleaseOutcome:
    over = {"workspace": str(work.root), "pairs": {"siblings": False, **(pairs or {})}, "release": changes}
    settings = load_settings(None, over)
    return release_pairs(work, settings, Kept(), make_reredactor(work, settings), "run", Summary())


def rows(outcome: ReleaseOutcome, config: str) -> dict[str, dict[str, Any]]:
    """The rows by step and source, each with its split."""
    found: dict[str, dict[str, Any]] = {}
    for path in sorted((Path(outcome.path or "") / "data" / config).glob("*.parquet")):
        for row in pq.read_table(path).to_pylist():
            name = f"{row['step_id'].removeprefix('openhands-')} {row['label_source']}"
            assert name not in found
            found[name] = row | {"split": path.name.split("-")[0]}
    return found


def test_every_step_with_agreement_is_a_row(work: Workspace) -> None:
    labelled(work)
    outcome, _ = release(work)
    told = {
        name: (row["verdict"], row["same_as_student"], row["n_teachers_agreeing"], row["n_votes"])
        for name, row in rows(outcome, "agreed").items()
    }
    assert told == {
        "failed:0:0 agreed": ("agrees_with_student", True, 2, 3),
        "failed:0:1 agreed": ("pair", False, 2, 3),
        "failed:0:2 agreed": ("dead_zone", False, 2, 2),
        "solved:0:1 agreed": ("pair", False, 2, 2),
        "solved:0:2 agreed": ("agrees_with_student", True, 2, 2),
    }
    own, pair, near = (rows(outcome, "agreed")[f"failed:0:{step} agreed"] for step in range(3))
    behind = 0.0  # the step behind a departure
    assert [row["weight"] for row in (own, pair, near)] == pytest.approx([2 / 3, 2 / 3, behind])
    assert [row["completion"][0]["content"] for row in (own, pair, near)] == ["", "", ""]
    assert '"failed-1"' in own["completion"][0]["tool_calls"][0]
    assert "sed -n 300,400p" in near["completion"][0]["tool_calls"][0]
    assert near["evidence"] == "2 of 2 votes (qwen, zai) agree on another action of the agent's intent"
    assert (near["teachers"], near["families"], near["cost_usd"]) == (["qwen", "zai"], ["qwen", "zai"], 0.75)
    assert (near["outcome_weight"], near["outcome_support"], near["simulated"]) == (None, 0, False)
    assert [message["role"] for message in own["prompt"]] == ["system", "user"]
    assert len(own["tools"]) > 0


def test_steps_of_solved_sessions_are_rows_unless_a_pair_is_made_against_them(work: Workspace) -> None:
    summary = replace(
        run("summary", "unknown", bash("ls"), task=task(9)),
        kind="side",
        parent_trace_id=SESSIONS[0].trace_id,
        notes={"summariser": 1},
        redaction="r1",
    )
    labelled(work, *SESSIONS, summary)
    outcome, manifest = release(work)
    solved = rows(outcome, "solved")
    assert solved.keys() == {"solved:0:0 solved", "solved:0:2 solved", "helper:0:0 solved"}
    assert {(row["outcome"], row["weight"], row["cost_usd"]) for row in solved.values()} == {
        ("resolved", 1.0, 0.0)
    }
    [account] = [each for each in manifest.labels.sources if each.source == "solved"]
    assert account.dropped == {"a pair prefers another action": 1, "a summariser's step": 1}


def test_sft_holds_each_action_of_a_step_once(work: Workspace) -> None:
    labelled(work)
    extra = trace(1)
    add(work, [extra])
    outcome, _ = release(work)
    agreed, solved = rows(outcome, "agreed"), rows(outcome, "solved")
    sft = rows(outcome, "sft")
    both = "solved:0:2 solved"  # what the agent did there was agreed on too
    assert sft.keys() == agreed.keys() | (solved.keys() - {both}) | {"1:0:0 hindsight"}
    assert sft["1:0:0 hindsight"]["weight"] == 1.0
    assert all(sft[name] == row for name, row in agreed.items())
    assert {row["label_source"] for row in rows(outcome, "dpo").values()} == {"teachers", "hindsight"}


def test_the_account_of_labels_adds_up_to_the_tables(work: Workspace) -> None:
    labelled(work)
    outcome, manifest = release(work)
    votes = [
        row
        for path in (Path(outcome.path or "") / "data" / "votes").glob("*.parquet")
        for row in pq.read_table(path).to_pylist()
    ]
    assert manifest.labels.answers == {
        "for the action agreed on": sum(row["agrees"] for row in votes),
        "not counted: failed: rate_limited": sum(not row["counted"] for row in votes),
        "at a step without agreement": 3,
        "for another action": 2,
    }
    assert sum(manifest.labels.answers.values()) == len(votes) == sum(map(len, ANSWERS.values()))
    for account in manifest.labels.sources:
        assert account.released == manifest.tables[account.source].rows == len(rows(outcome, account.source))
        assert account.steps == account.released + sum(account.dropped.values())
        assert outcome.labels[account.source] == account.released
    agreed, solved = manifest.labels.sources
    assert agreed.steps == len({row["step_id"] for row in votes}) == len(ANSWERS)
    assert agreed.dropped == {"no agreement": 1, "no answer counts as a vote": 1}
    assert (solved.steps, solved.released) == (4, 3)
    table = dict(closing_table_rows(Summary(), None, [], outcome))
    assert table["labels released"] == "      5  agreed\n      3  solved"
    assert "      1  agreed: no agreement" in table["labels not released"].splitlines()
    card = (Path(outcome.path or "") / "README.md").read_text()
    assert "2 preference pairs and 8 labelled actions" in card
    assert "| agreed | 7 | 5 |" in card
    assert "| all | 18 |" in card
    assert "| solved | a pair prefers another action | 1 |" in card
    assert "Agreement is not truth" in card


def test_labels_without_a_pair_are_a_release_and_neither_is_none(work: Workspace) -> None:
    labelled(work, SESSIONS[0], SESSIONS[1])
    only = {"per_trace": 1, "floor": 0}
    with_pair, _ = release(work, pairs=only)
    assert with_pair.rows == 1
    alone = Workspace.open(work.root.parent / "alone")
    labelled(alone, SESSIONS[1], replace(SESSIONS[0], contexts=first_step(SESSIONS[0]).contexts))
    outcome, manifest = release(alone, short=[])
    assert (manifest.rows, outcome.rows, manifest.usd_per_pair) == (0, 0, 0.0)
    assert {name: table.rows for name, table in manifest.tables.items()} == {"sft": 2, "solved": 2}
    assert manifest.statement.startswith("2 of 2 rows are unverified.")
    card = (Path(outcome.path or "") / "README.md").read_text()
    assert '"sft", split="train")' in card
    assert "SFTTrainer(" in card
    again, _ = release(alone, short=[])
    assert (again.created, again.version) == (False, outcome.version)
    none = Workspace.open(work.root.parent / "none")
    labelled(none, replace(SESSIONS[2], outcome="unknown", contexts=first_step(SESSIONS[2], 3).contexts))
    assert attempt(none, views=["solved"]).note == "no pair was found"
    assert not (none.releases_dir / "traces").exists()


def first_step(made: Trace, at: int = 0) -> Trace:
    """The session up to its first step; `at` gives its step another place, where nobody was asked."""
    [context] = made.contexts
    steps = (context.steps[0],)
    return replace(made, contexts=(replace(context, index=at, messages=context.messages[:4], steps=steps),))


def test_sessions_without_a_pair_have_a_side_that_stays(work: Workspace) -> None:
    sessions = [solved(number) for number in range(60)]
    labelled(work, *sessions)
    before, manifest = release(work)
    old = rows(before, "solved")
    assert len(old) == 60
    counts = Counter(row["split"] for row in old.values())
    assert counts.keys() == {"train", "validation", "test"}
    assert counts == manifest.splits
    assert {name: row["split"] for name, row in rows(before, "sft").items()} == {
        name: row["split"] for name, row in old.items()
    }
    grown = SplitState.of(work, "traces")
    grown.path.unlink()
    again = SplitState.of(work, "traces")
    assert (again.sides, again.version) == (grown.sides, before.version)
    labelled(work, *(solved(number) for number in range(60, 90)))
    add(work, [trace(1), trace(2, repository="django/django")])
    after, _ = release(work)
    new = rows(after, "solved")
    assert len(new) == 90
    assert {name: new[name] for name in old} == old


def solved(number: int, **changes: Any) -> Trace:
    made = run(f"s{number}", "resolved", bash(f"ls {number}"), task=task(100 + number))
    return replace(made, redaction="r1", instance_id=None, repository=f"owner/of-{number}", **changes)


def test_a_benchmark_stands_apart_and_what_does_not_fit_is_counted(work: Workspace) -> None:
    long = solved(1)
    [context] = long.contexts
    said = Message("system", "word " * 5000)
    big = replace(long, contexts=(replace(context, messages=(said, *context.messages[1:])),))
    labelled(work, big, solved(2), replace(solved(3), repository="django/django"))
    outcome, manifest = release(work, max_tokens=5000)
    assert {name: row["split"] for name, row in rows(outcome, "solved").items()} == {
        "s2:0:0 solved": "train",
        "s3:0:0 solved": "eval_overlap",
    }
    [account] = manifest.labels.sources
    assert (account.steps, account.dropped) == (3, {"more than 5000 tokens, however cut": 1})


def test_calls_alone_leave_out_what_calls_nothing(work: Workspace) -> None:
    made = solved(1)
    [context] = made.contexts
    words = replace(context.messages[2], content="I am done.", tool_calls=())
    ended = replace(context, messages=(*context.messages[:2], words))
    labelled(work, solved(2), replace(made, contexts=(ended,)))
    outcome, manifest = release(work, pairs={"wording": "calls_only"})
    assert rows(outcome, "solved").keys() == {"s2:0:0 solved"}
    assert manifest.labels.sources[0].dropped == {"the action calls nothing": 1}


def test_views_that_are_not_wanted_hold_no_label(work: Workspace) -> None:
    labelled(work)
    _, manifest = release(work, views=["agreed", "kto"], short=[])
    assert {name: table.rows for name, table in manifest.tables.items()} == {
        "dpo": 2,
        "agreed": 5,
        "kto": 4,
        "votes": 18,
    }
    assert [account.source for account in manifest.labels.sources] == ["agreed"]


def test_forgetting_finds_a_release_that_holds_labels_of_a_session_alone(work: Workspace) -> None:
    labelled(work, solved(1), solved(2))
    outcome, _ = release(work)
    found = find_target(work, None, "openhands-s1", None)
    assert (found.kind, found.traces, found.releases) == (
        "trace",
        {"openhands-s1"},
        (Path(outcome.path or ""),),
    )
