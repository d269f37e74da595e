# ruff: noqa: E501 (rows)
"""Names of authors: as tools of versions print them, in address books, and in the rest of a session."""

import base64
import dataclasses
import re

import pytest
from secret_sessions import HARNESS_NAMES, command_call, output_trace, trace_of
from whole_records import whole_text

from tracemill.privacy.personal.author_formats import find_author_forms
from tracemill.privacy.redaction.redactor import Redactor
from tracemill.records.message import Message

REDACTOR = Redactor(key=b"k")
NAMES = ("Quirin Lohse", "Anneliese van Drimmelen", "Jean-Luc Marchetti", "\u00c9mile Zieli\u0144ski")
HASH, LONG = "4f9850a", "b52901a6ccaccdb251bce79793a67c9eb52901a6"
PRINTED = {
    "git log --format=%an": "@\n",
    "git log --format='%an' | sort | uniq -c | sort -rn": "     12 @\n      3 @\n",
    "git log --pretty='%h %an %s' -5": f"{HASH} @ fix the tide\n",
    "git log --pretty=format:'%h %aN %s'": f"{HASH} @ Fix Tide tables\n",
    "git --no-pager log --format='%an|%ad|%s'": "@|Mon Nov 23 10:00:00 2026 +0100|fix tide\n",
    "git log --format='%H%x09%cn%x09%s'": f"{LONG}\t@\tfix tide\n",
    'git log -1 --pretty=format:\'{"by": "%an", "of": "%h"}\'': f'{{"by": "@", "of": "{HASH}"}}\n',
    "git log --format='%an <%ae>'": "@ <q@shore.dev>\n",
    "git log --format='%h%n%an%n%s'": f"{HASH}\n@\nfix tide\n",
    "git log --format='%C(yellow)%h%Creset %an, %ar: %s'": f"{HASH} @, 2 days ago: fix tide\n",
    "git for-each-ref --format='%(refname:short) %(authorname)'": "main @\n",
    "git show -s --format=%cn HEAD": "@\n",
    "git log --format='%an %ae' | awk '{print $1, $2}'": "@\n",
    "hg log --template '{author|person}: {desc}\\n'": "@: fix tide\n",
    "git blame -p a.py": f"{LONG} 1 1 1\nauthor @\nauthor-mail <q@shore.dev>\nauthor-time 1700000000\n",
    "git cat-file -p HEAD": f"tree {LONG}\nauthor @ <q@shore.dev> 1700000000 +0200\ncommitter @ <q@shore.dev> 1700000000 +0200\n",
    "cat .git/logs/HEAD": f"{LONG} {LONG} @ <q@shore.dev> 1700000000 +0200\tcommit: x\n",
    "git shortlog -sne": "    12\t@ <q@shore.dev>\n",
    "hg log": "changeset:   1:b52901a6ccac\nuser:        @ <q@shore.dev>\nsummary:     x\n",
    "hg log -l 1": "changeset:   1:b52901a6ccac\nuser:        @\nsummary:     x\n",
    "cat AUTHORS": "Made by:\n\n@ <q@shore.dev>\n",
    "cat card.vcf": "BEGIN:VCARD\nFN:@\nEND:VCARD\n",
    "cat users.ldif": "dn: uid=ql,dc=shore\nobjectClass: person\ncn: @\n",
    "ldapsearch -x": "dn: cn=@,ou=people,dc=shore\nobjectClass: person\n",
}


def _output(harness: str, line: str, output: str) -> str:
    return REDACTOR.redact_trace(output_trace(harness, line, output))[0].contexts[0].messages[2].content


def test_names_go_from_every_form_in_which_authors_are_printed() -> None:
    left = [
        (line, name)
        for at, (line, output) in enumerate(PRINTED.items())
        for name in NAMES
        if name in _output(HARNESS_NAMES[at % 3], line, output.replace("@", name).replace(f"q{name}", "q@"))
    ]
    assert len(PRINTED) == 24
    assert left == []


def test_what_stands_beside_a_name_stays() -> None:
    told = _output("claude_code", "git log --format='%h %an %s'", f"{HASH} Quirin Lohse Fix Tide tables\n")
    assert re.fullmatch(rf"{HASH} <PERSON_[0-9a-f]{{8}}> Fix Tide tables\n", told)
    same = f"{HASH} dependabot[bot] Bump Tide\n{HASH} GitHub Actions Release Two\n"
    assert _output("claude_code", "git log --format='%h %an %s'", same) == same


