"""What a session or a server says reaches a terminal without a control character, on its own line."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from tracemill.cli.doctor import run_doctor_checks
from tracemill.cli.workspace_status import show_workspace
from tracemill.flows.config.run_settings import RunSettings
from tracemill.flows.consent.consent_prompt import consent_row_labels, say_request
from tracemill.flows.consent.consent_records import ConsentAmount, ConsentRequest
from tracemill.flows.consent.destinations import Destination
from tracemill.flows.run_state.closing_table import closing_table_rows, print_closing
from tracemill.flows.run_state.run_summary import ReleaseOutcome, Summary
from tracemill.flows.runtime.terminal import say_lines
from tracemill.records.errors import SourceError
from tracemill.records.message import Message
from tracemill.records.pair import DPOPair, Vote
from tracemill.records.printable import printable, printable_lines
from tracemill.records.project import Project
from tracemill.records.storage.table_rows import pairs_to_table
from tracemill.records.storage.workspace import Workspace

HOSTILE = "alpha\x1b[2K\r\n\u202eevil\u2028\x9b31m\x00[red]:bomb:[/nope]"
SHOWN = r"alpha\x1b[2K\r\n\u202eevil\u2028\x9b31m\x00[red]:bomb:[/nope]"
FORBIDDEN = set("\x1b\r\u202e\u2028\x9b\x00")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("alpha (/work/alpha)", "alpha (/work/alpha)"),
        ("Zürich 漢字 🎉", "Zürich 漢字 🎉"),
        (r"C:\new\x1b", r"C:\new\x1b"),
        (HOSTILE, SHOWN),
        ("a\tb\nc\x7f", r"a\tb\nc\x7f"),
        ("\u200b\u200f\u2066\ufeff\xad\xa0", r"\u200b\u200f\u2066\ufeff\xad\xa0"),
        ("alpha\u3164", r"alpha\u3164"),
        ("\ud800 \U000e0041", r"\ud800 \U000e0041"),
        ("x" * 201, "x" * 197 + "..."),
        ("x" * 200, "x" * 200),
    ],
)
def test_what_is_not_plain_is_written_as_an_escape(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_however_long_the_text_its_line_is_bounded() -> None:
    assert len(printable("\x1b" * 1_000_000)) == 200
    assert len(printable("a" * 1_000_000, 50)) == 50


def test_lines_stay_lines_and_a_tab_becomes_blanks() -> None:
    assert printable_lines("a\tb\n\x1b[2Jc\r\n") == "a   b\n\\x1b[2Jc\\r\n"
    assert printable_lines("ab\ncd", 3) == "ab\n"


def _clean(said: str) -> str:
    assert FORBIDDEN.isdisjoint(said), ascii(said)
    return said


def test_the_statement_of_a_consent_keeps_its_lines(capsys: pytest.CaptureFixture[str]) -> None:
    amount = ConsentAmount(1, 2, 0.5)
    project = Project("d" * 32, HOSTILE, f"/work/{HOSTILE}")
    request = ConsentRequest(
        {project: amount}, amount, (Destination("https://x.example", HOSTILE, HOSTILE),), {HOSTILE: 1}, "",
        {}, False, (f"nothing matches projects = {HOSTILE}",),
    )  # fmt: skip
    say_request(request, Path("/w/runs/r/consent.json"))
    said = _clean(capsys.readouterr().err)
    assert len(said.splitlines()) == 7
    assert f"\n  {SHOWN} (/work/{SHOWN}): 1 session, 2 steps, 0.50 MB\n" in said
    assert "\n" not in _clean(request.in_short())
    assert SHOWN[:37] in request.in_short()
    say_lines([HOSTILE])
    assert capsys.readouterr().err == f"{SHOWN}\n"


def test_projects_that_read_alike_are_told_apart_by_their_digest() -> None:
    one, two = Project("1" * 32, "web", "/Users/user/web"), Project("2" * 32, "web", "/Users/user/web")
    other = Project("3" * 32, "api", "/Users/user/api")
    assert list(consent_row_labels([one, two, other]).values()) == [
        "web (/Users/user/web) [11111111]",
        "web (/Users/user/web) [22222222]",
        "api (/Users/user/api)",
    ]


def test_the_closing_table_keeps_its_rows_and_reads_no_markup() -> None:
    summary = Summary(unmatched=(f"nothing matches {HOSTILE}",), stopped=HOSTILE)
    for counter in (summary.skipped, summary.flags, summary.unread, summary.left_out, summary.pairs):
        counter[HOSTILE] = 3
    rows = closing_table_rows(summary, 1.0, [HOSTILE], ReleaseOutcome(None, None, 0, False, {HOSTILE: 1}, {}))
    plain = closing_table_rows(Summary(), 1.0, [], ReleaseOutcome(None, None, 0, False, {}, {}))
    out = io.StringIO()
    print_closing(Console(file=out, width=200), rows, "last run")
    said = _clean(out.getvalue())
    assert said.count(f"3  {SHOWN}") == 4
    assert f"nothing matches {SHOWN}" in said
    assert len(rows) == len(plain) + 3  # skipped sessions, selection, stopped


def test_a_shown_pair_keeps_to_its_panel(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    vote = Vote(HOSTILE, HOSTILE, 0, True, HOSTILE, "k", HOSTILE, True, 0.0, "k1")
    pair = DPOPair(
        "claude_code-1:0:0", "hindsight", (), (), (Message("assistant", HOSTILE),),
        (Message("assistant", f"first\n{HOSTILE}"),), "read", "read", "claude_code", "claude_code", "p1",
        None, "unknown", 0, (vote,), (), evidence=HOSTILE,
    )  # fmt: skip
    work = Workspace.open(tmp_path / "w")
    work.write("pairs", pairs_to_table([pair]), ["claude_code-1"], "claude_code", "2026-11-21")
    show_workspace(work.root, 1, None, 0, False)
    said = _clean(capsys.readouterr().out)
    assert "self-repair: alpha\\x1b[2K\\r\\n\\u202eevil" in said
    assert "first" in said
    assert "[red]:bomb:[/nope]" in said.replace("\n", "").replace("│", "").replace("  ", "")


def test_an_error_is_one_line_whatever_a_file_is_called() -> None:
    error = SourceError(f"/sessions/{HOSTILE} is empty", f"a {HOSTILE} session", "see\nthe docs")
    assert str(error) == f"/sessions/{SHOWN} is empty; expected a {SHOWN} session; see\nthe docs"
    assert len(str(SourceError("x" * 10_000))) == 2_000


def test_the_doctor_says_a_line_a_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sources = {"paths": [tmp_path / "gone\x1b[2J\nok    sources: fine"]}
    settings = RunSettings.model_validate({"workspace": tmp_path / "w", "sources": sources})
    assert run_doctor_checks(settings) == 2
    said = _clean(capsys.readouterr().out)
    assert len(said.splitlines()) == 12
    assert r"gone\x1b[2J\nok    sources: fine" in said
