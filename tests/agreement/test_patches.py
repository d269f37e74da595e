"""Patches: read and applied as Codex does, and one action whether through the tool or on a command line."""

import json
from typing import Any

import pytest

from tracemill.agreement.equivalence.ladder import ActionKeys, in_ladder_dead_zone, ladder_keys
from tracemill.agreement.files.edits import parse_patch_edits
from tracemill.agreement.files.file_text import FilePiece, FileText
from tracemill.agreement.files.hunks import apply_hunks
from tracemill.agreement.voting.labels import ValidVote, label_of
from tracemill.agreement.voting.policy import Policy
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


def after(action: Action, there: EnvironmentState = SHOWN) -> list[str]:
    """The lines of the one file that an action changes, as it leaves them."""
    (deed,) = ladder_keys(action, there).effects
    assert deed.proven
    assert deed.after is not None
    return deed.after.lines


def test_a_hunk_goes_behind_its_anchors() -> None:
    hunk = "-        y = x\n+        y = z"
    first = after(tool(f"*** Update File: a.py\n@@ class A:\n{hunk}"))
    second = after(tool(f"*** Update File: a.py\n@@ class B:\n{hunk}"))
    nested = after(tool(f"*** Update File: a.py\n@@ class B:\n@@     def f(x):\n{hunk}"))
    assert first == [*TEXT[:2], "        y = z", *TEXT[3:]]
    assert second == nested == [*TEXT[:6], "        y = z", TEXT[7]]
    assert after(tool(f"*** Update File: a.py\n@@\n{hunk}")) == first
    assert after(
        tool("*** Update File: a.py\n@@\n         y = x\n-        return y\n+\n*** End of File")
    ) == [
        *TEXT[:7],
        "",
    ]


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


def test_a_hunk_by_its_anchor_or_by_more_lines_is_the_same_where_the_file_was_shown() -> None:
    short = tool("*** Update File: a.py\n@@ class B:\n-        y = x\n+        y = z")
    long = tool(
        "*** Update File: a.py\n@@\n class B:\n     def f(x):\n"
        "-        y = x\n+        y = z\n         return y"
    )
    assert ladder_keys(short, SHOWN).effect == ladder_keys(long, SHOWN).effect
    assert ladder_keys(short, BLIND).effect != ladder_keys(long, BLIND).effect


def test_a_place_that_is_not_shown_or_not_the_only_one_proves_nothing() -> None:
    part = world((act("exec_command", cmd="sed -n 2,8p a.py"), "\n".join(TEXT[1:])))
    double = ladder_keys(tool("*** Update File: a.py\n@@\n-        y = x\n+        y = z"), part)
    unseen = ladder_keys(tool("*** Update File: a.py\n@@ class A:\n-    def f(x):\n+    def g(x):"), part)
    once = ladder_keys(tool("*** Update File: a.py\n@@ class B:\n-        y = x\n+        y = z"), part)
    absent = ladder_keys(tool("*** Update File: a.py\n@@ class C:\n-        y = x\n+        y = z"), SHOWN)
    assert [each.effects[0].proven for each in (double, unseen, once, absent)] == [False, False, True, False]


@pytest.mark.parametrize(
    ("lines", "hunks", "wanted"),
    [
        (["a", "b", "a"], [Hunk((), ("a",), ("x",)), Hunk((), ("a",), ("y",))], ["x", "b", "y"]),
        (["a", "b", "a"], [Hunk((), ("a",), ("x",), True)], ["a", "b", "x"]),
        (["a"], [Hunk((), (), ("b",)), Hunk((), (), ("c",))], ["a", "b", "c"]),
        (["a", "b", ""], [Hunk((), ("b", ""), ("c", ""))], ["a", "c"]),
        (["  a  "], [Hunk((), ("a",), ("b",))], ["b"]),
        (["x \u2013 y"], [Hunk((), ("x - y",), ("z",))], ["z"]),
        (["a"], [Hunk((), ("b",), ("c",))], None),
        (["a"], [Hunk(("a",), (), ("c",))], None),
        (["a", "b"], [Hunk((), ("b",), ("c",)), Hunk((), ("a",), ("d",))], None),
    ],
)
def test_where_hunks_go(lines: list[str], hunks: list[Hunk], wanted: list[str] | None) -> None:
    found = apply_hunks(lines, hunks)
    assert (None if found is None else list(found)) == wanted


def test_a_patch_changes_the_parts_of_a_file_that_are_known() -> None:
    known = FileText((FilePiece(1, ("a", "b")), FilePiece(9, ("c", "d"))), 12)
    changes = parse_patch_edits("*** Update File: x\n@@ a\n-b\n+B\n+B2\n@@ c\n-d\n+D")[0][2]
    changed = known.changed(changes)
    assert changed == FileText((FilePiece(1, ("a", "B", "B2")), FilePiece(10, ("c", "D"))), 13)
    assert known.changed(parse_patch_edits("*** Update File: x\n@@\n-e\n+f")[0][2]) is None


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
    return known.canonical, known.effect, known.intent, known.action_class


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
    assert ladder_keys(absolute, BLIND).canonical == ladder_keys(tool(BODY), BLIND).canonical
    raw = Action("", (ToolCall("c", "apply_patch", PATCH),))
    assert ladder_keys(raw, BLIND).canonical == ladder_keys(tool(BODY), BLIND).canonical
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


def test_the_world_goes_on_from_what_patches_left() -> None:
    added = (tool("*** Add File: n.py\n+x = 1\n+y = 2"), "Success.")
    update = patch("*** Update File: n.py\n@@\n-x = 1\n+x = 3")
    changed = (act("exec_command", cmd=f"apply_patch <<'EOF'\n{update}\nEOF"), "Success.")
    gone = (tool("*** Delete File: n.py"), "Success.")

    def text(*done: tuple[Action, str]) -> str | None:
        known = world(*done).text_of("/repo/n.py")
        return None if known is None else known.text

    assert text(added) == "x = 1\ny = 2"
    assert text(added, changed) == "x = 3\ny = 2"
    assert text(added, changed, gone) is None


def test_the_head_that_codex_puts_before_output_is_no_line_of_a_file() -> None:
    head = (
        "Chunk ID: 1f\nWall time: 0.1 seconds\nProcess exited with code 0\nOriginal token count: 9\nOutput:\n"
    )
    there = world((act("exec_command", cmd="cat a.py"), head + "\n".join(TEXT)))
    assert there.text_of("/repo/a.py") == SHOWN.text_of("/repo/a.py")


def test_votes_for_another_place_of_the_file_are_no_agreement_with_the_student() -> None:
    hunk = "-        y = x\n+        y = z"
    one, other = (
        ladder_keys(tool(f"*** Update File: a.py\n@@ class {name}:\n{hunk}"), SHOWN) for name in ("A", "B")
    )
    votes = [ValidVote(teacher, teacher, other) for teacher in ("qwen", "zai", "deepseek")]
    assert label_of(votes, one, Policy()).verdict == "dead_zone"
    assert label_of(votes, other, Policy()).verdict == "agrees_with_student"
