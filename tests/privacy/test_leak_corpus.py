"""Recall on a drawn corpus of leaks, plain and behind the prefixes of lines, and alarms on ordinary text."""

import re
from collections import Counter

import pytest
from leak_corpus import PREFIXES, Case, cases, prefixed
from ordinary_texts import LOGS, ordinary, source_texts

from tracemill.privacy.redaction.redactor import Redactor

SEED = 20_261_123
REDACTOR = Redactor(key=b"k" * 32)
GOALS = {"shape": 0.99, "said": 0.99, "native": 0.92, "personal": 0.85}
LEAST = {"shape": 1400, "said": 60, "native": 300, "personal": 120}  # parts planted in a half
KIND = 0.95  # of a shape in all its settings, of what is said of one kind of value
PLACEHOLDER = re.compile(r"<[A-Z][A-Z_0-9]*_[0-9a-f]{8}>|REDACTED_[A-Z_0-9]+_[0-9a-f]{8}|user_[0-9a-f]{8}")
PUBLIC = {"EMAIL", "PERSON", "IP"}  # which the standard library holds: those of its authors


def _kept(case: Case, redacted: str) -> list[str]:
    return [part for part in case.planted.parts if part in redacted]


@pytest.mark.parametrize("half", ["seen", "held"])
def test_planted_values_are_found(half: str) -> None:
    planted: Counter[str] = Counter()
    missed: Counter[str] = Counter()
    forms: Counter[str] = Counter()
    for case in cases(SEED, 5, *GOALS):
        kept = _kept(case, REDACTOR.redact_text(case.planted.text)[0])
        kind = f"{case.group}: {case.form.rstrip('0123456789')}" if case.group in ("shape", "said") else ""
        for name in {case.group, kind} if case.half == half else {kind}:
            planted[name] += len(case.planted.parts)
            missed[name] += len(kept)
        forms[f"{case.group}: {case.form}"] += len(kept)
    assert {group: planted[group] for group in GOALS if planted[group] < LEAST[group]} == {}
    recall = {name: 1 - missed[name] / count for name, count in planted.items() if name}
    assert {n: share for n, share in recall.items() if share < GOALS.get(n, KIND)} == {}, +forms


def test_prefixes_of_lines_hide_nothing() -> None:
    planted: Counter[str] = Counter()
    plain: Counter[str] = Counter()
    behind: Counter[str] = Counter()
    for prefix, bare, dressed in prefixed(SEED):
        planted[prefix] += len(bare.planted.parts)
        plain[prefix] += len(_kept(bare, REDACTOR.redact_text(bare.planted.text)[0]))
        behind[prefix] += len(_kept(dressed, REDACTOR.redact_text(dressed.planted.text)[0]))
    assert set(planted) == set(PREFIXES)
    assert min(planted.values()) > 150
    assert {p: (plain[p], behind[p]) for p in planted if behind[p] > plain[p] + 0.01 * planted[p]} == {}


def test_what_stands_around_a_finding_stays_to_the_byte() -> None:
    texts = 0
    for _, _, dressed in prefixed(SEED + 1):
        text = dressed.planted.text
        redacted, found = REDACTOR.redact_text(text)
        pieces, at = PLACEHOLDER.split(redacted), 0
        assert text.startswith(pieces[0])
        assert text.endswith(pieces[-1])
        for piece in pieces:
            at = text.find(piece, at)
            assert at >= 0, (dressed.form, piece)
            at += len(piece)
        texts += bool(found)
    assert texts > 1200


def test_a_value_of_one_line_is_taken_without_the_prefix_of_the_next() -> None:
    text = "     1→machine host.dev\n     2→login kim\n     3→password Velvet-Otter-4711\n     4→\n"
    redacted, found = REDACTOR.redact_text(text)
    assert found == Counter(PASSWORD=1)
    assert re.sub(r"<PASSWORD_\w+>", "Velvet-Otter-4711", redacted) == text


def test_both_sides_of_a_diff_are_read() -> None:
    changed = "-password Velvet-Otter-4711\n+password Cedar-Heron-0815\n"
    text = f"@@ -1,4 +1,4 @@\n machine host.dev\n login kim\n{changed}"
    redacted, found = REDACTOR.redact_text(text)
    assert found == Counter(PASSWORD=2)
    assert re.sub(r"<PASSWORD_\w+>", "X", redacted) == re.sub(r"(?<=password )\S+", "X", text)


@pytest.mark.parametrize("kind", LOGS)
def test_ordinary_output_raises_hardly_an_alarm(kind: str) -> None:
    texts = ordinary(kind, SEED, 700_000)
    found = sum((REDACTOR.redact_text(text)[1] for text in texts), Counter())
    assert found.total() <= sum(map(len, texts)) / 1e6, found


def test_source_code_raises_hardly_an_alarm() -> None:
    texts = source_texts(1_500_000)
    found = sum((REDACTOR.redact_text(text)[1] for text in texts), Counter())
    wrong = {kind: count for kind, count in found.items() if kind not in PUBLIC}
    assert sum(map(len, texts)) > 1_000_000
    assert sum(wrong.values()) <= 5 * sum(map(len, texts)) / 1e6, wrong
