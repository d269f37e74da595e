"""Laws of canonical forms on lines of the shapes that agents write: a form is its own, and a rerun decides
the same, with empty caches, other objects, other hashes and in another order."""

import json
import os
import shlex
import subprocess
import sys

from hypothesis import given, settings
from hypothesis import strategies as st

from tracemill.agreement.equivalence.ladder import ladder_keys
from tracemill.agreement.shell.normal_form import PlacedCommand, place_commands, shell_normal_form
from tracemill.agreement.shell.pipelines import normal_pipeline
from tracemill.agreement.world.replay_context import environment_at, replay_context
from tracemill.agreement.world.world_state import EnvironmentState
from tracemill.harnesses.operations import find_call_operation
from tracemill.harnesses.shell.operations import (
    find_command_operation,
    simple_command_operation,
    unwrap_operation_command,
)
from tracemill.harnesses.shell.parse_line import parse_command
from tracemill.harnesses.shell.sql import sql_form
from tracemill.records.message import Action, Message, ToolCall, read_arguments
from tracemill.records.trace import Context, Step, Trace, TraceState

PATHS = st.sampled_from(
    ["a.py", "./src/b.py", "/repo/src/b.py", "/etc/hosts", "'my file.txt'", "src/", "*.c", "$F"]
)
PATTERNS = st.sampled_from(["foo", "'def f('", '"a b"', "'x\\|y'", "^import", "TODO"])
NUMBERS = st.integers(0, 40).map(str)
PARTS = st.one_of(
    st.builds(
        "{} {}".format,
        st.sampled_from(["cat", "nl -ba", "rm -rf", "ls -la", "wc -l", "touch", "sort -k2 -rn"]),
        PATHS,
    ),
    st.builds(
        "grep {} {} {}".format,
        st.sampled_from(["-rn", "-E", "-ic", "-A3", "--include='*.py' -r"]),
        PATTERNS,
        PATHS,
    ),
    st.builds("{} -n {} {}".format, st.sampled_from(["head", "tail"]), NUMBERS, PATHS),
    st.builds("{} -{}".format, st.sampled_from(["head", "tail"]), NUMBERS),
    st.builds("sed {} '{},{}p' {}".format, st.sampled_from(["-n", "-i"]), NUMBERS, NUMBERS, PATHS),
    st.builds(
        "find {} -name {} {}".format,
        PATHS,
        st.sampled_from(["'*.py'", "x"]),
        st.sampled_from(["", "-type f", "-exec rm -f {} \\;", "-delete"]),
    ),
    st.builds("cd {}".format, PATHS),
    st.builds("python3 -m pytest -q {} -k {}".format, PATHS, PATTERNS),
    st.builds(
        "git {}".format,
        st.sampled_from(["diff HEAD~1 -- a.py", "status", "commit -m 'a; b'", "--no-pager log -3"]),
    ),
    st.builds("X={} tar {} a.tgz -C {}".format, NUMBERS, st.sampled_from(["-xzf", "xvf", "-tvf"]), PATHS),
    st.builds("cp -Rv {} {}".format, PATHS, PATHS),
    st.sampled_from(
        [
            "true",
            "uniq",
            "sort",
            "xargs wc -l",
            "awk '{print $1}'",
            "for f in *; do",
            "done",
            'echo "$(date)"',
        ]
    ),
)
TAILS = st.sampled_from(["", " 2>&1", " > out.txt", " 2>/dev/null", " >> log", " || true"])
LINES = st.lists(
    st.tuples(st.sampled_from(["; ", " && ", " | ", " || ", "\n"]), PARTS, TAILS), min_size=1, max_size=5
).map(
    lambda parts: "".join(
        f"{joiner if n else ''}{part}{tail}" for n, (joiner, part, tail) in enumerate(parts)
    )
)
CACHED = (
    find_call_operation,
    find_command_operation,
    parse_command,
    place_commands,
    read_arguments,
    shell_normal_form,
    simple_command_operation,
    unwrap_operation_command,
)


def written(placed: tuple[PlacedCommand, ...]) -> str:
    """Commands in normal form as a line that goes to the folder of each."""
    parts: list[str] = []
    for each in placed:
        command = each.command
        words = [*command.keywords, *command.assignments, *map(quoted, command.argv)]
        told = [f"{operator} {quoted(target)}" for operator, target in command.redirects]
        parts.append(f"{command.joiner if parts else ''} {' '.join([*words, *told])}")
    return " ".join(parts)


def quoted(word: str) -> str:
    """A word as it was, where the reader leaves quotes in place; else in quotes where it needs them."""
    as_it_is = "$" in word or "`" in word or word in ("*.c", "{}")
    return word if as_it_is else shlex.quote(word)


