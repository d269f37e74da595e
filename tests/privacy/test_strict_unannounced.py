"""Values that nothing announces: what redaction takes, what the strict rules find at the gate, what stays."""

import base64
import random
import string

import pytest

from tracemill.privacy.personal.known_identity import make_known
from tracemill.privacy.publish_gate.scan_paths import find_in_release, scan_own_spans
from tracemill.privacy.redaction.detectors import Detectors
from tracemill.privacy.redaction.redactor import Redactor

RULES = Detectors(make_known([]))


def drawn(size: int, letters: str = string.ascii_letters + string.digits, seed: int = 5) -> str:
    return "".join(random.Random(f"{size} {letters} {seed}").choices(letters, k=size))


def encoded(size: int) -> str:
    return base64.b64encode(random.Random(size).randbytes(size)).decode()


HEX = drawn(64, "0123456789abcdef")
HIDDEN = f"password={drawn(18)}"
MAIL = "ingrid.wojcik@lanternmail.org"
FOUND = {
    "a random word": ("It answered only after I passed {} to it.", drawn(24, seed=6)),
    "Base64 in a call": ("handshake('{}')", encoded(33)),
    "letters and signs": ("it asked, so I typed {}", "yUa4mSA9LkRx^x"),
    "a phrase after a login": ("the router admin page wants {}", "copper-meadow291"),
    "hex in a session": ("session handle {}", HEX),
    "Base64 of an address": ("data: {}", base64.b64encode(MAIL.encode()).decode()),
    "hex of an address": ("-d {}", MAIL.encode().hex()),
    "percent signs": ("blob={}", HIDDEN.replace("=", "%3D")),
}
REDACTED = {
    "a word made as passwords are": ("Used `{}` to get in and it worked.", "Willow6807#"),
    "a Spanish number": ("{} was rejected by the form", "71868094V"),
    "a Chilean number": ("row 17 has {}", "12.353.560-K"),
    "a Swiss number": ("'{}' fails validation", "756.2008.5134.23"),
    "an Indian number": ("she entered {}", "6510 6645 9515"),
    "a role": ("customer {} complained", "Noemi Lindqvist"),
    "whose laptop": ("from {}'s laptop", "Tomasz Yildiz"),
    "a number to call": ("call {} after six", "(148) 348-2635"),
    "an address": ("{} is where the parcel went", "112 Foundry Gardens, Graz 95494"),
    "a role in bold": ("**Owner:** {} \u00b7 epic", "Noemi Lindqvist"),
    "a role in a table": ("| reviewer | {} |", "Noemi Lindqvist"),
    "a reviewer": ("It was reviewed by {} on Monday.", "Noemi Lindqvist"),
    "a contact of YAML": ("contact:\n  name: {}\n", "Noemi Lindqvist"),
    "an account in small letters": ("wire it to {} today", "gb82 west 1234 5698 7654 32"),
    "a spelled address": ("write to {} today", "noemi.l at lanternmail dot org"),
    "a code for one login": ("Your login code is {}", "482913"),
    "a link to reset": ("https://lantern.example/account/reset?t={}", drawn(32)),
    "a key of a cipher": ("Fernet('{}')", f"{drawn(43)}="),
}


@pytest.mark.parametrize("name", REDACTED)
def test_what_the_gate_found_in_whole_sessions_is_redacted(name: str) -> None:
    text, value = REDACTED[name]
    whole = text.format(value)
    shown, found = Redactor(key=b"k").redact_text(whole)
    assert value not in shown
    assert sum(found.values()) == 1
    assert any(whole[s.start : s.end] == value for s in scan_own_spans(RULES, whole, ""))


@pytest.mark.parametrize("name", FOUND)
def test_what_redaction_leaves_the_gate_finds(name: str) -> None:
    text, value = FOUND[name]
    whole = text.format(value)
    assert value in Redactor(key=b"k").redact_text(whole)[0]
    start = whole.index(value)
    spans = find_in_release(RULES, whole, "")
    assert any(span.start <= start and start + len(value) - 1 <= span.end for span in spans)


LEFT = {
    "a list of checksums": f"{HEX}  dist/session-1.2.0.tar.gz\n",
    "a digest of a lock file": f"k8s.io/api v0.1.0/go.mod h1:{encoded(32)}",
    "a line of a block": "\n".join([encoded(60)] * 3),
    "a commit": f"session of commit {HEX[:40]}",
    "a number without its check digit": "row 17 has 71868094T and 12.353.560-1 and 6510 6645 9516",
    "code": 'self.login_form = LoginForm2(request.form) if is_admin(user) else hash_sha256("utf8")',
    "what is somebody's": "Before reviewing, ask Linus's Three Questions",
    "a group": "customer Success Team",
    "a heading": "#### Phase 3: Stakeholder Perspective Analysis\nClient Side Monitoring",
    "placeholders": "login as <SECRET_1a2b3c4d> or call <PHONE_1a2b3c4d>",
}


@pytest.mark.parametrize("name", LEFT)
def test_ordinary_text_stays(name: str) -> None:
    assert find_in_release(RULES, LEFT[name], "") == []
    assert Redactor(key=b"k").redact_text(LEFT[name])[0] == LEFT[name]
