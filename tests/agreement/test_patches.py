"""Patches: read as Codex does, and one action whether through the tool or on a command line."""

import json
from typing import Any

import pytest

from tracemill.agreement.equivalence.ladder import ActionKeys, in_ladder_dead_zone, ladder_keys
from tracemill.agreement.voting.labels import ValidVote, label_of
from tracemill.agreement.voting.policy import VotePolicy
from tracemill.agreement.world.replay_context import environment_at, replay_context
from tracemill.agreement.world.world_state import EnvironmentState
from tracemill.harnesses.operations import find_operation_and_target
from tracemill.harnesses.shell.patches import FilePatch, Hunk, read_patch
from tracemill.records.message import Action, Message, ToolCall
from tracemill.records.trace import Context, Step, Trace, TraceState

TEXT = [
    "class A:",
    "    def f(x):",
    "        y = x",
    "        return y",
    "class B:",
    "    def f(x):",
    "        y = x",
    "        return y",
]


def act(name: str, **arguments: Any) -> Action:
    return Action("", (ToolCall("c", name, json.dumps(arguments)),))


def patch(body: str) -> str:
    return f"*** Begin Patch\n{body}\n*** End Patch"


def tool(body: str) -> Action:
    return act("apply_patch", input=patch(body))


def world(*seen: tuple[Action, str]) -> EnvironmentState:
    """A world in which calls came back with these texts, each made in /repo."""
    messages, steps = [Message("user", "mend a.py")], []
    for number, (action, result) in enumerate(seen):
        call = action.tool_calls[0]
        steps.append(Step(number, len(messages), cwd="/repo"))
        messages.append(Message("assistant", "", (ToolCall(f"s{number}", call.name, call.arguments),)))
        messages.append(Message("tool", result, tool_call_id=f"s{number}"))
    steps.append(Step(len(seen), len(messages), cwd="/repo"))
    messages.append(Message("assistant", "Done."))
    context = Context(0, tuple(messages), tuple(steps))
    trace = Trace("t", "claude_code", "d", "codex", (context,))
    return environment_at(TraceState(trace, context, context.steps[-1]), (), replay_context(context, "codex"))


BLIND = EnvironmentState("codex", "/repo")
SHOWN = world((act("exec_command", cmd="cat a.py"), "\n".join(TEXT)))


@pytest.mark.parametrize("there", [BLIND, SHOWN])
@pytest.mark.parametrize(
    "hunk", ["-        y = x\n+        y = z", "+    z = 1", "         y = x\n+        z = 1"]
)
def test_patches_under_other_anchors_are_other_edits_of_one_file(there: EnvironmentState, hunk: str) -> None:
    one, other = (
        ladder_keys(tool(f"*** Update File: a.py\n@@ class {name}:\n{hunk}"), there) for name in ("A", "B")
    )
    assert one.canonical != other.canonical
    assert one.effect != other.effect
    assert in_ladder_dead_zone(one, other)


def test_only_edits_that_do_not_meet_have_no_order() -> None:
    apart = ("*** Update File: a.py\n@@\n-x\n+y", "*** Update File: b.py\n@@\n-x\n+y")
    moved = ("*** Update File: a.py\n*** Move to: b.py\n@@\n-x\n+y", apart[1])
    for parts, same in ((apart, True), (moved, False)):
        one, other = (ladder_keys(tool("\n".join(order)), BLIND) for order in (parts, parts[::-1]))
        assert (one.effect == other.effect) == same


def test_a_patch_is_read_file_by_file() -> None:
    text = patch(
        "*** Add File: n.py\n+x\n+\n*** Delete File: o.py\n"
        "*** Update File: p.py\n*** Move to: q.py\n@@ f\n a\n\n-b\n+c"
    )
    assert read_patch(text) == (
        FilePatch("Add", "n.py", (Hunk(new=("x", "")),)),
        FilePatch("Delete", "o.py"),
        FilePatch("Update", "p.py", (Hunk(("f",), ("a", "", "b"), ("a", "", "c")),), "q.py"),
    )
    assert read_patch(f"<<'EOF'\n{text}\nEOF\n") == read_patch(text)
    assert read_patch("no patch") == ()


@pytest.mark.parametrize("body", ["@@\nno sign", "@@\n-a\nno sign", "no sign", "@@", ""])
def test_a_patch_with_a_line_that_is_none_of_a_patch_is_its_own(body: str) -> None:
    (read,) = read_patch(patch(f"*** Update File: a.py\n{body}"))
    assert not read.readable
    known, other = (ladder_keys(tool(f"*** Update File: a.py\n{text}"), SHOWN) for text in (body, "@@\n-a"))
    assert known.effect != other.effect
    assert known.intent == other.intent


BODY = "*** Update File: a.py\n@@ class B:\n-        y = x\n+        y = f'{z}' + \"$z\""
PATCH = patch(BODY)
ALONE = [
    act("shell", command=["apply_patch", PATCH]),
    act("shell", command=["apply_patch", f"<<'EOF'\n{PATCH}\nEOF\n"]),
    act("shell", command=["bash", "-lc", f"apply_patch <<'EOF'\n{PATCH}\nEOF"]),
    act("shell", command=["bash", "-lc", f"apply_patch << 'PATCH'\n{PATCH}\nPATCH\n"]),
    act("shell", command=["apply_patch", PATCH], workdir="/repo"),
    act("shell", command=["bash", "-lc", f"cd .. && apply_patch <<'E'\n{PATCH}\nE"], workdir="/repo/src"),
    act("local_shell", command=["bash", "-lc", f"cd /repo && applypatch <<'EOF'\n{PATCH}\nEOF"]),
    act("exec_command", cmd=f"apply_patch <<'EOF'\n{PATCH}\nEOF"),
]


