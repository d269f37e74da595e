"""Forgetting a text: in any case and Unicode form, behind its placeholders, and for sessions yet to come."""

import json
import unicodedata
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tracemill.flows.admission.forgotten_list import ForgottenList
from tracemill.flows.admission.text_search import GONE, PlaceholderSearch, TextNeedle
from tracemill.flows.config.run_settings import RunSettings, load_settings
from tracemill.flows.forget.forget_run import forget_target
from tracemill.flows.ingest.ingest_order import IngestOptions
from tracemill.flows.ingest.ingest_run import ingest_everything
from tracemill.privacy.core.placeholder_keys import build_keyed_placeholder, hash_with_placeholder_key
from tracemill.records.errors import PrivacyError, WorkspaceError
from tracemill.records.storage.trace_rows import traces_from_table
from tracemill.records.storage.workspace import Workspace

MAIL = "Hans.Peter@zwiebelwerk-beispiel.de"
SAID = (
    "Please look at the parser.",
    f"Ask {MAIL} about the parser.",
    f"Write to {MAIL.lower()} and to other.person@beispielhaft.de.",
    "The customer is Käthe Müßig-Nordlicht.",
    unicodedata.normalize("NFD", "The customer is KÄTHE MÜßIG-NORDLICHT."),
    "Nothing of anybody here.",
    "Nothing of anybody here either.",
)


