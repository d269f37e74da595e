"""Hindsight pairs: which failures make one, what is in it, and why others make none."""

import json
import os
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from made_sessions import bad, ok, session

from tracemill.ingesters.discover import discover
from tracemill.ingesters.read_source import ingest_source
from tracemill.pairs.hindsight import NO_FIX, NOT_CALL, NOT_POSSIBLE, UNCHANGED, hindsight_pairs
from tracemill.records.message import ErrorKind, Message
from tracemill.records.pair import DPOPair
from tracemill.records.trace import Trace

REAL = os.environ.get("TRACEMILL_REAL_TRACES")
NOT_READ = "<tool_use_error>File has not been read yet. Read it first before writing to it.</tool_use_error>"
ABSENT = "<tool_use_error>String to replace not found in file.\nString: x = 2</tool_use_error>"


def edit(old: str = "x = 2", new: str = "x = 3") -> dict[str, Any]:
    return {"file_path": "/repo/src/app/main.py", "old_string": old, "new_string": new}


def only(trace: Trace) -> DPOPair:
    pairs, reasons = hindsight_pairs(trace)
    assert len(pairs) == 1, reasons
    return pairs[0]


def why(trace: Trace) -> dict[str, int]:
    pairs, reasons = hindsight_pairs(trace)
    assert pairs == []
    return dict(reasons)


def names(pair: DPOPair) -> tuple[list[str], list[str]]:
    return [c.name for c in pair.rejected[0].tool_calls], [c.name for c in pair.chosen[0].tool_calls]


def test_an_edit_of_an_unread_file_is_mended_by_reading_it() -> None:
    read = ok("Read", "     1\u2192x = 2", file_path="/repo/src/app/main.py")
    pair = only(session(bad("Edit", NOT_READ, **edit()), read, ok("Edit", **edit())))
    assert names(pair) == (["Edit"], ["Read"])
    assert (pair.rejected_operation, pair.chosen_operation) == ("edit", "read")
    assert pair.evidence == "edit failed (the file had not been read), fixed 1 step later"
    assert pair.rejected[0].content == pair.chosen[0].content == "step 0"
    assert (pair.label_source, pair.policy, pair.cost_usd, pair.votes) == ("hindsight", "hindsight", 0.0, ())
    assert (pair.step_id, pair.student_family) == ("t:0:0", "anthropic")
    assert [m.role for m in pair.state_messages] == ["system", "user"]


def test_a_wrong_edit_is_mended_where_the_right_text_had_been_shown() -> None:
    read = ok("Read", "     7\u2192y = 1  \n     8\u2192x = 1", file_path="/repo/src/app/main.py")
    failed = bad("Edit", ABSENT, **edit())
    mended = ok("Edit", **edit("y = 1\nx = 1", "y = 1\nx = 3"))
    pair = only(session(read, failed, read, mended))
    assert pair.evidence == "edit failed (the text to replace is not in the file once), fixed 2 steps later"
    assert json.loads(pair.chosen[0].tool_calls[0].arguments)["old_string"] == "y = 1\nx = 1"
    assert len(pair.state_messages) == 4
    assert why(session(failed, read, mended)) == {NOT_POSSIBLE: 1}


def test_another_edit_of_the_file_is_no_mend() -> None:
    read = ok("Read", "     8\u2192x = 1", file_path="/repo/src/app/main.py")
    other = ok("Edit", **edit("x = 1", "import logging\nlogging.basicConfig()"))
    assert why(session(read, bad("Edit", ABSENT, **edit()), other)) == {NO_FIX: 1}


def test_a_command_is_mended_by_the_same_work_put_right() -> None:
    text = "Exit code 128\nfatal: unrecognized argument: --no-stat"
    pair = only(
        session(
            bad("Bash", text, ErrorKind.EXIT_CODE, command="git show 83a --no-stat"),
            ok("Bash", command="git show 83a"),
        )
    )
    assert (pair.rejected_operation, pair.chosen_operation) == ("vcs", "vcs")


