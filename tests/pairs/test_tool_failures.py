"""Why calls of several agents failed, by the words of their tools and shells."""

import json
from typing import Any

import pytest
from made_sessions import bad, ok, session

from tracemill.harnesses.agents.registry import harness_for
from tracemill.harnesses.core.vocabulary import Operation
from tracemill.pairs.failure_causes import FailureCause, find_failure_cause
from tracemill.pairs.hindsight import NO_FIX, hindsight_pairs
from tracemill.records.message import ErrorKind, Message, ToolCall
from tracemill.records.pair import DPOPair
from tracemill.records.trace import Trace


def cause(
    harness: str, name: str, text: str, operation: Operation = Operation.EDIT, failed: bool = True
) -> FailureCause | None:
    kind = ErrorKind.TOOL_ERROR if failed else None
    result = Message("tool", text, (), "c1", name, failed, kind)
    return find_failure_cause(ToolCall("c1", name, "{}"), result, operation, harness_for(harness))


def only(trace: Trace) -> DPOPair:
    pairs, reasons = hindsight_pairs(trace)
    assert len(pairs) == 1, reasons
    return pairs[0]


@pytest.mark.parametrize(
    ("harness", "name", "text"),
    [
        ("gemini_cli", "replace", "Failed to edit, 0 occurrences found for old_string in /r/a.py."),
        ("gemini_cli", "replace", "Failed to edit, could not find the string to replace."),
        ("gemini_cli", "replace", "Error: Failed to edit, expected 1 occurrence(s) but found 3."),
        ("pi", "edit", "Could not find edits[2] in a.py. The oldText must match exactly."),
        ("pi", "edit", "Found 2 occurrences of edits[0] in a.py. Each oldText must be unique."),
        (
            "opencode",
            "apply_patch",
            "apply_patch verification failed: Error: Failed to find expected lines in a",
        ),
    ],
)
def test_a_text_that_cannot_be_replaced(harness: str, name: str, text: str) -> None:
    assert cause(harness, name, text) == FailureCause.TEXT_ABSENT


@pytest.mark.parametrize(
    ("harness", "name", "text"),
    [
        ("opencode", "edit", "No changes to apply: oldString and newString are identical."),
        ("claude_code", "Edit", "No changes to make: old_string and new_string are exactly the same."),
        ("pi", "edit", "No changes made to a.py. The replacement produced identical content."),
    ],
)
def test_an_edit_that_changes_nothing_has_wrong_arguments(harness: str, name: str, text: str) -> None:
    assert cause(harness, name, text) == FailureCause.ARGUMENTS


@pytest.mark.parametrize(
    ("harness", "name", "text"),
    [
        ("pi", "read", "ENOENT: no such file or directory, access '/r/core.js'"),
        ("pi", "grep", "Path not found: /r/node_modules/core"),
        ("gemini_cli", "read_file", "File not found: /r/core.py"),
    ],
)
def test_a_path_that_is_not_there(harness: str, name: str, text: str) -> None:
    assert cause(harness, name, text, Operation.READ) == FailureCause.PATH


@pytest.mark.parametrize(
    "text",
    [
        "'head' is not recognized as an internal or external command,\noperable program or batch file.",
        "head : The term 'head' is not recognized as the name of a cmdlet, function, script file.",
        "At line:1 char:8\n+ cd web && npm test\n+        ~~\nThe token '&&' is not a valid separator.",
        "Get-Content : Cannot find path 'C:\\r\\a.txt' because it does not exist.",
        "The system cannot find the file specified.",
        "accepts at most 1 arg(s), received 2",
        "unknown shorthand flag: 'q' in -q",
        "error: unexpected argument '--brief' found",
        "python: can't open file '/r/a.py': [Errno 2] No such file or directory",
        "  File \"<string>\", line 1\n    print(1\n         ^\nSyntaxError: '(' was never closed",
        "[eval]:1\nload(\n     ^\nSyntaxError: Unexpected end of input\n    at node:vm",
    ],
)
def test_a_command_that_is_a_mistake(text: str) -> None:
    assert cause("opencode", "bash", text, Operation.RUN) == FailureCause.COMMAND


@pytest.mark.parametrize(
    "text",
    [
        '  File "/r/garden/beds.py", line 3\n    def water(\nSyntaxError: unexpected EOF',
        "Traceback (most recent call last):\n  File \"<string>\", line 1, in <module>\nKeyError: 'edges'",
        "At line:1 char:1\n+ npm test\n+ ~~~\n2 tests failed",
        "HTTP 000",
    ],
)
def test_what_the_code_did_is_no_mistake_of_the_command(text: str) -> None:
    assert cause("opencode", "bash", text, Operation.RUN) is None


def gemini(output: str, code: int, more: str = "") -> str:
    return (
        f"Command: cat a.py <<'END'\nDirectory: x\nEND\nDirectory: (root)\nOutput: {output}{more}\n"
        f"Error: (none)\nExit Code: {code}\nSignal: 0\nBackground PIDs: (none)\nProcess Group PGID: 26593"
    )