def session(folder: Path, number: int, text: str) -> None:
    """A Claude Code session of one question and one answer."""
    base = {
        "sessionId": f"00000000-0000-4000-8000-00000000000{number}",
        "cwd": "/work/app",
        "version": "2.0.0",
    }
    base |= {"timestamp": f"2026-01-{number + 1:02}T00:00:00Z", "isSidechain": False, "userType": "external"}
    asked: dict[str, Any] = {"type": "user", "uuid": f"u{number}", "parentUuid": None}
    asked["message"] = {"role": "user", "content": text}
    said: dict[str, Any] = {
        "type": "assistant",
        "uuid": f"a{number}",
        "parentUuid": f"u{number}",
        "requestId": f"r{number}",
    }
    said["message"] = {
        "id": f"m{number}",
        "role": "assistant",
        "model": "claude-x",
        "content": [{"type": "text", "text": "I see."}],
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
    lines = [json.dumps(base | record) for record in (asked, said)]
    (folder / f"{base['sessionId']}.jsonl").write_text("\n".join(lines) + "\n")


def ingest(settings: RunSettings) -> dict[str, Any]:
    return ingest_everything(IngestOptions(settings.sources.order(), settings.workspace))


@pytest.fixture
def settings(tmp_path: Path) -> RunSettings:
    """Seven sessions ingested into a workspace."""
    folder = tmp_path / "sessions"
    folder.mkdir()
    for number, text in enumerate(SAID):
        session(folder, number, text)
    over = {"sources": {"claude_code": [str(folder)]}, "workspace": str(tmp_path / "w")}
    made = load_settings(None, over)
    assert ingest(made)["totals"]["traces"] == len(SAID)
    return made


def forget(settings: RunSettings, target: str, **flags: Any) -> dict:
    flags = {"kind": None, "yes": True, "everything": False} | flags
    return forget_target(settings, target, **flags)


def left(settings: RunSettings) -> set[int]:
    """The numbers of the sessions that the workspace holds."""
    work = Workspace.open(settings.workspace, create=False)
    traces = [trace for table in work.current("traces") for trace in traces_from_table(table)]
    return {int((trace.started_at or "")[8:10]) - 1 for trace in traces}


def test_a_redacted_text_is_found_by_its_placeholders_in_any_case(settings: RunSettings) -> None:
    record = forget(settings, MAIL)
    assert (record["traces"], record["replaced"]) == (2, 2)
    assert left(settings) == {0, 3, 4, 5, 6}


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_case_and_normal_form_are_alike(settings: RunSettings, form: Any) -> None:
    target = unicodedata.normalize(form, "käthe MÜSSIG-nordlicht")
    record = forget(settings, target)
    assert (record["traces"], record["replaced"]) == (2, 0)
    assert left(settings) == {0, 1, 2, 5, 6}


def test_a_text_is_kept_out_of_sessions_yet_to_come_and_its_list_says_nothing(settings: RunSettings) -> None:
    absent = "Projekt Zwiebelturm"
    with pytest.raises(WorkspaceError, match="nor a placeholder of such a text"):
        forget(settings, absent)
    assert not (settings.workspace / "forgotten.json").exists()
    record = forget(settings, absent, kind="value")
    assert (record["kind"], record["traces"]) == ("value", 0)
    forget(settings, MAIL)
    listed = (settings.workspace / "forgotten.json").read_text()
    assert not any(part in listed.casefold() for part in ("zwiebel", "hans", "turm"))
    folder = settings.sources.claude_code[0]
    session(folder, 7, "Now for the PROJEKT ZWIEBELTURM please.")
    session(folder, 8, f"Mail {MAIL.upper()} now.")
    session(folder, 9, "Projekt Zwiebel-Turm is another one.")
    totals = ingest(settings)["totals"]
    assert totals["left_out"] == {"forgotten": 4}
    assert left(settings) == {0, 3, 4, 5, 6, 9}


def test_more_than_half_and_parts_of_placeholders_want_all(settings: RunSettings) -> None:
    with pytest.raises(PrivacyError, match=r"7 of 7 traces would be removed; .*--yes --all"):
        forget(settings, "I see.")
    with pytest.raises(
        PrivacyError, match="2 of 7 traces would be removed; the text is part of what redaction writes"
    ):
        forget(settings, "EMAIL")
    with pytest.raises(PrivacyError, match="not confirmed: 7 of 7 traces"):
        forget(settings, "I see.", yes=False, everything=True)
    assert left(settings) == set(range(7))
    assert forget(settings, "EMAIL", everything=True)["traces"] == 2
    assert forget(settings, "I see.", everything=True)["traces"] == 5


def test_a_needle_finds_every_case_form_and_escape() -> None:
    needle = TextNeedle.of("Müßig\n2")
    for text in ("MÜSSIG\n2", unicodedata.normalize("NFD", "müßig\n2")):
        deep = text
        for _ in range(4):
            deep = json.dumps({"t": deep})
            assert needle.within(deep)
            assert needle.within_bytes(deep.encode())
        assert needle.in_table(pa.table({"a": [[{"b": text}]]}))
    assert not needle.within("mussig\n2")
    assert TextNeedle.of("hans@x.de").without("to HANS@X.DE, bye") == f"to {GONE}, bye"
    assert TextNeedle.of("strasse").without("die Straße") == GONE


def test_stand_ins_are_those_of_their_trace_alone() -> None:
    key, stand_ins = b"k" * 32, PlaceholderSearch(b"k" * 32, "Hans@x.de")
    made = build_keyed_placeholder("EMAIL", hash_with_placeholder_key(key, "t1", "hans@x.de"))
    bare = build_keyed_placeholder("EMAIL", hash_with_placeholder_key(key, "t1", "HANS@X.DE"), bare=True)
    assert stand_ins.within([f"to {made}"], "t1")
    assert stand_ins.within(["x", f"to {bare}"], "t1")
    assert not stand_ins.within([f"to {made}"], "t2")
    assert not stand_ins.within(["to <EMAIL_00000000>"], "t1")


def test_a_remembered_text_is_found_inside_json_and_nowhere_else() -> None:
    listed = ForgottenList(b"k" * 32).adding(values=['say "Käthe"\nMüßig', "abcd"])
    assert listed.holds(json.dumps({"a": json.dumps(['Please SAY "KÄTHE"\nMÜSSIG now'])}))
    assert listed.holds("xxABCDxx")
    assert not listed.holds("abc d, say Käthe Müßig")
    assert not ForgottenList(b"other" * 9, values=listed.values).holds("xxabcdxx")
