"""Pairs that the caps of a release would drop are not bought; labels that it holds anyway are."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from growing_traces import task
from kept_pairs import Kept, put
from sibling_runs import bash, run

from tracemill.flows.config.from_settings import make_reredactor
from tracemill.flows.config.run_settings import RunSettings, load_settings
from tracemill.flows.estimate.estimate_cost import estimate_cost
from tracemill.flows.release.load_pairs import load_reduced_pairs
from tracemill.flows.workspace_commands import label_workspace, replay_workspace
from tracemill.records.project import Project
from tracemill.records.storage.workspace import Workspace
from tracemill.teachers.planning.schedule import FULL

STEPS = ("ls", "cat a.py", "grep -rn slug .", "git status", "pytest -q", "sed -n 1,20p b.py", "git diff")
PROJECT = Project("0" * 16, "garden", "garden")
SHARES_OFF = {"repository_share": 0, "cell_share": 0, "deciding_share": 0}
PAIRS_ALONE = {"views": ["dpo_json", "kto"]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Forty sessions that are much alike, of four repositories: 14 steps each."""
    made = [
        run(f"t{n}", "unknown", *(bash(f"{each} {n}") for each in (*STEPS, *STEPS)), task=task(n))
        for n in range(40)
    ]
    work = Workspace.open(tmp_path / "w")
    named = {"redaction": "r1", "instance_id": None, "worked_in": (PROJECT,)}
    put(work, [replace(each, repository=f"owner/r{n % 4}", **named) for n, each in enumerate(made)])
    return tmp_path / "w"


def settings_of(folder: Path, **more: Any) -> RunSettings:
    given = {"workspace": str(folder), "preset": "simulated", "budget": {"max_total_usd": 100}}
    return load_settings(None, given | more)


def paid_and_capped(settings: RunSettings) -> tuple[int, int, int]:
    """The pairs of teachers that were made, those that caps took, and those that are left."""
    label_workspace(settings)
    work = Workspace.open(settings.workspace, create=False)
    reduced = load_reduced_pairs(work, settings.pairs, Kept(), make_reredactor(work, settings))
    taken = [
        each
        for each in reduced.normalized.dropped
        if each.operator.endswith("_cap") and each.pair.label_source == "teachers"
    ]
    kept = [each for each in reduced.normalized.kept if each.pair.label_source == "teachers"]
    return sum(pair.label_source == "teachers" for pair in reduced.pairs), len(taken), len(kept)


@pytest.mark.parametrize(
    "caps",
    [
        {"per_trace": 2, "floor": 0},
        {"per_trace": 1},
        {"per_operation": 2, "floor": 0},
        {"per_trace": 4, "per_operation": 2, "floor": 0},
    ],
)
def test_of_paid_pairs_at_most_fifteen_in_a_hundred_are_dropped_by_the_caps_of_a_session(
    folder: Path, caps: dict[str, Any]
) -> None:
    caps = caps | SHARES_OFF
    settings = settings_of(folder, pairs=caps, release=PAIRS_ALONE)
    summary = replay_workspace(settings, yes=True)["summary"]
    paid, capped, kept = paid_and_capped(settings)
    assert paid >= 30
    assert capped <= 0.15 * paid
    assert summary["not_asked"][FULL] > summary["asked"]
    if "per_operation" not in caps:
        assert kept == paid == 40 * caps["per_trace"]
    again = replay_workspace(settings, yes=True, new_run=True)["summary"]
    assert (again["calls"], again["asked"]) == (0, summary["asked"])


def test_steps_that_give_a_label_of_another_view_are_asked_whatever_becomes_of_their_pairs(
    folder: Path,
) -> None:
    settings = settings_of(folder, pairs={"per_trace": 2, "floor": 0})
    summary = replay_workspace(settings, yes=True)["summary"]
    assert FULL not in summary["not_asked"]
    assert paid_and_capped(settings)[1] > 100
    raised = settings_of(folder, pairs={"per_trace": 2, "floor": 0}, release=PAIRS_ALONE)
    assert replay_workspace(raised, yes=True)["summary"]["calls"] == 0  # all of it is bought


def test_an_estimate_says_how_many_steps_are_left_out(folder: Path) -> None:
    every = estimate_cost(settings_of(folder))
    capped = estimate_cost(settings_of(folder, pairs={"per_trace": 2, "floor": 0}, release=PAIRS_ALONE))
    labels = estimate_cost(settings_of(folder, pairs={"per_trace": 2, "floor": 0}))
    assert (every.no_room, labels.no_room) == (0, 0)
    assert every.total.states == labels.total.states == 40 * 14
    assert capped.no_room == 40 * (14 - 10)  # two pairs where one step in five gives one
    assert capped.total.states == 40 * 10
