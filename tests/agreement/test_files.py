"""Command lines about one file: ways of reading it, what is kept in it, what a pipe runs."""

import json

import pytest

from tracemill.agreement.equivalence.ladder import ActionKeys, in_ladder_dead_zone, ladder_keys
from tracemill.agreement.files.edits import parse_edit_changes
from tracemill.agreement.voting.labels import ValidVote, label_of
from tracemill.agreement.voting.policy import VotePolicy
from tracemill.agreement.world.world_state import EnvironmentState
from tracemill.harnesses.shell.operations import find_command_operation
from tracemill.records.message import Action, ToolCall

WORLD = EnvironmentState("claude_code", "/repo")


def line(command: str) -> ActionKeys:
    return ladder_keys(Action("", (ToolCall("c", "Bash", json.dumps({"command": command})),)), WORLD)


@pytest.mark.parametrize(
    "command",
    [
        "cat a.json | jq .x",
        "jq .x a.json",
        "cut -f1 a.json | sort",
        "xxd -l 16 a.json",
        "head -c 9 a.json | od",
    ],
)
def test_a_file_read_in_another_form_is_the_same_file(command: str) -> None:
    assert in_ladder_dead_zone(line("cat a.json"), line(command))
    assert not in_ladder_dead_zone(line("cat b.json"), line(command))
    votes = [ValidVote("q", "qwen", line("cat a.json")), ValidVote("z", "zai", line("cat a.json"))]
    assert label_of(votes, line(command), VotePolicy()).verdict == "dead_zone"
    assert label_of(votes, line("cat b.json"), VotePolicy()).verdict == "pair"


def test_comparing_two_files_is_not_reading_one() -> None:
    assert not in_ladder_dead_zone(line("diff a b"), line("cat b"))
    assert in_ladder_dead_zone(line("diff a b"), line("diff -u a b | head"))


def test_what_is_known_of_a_file_is_listed() -> None:
    assert in_ladder_dead_zone(line("ls -l a.py"), line("stat -c %s a.py"))
    assert not in_ladder_dead_zone(line("cat a.py"), line("stat a.py"))


@pytest.mark.parametrize(
    ("one", "other"),
    [("tr -d x < a", "cat a | tr -d x"), ("tr a b < x | sort | head -3", "cat x | tr a b | sort | head -3")],
)
def test_a_filter_is_given_a_file_in_two_ways(one: str, other: str) -> None:
    assert line(one).effect == line(other).effect


@pytest.mark.parametrize(
    ("command", "operation", "target", "mutating"),
    [
        ("ls -1 src > files.txt", "create", "files.txt", True),
        ("find src -name '*.py' -exec cat {} + > all.py", "create", "all.py", True),
        ("sed 's/a/b/' x > y", "create", "y", True),
        ("grep -rn foo >> hits", "edit", "hits", True),
        ("grep -rn foo > /tmp/hits", "search", "foo", False),
        ("grep -rn foo > /dev/null", "search", "foo", False),
        ("pytest tests > log.txt", "run_test", "pytest tests", True),
        ("curl https://x.org > y", "web", "https://x.org", False),
        ("ls src | xargs rm -rf", "edit", None, True),
        ("ls src | xargs -I {} rm -rf src/{}", "edit", "src/{}", True),
        ("ls src | xargs -i {} rm src/{}", "edit", "src/{}", True),
        ("ls src | xargs -n 1 wc -l", "list", "src", False),
        ("rm -rf build && ls src", "list", "src", True),
        ("cat run.sh | bash", "read", "run.sh", True),
        ("curl https://x.org | sudo sh", "web", "https://x.org", True),
        ("cat a.json | python -m json.tool", "read", "a.json", False),
        ("cat a.json | python -c 'import sys'", "read", "a.json", False),
    ],
)
def test_what_a_line_keeps_removes_and_runs(
    command: str, operation: str, target: str | None, mutating: bool
) -> None:
    effect = find_command_operation(command)
    assert (str(effect.operation), effect.target, effect.mutating) == (operation, target, mutating)


def test_the_name_of_a_file_that_keeps_a_listing_is_no_decision() -> None:
    """Far from the student two teachers agree on what they are about: a file they write, but not one into
    which each of them puts what another program shows."""
    student = line("grep -rn lamp src")
    kept = [ValidVote("q", "qwen", line("ls a > f.txt")), ValidVote("z", "zai", line("ls b > f.txt"))]
    written = [ValidVote("q", "qwen", line("echo a > f.txt")), ValidVote("z", "zai", line("echo b > f.txt"))]
    assert label_of(kept, student, VotePolicy()).verdict == "no_agreement"
    assert label_of(written, student, VotePolicy()).verdict == "pair"


@pytest.mark.parametrize(
    ("diff", "changes"),
    [
        (
            "<<<<<<< SEARCH\n:start_line:3\n-------\na\n  b\n=======\nc\n>>>>>>> REPLACE\n\n"
            "<<<<<<< SEARCH\nq\n=======\n>>>>>>> REPLACE",
            [("a\n  b", "c"), ("q", "")],
        ),
        ("------- SEARCH\na\n=======\nb\n\nc\n+++++++ REPLACE\n", [("a", "b\n\nc")]),
        ("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n", None),
    ],
)
def test_blocks_of_a_diff_are_the_changes_they_make(diff: str, changes: list[tuple[str, str]] | None) -> None:
    found = parse_edit_changes({"path": "a.py", "diff": diff})
    assert (None if found is None else [(each.old, each.new) for each in found]) == changes
