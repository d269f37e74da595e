"""Texts that were clean are not read again by either scanner, and what is new in a release still is."""

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tracemill.privacy.core.user_lists import UserList
from tracemill.privacy.personal.known_identity import KnownValues, make_known
from tracemill.privacy.publish_gate import clean_texts, scan_paths
from tracemill.privacy.publish_gate.clean_texts import CleanTexts
from tracemill.privacy.publish_gate.kingfisher import KingfisherMatch
from tracemill.privacy.publish_gate.scan_paths import Scanner, ScanResult
from tracemill.privacy.redaction.known_secrets import KnownSecrets

KEY = b"k" * 32
SECRET = "ghp_" + "Ab1" * 12
ALONE = {"TRACEMILL_KINGFISHER": "none"}
WORD = "Zq7-Lm4x-Tr9v-Wk2p"


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Texts that the rules were asked about, in order."""
    seen: list[str] = []
    whole = scan_paths.scan_own_spans

    def look(rules: Any, text: str, name: str) -> Any:
        seen.append(text)
        return whole(rules, text, name)

    monkeypatch.setattr(scan_paths, "scan_own_spans", look)
    return seen


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What kingfisher was given, one text for each time it ran."""
    runs: list[str] = []
    whole = scan_paths.run_kingfisher

    def look(binary: Path, folder: Path, environ: Any) -> Any:
        runs.append("".join(path.read_text() for path in sorted(folder.iterdir())))
        return whole(binary, folder, environ)

    monkeypatch.setattr(scan_paths, "run_kingfisher", look)
    return runs


def scan(folder: Path, known: KnownValues | None = None, environ: Mapping[str, str] = ALONE) -> ScanResult:
    secrets = KnownSecrets(folder / "known", KEY)
    scanner = Scanner(known or make_known([]), KEY, environ, secrets, folder / "clean")
    return scanner.scan(folder / "rows")


def rows(folder: Path, *texts: str) -> None:
    (folder / "rows").mkdir(exist_ok=True)
    lines = (json.dumps({"text": text}) for text in texts)
    (folder / "rows" / "rows.jsonl").write_text("".join(f"{line}\n" for line in lines))


def test_a_second_scan_reads_what_is_new_and_finds_what_is_in_it(tmp_path: Path, read: list[str]) -> None:
    texts = [f"step {number} edits the file" for number in range(20)]
    rows(tmp_path, *texts)
    assert scan(tmp_path).findings == ()
    assert set(texts) <= set(read)
    read.clear()
    assert scan(tmp_path).texts > 20
    assert not set(texts) & set(read)
    read.clear()
    rows(tmp_path, *texts, f"token {SECRET}")
    [found] = scan(tmp_path).findings
    assert found.rule == "GITHUB_TOKEN"
    assert [text for text in read if text in (*texts, f"token {SECRET}")] == [f"token {SECRET}"]
    read.clear()
    assert len(scan(tmp_path).findings) == 1  # a text with a finding is read again, and found again
    assert f"token {SECRET}" in read