def test_a_mistake_the_source_did_not_flag_counts_where_the_output_is_little_else() -> None:
    failed = ok("Bash", "zsh: command not found: timeout\n(exit: 0)", command="timeout 5 probe --all")
    pair = only(session(failed, ok("Bash", "3 found", command="probe --all")))
    assert names(pair) == (["Bash"], ["Bash"])
    assert hindsight_pairs(session(failed, ok("Bash", "a", command="ls"))) == ([], Counter())


@pytest.mark.parametrize(
    ("failed", "later"),
    [
        ("go test ./...", "go test ./pkg -v"),
        ("git gc --dry-run", "git count-objects -v"),
        ("ls types/", "mkdir -p types && ls types/"),
        ("./run.sh configure && ./run.sh start", "./run.sh start"),
        ("git diff --cached a.go b.go", "git diff --cached a.go b.go | head -80"),
        ("git diff --cached a.go b.go", "git diff --cached a.go b.go 2>&1 | tail -n 20 | cat"),
    ],
)
def test_other_work_is_no_mend_of_a_command(failed: str, later: str) -> None:
    text = "Exit code 1\nrun.sh: no such file or directory"
    trace = session(bad("Bash", text, ErrorKind.EXIT_CODE, command=failed), ok("Bash", command=later))
    assert why(trace) == {NO_FIX: 1}


def test_a_path_is_put_right_only_where_it_was_known() -> None:
    failed = bad(
        "Read", "<tool_use_error>File does not exist.</tool_use_error>", file_path="/repo/src/main.py"
    )
    found = ok("Glob", "/repo/src/app/main.py", pattern="**/main.py")
    pair = only(session(failed, found, ok("Read", file_path="/repo/src/app/main.py")))
    assert pair.evidence == "read failed (the path does not exist), fixed 2 steps later"
    unknown = ok("Read", file_path="/repo/lib/core/main.py")
    assert why(session(failed, found, unknown)) == {NOT_POSSIBLE: 1}


def test_folders_long_files_and_bad_ranges() -> None:
    folder = bad("Read", "EISDIR: illegal operation on a directory, read", file_path="/repo/src")
    assert names(only(session(folder, ok("Bash", command="ls -la /repo/src/"))))[1] == ["Bash"]
    long = bad(
        "Read", "File content (26715 tokens) exceeds maximum allowed tokens (25000).", file_path="/repo/log"
    )
    assert names(only(session(long, ok("Read", file_path="/repo/log", limit=600))))[1] == ["Read"]
    text = (
        "OBSERVATION:\nERROR:\nThe `view_range` parameter is not allowed when `path` points to a directory."
    )
    view = {"command": "view", "path": "/workspace/r__1.6"}
    pair = only(
        session(
            bad("str_replace_editor", text, **view, view_range=[0, -1]),
            ok("str_replace_editor", **view),
            harness="openhands",
        )
    )
    assert json.loads(pair.chosen[0].tool_calls[0].arguments) == view


def test_a_search_with_a_stray_quote_is_mended_by_the_one_without() -> None:
    failed = ok("Grep", "No matches found", pattern='func SaveChanges"', path="/repo")
    pair = only(session(failed, ok("Grep", "a.go:3", pattern="func SaveChanges", path="/repo")))
    assert pair.evidence == "search failed (the pattern found nothing), fixed 1 step later"
    assert hindsight_pairs(session(failed, ok("Grep", "a.go:3", pattern="func Load", path="/repo")))[0] == []


def test_of_parallel_calls_only_the_failed_one_is_replaced() -> None:
    fine = ok("Read", "x", file_path="/repo/other.py")
    text = "<tool_use_error>Sibling tool call errored</tool_use_error>"
    cancelled = bad("Read", text, ErrorKind.CANCELLED, file_path="/repo/b.py")
    mend = ok("Read", "y", file_path="/repo/src/app/main.py")
    pair = only(session([fine, bad("Edit", NOT_READ, **edit()), cancelled], [mend, fine]))
    assert names(pair) == (["Read", "Edit", "Read"], ["Read", "Read", "Read"])
    chosen = [json.loads(c.arguments)["file_path"] for c in pair.chosen[0].tool_calls]
    assert chosen == ["/repo/other.py", "/repo/src/app/main.py", "/repo/b.py"]
    assert (pair.rejected_operation, pair.chosen_operation) == ("edit", "read")


