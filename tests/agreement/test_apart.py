"""Calls that read alike and do other things are no one action, whichever harness they are made in."""

import json
from typing import Any

import pytest

from tracemill.agreement.equivalence.ladder import LEVELS, ActionKeys, ladder_keys
from tracemill.agreement.world.world_state import EnvironmentState
from tracemill.records.message import Action, ToolCall


def call(harness: str, tool: str, **arguments: Any) -> ActionKeys:
    return ladder_keys(
        Action("", (ToolCall("c", tool, json.dumps(arguments)),)), EnvironmentState(harness, "/repo")
    )


def line(command: str) -> ActionKeys:
    return call("claude_code", "Bash", command=command)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("echo /repo/a > f", "echo a > f"),
        ("echo ./a >> f", "echo a >> f"),
        ("printf /etc/ > f", "printf /etc > f"),
        ("sudo echo /repo/a > f", "sudo echo a > f"),
        ("grep -rn /repo/a src", "grep -rn a src"),
        ("git commit -m /repo/a", "git commit -m a"),
        ("grep foo *.py", "grep foo '*.py'"),
        ("grep -n foo src/*.py", 'grep -n foo "src/*.py"'),
        ("grep -e foo *.py", "grep -e foo '*.py'"),
        ("sed -i s/a/b/ *.py", "sed -i s/a/b/ '*.py'"),
        ("sed -i -e s/a/b/ *.py", "sed -i -e s/a/b/ '*.py'"),
        ("git add *.py", "git add '*.py'"),
        ("git checkout -- *.py", "git checkout -- '*.py'"),
        ("echo * > f", "echo '*' > f"),
        ("rsync a/ b", "rsync a b"),
        ("A=1 B=$A ./lamp", "B=$A A=1 ./lamp"),
        ("A=1 A=2 ./lamp", "A=2 A=1 ./lamp"),
        ("git log -1", "git log -- -1"),
        ("git add --cached", "git add --staged"),
        ("rsync -a /repo/a/ b", "rsync -a /repo/a b"),
        ("rsync -a /srv/a/ b", "rsync -a /srv/a b"),
        ("rsync -a ./a/ b", "rsync -a a b"),
    ],
)
def test_lines_apart_on_every_rung_but_intent(one: str, other: str) -> None:
    assert line(one).canonical != line(other).canonical
    assert line(one).effect != line(other).effect


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("git commit -m x", "git commit --amend -m x"),
        ("(cd /other && pytest a.py)", "pytest a.py"),
        ("git commit -m x", "git commit --dry-run -m x"),
        ("git apply x.patch", "git apply --check x.patch"),
    ],
)
def test_lines_apart_by_intent(one: str, other: str) -> None:
    assert line(one).intent != line(other).intent


def test_what_reads_a_patch_from_a_file_it_does_not_name_decides_nothing() -> None:
    assert not line("patch -p1 < a.patch").decisive
    assert line("git apply a.patch").decisive
    assert not any(deed.mutating for deed in line("git apply --check a.patch").effects)
    assert line("git apply -R a.patch").intent == line("git apply --reverse a.patch").intent


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("go test ./...", "go test -race ./..."),
        ("cp a b; sed -i s/x/y/ a", "sed -i s/x/y/ a; cp a b"),  # one reads what the other writes
    ],
)
def test_lines_apart_by_effect(one: str, other: str) -> None:
    assert line(one).effect != line(other).effect
    assert line(one).effect != line(other).effect


def test_a_count_of_context_lines_is_no_pattern() -> None:
    assert line("grep -A 3 foo /repo/a").effect == line("grep -A 3 foo a").effect
    assert line("grep -A 3 foo a").effect != line("grep -A 3 bar a").effect


