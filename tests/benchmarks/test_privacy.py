"""The instrument that measures redaction, and its thresholds for ours, in a small version."""

import random
import string
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from tracemill.privacy.redaction.redactor import Redactor

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks" / "privacy"
MODULES = ("corpus", "drivers", "judging", "report", "scores", "tools")
PER_KIND = 8
SMALL_MB = 0.4
ORDINARY_MB = 4.0  # which packages are installed decides what a smaller sample holds


@pytest.fixture(scope="module")
def bench() -> Iterator[SimpleNamespace]:
    """The scripts of the folder, imported as they import each other."""
    before = set(sys.modules)
    sys.path.insert(0, str(FOLDER))
    try:
        yield SimpleNamespace(**{name: __import__(name) for name in MODULES})
    finally:
        sys.path.remove(str(FOLDER))
        for name in set(sys.modules) - before:
            if str(FOLDER) in str(getattr(sys.modules[name], "__file__", "")):
                del sys.modules[name]


@pytest.fixture(scope="module")
def plants(bench: SimpleNamespace) -> list:
    return bench.corpus.plants(per_kind=PER_KIND)


def test_the_corpus_is_the_same_for_the_same_seed_and_another_for_another(bench: SimpleNamespace) -> None:
    first, again = bench.corpus.plants(per_kind=3), bench.corpus.plants(per_kind=3)
    assert [(p.kind.name, p.text, p.parts) for p in first] == [(p.kind.name, p.text, p.parts) for p in again]
    other = {part for p in bench.corpus.plants(7, per_kind=3) for part in p.parts}
    secret = [part for p in first if p.kind.category == "secret" for part in p.parts]
    assert len(secret) > 600
    assert other.isdisjoint(secret)


def test_kinds_are_many_named_once_and_split_evenly(bench: SimpleNamespace) -> None:
    kinds = bench.corpus.kinds()
    halves = Counter((kind.category, kind.half) for kind in kinds)
    assert len({kind.name for kind in kinds}) == len(kinds)
    assert sum(n for (category, _), n in halves.items() if category == "secret") >= 60
    assert sum(n for (category, _), n in halves.items() if category == "personal") >= 15
    for category in ("secret", "personal"):
        tune, report = halves[category, "tune"], halves[category, "report"]
        assert 0.4 <= tune / (tune + report) <= 0.6


def test_every_plant_holds_its_parts_until_they_are_redacted(bench: SimpleNamespace) -> None:
    for plant in bench.corpus.plants(per_kind=6):
        assert plant.parts
        assert not bench.judging.found(plant.parts, plant.text), (plant.kind.name, plant.setting)
        assert bench.judging.found(plant.parts, "<GONE>")


def test_every_kind_is_planted_in_all_the_settings_the_issue_names(bench: SimpleNamespace) -> None:
    places: dict[str, set[str]] = {}
    bare = set()
    for plant in bench.corpus.plants():
        places.setdefault(plant.kind.name, set()).add(plant.setting.split(":")[0])
        if not plant.keyword:
            bare.add(plant.kind.name)
    wanted = {"tool output", "json", "json in json", "shell", "diff", "code", "prose"}
    assert [name for name, found in places.items() if not wanted <= found] == []
    assert len(bare) >= 150


def test_no_planted_value_stands_in_the_source(bench: SimpleNamespace) -> None:
    source = "".join(path.read_text() for path in sorted(FOLDER.glob("*.py")))
    parts = {part for plant in bench.corpus.plants(per_kind=4) for part in plant.parts}
    assert [part for part in parts if len(part) >= 8 and part in source] == []


def test_our_own_rules_find_no_token_in_the_source() -> None:
    kinds: Counter[str] = Counter()
    for path in sorted(FOLDER.glob("*.py")):
        kinds.update(Redactor().redact_text(path.read_text())[1])
    assert not {kind for kind in kinds if kind.endswith(("_TOKEN", "_KEY", "_WEBHOOK", "AWS_KEY_ID", "JWT"))}


def test_a_rest_of_a_value_is_not_overlooked(bench: SimpleNamespace) -> None:
    value = "".join(random.Random(1).choices(string.ascii_letters, k=40))
    assert bench.judging.survives(value, f"...{value[20:32]}...")
    assert not bench.judging.survives(value, f"...{value[20:31]}...")
    assert bench.judging.survives("Tr0ub4dor", "Tr0ub4")
    assert not bench.judging.survives("Tr0ub4dor", "Tr0ub")
    assert not bench.judging.found(("first-part-1", "other-part-2"), "<X> other-part-2")