@pytest.mark.parametrize("action", ALONE)
@pytest.mark.parametrize("there", [BLIND, SHOWN])
def test_a_patch_on_a_command_line_is_the_tool(action: Action, there: EnvironmentState) -> None:
    assert _levels(ladder_keys(action, there)) == _levels(ladder_keys(tool(BODY), there))
    assert find_operation_and_target(action, "codex") in (("edit", "a.py"), ("edit", "/repo/a.py"))


def _levels(known: ActionKeys) -> tuple[str, ...]:
    return known.effect, known.intent, known.action_class


def test_a_quoted_line_in_a_line_is_read_too() -> None:
    body = "*** Update File: a.py\n@@ class B:\n-        y = x\n+        y = z"
    line = f"bash -lc \"apply_patch <<'EOF'\n{patch(body)}\nEOF\""
    assert _levels(ladder_keys(act("exec_command", cmd=line), BLIND)) == _levels(
        ladder_keys(tool(body), BLIND)
    )
    word = f"apply_patch '{patch(body)}'"
    assert _levels(ladder_keys(act("exec_command", cmd=word), BLIND)) == _levels(
        ladder_keys(tool(body), BLIND)
    )


@pytest.mark.parametrize(
    "line",
    [
        f"cd sub && apply_patch <<'EOF'\n{PATCH}\nEOF",
        f"cd /repo; apply_patch <<'EOF'\n{PATCH}\nEOF",
        f"apply_patch <<'EOF'\n{PATCH}\nEOF\nrm b.py",
        f"apply_patch <<'EOF' > log\n{PATCH}\nEOF",
        f"git apply <<'EOF'\n{PATCH}\nEOF",
        f"cat <<'EOF'\n{PATCH}\nEOF",
    ],
)
def test_what_does_more_or_something_else_is_no_patch_alone(line: str) -> None:
    known, alone = ladder_keys(act("exec_command", cmd=line), BLIND), ladder_keys(tool(BODY), BLIND)
    assert known.canonical != alone.canonical
    assert known.effect != alone.effect


def test_paths_of_a_patch_are_spelling() -> None:
    absolute = tool(BODY.replace("a.py", "/repo/a.py"))
    assert ladder_keys(absolute, BLIND).effect == ladder_keys(tool(BODY), BLIND).effect
    raw = Action("", (ToolCall("c", "apply_patch", PATCH),))
    assert ladder_keys(raw, BLIND).effect == ladder_keys(tool(BODY), BLIND).effect
    other = act("apply_patch", patch=PATCH)
    openhands = EnvironmentState("openhands", "/repo")
    assert ladder_keys(other, openhands).effect == ladder_keys(tool(BODY), BLIND).effect


def test_a_patch_that_removes_a_file_is_rm() -> None:
    removes = ladder_keys(tool("*** Delete File: a.py"), BLIND)
    for line in ("rm a.py", "cd /repo && rm a.py"):
        assert removes.effect == ladder_keys(act("exec_command", cmd=line), BLIND).effect
    assert removes.effect != ladder_keys(act("exec_command", cmd="rm b.py"), BLIND).effect
    assert removes.intent != ladder_keys(tool(BODY), BLIND).intent


def test_a_moved_file_is_another_edit() -> None:
    hunk = "@@\n-class A:\n+class C:"
    moved = [
        ladder_keys(tool(f"*** Update File: a.py\n*** Move to: {name}\n{hunk}"), SHOWN)
        for name in ("b.py", "c.py")
    ]
    stays = ladder_keys(tool(f"*** Update File: a.py\n{hunk}"), SHOWN)
    assert len({each.effect for each in (*moved, stays)}) == 3


def test_the_world_knows_what_a_patch_added_until_another_changes_it() -> None:
    added = (tool("*** Add File: n.py\n+x = 1\n+y = 2"), "Success.")
    update = patch("*** Update File: n.py\n@@\n-x = 1\n+x = 3")
    changed = (act("exec_command", cmd=f"apply_patch <<'EOF'\n{update}\nEOF"), "Success.")
    gone = (tool("*** Delete File: n.py"), "Success.")

    def text(*done: tuple[Action, str]) -> str | None:
        known = world(*done).text_of("/repo/n.py")
        return None if known is None else "\n".join(known.lines)

    assert text(added) == "x = 1\ny = 2"
    assert text(added, changed) is None
    assert text(added, gone) is None


def test_votes_for_another_place_of_the_file_are_no_agreement_with_the_student() -> None:
    hunk = "-        y = x\n+        y = z"
    one, other = (
        ladder_keys(tool(f"*** Update File: a.py\n@@ class {name}:\n{hunk}"), SHOWN) for name in ("A", "B")
    )
    votes = [ValidVote(teacher, teacher, other) for teacher in ("qwen", "zai", "deepseek")]
    assert label_of(votes, one, VotePolicy()).verdict == "dead_zone"
    assert label_of(votes, other, VotePolicy()).verdict == "agrees_with_student"