@pytest.mark.parametrize(
    "text",
    [
        gemini("a\nb\nc\nd", 127, "\nStderr: bash: ponder: command not found"),
        gemini("bash: line 1: ponder: command not found", 127),
        "Output: bash: line 1: ponder: command not found\nExit Code: 127\nProcess Group PGID: 7",
    ],
)
def test_a_mistake_is_found_in_the_frame_of_gemini(text: str) -> None:
    assert cause("gemini_cli", "run_shell_command", text, Operation.RUN) == FailureCause.COMMAND
    tests = gemini("1 failed, 2 passed", 1)
    assert cause("gemini_cli", "run_shell_command", tests, Operation.RUN_TEST) is None


@pytest.mark.parametrize(
    ("harness", "name", "text"),
    [
        ("gemini_cli", "run_shell_command", gemini("(empty)", 1)),
        ("pi", "bash", "(no output)\n\nCommand exited with code 1"),
        ("pi", "bash", "Command exited with code 1"),
        (
            "cline",
            "execute_command",
            "[execute_command for 'rg x\nrg y'] Result:\nCommand failed with exit code 1.",
        ),
    ],
)
def test_a_search_without_a_hit(harness: str, name: str, text: str) -> None:
    assert cause(harness, name, text, Operation.SEARCH) == FailureCause.PATTERN
    assert cause(harness, name, text, Operation.RUN) is None


def test_a_mistake_is_found_behind_a_command_of_several_lines() -> None:
    head = "[execute_command for 'cd a\nlist -q'] Result:\nCommand failed with exit code 2.\nOutput:\n"
    text = head + "list: illegal option -- q"
    assert cause("cline", "execute_command", text, Operation.LIST) == FailureCause.COMMAND


def test_a_path_is_put_right_in_the_arguments_of_each_agent() -> None:
    for harness, name, argument in (
        ("gemini_cli", "list_directory", "dir_path"),
        ("opencode", "read", "filePath"),
        ("cursor", "read_file", "target_file"),
    ):
        failed = bad(name, "File not found: /repo/src/main.py", **{argument: "/repo/src/main.py"})
        read = ok(name, "x = 1", **{argument: "/repo/src/app/main.py"})
        pair = only(session(failed, read, harness=harness))
        assert (
            pair.evidence == f"{pair.rejected_operation} failed (the path does not exist), fixed 1 step later"
        )
        assert list(json.loads(pair.chosen[0].tool_calls[0].arguments)) == [argument]


def test_other_work_behind_the_same_first_commands_is_no_fix() -> None:
    start = "kill -9 71; sleep 1 && cd /repo/web && rm -rf .next && "
    text = "error: unknown option '--no-turbopack'"
    failed = bad("Bash", text, ErrorKind.EXIT_CODE, command=f"{start}npx next dev --no-turbopack --port 3001")
    other = ok("Bash", "built", command=f"{start}npx next build | tail -20")
    assert hindsight_pairs(session(failed, other)) == ([], {NO_FIX: 1})
    right = ok("Bash", "ready", command=f"{start}npx next dev --port 3001")
    said = "run failed (\"error: unknown option '--no-turbopack'\"), fixed 1 step later"
    assert only(session(failed, right)).evidence == said


@pytest.mark.parametrize(
    ("later", "fixes"),
    [
        ("pip3 install 'beds[soil]' | tail -5", True),
        ("pip3 install beds | tail -5", False),
        ("pipx install 'beds[soil]' | tail -5", False),
        ("pip3 install 'beds[soil]'", False),
    ],
)
def test_the_same_command_by_another_version_of_the_program_is_a_fix(later: str, fixes: bool) -> None:
    text = "zsh:1: command not found: pip"
    failed = bad("bash", text, ErrorKind.EXIT_CODE, command="pip install 'beds[soil]' | tail -5")
    pairs, _ = hindsight_pairs(session(failed, ok("bash", "done", command=later), harness="opencode"))
    assert bool(pairs) is fixes


def test_an_install_that_pip_refuses_is_no_fix() -> None:
    refused = "note: You can override this.\nhint: See PEP 668 for the detailed specification.\n"
    assert cause("opencode", "bash", refused, Operation.RUN, failed=False) == FailureCause.COMMAND
    text = "zsh:1: command not found: pip"
    failed = bad("bash", text, ErrorKind.EXIT_CODE, command="pip install beds | tail -5")
    again = ok("bash", refused, command="pip3 install beds | tail -5")
    assert hindsight_pairs(session(failed, again, harness="opencode"))[0] == []


def patch(*hunks: str) -> dict[str, Any]:
    lines = "\n".join(f"@@\n{hunk}" for hunk in hunks)
    return {"input": f"*** Begin Patch\n*** Update File: /repo/beds.py\n{lines}\n*** End Patch"}


def test_the_rest_of_a_fix_that_came_in_two_edits_is_no_fix() -> None:
    field, use = " depth = 3\n+water = 1", " beds = 2\n+first = water\n+second = water\n+third = water"
    read = ok("exec_command", "depth = 3\nbeds = 2", cmd="cat beds.py")
    absent = "apply_patch verification failed: Failed to find expected lines in /repo/beds.py:\ndepth = 4"
    failed = bad("apply_patch", absent, **patch(field.replace("3", "4"), use))
    parts = [ok("apply_patch", "Success", **patch(part)) for part in (field, use)]
    assert hindsight_pairs(session(read, failed, *parts, harness="codex")) == ([], {NO_FIX: 1})
    whole = ok("apply_patch", "Success", **patch(field, use))
    assert only(session(read, failed, whole, harness="codex")).chosen_operation == "edit"
