"""Command lines that read alike and do other things, and such as do the same in other words."""

import json

import pytest

from tracemill.agreement.equivalence.ladder import ActionKeys, ladder_keys
from tracemill.agreement.voting.labels import ValidVote, label_of
from tracemill.agreement.voting.policy import policy_named
from tracemill.agreement.world.world_state import EnvironmentState
from tracemill.records.message import Action, ToolCall

WORLD = EnvironmentState("claude_code", "/repo")


def line(command: str) -> ActionKeys:
    return ladder_keys(Action("", (ToolCall("c", "Bash", json.dumps({"command": command})),)), WORLD)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("rm 'a*'", "rm a*"),
        ("rm a\\*", "rm a*"),
        ("rm '{a,b}'", "rm {a,b}"),
        ("rm '~/x'", "rm ~/x"),
        ("echo hi > 'a*'", "echo hi > a*"),
        ('rm "\\$x"', 'rm "$x"'),
        ("echo $'a\\nb' > f", "echo 'a\\nb' > f"),
        ("cat > f <<EOF\n$X\nEOF", "cat > f <<'EOF'\n$X\nEOF"),
        ("cat > f <<-EOF\n\tx\nEOF", "cat > f <<EOF\n\tx\nEOF"),
        ("cd x && rm y", "cd x || rm y"),
        ("cd x; rm y", "cd x & rm y"),
        ("npm start &", "npm start"),
        ("make > log 2>&1", "make > log"),
        ("cat a b", "cat b"),
        ("cat lamp.py > /dev/null", "cat lamp.py"),
        ("grep -f words x", "grep words x"),
        ("grep -q foo x", "grep foo x"),
        ("rg -f words", "rg words"),
        ("rg -T py foo", "rg py foo"),
        ("rg -r bar foo", "rg bar foo"),
        ("rg -S foo", "rg -s foo"),
        ("rg -uu foo", "rg foo"),
        ("rg -U foo", "rg foo"),
        ("find . -exec mv {} x \\;", "find . -exec mv x {} \\;"),
        ("find . | xargs -I{} mv {} x", "find . | xargs -I{} mv x {}"),
        ("cargo test foo", "cargo test -p foo"),
        ("cargo test -p foo", "cargo test -p bar"),
        ("cd src && rm y", "rm y"),
        ("cd $X && rm y", "rm y"),
        ("mkdir a a/b", "mkdir a/b a"),
        ("touch -r a b", "touch b a"),
        ("cat a b > c", "cat a; cat b"),
        ("sed -e s/a/b/ -e s/c/d/ f", "sed -e s/c/d/ -e s/a/b/ f"),
        ("sed f -e p", "sed f p"),
    ],
)
def test_lines_that_do_other_things_have_another_effect(one: str, other: str) -> None:
    assert line(one).effect != line(other).effect


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("rg -S foo", "rg -i foo"),
        ("rg -S Foo", "rg Foo"),
        ("grep -rnA 3 foo src", "grep -rn -A 3 foo src"),
        ("find . -name '*.py' -exec rm '{}' \\;", "find . -name '*.py' | xargs rm"),
        ("find . -name a | xargs -I% cp % x", "find . -name a -exec cp {} x \\;"),
        ("cat > f <<'EOF'\nx\nEOF", "cat > f <<EOF\nx\nEOF"),
        ("cargo test -p foo", "cargo test --package foo"),
    ],
)
def test_the_same_in_other_words_has_one_effect(one: str, other: str) -> None:
    assert line(one).effect == line(other).effect


@pytest.mark.parametrize(
    ("one", "other", "verdict"),
    [
        ("git checkout -- a.py", "git checkout -- b.py", "no_agreement"),
        ("git stash", "git stash list", "no_agreement"),
        ("rm a.py", "sed -i s/a/b/ a.py", "no_agreement"),
        ("chmod +x a.py", "echo x >> a.py", "no_agreement"),
        ("mv a.py b.py", "sed -i s/a/b/ b.py", "no_agreement"),
        ("rm a.py", "rm -f a.py", "pair"),
        ("git tag", "git tag v1", "no_agreement"),
        ("git reset", "git reset --hard", "no_agreement"),
        ("git commit -m 'Mend it'", "git commit -m 'Mend the lamp'", "pair"),
        ("git diff", "git diff --stat", "pair"),
        ("F=a.py; rm $F", "F=b.py; rm $F", "no_agreement"),
        ("F=a.py; cat $F", "F=b.py; cat $F", "no_agreement"),
        ("cd ~ && rm y", "rm y", "no_agreement"),
        ('cd "$(pwd)/x" && rm y', "rm y", "no_agreement"),
        ("find . -name a -exec rm {} +", "find . -type f -name a -exec rm {} +", "pair"),
        ("cat a | xargs rm", "cat b | xargs rm", "no_agreement"),
        ("pytest -k foo", "pytest -k bar", "no_agreement"),
        ("cd a && npm test", "cd b && npm test", "no_agreement"),
        ("pytest tests/a.py -k foo", "pytest tests/a.py", "pair"),
    ],
)
def test_far_from_the_student_an_intent_says_what_is_changed(one: str, other: str, verdict: str) -> None:
    votes = [ValidVote("a", "qwen", line(one)), ValidVote("b", "glm", line(other))]
    student = ladder_keys(Action("It is mended."), WORLD)
    assert label_of(votes, student, policy_named("default")).verdict == verdict


def test_a_search_whose_hits_are_changed_is_no_search() -> None:
    for command in ("grep -rl foo . | xargs sed -i s/foo/bar/", "grep -rl foo . | xargs rm"):
        assert [deed.mutating for deed in line(command).effects] == [True]
        assert line(command).action_class == "edit"