@pytest.mark.parametrize(
    "line", ["git log --oneline", "git log --format=%h", "git log --format='%s'", "git status"]
)
def test_forms_without_names_are_none(line: str) -> None:
    assert find_author_forms(line) == ()


def test_accounts_of_subversion_and_mercurial_go() -> None:
    told = _output(
        "claude_code", "svn log -l 1", "r123 | qlohse | 2026-01-01 12:00:00 +0000 (Thu) | 1 line\n"
    )
    assert "qlohse" not in told
    assert told.startswith("r123 | ")
    assert "qlohse" not in _output("claude_code", "svn info", "Last Changed Author: qlohse\n")
    assert "qlohse" not in _output("claude_code", "hg log", "changeset:   1:b5\nuser:        qlohse\n")


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_was_taken_once_goes_in_the_rest_of_the_session(name: str) -> None:
    first, last = name.split(" ")[0], name.split(" ")[-1]
    forms = [name, name.upper(), f"{last}, {first}", name.replace(" ", "\n"), name.replace(" ", ".").lower()]
    log = f"commit {LONG}\nAuthor: {name} <q@shore.dev>\n\n    fix\n"
    for form in forms:
        trace = trace_of(
            Message("user", f"ask {form} first"),
            command_call("git log -1"),
            Message("tool", log, tool_call_id="c1"),
            command_call(f"grep -rn '{form}' .", "c2"),
            Message("tool", f"reviewed by {form} yesterday\n", tool_call_id="c2"),
            Message("assistant", f"It was {form}."),
        )
        redacted, found = REDACTOR.redact_trace(trace)
        assert form not in whole_text(redacted)
        assert last not in whole_text(redacted)
        assert found["PERSON"] >= 4
        assert len(set(re.findall(r"PERSON_[0-9a-f]{8}", whole_text(redacted)))) == 1
        assert REDACTOR.redact_again(redacted).found.total() == 0
        again = REDACTOR.redact_trace(dataclasses.replace(redacted, redaction=None))[0]
        assert again == redacted


def test_a_name_left_by_older_rules_goes_when_the_text_is_redacted_again() -> None:
    log = f"commit {LONG}\nAuthor: Quirin Lohse <q@shore.dev>\n\n    fix\n"
    old, _ = REDACTOR.redact_trace(output_trace("claude_code", "git log -1", log))
    context = old.contexts[0]
    left = Message("assistant", "Ask the reviewer Quirin Lohse today.")
    old = dataclasses.replace(
        old, contexts=(dataclasses.replace(context, messages=(*context.messages, left)),), redaction="r1"
    )
    assert "Lohse" not in whole_text(REDACTOR.redact_again(old).trace)


def test_entries_of_address_books() -> None:
    card = "BEGIN:VCARD\nVERSION:4.0\nN:Lohse;Quirin;;;\nFN:Quirin Lohse\nADR;TYPE=home:;;Lindenstr. 17;Berlin;;10969;DE\nBDAY:19800203\nORG:Shore\nEND:VCARD\n"
    told, found = REDACTOR.redact_text(card)
    assert [each for each in ("Lohse", "Quirin", "Lindenstr", "10969", "19800203") if each in told] == []
    assert found == {"PERSON": 3, "ADDRESS": 1, "BIRTH_DATE": 1}
    assert "ORG:Shore" in told
    assert "VERSION:4.0" in told
    coded = base64.b64encode("J\u00fcrgen Lohse".encode()).decode()
    entry = f"dn: uid=ql,dc=shore\ncn:: {coded}\nsn: Lohse\ngivenName: J\u00fcrgen\npostalAddress: Lindenstr. 17 $ 10969 Berlin\nou: people\n"
    told, found = REDACTOR.redact_text(entry)
    assert [each for each in (coded, "Lohse", "J\u00fcrgen", "Lindenstr") if each in told] == []
    assert found == {"PERSON": 3, "ADDRESS": 1}
    assert (
        REDACTOR.redact_text("dn: cn=admins,ou=groups\ncn: admins\n")[0]
        == "dn: cn=admins,ou=groups\ncn: admins\n"
    )
