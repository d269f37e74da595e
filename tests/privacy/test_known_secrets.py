"""Secrets that one session gave away, found in the others and in whatever is published."""

import stat
from collections import Counter
from pathlib import Path

import pytest
from leak_corpus import cases
from ordinary_texts import LOGS, ordinary, source_texts

from tracemill.flows.admission.list_scope import NO_LISTS
from tracemill.flows.admission.reredaction import Reredactor
from tracemill.privacy.core.placeholder_keys import workspace_key
from tracemill.privacy.core.rule import Span, TextView
from tracemill.privacy.personal import unannounced_data
from tracemill.privacy.publish_gate.strict_personal import find_personal_strictly
from tracemill.privacy.publish_gate.strict_rules import find_strictly
from tracemill.privacy.redaction.known_secrets import KNOWN_SECRETS
from tracemill.privacy.redaction.redactor import Redactor
from tracemill.privacy.secrets import unannounced_secrets
from tracemill.records.message import Message
from tracemill.records.storage.workspace import Workspace
from tracemill.records.trace import Context, Step, Trace

KEY = b"k" * 32
ALONE = {"TRACEMILL_KINGFISHER": "none"}


def trace(name: str, text: str, parent: str | None = None) -> Trace:
    messages = (Message("user", "Go on."), Message("assistant", text))
    return Trace(
        trace_id=name,
        parent_trace_id=parent,
        source="claude_code",
        dialect="claude_code",
        harness="claude_code",
        contexts=(Context(0, messages, (Step(0, 1),)),),
    )


@pytest.mark.parametrize("first", ["parent", "subagent"])
def test_a_secret_of_one_trace_leaves_with_none_of_its_session(tmp_path: Path, first: str) -> None:
    work = Workspace.open(tmp_path / "w")
    redactor = Redactor(key=workspace_key(work.root / "redaction.key"))
    reredactor = Reredactor.of(work, redactor, NO_LISTS)
    left, told = [], []
    for number, case in enumerate(cases(first, 6, "session")):
        [value] = case.planted.parts
        names = [f"s{number}", f"s{number}-agent"]
        texts = [f"export DB_PASSWORD='{value}'", case.planted.text]
        if first == "subagent":
            texts.reverse()
        made = [trace(names[0], texts[0]), trace(names[1], texts[1], names[0])]
        stored = [redactor.redact_trace(each)[0] for each in made]
        reredactor.known.add(redactor.pop_found_secrets())
        renewed = [reredactor.redact_again(each) for each in stored]
        left += [value for each in renewed for m in each.trace.contexts[0].messages if value in m.content]
        reply = renewed[0].message(Message("assistant", f"I would use {value} here."))
        told += [value] if value in reply.content else []
    assert (left, told) == ([], [])
    kept = (work.root / KNOWN_SECRETS).read_text()
    assert stat.S_IMODE((work.root / KNOWN_SECRETS).stat().st_mode) == 0o600
    assert len(kept.splitlines()) >= 120
    assert all(len(line.split()) == 3 and len(line.split()[0]) == 32 for line in kept.splitlines())


def test_what_no_session_gave_away_stays_and_is_the_same_object(tmp_path: Path) -> None:
    work = Workspace.open(tmp_path / "w")
    redactor = Redactor(key=workspace_key(work.root / "redaction.key"))
    reredactor = Reredactor.of(work, redactor, NO_LISTS)
    reredactor.known.add({"Velvet9-Otter!42": "PASSWORD", "changeme": "PASSWORD", "postgres": "PASSWORD"})
    texts = [text for kind in LOGS for text in ordinary(kind, 3, 20_000)]
    stored = redactor.redact_trace(trace("s", "\n".join(texts)))[0]
    noted = reredactor.redact_again(stored).trace
    assert noted.contexts == stored.contexts
    assert reredactor.known.find(["changeme postgres", *texts]) == {}


def unannounced(text: str) -> list[Span]:
    view = TextView(text)
    return [
        span
        for each in (*unannounced_data.DETECTORS, *unannounced_secrets.DETECTORS)
        for span in each.find(view)
    ]


def test_rules_without_a_label_and_strict_rules_leave_ordinary_text() -> None:
    """The authors that a source names after `Written by` are persons."""
    texts = [text for kind in LOGS for text in ordinary(kind, 5, 200_000)] + source_texts(1_000_000)
    found = Counter(
        span.kind
        for text in texts
        for span in (*find_strictly(text), *find_personal_strictly(text), *unannounced(text))
        if not text[: span.start].endswith("Written by ")
    )
    assert found.total() <= 2, found


PLAIN = (
    "client: Optional Prefect client. If not given, a new one is made.",
    "RFC 7230 section 3.3.2 and RFC 2818, RFC 6125",
    'names with a comma (such as "Lastname, Givenname" <a@b.c>)',
    "first_name = String(max_length=30)\nlast_name: str = Field(...)",
    "phone = models.CharField(max_length=15, validators=[1234567])",
    "address: 0x7ffe12345678, Address: 127.0.0.1:8080, address = Server 10.0.0.5",
    "contact: Support Team; customer: Acme Corporation; Patient: <PERSON_3f2a91bc>",
    "name,phone,address\nstr,str,str\n",
    "tel 3, sin: 0.123456, tax id: 123456789, cell 20",
    '{"teacher": "Quick Fox", "student": "Slow Bear", "full_name": "owner/name"}',
    "git 2.39 was born on a branch; born 10 days ago",
)


@pytest.mark.parametrize("text", PLAIN)
def test_the_rules_for_personal_data_leave_what_is_nobodys(text: str) -> None:
    found = [*find_personal_strictly(text), *unannounced(text)]
    assert [(span.kind, text[span.start : span.end]) for span in found] == []
