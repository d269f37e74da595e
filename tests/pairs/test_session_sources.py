"""Pairs of one session beside hindsight: the user's corrections, revised edits, repeated reads."""

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from made_sessions import Turn, bad, ok, session

from tracemill.harnesses.core.vocabulary import DECIDING
from tracemill.ingesters.discover import discover
from tracemill.ingesters.read_source import ingest_source
from tracemill.pairs.hindsight import hindsight_pairs
from tracemill.pairs.session import repeated_reads, revised_edits, user_corrections
from tracemill.pairs.session.repeated_reads import repeated_read_pairs
from tracemill.pairs.session.revised_edits import revised_edit_pairs
from tracemill.pairs.session.user_corrections import user_pairs
from tracemill.records.message import ErrorKind, Message
from tracemill.records.trace import Trace

REAL = os.environ.get("TRACEMILL_REAL_TRACES")
MAIN, OTHER = "/repo/src/app/main.py", "/repo/src/app/other.py"
FILE = "     1\u2192def size(items):\n     2\u2192    return 0\n     3\u2192\n     4\u2192TOTAL = 7"
REJECTED = "The user doesn't want to proceed with this tool use. The tool use was rejected."
OLD = "def size(items):\n    return 0"
ONE, TWO = "def size(items):\n    return count(items)", "def size(items):\n    return len(items)"
TEST = "pytest -q tests/test_main.py"


def edit(new: str, old: str = OLD, path: str = MAIN) -> dict[str, Any]:
    return {"file_path": path, "old_string": old, "new_string": new}


def no(new: str, old: str = OLD) -> Turn:
    return bad("Edit", REJECTED, kind=ErrorKind.USER_REJECTION, **edit(new, old))


def yes(new: str, old: str = OLD, path: str = MAIN) -> Turn:
    return ok("Edit", **edit(new, old, path))


def runs(command: str, result: str = "1 passed", failed: bool = False) -> Turn:
    kind = ErrorKind.EXIT_CODE if failed else None
    return ("Bash", {"command": command}, result, kind)


READ = ok("Read", FILE, file_path=MAIN)
SPEAKS = Message("user", "no, use len")
FAILS = runs(TEST, "src/app/main.py:2: NameError\n1 failed", failed=True)


def new_texts(trace: Trace, make: Any) -> list[tuple[str, str]]:
    """What each pair's sides write."""
    sides = [(pair.rejected[0].tool_calls[0], pair.chosen[0].tool_calls[0]) for pair in make(trace)[0]]
    return [
        (json.loads(one.arguments)["new_string"], json.loads(two.arguments)["new_string"])
        for one, two in sides
    ]


def test_a_rejected_edit_stands_against_the_one_the_user_accepted() -> None:
    pairs, reasons = user_pairs(session(READ, no(ONE), SPEAKS, yes(TWO)))
    (pair,) = pairs
    assert reasons == Counter()
    assert (pair.step_id, pair.label_source, pair.policy, pair.verified) == (
        "t:0:1",
        "user",
        "user",
        "lookahead",
    )
    assert (pair.rejected_operation, pair.chosen_operation) == ("edit", "edit")
    assert pair.rejected[0].content == pair.chosen[0].content == "step 1"
    assert pair.evidence == "the user rejected the edit, and accepted another one of the same place later"
    assert pair.state_messages[-1].role == "tool"


def test_edits_that_were_rejected_in_between_do_not_count() -> None:
    trace = session(READ, no(ONE), SPEAKS, no("def size(items):\n    return 1"), SPEAKS, yes(TWO))
    assert new_texts(trace, user_pairs) == [(ONE, TWO), ("def size(items):\n    return 1", TWO)]


def test_of_parallel_calls_only_the_rejected_one_is_replaced() -> None:
    (pair,) = user_pairs(session(READ, [ok("Read", "x", file_path=OTHER), no(ONE)], SPEAKS, yes(TWO)))[0]
    assert [call.name for call in pair.chosen[0].tool_calls] == ["Read", "Edit"]
    assert (pair.rejected_operation, pair.chosen_operation) == ("edit", "edit")


@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        ([bad("Bash", REJECTED, kind=ErrorKind.USER_REJECTION, command="git stash"), yes(TWO)], "NOT_EDIT"),
        ([no(ONE), SPEAKS, yes("TOTAL = 8", "TOTAL = 7")], "NO_OTHER"),
        (
            [no(ONE), SPEAKS, *[ok("Read", "z", file_path=f"/repo/{i}") for i in range(10)], yes(TWO)],
            "NO_OTHER",
        ),
        ([no(ONE), SPEAKS, yes("    return count(items)", "    return 0")], "UNCHANGED"),
        ([no(ONE), SPEAKS, yes("x = 1", "x = 0", OTHER), yes(TWO)], "NOT_POSSIBLE"),
        (
            [no(ONE), Message("user", "use item_count"), yes("def size(items):\n    return item_count")],
            "NOT_POSSIBLE",
        ),
        ([no(ONE), SPEAKS, yes(TWO), yes("    return 1", "    return len(items)")], "REWRITTEN"),
    ],
    ids=[
        "no edit",
        "another place",
        "too late",
        "same change",
        "other file",
        "name of the user",
        "rewritten",
    ],
)
def test_what_else_the_user_accepted_makes_no_pair(steps: list[Turn | Message], reason: str) -> None:
    assert user_pairs(session(READ, *steps)) == ([], {getattr(user_corrections, reason): 1})