def test_kingfisher_gets_what_is_new_or_was_not_clean(
    tmp_path: Path, given: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [f"step {number} edits the file" for number in range(20)]
    rows(tmp_path, *texts)
    first = scan(tmp_path, environ=os.environ)
    assert len(given) == 1
    assert all(text in given[0] for text in texts)
    second = scan(tmp_path, environ=os.environ)
    assert len(given) == 1  # nothing new: it is not started
    assert (second.findings, second.texts, second.second) == ((), first.texts, first.second)
    rows(tmp_path, *texts, f"token {SECRET}", "a new step")
    for run in (2, 3):
        [found] = scan(tmp_path, environ=os.environ).findings
        assert found.rule == "GITHUB_TOKEN"
        assert SECRET in given[-1]
        assert "a new step" in given[1]
        assert len(given) == run
        assert not any(text in given[-1] for text in texts)
    assert "a new step" not in given[2]
    monkeypatch.setattr(scan_paths, "kingfisher_version", lambda binary: "9.9.9")
    scan(tmp_path, environ=os.environ)
    assert all(text in given[-1] for text in texts)


def test_what_was_scanned_without_kingfisher_counts_for_no_scan_with_it(
    tmp_path: Path, read: list[str], given: list[str]
) -> None:
    rows(tmp_path, "step 1 edits the file")
    scan(tmp_path)
    read.clear()
    scan(tmp_path, environ=os.environ)
    assert "step 1 edits the file" in read
    assert "step 1 edits the file" in given[0]


def test_a_text_that_only_kingfisher_finds_is_never_remembered_as_clean(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows(tmp_path, "the word is mimosa")
    whole = scan_paths.run_kingfisher

    def look(binary: Path, folder: Path, environ: Any) -> Any:
        found = whole(binary, folder, environ)
        file = next(path for path in folder.iterdir() if path.name != "canary.txt")
        line = file.read_text().split("mimosa")[0].count("\n") + 1
        return [*found, KingfisherMatch("kingfisher:made-up", file.name, line, "mimosa")]

    monkeypatch.setattr(scan_paths, "run_kingfisher", look)
    for _ in range(3):
        [found] = scan(tmp_path, environ=os.environ).findings
        assert found.rule == "kingfisher:made-up"


def test_json_that_declares_a_value_private_declares_it_in_every_scan(tmp_path: Path) -> None:
    declares = json.dumps({"login": "noemi", "name": "Noemi Lindqvist", "note": "as Noemi Lindqvist says"})
    rows(tmp_path, declares, "step 1 edits the file")
    found = [[(each.rule, each.fingerprint) for each in scan(tmp_path).findings] for _ in range(3)]
    assert [rule for rule, _ in found[0]] == ["PERSON"]
    assert found[0] == found[1] == found[2]


def test_a_secret_that_becomes_known_is_found_in_a_text_that_was_clean(tmp_path: Path) -> None:
    rows(tmp_path, f"he wrote {WORD} there")
    assert scan(tmp_path).findings == ()
    KnownSecrets(tmp_path / "known", KEY).add({WORD: "SECRET"})
    assert [found.rule for found in scan(tmp_path).findings] == ["SECRET"]


def test_other_values_to_search_for_and_other_rules_begin_anew(
    tmp_path: Path, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows(tmp_path, "the host is mimosa")
    assert scan(tmp_path).findings == ()
    for known in (make_known([], hosts=["mimosa"]), replace(make_known([]), redact=UserList(("mimosa",)))):
        assert len(scan(tmp_path, known).findings) == 1
    scan(tmp_path)
    read.clear()
    scan(tmp_path)
    assert "the host is mimosa" not in read
    monkeypatch.setattr(clean_texts, "_source_digest", lambda: "of later rules")
    scan(tmp_path)
    assert "the host is mimosa" in read


def test_the_file_forgets_what_no_file_holds_and_is_the_owners_alone(tmp_path: Path) -> None:
    rows(tmp_path, *(f"row {number}" for number in range(50)))
    scan(tmp_path)
    size = (tmp_path / "clean").stat().st_size
    rows(tmp_path, "row 1")
    scan(tmp_path)
    assert (tmp_path / "clean").stat().st_size < size - 49 * 16 + 16
    assert (tmp_path / "clean").stat().st_mode & 0o777 == 0o600
    assert b"row" not in (tmp_path / "clean").read_bytes()
    (tmp_path / "clean").write_bytes(b"damaged")
    assert not CleanTexts(tmp_path / "clean", KEY, make_known([]), None).holds(b"x")


def test_a_scan_that_is_interrupted_keeps_what_the_rules_found_clean(
    tmp_path: Path, read: list[str], given: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kingfisher has read none of it, so it gets all of it; a text with a finding is looked at again."""
    rows(tmp_path, "first plain text", f"the token {SECRET}", "second plain text")
    monkeypatch.setattr(scan_paths, "_SAVE_EVERY_S", 0.0)
    judge = scan_paths.scan_own_spans

    def stop(rules: Any, text: str, name: str) -> Any:
        if text == "second plain text":
            raise KeyboardInterrupt
        return judge(rules, text, name)

    with monkeypatch.context() as patched:
        patched.setattr(scan_paths, "scan_own_spans", stop)
        with pytest.raises(KeyboardInterrupt):
            scan(tmp_path, environ=os.environ)
    assert given == []
    read.clear()
    found = scan(tmp_path, environ=os.environ)
    assert "first plain text" not in read
    assert {f"the token {SECRET}", "second plain text"} <= {*read}
    assert [each.rule for each in found.findings] == ["GITHUB_TOKEN"]
    [text] = given
    assert "first plain text" in text
    assert "second plain text" in text
    read.clear()
    scan(tmp_path, environ=os.environ)
    assert "second plain text" not in read
