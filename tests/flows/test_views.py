"""What looks across traces and across votes: siblings and views of a workspace."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from kept_pairs import Kept, put
from sibling_runs import BAD, GOOD, LOOK, bash, run, view

from tracemill.agreement.voting.policy import VotePolicy
from tracemill.data_cards.model.columns import VIEWS
from tracemill.data_cards.model.manifest import read_manifest
from tracemill.data_cards.model.release_spec import ReleaseSpec
from tracemill.data_cards.writing.encode_views import encode_hint_text
from tracemill.data_cards.writing.write_release import Release, write_release
from tracemill.flows.admission.reredaction import Reredactor
from tracemill.flows.config.from_settings import make_reredactor
from tracemill.flows.config.pair_settings import PairSettings
from tracemill.flows.config.run_settings import RunSettings, load_settings
from tracemill.flows.labeling.label_shard import ShownTrace, make_pairs, write_labels, write_replies
from tracemill.flows.release.load_pairs import find_siblings, load_pair_states, load_reduced_pairs
from tracemill.flows.release.view_rows import build_view_rows
from tracemill.normalize.normalizer import DJNormalizer, OperatorCount
from tracemill.pairs.caps import rank_of
from tracemill.records.errors import ConfigError
from tracemill.records.message import Action, ToolCall
from tracemill.records.pair import DPOPair, NormalizedDPOPair
from tracemill.records.reply import TeacherReply
from tracemill.records.storage.table_rows import pairs_to_table
from tracemill.records.storage.workspace import Workspace
from tracemill.records.views import SoftStep, StepRun

OTHER = run("c", "not_resolved", LOOK, bash("git stash", "TOKEN=<GITHUB_TOKEN_3f2ac91d>"))


@pytest.fixture
def work(tmp_path: Path) -> Workspace:
    """Runs of one task over three shards, one of them written twice."""
    work = Workspace.open(tmp_path / "w")
    stored = [replace(trace, redaction="r1") for trace in (GOOD, BAD, OTHER)]
    put(work, [replace(stored[0], outcome="unknown")])
    for trace in stored:
        put(work, [trace])
    return work


@pytest.fixture
def reredactor(work: Workspace) -> Reredactor:
    return make_reredactor(work, load_settings(None, {"workspace": str(work.root)}))


def test_siblings_are_found_over_shards_and_shown_with_their_state(
    work: Workspace, reredactor: Reredactor
) -> None:
    pairs, _ = find_siblings(work, reredactor)
    assert [pair.pair_id for pair in pairs] == ["openhands-b:0:1:siblings", "openhands-c:0:1:siblings"]
    kept = [NormalizedDPOPair(pair, "c", "r", "all") for pair in pairs]
    shown = {item.pair.step_id: item for item in load_pair_states(work, kept, reredactor)}
    row = shown["openhands-b:0:1"].pair
    assert [m.role for m in row.state_messages] == ["system", "user", "assistant", "tool"]
    assert row.state_messages[0].content == "You are run b."
    names = [tool.name for tool in row.tools]
    assert len(set(names)) == len(names)
    assert "str_replace_editor" in names


def test_a_tool_that_only_the_chosen_run_called_is_shown(work: Workspace, reredactor: Reredactor) -> None:
    put(work, [replace(run("a", "resolved", LOOK, ("", "deploy", {"to": "x"}, "ok")), redaction="r1")])
    pairs, _ = find_siblings(work, reredactor)
    kept = [NormalizedDPOPair(pair, "c", "r", "all") for pair in pairs]
    tools = [item.pair.tools[-1] for item in load_pair_states(work, kept, reredactor)]
    assert [(tool.name, tool.origin) for tool in tools] == [("deploy", "inferred")] * 2


def test_what_is_not_there_any_more_has_no_siblings(work: Workspace, reredactor: Reredactor) -> None:
    put(work, [replace(GOOD, redaction="r1", outcome="unknown")])
    assert find_siblings(work, reredactor)[0] == []


def test_the_reduction_keeps_or_drops_every_pair_with_its_reason(
    work: Workspace, reredactor: Reredactor
) -> None:
    sibling = find_siblings(work, reredactor)[0][0]
    voted = [
        replace(sibling, step_id=f"openhands-b:0:{step}", label_source="teachers", n_teachers_agreeing=step)
        for step in range(3)
    ]
    work.write("pairs", pairs_to_table(voted), ["openhands-b"], "openhands", "2026-11-21")
    reduced = load_reduced_pairs(work, PairSettings(floor=0, per_operation=2), Kept(), reredactor)
    kept = [item.pair.pair_id for item in reduced.normalized.kept]
    assert kept == [f"openhands-b:0:{tail}" for tail in ("1:teachers", "2:teachers")] + [
        "openhands-c:0:1:siblings"
    ]
    assert [(d.pair.pair_id, d.operator, d.reason, d.value) for d in reduced.normalized.dropped] == [
        (
            f"openhands-b:0:{tail}",
            "operation_cap",
            "over the limit of 2 pairs of one action type per session",
            rank,
        )
        for tail, rank in zip(("0:teachers", "1:siblings"), ranks_of(voted[0], sibling), strict=True)
    ]
    assert [(c.operator, c.rows_in, c.dropped) for c in reduced.normalized.counts] == [
        ("nothing", 5, 0),
        ("operation_cap", 5, 2),
        ("trace_cap", 3, 0),
        ("repository_cap", 3, 0),
        ("cell_cap", 3, 0),
        ("deciding_cap", 3, 0),
    ]
    assert (len(reduced.pairs), len(reduced.siblings)) == (5, 2)
    assert load_reduced_pairs(work, PairSettings(siblings=False), Kept(), reredactor).siblings == []


def test_copies_of_a_session_count_once_and_the_same_choice_elsewhere_again(
    work: Workspace, reredactor: Reredactor
) -> None:
    """The keys of states are made of what is stored of the sessions, not of the pairs."""
    copy = replace(BAD, trace_id="openhands-copy", redaction="r1", outcome="unknown")
    put(work, [copy])
    first = replace(find_siblings(work, reredactor)[0][0], label_source="teachers")
    assert len(first.state_key) == 32
    for name in ("openhands-b", "openhands-copy"):
        voted = [replace(first, step_id=f"{name}:0:{step}") for step in (1, 2)]
        work.write("pairs", pairs_to_table(voted), [name], "openhands", "2026-11-21")
    settings = PairSettings(siblings=False, per_operation=0)
    reduced = load_reduced_pairs(work, settings, DJNormalizer(), reredactor)
    keys = [pair.state_key for pair in reduced.pairs]
    assert keys[:2] == keys[2:] == [first.state_key, keys[1]]
    assert [item.pair.step_id for item in reduced.normalized.kept] == ["openhands-b:0:1", "openhands-b:0:2"]
    assert [(d.pair.step_id, d.operator) for d in reduced.normalized.dropped] == [
        (f"openhands-copy:0:{step}", "document_deduplicator(preference)") for step in (1, 2)
    ]


def ranks_of(one: DPOPair, other: DPOPair) -> tuple[str, str]:
    """The third and the fourth best, in the order of the arguments; a hash decides between equals."""
    return ("3", "4") if rank_of(one) < rank_of(other) else ("4", "3")


def test_what_came_back_for_a_failed_action_goes_into_the_hint(
    work: Workspace, reredactor: Reredactor
) -> None:
    [context] = BAD.contexts
    failed = replace(context.messages[5], content="no such folder", is_error=True)
    messages = (*context.messages[:5], failed, *context.messages[6:])
    put(work, [replace(BAD, redaction="r1", contexts=(replace(context, messages=messages),))])
    kept = [NormalizedDPOPair(pair, "look", "remove", "all") for pair in find_siblings(work, reredactor)[0]]
    first, second = sorted(load_pair_states(work, kept, reredactor), key=lambda item: item.pair.pair_id)
    assert (first.error, second.error) == ("no such folder", "")
    assert encode_hint_text(first) == (
        "What was done here:\nremove\n\nIt failed:\nno such folder\n\n"
        "A run that solved the task did this instead:\nlook"
    )
    assert len(encode_hint_text(replace(first, error="x" * 9000))) < 2300


def test_a_hint_says_no_more_than_the_vote(voted: Workspace, reredactor: Reredactor) -> None:
    reduced = load_reduced_pairs(voted, PairSettings(siblings=False), Kept(), reredactor)
    [item] = reduced.normalized.kept
    assert "2 models agree that this is the better action here:\n" in encode_hint_text(item)
    first, second = item.pair.votes
    apart = replace(item, pair=replace(item.pair, votes=(first, replace(second, key="run_test:other"))))
    assert "2 models would do this here, or something of the same intent:\n" in encode_hint_text(apart)
    alone = replace(item, pair=replace(item.pair, n_teachers_agreeing=1))
    assert "\n\nA model would do this here:\n" in encode_hint_text(alone)


def test_calls_only_drops_what_cannot_be_worded(work: Workspace, reredactor: Reredactor) -> None:
    said = run("a", "resolved", LOOK, ("I look.", *view("/r/main.py")[1:]))
    put(work, [replace(said, redaction="r1")])
    [first, _] = load_reduced_pairs(work, PairSettings(), Kept(), reredactor).normalized.kept
    assert first.chosen_text.startswith("I look.\n")
    reduced = load_reduced_pairs(work, PairSettings(wording="calls_only"), Kept(), reredactor)
    assert [item.chosen_text.split()[0] for item in reduced.normalized.kept] == ["str_replace_editor"] * 2
    assert reduced.normalized.counts[0] == OperatorCount("wording(calls_only)", 2, 0, 0)


def reply(teacher: str, step: str, prompt_id: str, command: str) -> TeacherReply:
    action = Action(f"{teacher} says", (ToolCall("t", "execute_bash", f'{{"command": "{command}"}}'),))
    return TeacherReply(
        step, f"k-{teacher}-{step}", teacher, teacher, 0, 0, action=action, prompt_id=prompt_id
    )


@pytest.fixture
def voted(work: Workspace, reredactor: Reredactor) -> Workspace:
    """Two teachers at two steps of run b: with it at the first, against it at the second."""
    shown = ShownTrace.of(replace(BAD, redaction="r1"), reredactor)
    ids = shown.presentations[0].prompt_ids
    replies = [
        reply(teacher, f"openhands-b:0:{step}", ids[step], command)
        for teacher in ("qwen", "zai")
        for step, command in enumerate(("ls", "pytest -q"))
    ]
    write_replies(work, "openhands", ["openhands-b"], replies)
    made = make_pairs([shown], replies, VotePolicy(), of_traces=False)
    write_labels(work, "openhands", ["openhands-b"], made, "")
    assert [step.verdict for step in made.votes] == ["agrees_with_student", "pair"]
    return work


OWN = "2 of 2 votes (qwen, zai) are for what the agent did"
VOTED = "2 of 2 votes (qwen, zai) agree by exact: the same action, its calls to the letter"


def rows_in(release: Path, config: str) -> list[dict[str, Any]]:
    return pq.read_table(release / "data" / config / "train-00000-of-00001.parquet").to_pylist()


def steps_of(work: Workspace, reredactor: Reredactor, **changes: Any) -> list[StepRun | SoftStep]:
    reduced = load_reduced_pairs(work, PairSettings(siblings=False), Kept(), reredactor)
    views = changes.get("views", ("prm", "soft"))
    return list(build_view_rows(work, reduced.normalized.kept, reredactor, "full", views))


def test_votes_give_a_run_of_judged_steps_and_a_distribution_each(
    voted: Workspace, reredactor: Reredactor
) -> None:
    judged, first, second = steps_of(voted, reredactor)
    assert isinstance(judged, StepRun)
    assert (judged.step_ids, judged.labels) == (("openhands-b:0:0", "openhands-b:0:1"), (True, False))
    assert isinstance(first, SoftStep)
    assert isinstance(second, SoftStep)
    assert (first.student, [c.teachers for c in first.candidates]) == (0, [("qwen", "zai")])
    assert (second.student, second.candidates[0].operation) == (-1, "run_test")
    assert [type(step) for step in steps_of(voted, reredactor, views=("prm",))] == [StepRun]
    assert steps_of(voted, reredactor, views=("sft", "kto")) == []


def test_a_step_that_a_pair_rejects_and_a_vote_confirms_is_not_judged(
    voted: Workspace, reredactor: Reredactor
) -> None:
    reduced = load_reduced_pairs(voted, PairSettings(siblings=False), Kept(), reredactor)
    [item] = reduced.normalized.kept
    other = replace(item, pair=replace(item.pair, step_id="openhands-b:0:0", label_source="siblings"))
    [judged] = build_view_rows(voted, [item, other], reredactor, "full", ("prm",))
    assert isinstance(judged, StepRun)
    assert (judged.step_ids, judged.labels) == (("openhands-b:0:1",), (False,))


def test_a_release_has_the_views_that_are_wanted(
    voted: Workspace, reredactor: Reredactor, tmp_path: Path
) -> None:
    settings = load_settings(None, {"release": {"views": ["kto", "soft"]}})
    reduced = load_reduced_pairs(voted, settings.pairs, Kept(), reredactor)
    kept = reduced.normalized.kept
    spec = ReleaseSpec(name="v", redaction="r1", views=settings.release.views, wording="student_thought")
    steps = build_view_rows(voted, kept, reredactor, "full", spec.views)
    made = write_release(spec, load_pair_states(voted, kept, reredactor), [], tmp_path / "r", steps=steps)
    assert isinstance(made, Release)
    manifest = read_manifest(made.path)
    rows = {name: table.rows for name, table in manifest.tables.items()}
    assert rows == {"dpo": 3, "kto": 5, "soft": 2, "votes": 2}
    # What run b did at step 1 is rejected by its vote and by its siblings: one side, and one row.
    sides = [(row["step_id"], row["label"], row["label_source"]) for row in rows_in(made.path, "kto")]
    assert sorted(sides) == [
        ("openhands-b:0:1", False, "siblings"),
        ("openhands-b:0:1", True, "siblings"),
        ("openhands-b:0:1", True, "teachers"),
        ("openhands-c:0:1", False, "siblings"),
        ("openhands-c:0:1", True, "siblings"),
    ]
    soft = {row["step_id"]: row for row in rows_in(made.path, "soft")}
    candidates = [soft[f"openhands-b:0:{step}"]["candidates"] for step in (0, 1)]
    assert [[each["agreed"] for each in step] for step in candidates] == [[True], [True]]
    assert [soft[f"openhands-b:0:{step}"]["evidence"] for step in (0, 1)] == [OWN, VOTED]
    voted_for = [row["evidence"] for row in rows_in(made.path, "dpo") if row["label_source"] == "teachers"]
    assert voted_for == [VOTED]
    assert manifest.wording == "student_thought"
    assert "**The agent's words on both sides**" in (made.path / "README.md").read_text()


def test_settings_of_pairs_and_views_are_checked() -> None:
    views = ("dpo_json", "sft", "agreed", "solved", "kto", "prm", "hints", "soft")
    assert RunSettings.model_validate({}).release.views == views == VIEWS
    for wrong in ({"pairs": {"wording": "short"}}, {"release": {"views": ["ppo"]}}):
        with pytest.raises(ConfigError):
            load_settings(None, wrong)
    for wrong in ({"pairs": {"repository_share": 1.5}}, {"pairs": {"per_trace": -1}}):
        with pytest.raises(ConfigError):
            load_settings(None, wrong)