def test_one_unmended_call_of_a_step_spoils_it() -> None:
    lost = bad(
        "Bash", "Exit code 127\nbash: ponyc: command not found", ErrorKind.EXIT_CODE, command="ponyc x"
    )
    mend = ok("Read", "y", file_path="/repo/src/app/main.py")
    assert why(session([bad("Edit", NOT_READ, **edit()), lost], mend)) == {NO_FIX: 1}


@pytest.mark.parametrize(
    ("kind", "text", "reason"),
    [
        (ErrorKind.USER_REJECTION, "The user doesn't want to proceed", "rejected by the user"),
        (ErrorKind.HOOK, "Pre-commit validation failed", "stopped by a hook"),
        (ErrorKind.TIMEOUT, "Command timed out", "timed out"),
        (ErrorKind.API_ERROR, "API Error: 529 overloaded", "failed at the model's API"),
        (ErrorKind.EXIT_CODE, "Exit code 1\n--- FAIL: TestX", NOT_CALL),
        (ErrorKind.UNKNOWN, "Error", NOT_CALL),
    ],
)
def test_failures_that_are_not_the_fault_of_the_call(kind: str, text: str, reason: str) -> None:
    failed = bad("Bash", text, kind, command="go test ./...")
    assert why(session(failed, ok("Bash", command="go test ./pkg"))) == {reason: 1}


def test_a_command_that_worked_in_another_folder_is_no_mend() -> None:
    text = "Exit code 128\nfatal: ambiguous argument 'hooks.go': not in the working tree"
    trace = session(
        bad("Bash", text, ErrorKind.EXIT_CODE, command="git diff --cached hooks.go"),
        ok("Bash", command="cd cmd && git add hooks.go"),
        ok("Bash", "+ a", command="git diff --staged hooks.go"),
    )
    assert len(hindsight_pairs(trace)[0]) == 1
    [context] = trace.contexts
    steps = (*context.steps[:2], replace(context.steps[2], cwd="/repo/cmd"))
    assert why(replace(trace, contexts=(replace(context, steps=steps),))) == {NO_FIX: 1}


def test_what_succeeds_unchanged_was_not_wrong() -> None:
    command = "cat notes.txt"
    failed = bad(
        "Bash", "Exit code 1\ncat: notes.txt: No such file or directory", ErrorKind.EXIT_CODE, command=command
    )
    assert why(session(failed, ok("Bash", command="git pull"), ok("Bash", command=command))) == {UNCHANGED: 1}


def test_a_mend_after_the_user_spoke_or_too_late_does_not_count() -> None:
    failed = bad("Edit", NOT_READ, **edit())
    mend = ok("Read", "y", file_path="/repo/src/app/main.py")
    assert why(session(failed, Message("user", "read it first"), mend)) == {NO_FIX: 1}
    reminded = session(failed, Message("user", "<system-reminder>x</system-reminder>"), mend)
    assert len(hindsight_pairs(reminded)[0]) == 1
    other = [ok("Read", "z", file_path=f"/repo/{i}") for i in range(5)]
    assert len(hindsight_pairs(session(failed, *other[:4], mend))[0]) == 1
    assert why(session(failed, *other, mend)) == {NO_FIX: 1}


def test_the_same_trace_gives_the_same_pairs() -> None:
    trace = session(bad("Edit", NOT_READ, **edit()), ok("Read", "y", file_path="/repo/src/app/main.py"))
    first, again = (hindsight_pairs(trace)[0] for _ in range(2))
    assert [pair.chosen for pair in first] == [pair.chosen for pair in again]


if REAL:

    def test_real_sessions_give_enough_pairs_and_every_side_could_be_called() -> None:
        folders = [Path(REAL) / name for name in ("claude_code", "openhands", "swe_gym")]
        traces = [trace for source in discover(folders) for trace in ingest_source(source)[0]]
        pairs = {pair.step_id: pair for trace in traces for pair in hindsight_pairs(trace)[0]}
        assert len(pairs) >= 30
        for pair in pairs.values():
            assert pair.chosen != pair.rejected
            assert pair.state_messages[-1].role in ("user", "tool")
            offered = {tool.name for tool in pair.tools}
            assert {call.name for call in pair.chosen[0].tool_calls} <= offered
