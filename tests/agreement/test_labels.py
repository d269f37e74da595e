"""What votes decide under each policy, and that their order does not matter."""

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracemill.agreement.equivalence.ladder import ladder_keys
from tracemill.agreement.voting.labels import ValidVote, VoteLabel, label_of
from tracemill.agreement.voting.policy import (
    DEFAULT,
    POLICIES,
    STRICT,
    VotePolicy,
    policy_named,
)
from tracemill.agreement.world.replay_context import replay_context
from tracemill.agreement.world.world_state import EnvironmentState
from tracemill.harnesses.agents.registry import harness_for, rule_for
from tracemill.harnesses.operations import action_command_line
from tracemill.records.errors import ConfigError
from tracemill.records.families import family_of
from tracemill.records.message import Action, Message, ToolCall, ToolSpec
from tracemill.records.trace import Context

WORLD = EnvironmentState("claude_code", "/repo")


def act(name: str, **arguments: Any) -> Action:
    return Action("", (ToolCall("c", name, json.dumps(arguments)),))


def bash(line: str) -> Action:
    return act("Bash", command=line)


READ = act("Read", file_path="/repo/a.py")
PART = act("Read", file_path="/repo/a.py", offset=400, limit=9)
OTHER = act("Read", file_path="/repo/b.py")
EDIT = act("Edit", file_path="/repo/a.py", old_string="x", new_string="y")
EDIT_2 = act("Edit", file_path="/repo/a.py", old_string="x", new_string="z")
TEST = bash("pytest tests/a.py")
DONE = Action("All done.")


def vote(
    *actions: Action, student: Action, policy: VotePolicy = DEFAULT, world: EnvironmentState = WORLD
) -> VoteLabel:
    voices = [
        ValidVote(f"t{place}", f"family {place}", ladder_keys(action, world), len(str(action)))
        for place, action in enumerate(actions)
    ]
    return label_of(voices, ladder_keys(student, world), policy)


@pytest.mark.parametrize(
    ("teachers", "student", "verdict"),
    [
        ((READ, READ, READ), DONE, "pair"),
        ((READ, READ, TEST), DONE, "no_agreement"),  # a text against a call: all must agree
        ((READ, READ), DONE, "pair"),
        ((READ, act("Read", file_path="a.py"), TEST), OTHER, "pair"),  # near: the same effect
        ((READ, PART, TEST), OTHER, "no_agreement"),  # near: the intent is not enough
        ((READ, PART, EDIT), TEST, "pair"),  # far: it is
        ((bash("cat a.py"), bash("sed -n 4,9p a.py"), EDIT), TEST, "pair"),  # however the file is shown
        ((bash("head -40 a.py"), READ, EDIT), TEST, "pair"),
        ((bash("cut -f1 a.py"), bash("wc -l a.py"), EDIT), TEST, "no_agreement"),  # not as it is
        ((bash("cat a.py b.py"), bash("cat a.py"), EDIT), TEST, "no_agreement"),
        ((READ, PART, TEST, TEST), EDIT, "pair"),  # the same effect goes first
        ((READ, READ, DONE, DONE), DONE, "no_agreement"),  # as many do what the student did
        ((EDIT, EDIT_2, DONE), READ, "pair"),
        ((EDIT, EDIT, DONE), EDIT_2, "no_agreement"),  # two ways of writing, neither of known outcome
        ((EDIT, EDIT, EDIT), EDIT_2, "dead_zone"),
        ((READ, READ, TEST), PART, "dead_zone"),
        ((READ, READ, TEST), READ, "agrees_with_student"),
        ((READ, TEST, DONE), OTHER, "no_agreement"),
        ((READ,), OTHER, "too_few_votes"),
        ((Action("Finished!"), DONE, DONE), TEST, "pair"),  # finishing agrees by class
        ((Action("Finished!"), DONE, READ), TEST, "no_agreement"),
        ((bash("make a"), bash("make b"), DONE), READ, "no_agreement"),  # a program is no intent
        ((READ, READ), Action(""), "student_did_nothing"),
    ],
)
def test_the_default_policy(teachers: tuple[Action, ...], student: Action, verdict: str) -> None:
    assert vote(*teachers, student=student).verdict == verdict


def test_the_policies_differ_in_what_they_ask_for() -> None:
    two_of_three = (READ, bash("cat a.py"), TEST)
    assert vote(*two_of_three, student=OTHER, policy=STRICT).verdict == "no_agreement"
    assert vote(READ, READ, READ, student=OTHER, policy=STRICT).verdict == "pair"


def test_one_family_is_not_enough() -> None:
    voices = [ValidVote(name, "openai", ladder_keys(READ, WORLD)) for name in ("a", "b")]
    assert label_of(voices, ladder_keys(OTHER, WORLD), DEFAULT).verdict == "one_family"
    assert label_of(voices, ladder_keys(OTHER, WORLD), replace(DEFAULT, min_families=1)).verdict == "pair"


def test_chosen_is_the_shortest() -> None:
    label = vote(READ, act("Read", file_path="a.py"), READ, TEST, student=OTHER)
    assert (label.backers, label.chosen) == ((0, 1, 2), 1)
    wordy = Action("I would now look at the file.", READ.tool_calls)
    assert vote(wordy, READ, student=DONE).chosen == 1