def test_what_the_user_accepted_must_have_been_shown() -> None:
    reasons = {user_corrections.NOT_POSSIBLE: 1}
    assert user_pairs(session(no(ONE), SPEAKS, READ, yes(TWO))) == ([], reasons)


def test_words_without_a_rejection_make_no_pair() -> None:
    assert user_pairs(session(READ, yes(ONE), SPEAKS, yes(TWO, ONE))) == ([], {})


def test_an_edit_is_revised_until_the_check_succeeds() -> None:
    count, size = "    return count(items)", "    return len(items)"
    commented = "    # all\n    return len(items)"
    steps = (READ, yes(ONE), FAILS, yes(size, count), FAILS, yes(commented, size), runs(TEST))
    first, second = revised_edit_pairs(session(*steps))[0]
    assert json.loads(first.chosen[0].tool_calls[0].arguments) == edit("def size(items):\n" + commented)
    assert json.loads(second.chosen[0].tool_calls[0].arguments) == edit(commented, count)
    assert first.evidence == f"after the edit `{TEST}` failed, and succeeded once the edit was revised"
    assert (first.label_source, first.verified, first.rejected[0].content) == (
        "revised_edit",
        "lookahead",
        "step 1",
    )
    assert (first.rejected_operation, first.chosen_operation) == ("edit", "edit")


def test_a_long_check_is_named_by_its_beginning() -> None:
    check = f"export SUITE={'unit,' * 30}\npytest"
    failed = runs(check, "src/app/main.py:2: NameError\n1 failed", failed=True)
    (pair,) = revised_edit_pairs(session(READ, yes(ONE), failed, FIX, runs(check)))[0]
    assert pair.evidence.startswith(f"after the edit `{check[:80]}...` failed")


def test_a_written_file_is_revised_and_a_pipe_hides_no_failure() -> None:
    write = ok("Write", file_path=OTHER, content="import os\n\nprint(os.name)\n")
    fixed = yes("print(os.sep)", "print(os.name)", OTHER)
    check = "make lint 2>&1 | tail -20"
    steps = (
        write,
        runs(check, "other.py:3: bad name\n1 error"),
        fixed,
        runs("make lint 2>&1 | tail -5", "ok"),
    )
    (pair,) = revised_edit_pairs(session(*steps))[0]
    assert json.loads(pair.chosen[0].tool_calls[0].arguments)["content"] == "import os\n\nprint(os.sep)\n"
    assert pair.evidence == "after the edit `make lint` failed, and succeeded once the edit was revised"


FIX = yes("    return len(items)", "    return count(items)")
LINE = ok("Edit", **edit("TOTAL = 8", "TOTAL = 7", OTHER))


@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        ([yes(ONE), runs(TEST), FAILS, FIX, runs(TEST)], ""),
        ([yes(ONE), FAILS, SPEAKS, FIX, runs(TEST)], ""),
        ([yes(ONE), FAILS, FIX, runs("pytest -q")], ""),
        ([yes(ONE), FAILS, runs(TEST), FIX, runs(TEST)], ""),
        ([yes(ONE), FAILS, ok("Write", file_path=MAIN, content=TWO), runs(TEST)], ""),
        ([yes(ONE), FIX, FAILS, runs(TEST)], ""),
        ([yes(ONE), runs("cat log.txt", "1 failed", failed=True), FIX, runs("cat log.txt")], ""),
        ([yes(ONE), FAILS, yes(OLD, ONE), runs(TEST)], "TAKEN_OUT"),
        ([yes(ONE), FAILS, yes("", "    return count(items)\n"), yes("", ONE), runs(TEST)], "TAKEN_OUT"),
        ([yes(ONE), runs(TEST, "1 failed", failed=True), LINE, FIX, runs(TEST)], "ELSEWHERE"),
        (
            [
                yes(ONE),
                FAILS,
                ok("Grep", "def item_count", pattern="def"),
                yes("    return item_count", FIX[1]["old_string"]),
                runs(TEST),
            ],
            "NOT_POSSIBLE",
        ),
    ],
    ids=[
        "passed before",
        "the user spoke",
        "another check",
        "fixed elsewhere",
        "written anew",
        "revised before",
        "no check",
        "undone",
        "taken out",
        "other files too",
        "learned later",
    ],
)
def test_what_else_is_no_revision(steps: list[Turn | Message], reason: str) -> None:
    wanted = {getattr(revised_edits, reason): 1} if reason else {}
    assert revised_edit_pairs(session(READ, *steps)) == ([], wanted)