@pytest.mark.parametrize(
    ("harness", "tool", "arguments", "more"),
    [
        ("claude_code", "LS", {"path": "/repo/src"}, {"ignore": ["*.o"]}),
        ("gemini_cli", "list_directory", {"dir_path": "/repo/src"}, {"ignore": ["*.o"]}),
        ("gemini_cli", "glob", {"pattern": "**/*.py"}, {"case_sensitive": True}),
        ("gemini_cli", "grep_search", {"pattern": "foo"}, {"fixed_strings": True}),
    ],
)
def test_an_argument_that_changes_what_is_found_is_another_effect(
    harness: str, tool: str, arguments: dict[str, Any], more: dict[str, Any]
) -> None:
    one, other = call(harness, tool, **arguments), call(harness, tool, **arguments, **more)
    assert one.effect != other.effect
    assert one.effect != other.effect


@pytest.mark.parametrize(
    ("harness", "one", "other"),
    [
        ("claude_code", ("BashOutput", {"bash_id": "1"}), ("KillShell", {"bash_id": "1"})),
        ("codex", ("wait_agent", {"target": "1"}), ("close_agent", {"target": "1"})),
        (
            "codex",
            ("write_stdin", {"session_id": 1, "chars": "y"}),
            ("write_stdin", {"session_id": 1, "chars": "n"}),
        ),
        (
            "gemini_cli",
            ("run_shell_command", {"command": "rm y", "directory": "x"}),
            ("run_shell_command", {"command": "rm y"}),
        ),
        (
            "claude_code",
            ("Bash", {"command": "npm test", "directory": "x"}),
            ("Bash", {"command": "npm test"}),
        ),
    ],
)
def test_calls_apart_by_intent(
    harness: str, one: tuple[str, dict[str, Any]], other: tuple[str, dict[str, Any]]
) -> None:
    assert call(harness, one[0], **one[1]).intent != call(harness, other[0], **other[1]).intent


def test_a_folder_named_beside_a_line_is_that_of_a_cd() -> None:
    beside = call("gemini_cli", "run_shell_command", command="rm y", directory="x")
    before = call("gemini_cli", "run_shell_command", command="cd x && rm y")
    assert beside.effect == before.effect
    assert beside.intent == before.intent


def test_a_multi_edit_of_other_edits_is_another_effect() -> None:
    edit = {"old_string": "a", "new_string": "b"}
    once = call("claude_code", "Edit", file_path="/repo/f", replace_all=False, **edit)
    twice = [edit, {"old_string": "c", "new_string": "d"}]
    every = [{**edit, "replace_all": True}]
    for other in (twice, every):
        assert once.effect != call("claude_code", "MultiEdit", file_path="/repo/f", edits=other).effect


def test_giving_up_is_another_end_than_being_done() -> None:
    done = call("openhands", "finish", message="It works.", task_completed="true")
    assert call("openhands", "finish", task_completed=True).canonical == done.canonical
    assert call("openhands", "finish", message="Done.").canonical == done.canonical == "finish"
    ends = [
        done,
        call("openhands", "finish", message="I cannot.", task_completed="false"),
        call("openhands", "finish", message="In part.", task_completed="partial"),
        call("swe_agent", "exit_forfeit"),
    ]
    assert call("openhands", "finish", task_completed=False).canonical == ends[1].canonical
    for level in LEVELS:
        assert len({end.at(level) for end in ends}) == len(ends)
    assert {end.action_class for end in ends} == {"finish"}
    submit, forfeit = call("swe_agent", "submit"), call("swe_agent", "exit_forfeit")
    assert submit.intent == "finish" == call("swe_agent", "bash", command="submit").intent
    assert forfeit.intent == "finish:forfeit" == call("swe_agent", "bash", command="exit_forfeit").intent


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("rm 'a*'", 'rm "a*"'),
        ("git diff 'HEAD~1'", "git diff HEAD~1"),
        ("grep -rn 'a.*b' src --include '*.py'", "grep -rn a.*b src --include *.py"),
        ("grep -A 3 'a.*b' f", 'grep -A 3 "a.*b" f'),
        ("sed -i 's/[a]/b/' f", 'sed -i "s/[a]/b/" f'),
        ("git add 'a*'", 'git add "a*"'),
        ("echo 'a*' > f", 'echo "a*" > f'),
        ("git commit -m 'Mend a*'", 'git commit -m "Mend a*"'),
    ],
)
def test_lines_that_name_a_path_in_other_words_are_one(one: str, other: str) -> None:
    assert line(one).canonical == line(other).canonical