def test_a_guess_wants_one_vote_more() -> None:
    messages = (Message("user", "How many singers are there?"),)
    record = replay_context(Context(0, messages, ()), "intercode")
    world = EnvironmentState("intercode", None, (ToolSpec("execute_sql", "", {}, "inferred"),), record, 1)
    known, guess = (
        act("execute_sql", command=f"SELECT COUNT(*) FROM {name}") for name in ("singer", "artist")
    )
    look = act("execute_sql", command="SHOW TABLES")
    assert (ladder_keys(known, world).guess, ladder_keys(guess, world).guess) == (False, True)
    assert vote(known, known, student=look, world=world).verdict == "pair"
    assert vote(guess, guess, student=look, world=world).verdict == "no_agreement"
    assert vote(guess, guess, guess, student=look, world=world).verdict == "pair"


def test_a_fine_tune_is_of_the_family_of_its_base() -> None:
    names = (
        "NousResearch/Hermes-2-Llama-3-70B",
        "vicuna-13b",
        "text-bison-001",
        "swe-agent-lm-32b",
        "who-knows",
    )
    assert [family_of(name) for name in names] == ["meta", "meta", "google", "qwen", "unknown"]


def test_codex_and_gemini_speak_of_the_same_operations() -> None:
    rule = rule_for(harness_for("codex"), "shell")
    assert rule is not None
    assert action_command_line({"command": ["bash", "-lc", "rg x | head"]}, rule) == "rg x | head"
    assert action_command_line({"command": ["cat", "a b.py"]}, rule) == "cat 'a b.py'"
    codex, gemini = EnvironmentState("codex", "/repo"), EnvironmentState("gemini_cli", "/repo")
    patch = "*** Begin Patch\n*** Update File: a.py\n@@\n-x\n+y\n*** End Patch"
    freeform = Action("", (ToolCall("c", "apply_patch", patch),))
    told = ladder_keys(act("exec_command", cmd="cat a.py", workdir="sub"), codex)
    assert ladder_keys(freeform, codex).action_class == "edit"
    assert ladder_keys(freeform, codex).intent == ladder_keys(act("apply_patch", input=patch), codex).intent
    assert told.intent == ladder_keys(act("read_file", file_path="sub/a.py"), gemini).intent
    assert (
        ladder_keys(act("replace", file_path="a.py", old_string="x", new_string="y"), gemini).action_class
        == "edit"
    )


def test_a_policy_of_another_name_is_an_error() -> None:
    assert policy_named("strict", threshold=None, min_families=3) == replace(STRICT, min_families=3)
    with pytest.raises(ConfigError, match="policy 'lax' is not known"):
        policy_named("lax")


POOL = st.sampled_from(
    [READ, PART, OTHER, EDIT, EDIT_2, TEST, DONE, bash("cat a.py"), bash("make a"), Action("Why?")]
)


@settings(max_examples=100, deadline=None)
@given(st.lists(POOL, max_size=4), POOL, st.sampled_from(list(POLICIES.values())))
def test_the_order_of_votes_does_not_matter(
    teachers: Sequence[Action], student: Action, policy: VotePolicy
) -> None:
    voices = [
        ValidVote(f"t{n}", f"f{n % 3}", ladder_keys(a, WORLD), len(str(a))) for n, a in enumerate(teachers)
    ]
    own = ladder_keys(student, WORLD)
    wanted = label_of(voices, own, policy)
    for order in permutations(range(len(voices))):
        label = label_of([voices[place] for place in order], own, policy)
        assert label.verdict == wanted.verdict
        assert {order[place] for place in label.backers} == set(wanted.backers)
        assert (None if label.chosen is None else order[label.chosen]) == wanted.chosen


def test_a_part_of_a_batch_of_calls_makes_no_pair() -> None:
    both = Action("", (*EDIT.tool_calls, *TEST.tool_calls))
    assert vote(both, both, both, student=EDIT).verdict == "dead_zone"
    assert vote(TEST, TEST, READ, student=both).verdict == "dead_zone"
    unknown = [ToolCall(name, name, "{}") for name in ("mcp__x", "mcp__y", "mcp__z")]
    part, whole, turned = (Action("", tuple(unknown[:n])[::step]) for n, step in ((1, 1), (2, 1), (2, -1)))
    assert vote(part, part, READ, student=whole).verdict == "dead_zone"
    assert ladder_keys(whole, WORLD).canonical == ladder_keys(turned, WORLD).canonical
    assert vote(turned, whole, READ, student=whole).verdict == "agrees_with_student"
    assert vote(turned, whole, READ, student=Action("", (unknown[2],))).verdict == "pair"


@pytest.mark.parametrize(
    ("chosen", "student", "verdict"),
    [
        ((EDIT,), (EDIT_2, TEST), "dead_zone"),  # some of the student's work, done otherwise
        ((READ, EDIT), (PART, EDIT_2, TEST), "dead_zone"),
        ((act("mcp__x", a=1),), (act("mcp__x", a=2), act("mcp__x", a=3)), "dead_zone"),
        ((act("mcp__x", a=2), act("mcp__x", a=3)), (act("mcp__x", a=1),), "pair"),  # more of it
        ((act("mcp__x", a=1),), (act("mcp__y"), act("mcp__z")), "pair"),
        ((PART,), (READ, TEST), "dead_zone"),  # a part by intent, with another tool or form
        ((READ, TEST), (PART,), "dead_zone"),
        ((EDIT_2, TEST), (EDIT,), "pair"),  # another edit of the file
        ((TEST,), (READ, EDIT), "pair"),
    ],
)
def test_doing_less_of_the_same_is_not_better(
    chosen: tuple[Action, ...], student: tuple[Action, ...], verdict: str
) -> None:
    one, other = (
        Action("", tuple(call for each in side for call in each.tool_calls)) for side in (chosen, student)
    )
    assert vote(one, one, one, student=other).verdict == verdict