def test_other_files_may_change_where_the_check_names_this_one() -> None:
    trace = session(READ, yes(ONE), FAILS, LINE, FIX, runs(TEST))
    assert new_texts(trace, revised_edit_pairs) == [(ONE, TWO)]


def test_a_repeated_read_stands_against_the_edit_that_followed() -> None:
    again = ok("Read", FILE, file_path=MAIN, limit=4)
    (pair,) = repeated_read_pairs(session(READ, runs("pytest"), again, yes(TWO)))[0]
    assert (pair.step_id, pair.label_source, pair.verified) == ("t:0:2", "repeated_read", "lookahead")
    assert (pair.rejected_operation, pair.chosen_operation) == ("read", "edit")
    assert (pair.rejected[0].content, pair.chosen[0].content) == ("step 2", "step 3")
    assert pair.evidence == "all that was read had been shown before, and the next action edited the file"


@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        ([READ, ok("Read", FILE + "\n     5\u2192LAST = 1", file_path=MAIN), yes(TWO)], ""),
        ([READ, ok("Read", "     4\u2192TOTAL = 7", file_path=MAIN), yes(TWO)], ""),
        ([READ, READ, SPEAKS, yes(TWO)], "NO_EDIT"),
        ([READ, READ, yes("x = 1", "x = 0", OTHER)], "NO_EDIT"),
        ([READ, READ, bad("Edit", "not read", **edit(TWO))], "NO_EDIT"),
        ([runs("cat main.py", FILE.replace("\u2192", "\t")), READ, yes(TWO)], "NOT_POSSIBLE"),
        ([READ, bad("Edit", "changed", **edit(TWO)), READ, yes(TWO)], "NOT_POSSIBLE"),
        ([READ, READ, yes("x = 1", "x = 0")], "NOT_POSSIBLE"),
        ([READ, READ, yes(TWO), yes(OLD, TWO)], "REWRITTEN"),
        ([READ, yes("x = 1", "x = 0"), READ, yes(TWO)], "CHANGED"),
    ],
    ids=[
        "more text",
        "a line",
        "the user spoke",
        "other file",
        "failed",
        "not read",
        "refused",
        "unseen",
        "undone",
        "changed",
    ],
)
def test_what_else_is_no_repeated_read(steps: list[Turn | Message], reason: str) -> None:
    wanted = {getattr(repeated_reads, reason): 1} if reason else {}
    assert repeated_read_pairs(session(*steps)) == ([], wanted)


def test_a_session_gives_three_pairs_of_repeated_reads_at_most() -> None:
    files = [f"/w/app/part{number}.py" for number in range(5)]
    shown = [ok("Read", FILE, file_path=path) for path in files]
    again = [turn for path in files for turn in (ok("Read", FILE, file_path=path), yes(TWO, path=path))]
    pairs, reasons = repeated_read_pairs(session(*shown, *again))
    assert [pair.step_id for pair in pairs] == ["t:0:5", "t:0:7", "t:0:9"]
    assert reasons[repeated_reads.ENOUGH] == 2
    assert len(repeated_read_pairs(session(*shown[3:], *again[6:]))[0]) == 2


def test_what_a_write_itself_shows_is_no_change_behind_it() -> None:
    written = ok("Write", "written", file_path=MAIN, content="def total():\n    return sum()\n\nTOTAL = 1\n")
    shown = "     1\u2192def total():\n     2\u2192    return sum()\n     3\u2192"
    again = ok("Read", shown + "\n     4\u2192TOTAL = 1", file_path=MAIN)
    pairs, _ = repeated_read_pairs(session(written, again, yes("TOTAL = 2", "TOTAL = 1")))
    assert [pair.step_id for pair in pairs] == ["t:0:1"]


if REAL:

    def test_real_sessions_give_three_times_as_many_deciding_sides() -> None:
        folders = [path for path in Path(REAL).iterdir() if path.is_dir()]
        traces = {
            trace.trace_id: trace for source in discover(folders) for trace in ingest_source(source)[0]
        }.values()
        made = {}
        for make in (hindsight_pairs, user_pairs, revised_edit_pairs, repeated_read_pairs):
            pairs = {pair.step_id: pair for trace in traces for pair in make(trace)[0]}.values()
            made[make.__name__] = sum(pair.chosen_operation in DECIDING for pair in pairs)
            for pair in pairs:
                assert pair.chosen != pair.rejected
                offered = {tool.name for tool in pair.tools}
                assert {call.name for call in pair.chosen[0].tool_calls} <= offered
        assert made == {
            "hindsight_pairs": 11,
            "user_pairs": 4,
            "revised_edit_pairs": 5,
            "repeated_read_pairs": 14,
        }