@settings(max_examples=300, deadline=None)
@given(LINES)
def test_the_normal_form_of_a_line_is_its_own(line: str) -> None:
    placed = place_commands(line, "/repo")
    if placed is None or len({each.folder for each in placed}) > 1:
        return
    left_in = (("cd",), ("true",), ("cat",))  # with redirects these are no idle commands
    if any(each.command.argv[:1] in left_in for each in placed):
        return
    folder = placed[0].folder
    assert place_commands(written(placed), folder) == placed


def world_with(lines: list[str]) -> EnvironmentState:
    """A world in which each line was run before."""
    messages = [Message("user", "mend a.py")]
    for number, line in enumerate(lines):
        call = ToolCall(f"s{number}", "Bash", json.dumps({"command": line}))
        messages += [Message("assistant", "", (call,)), Message("tool", "1\n2", tool_call_id=call.id)]
    cut = len(messages)
    context = Context(0, (*messages, Message("assistant", "Done.")), (Step(0, cut, cwd="/repo"),))
    trace = Trace("t", "claude_code", "d", "claude_code", (context,))
    return environment_at(
        TraceState(trace, context, context.steps[0]), (), replay_context(context, "claude_code")
    )


def bash(line: str) -> Action:
    return Action("", (ToolCall("c", "Bash", json.dumps({"command": line})),))


@settings(max_examples=150, deadline=None)
@given(st.lists(LINES, min_size=2, max_size=4))
def test_a_rerun_gives_the_same_keys(lines: list[str]) -> None:
    world = world_with(lines)
    once = [ladder_keys(bash(line), world) for line in lines]
    for cached in CACHED:
        getattr(cached, "cache_clear", lambda: None)()
    again = world_with(json.loads(json.dumps(lines)))
    assert [ladder_keys(bash(line), again) for line in reversed(lines)] == once[::-1]


_CHILD = """
import json, sys
from tracemill.agreement.equivalence.ladder import ladder_keys
from tracemill.agreement.world.world_state import EnvironmentState
from tracemill.records.message import Action, ToolCall
for name, arguments in json.load(sys.stdin):
    call = ToolCall("c", name, json.dumps(arguments))
    print(ladder_keys(Action("", (call,)), EnvironmentState("claude_code", "/repo")))
"""


def test_keys_do_not_depend_on_the_hashes_of_a_process() -> None:
    calls = [
        ("Bash", {"command": "grep -rniwl 'a|b' src tests --include='*.py' --exclude-dir=x | sort | uniq"}),
        ("Bash", {"command": "find . -type f -size +1k -name '*.o' -mtime 2 -exec rm -f {} +"}),
        ("Bash", {"command": "tar xvzf a.tgz; (cd x && ls -la); pytest b.py a.py -k 'c d' -q"}),
        ("Grep", {"pattern": "x", "glob": "*.py", "-i": True, "multiline": True, "type": "py"}),
        ("sql", {"query": "SELECT b, a FROM t JOIN u ON t.x = u.x WHERE c IN (3, 1, 2) OR d = 1 GROUP BY b"}),
    ]
    told = [
        subprocess.run(
            [sys.executable, "-c", _CHILD],
            input=json.dumps(calls),
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    ]
    lines = [each.replace("frozenset", "") for each in told]
    levels = [[line.partition(", effects=")[0] for line in each.splitlines()] for each in lines]
    assert len(levels[0]) == len(calls)
    assert levels[0] == levels[1]


QUERIES = st.builds(
    "SELECT {} FROM {} {} {}".format,
    st.sampled_from(["a, b", "T1.b, T1.a", "COUNT(DISTINCT a)", "*", "max(a) AS m"]),
    st.sampled_from(["t AS T1", "t T1 JOIN u AS T2 ON T1.x = T2.x", "db.t AS T1"]),
    st.sampled_from(
        ["", "WHERE T1.a IN (2, 1)", "where T1.a = 'X' or T1.a = 'y'", "WHERE b > (SELECT AVG(b) FROM t)"]
    ),
    st.sampled_from(
        ["", "GROUP BY T1.a HAVING COUNT(*) > 1", "ORDER BY a DESC LIMIT 1;", "UNION SELECT c FROM v"]
    ),
)


@settings(max_examples=150, deadline=None)
@given(QUERIES)
def test_the_normal_form_of_a_statement_is_its_own(query: str) -> None:
    once = sql_form(query)
    assert once is not None
    again = sql_form(once.text)
    assert again is not None
    assert (again.text, again.tables) == (once.text, once.tables)


@settings(max_examples=200, deadline=None)
@given(LINES)
def test_a_normal_pipeline_is_its_own(line: str) -> None:
    placed = place_commands(line, "/repo")
    for each in placed or ():
        part = (each.folder, each.command.argv, each.command.assignments, each.command.redirects, None)
        once = normal_pipeline([part])
        if "then" not in once[0][1]:
            assert normal_pipeline(once) == once
