"""Secrets that one session gave away, found in the others and in whatever is published."""

import random
import stat
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest
from leak_corpus import MISSED_FORMS, SESSION_FORMS, cases, session_secret
from ordinary_texts import LOGS, ordinary, source_texts

from tracemill.flows.admission.list_scope import NO_LISTS
from tracemill.flows.admission.reredaction import Renewer
from tracemill.privacy.core.placeholder_keys import workspace_key
from tracemill.privacy.personal.known_identity import make_known
from tracemill.privacy.publish_gate.gate import PublishGate
from tracemill.privacy.publish_gate.scan_paths import Scanner
from tracemill.privacy.publish_gate.strict_rules import find_strictly
from tracemill.privacy.redaction.known_secrets import KNOWN_SECRETS, KnownSecrets
from tracemill.privacy.redaction.redactor import Redactor
from tracemill.records.errors import PrivacyError
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
    renewer = Renewer.of(work, redactor, NO_LISTS)
    rng, left, told = random.Random(first), [], []
    for number in range(40):
        value, form = session_secret(rng), SESSION_FORMS[number % len(SESSION_FORMS)]
        names = [f"s{number}", f"s{number}-agent"]
        texts = [f"export DB_PASSWORD='{value}'", form.replace("{v}", value)]
        if first == "subagent":
            texts.reverse()
        made = [trace(names[0], texts[0]), trace(names[1], texts[1], names[0])]
        stored = [redactor.redact_trace(each)[0] for each in made]
        renewer.known.add(redactor.pop_found_secrets())
        renewed = [renewer.renew(each) for each in stored]
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
    renewer = Renewer.of(work, redactor, NO_LISTS)
    renewer.known.add({"Velvet9-Otter!42": "PASSWORD", "changeme": "PASSWORD", "postgres": "PASSWORD"})
    texts = [text for kind in LOGS for text in ordinary(kind, 3, 20_000)]
    stored = redactor.redact_trace(trace("s", "\n".join(texts)))[0]
    noted = renewer.renew(stored).trace
    assert noted.contexts == stored.contexts
    assert renewer.known.find(["changeme postgres", *texts]) == {}


def test_the_gate_finds_what_was_planted_behind_ingest(tmp_path: Path) -> None:
    """Plants in texts as a release holds them: of every native form, bare values of sessions, and values in
    words that redaction's rules leave."""
    redactor = Redactor(key=KEY)
    secrets = KnownSecrets(tmp_path / KNOWN_SECRETS, KEY)
    rng = random.Random(11)
    plants: list[tuple[str, tuple[str, ...]]] = [
        (case.planted.text, case.planted.parts) for case in cases(7, 1) if case.group == "native"
    ]
    for number in range(60):
        value = session_secret(rng)
        redactor.redact_trace(trace(f"s{number}", f"DB_PASSWORD={value}\n"))
        plants.append((SESSION_FORMS[number % len(SESSION_FORMS)].replace("{v}", value), (value,)))
    for number in range(40):
        value = session_secret(rng)
        plants.append((MISSED_FORMS[number % len(MISSED_FORMS)].replace("{v}", value), (value,)))
    secrets.add(redactor.pop_found_secrets())
    rng.shuffle(plants)
    missed_by_ingest, passed = 0, []
    for number, (text, parts) in enumerate(plants):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "rows.txt").write_text(text)
        missed = any(part in Redactor(key=KEY).redact_text(text)[0] for part in parts)
        gate = PublishGate(Scanner(make_known([]), KEY, ALONE, secrets), "r", folder / "accepted.json")
        with suppress(PrivacyError):
            gate.judge(folder)
            passed.append((missed, text))
        missed_by_ingest += missed
    found, found_of_missed = len(plants) - len(passed), missed_by_ingest - sum(missed for missed, _ in passed)
    assert len(plants) > 170
    assert missed_by_ingest > 60
    assert found_of_missed >= 0.5 * missed_by_ingest, (found_of_missed, missed_by_ingest)
    assert found >= 0.95 * len(plants), (found, len(plants), passed)


def test_the_strict_rules_leave_ordinary_text(tmp_path: Path) -> None:
    texts = [text for kind in LOGS for text in ordinary(kind, 5, 200_000)] + source_texts(1_000_000)
    found = Counter(span.kind for text in texts for span in find_strictly(text))
    assert found.total() <= 2, found