@pytest.mark.parametrize(
    ("before", "after", "olds"),
    [
        ("a = 1\nkey: abcdef", "a = 1\nkey: <SECRET_12ab>", ["abcdef"]),
        ("x b c d e y", "x <IP_00aa> c d <IP_00ab> y", ["b", "e"]),
        ("one\ntwo\nthree", "one\nthree", ["two"]),
        ("same", "same", []),
    ],
)
def test_changes_are_counted_place_by_place(
    bench: SimpleNamespace, before: str, after: str, olds: list[str]
) -> None:
    assert [change.old.strip() for change in bench.judging.changes(before, after)] == olds


def test_a_real_address_is_no_false_alarm_and_a_version_is_one(bench: SimpleNamespace) -> None:
    def judged(before: str, after: str) -> list[bool]:
        return [bench.judging.is_really_there(c) for c in bench.judging.changes(before, after)]

    assert judged("listening on 10.4.7.21 now", "listening on <IP_12ab> now") == [True]
    assert judged("see kim@users.noreply.github.com there", "see <EMAIL_12ab> there") == [True]
    assert judged("File /home/mira/app.py", "File /home/user_12ab/app.py") == [True]
    assert judged("IPv4Address('10.4.7.21') <= other", "IPv4Address('<IP_12ab>') <= other") == [True]
    assert judged("# Copyright (C) 2012 Arthur de Jong", "# Copyright (C) 2012 <PERSON_12ab>") == [True]
    assert judged(" * Copyright(c) 2012 Isaac Z. Schlueter", " * Copyright(c) 2012 <PERSON_12ab>") == [True]
    assert judged("# Author: Mira Okonjo, Per Lind", "# Author: Mira Okonjo, <PERSON_12ab>") == [True]
    assert judged("# Copyright 1991, Example Foundation Ltd", "# Copyright 1991, <PERSON_12ab>") == [False]
    assert judged("Arthur Table = 3", "<PERSON_12ab> = 3") == [False]
    assert judged("cryptography>=10.4.7.21", "cryptography>=<IP_12ab>") == [False]
    assert judged("version 10.4.7.21 of x", "version <IP_12ab> of x") == [False]
    assert judged("checksum = 8d5f00aa", "checksum = <SECRET_12ab>") == [False]


def test_our_redactor_holds_the_thresholds_on_the_half_it_was_not_tuned_on(
    bench: SimpleNamespace, plants: list
) -> None:
    redactor = Redactor(key=b"benchmark")
    score = bench.scores.recall(plants, [redactor.redact_text(plant.text)[0] for plant in plants])
    assert score.of("report", "secret") >= 0.95
    assert score.of("report", "personal") >= 0.85


def test_our_redactor_gives_few_false_alarms_on_ordinary_text(bench: SimpleNamespace) -> None:
    redactor = Redactor(key=b"benchmark")
    texts = bench.report.ordinary(bench.corpus.SEED, ORDINARY_MB)
    per_mb = {}
    for name, each in texts.items():
        if each:
            redacted = [redactor.redact_text(text)[0] for text in each]
            per_mb[name] = bench.scores.alarms(each, redacted).per_mb
    assert "tool output and logs" in per_mb
    assert {name: rate for name, rate in per_mb.items() if rate > 5} == {}


def test_what_a_scanner_reports_is_replaced_in_its_line_alone(bench: SimpleNamespace) -> None:
    item = {"text": "token a\ntoken = a1b2c3\nkey\nx", "decode": False}
    assert bench.drivers._replaced(item, {(2, "a1b2c3")}) == "token a\ntoken = <FOUND>\nkey\nx"
    assert (
        bench.drivers._replaced(item, {(2, "token"), (3, "key\nx")}) == "token a\n<FOUND> = a1b2c3\n<FOUND>"
    )
    nested = {"text": '{"a": "one\\ntwo"}', "decode": True}
    assert bench.drivers._file_text(nested) == "one\ntwo"
    assert bench.drivers._replaced(nested, {(1, "one\ntwo")}) == '{"a": "<FOUND>"}'


def test_a_tool_that_cannot_be_installed_is_reported(bench: SimpleNamespace, plants: list) -> None:
    absent = bench.tools.Tool("nowhere", "", None, "No matching distribution found")
    judged = bench.report.judge(absent, plants, {})
    assert judged == {"version": None, "problem": "No matching distribution found"}
