"""`Scanner` and `preview_changes` on files of every kind: what is found where, and what never shows."""

import html
import json
import os
import random
import sqlite3
import string
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracemill.data_cards.card.render_card import cell_of_lines
from tracemill.privacy.core.rule import Span
from tracemill.privacy.personal.known_identity import make_known
from tracemill.privacy.publish_gate import scan_paths
from tracemill.privacy.publish_gate.documents import SkippedFiles
from tracemill.privacy.publish_gate.findings import finding_value_spans, mask_finding_excerpt
from tracemill.privacy.publish_gate.preview_changes import preview_changes, preview_changes_with_values
from tracemill.privacy.publish_gate.scan_paths import Scanner, ScanProgress, ScanResult
from tracemill.privacy.redaction.known_secrets import KnownSecrets
from tracemill.privacy.redaction.redactor import Redactor
from tracemill.records.errors import SourceError

KNOWN = make_known([])
KEY = b"k" * 32


def token(seed: int = 1) -> str:
    """A token of GitHub's form that nobody was given."""
    letters = string.ascii_letters + string.digits
    return "gh" + "p_" + "".join(random.Random(seed).choices(letters, k=36))


def scan(path: Path) -> ScanResult:
    return Scanner(KNOWN, KEY, {"TRACEMILL_KINGFISHER": "none"}).scan(path)


def places(path: Path) -> list[tuple[str, int | None, int | None, str, str]]:
    return [(f.file, f.row, f.line, f.column, f.rule) for f in scan(path).findings]


def test_a_text_file_is_read_line_by_line(tmp_path: Path) -> None:
    path = tmp_path / "notes.md"
    path.write_text(f"one\ntwo\nexport GITHUB_TOKEN={token()}\nfour\n")
    assert places(path) == [("notes.md", None, 3, "", "GITHUB_TOKEN")]
    assert scan(path).findings[0].excerpt == "one two export GITHUB_TOKEN=[GITHUB_TOKEN, 40 characters] four"


def test_json_lines_are_decoded_also_json_within_and_a_broken_line_is_text(tmp_path: Path) -> None:
    inner = json.dumps({"command": f"echo hi\n{token(1)}"})
    lines = [
        json.dumps({"message": {"calls": [{"arguments": inner}]}}),
        "broken { " + token(2),
        json.dumps(
            {"env": {"DB_PASSWORD": "Zk9!vvQm2"}, "pairs": [{"name": "API_TOKEN", "value": token(3)}]}
        ),
    ]
    (tmp_path / "s.jsonl").write_text("\n".join(lines) + "\n")
    assert places(tmp_path / "s.jsonl") == [
        ("s.jsonl", None, 1, "message.calls[0].arguments.command", "GITHUB_TOKEN"),
        ("s.jsonl", None, 2, "", "GITHUB_TOKEN"),
        ("s.jsonl", None, 3, "env.DB_PASSWORD", "PASSWORD"),
        ("s.jsonl", None, 3, "pairs[0].value", "GITHUB_TOKEN"),
    ]


def test_a_page_is_judged_as_it_is_shown(tmp_path: Path) -> None:
    """JSON that a page embeds is decoded, character references are resolved, lines counted as they stand."""
    data = json.dumps(
        {"rows": [{"ch": "fine"}, {"ch": f"run\n{token(1)}", "why": 'x\nDB_PASSWORD="Zk9!vvQm2"'}]}
    )
    given = "h = Hashids('uJ0jQADS8ou1zRzKq')"
    lines = [
        "<!doctype html>",
        f"<p>{html.escape(given)}</p>",
        f'<script type="application/json" id="data">{data}</script>',
        '<script type="application/json">no JSON</script>',
        f"<script>let key = '{token(2)}'</script>",
        f"<p>It went on once I typed &quot;{token(3)[4:28]}&quot; there</p>",
    ]
    (tmp_path / "page.html").write_text("\n".join(lines) + "\n")
    assert places(tmp_path / "page.html") == [
        ("page.html", None, 3, "rows[1].ch", "GITHUB_TOKEN"),
        ("page.html", None, 3, "rows[1].why", "PASSWORD"),
        ("page.html", None, 2, "", "SECRET"),
        ("page.html", None, 5, "", "GITHUB_TOKEN"),
    ]
    strict = Scanner(KNOWN, KEY, {"TRACEMILL_KINGFISHER": "none"}, KnownSecrets(tmp_path / "none", KEY))
    found = strict.scan(tmp_path / "page.html").findings
    assert [(each.line, each.rule) for each in found if each.rule.startswith("STRICT")] == [
        (6, "STRICT_RANDOM")
    ]


def test_tables_of_markdown_are_read_as_records(tmp_path: Path) -> None:
    """A cell is a text with lines, called by its column or the cell before it; lines without a rule of dashes
    are no table, and one between fences is read as ingest reads it."""
    jar = f".host.dev\tTRUE\t/\tTRUE\t0\tsessionid\t{token(4)[4:]}"
    secret = f"kind: Secret\nstringData:\n  dsn: {token(1)[4:20]}\n"
    lines = [
        "| host | password | note |",
        "|---|:-:|---|",
        f"| a | Zk9!vvQm2 | {cell_of_lines(secret)} |",
        "| setting | value |",
        f"| DB_PASSWORD | Zk9!vv\\|Qm3 | {cell_of_lines(jar)} |",
        "",
        f"| text | {token(2)} |",
        "```",
        "| a | password |",
        "|---|---|",
        "| b | Zk9!vvQm4 |",
        "```",
    ]
    (tmp_path / "card.md").write_text("\n".join(lines) + "\n")
    assert places(tmp_path / "card.md") == [
        ("card.md", None, 7, "", "GITHUB_TOKEN"),
        ("card.md", None, 11, "", "PASSWORD"),
        ("card.md", None, 3, "password", "PASSWORD"),
        ("card.md", None, 3, "note", "SECRET"),
        ("card.md", None, 5, "password", "PASSWORD"),
        ("card.md", None, 5, "note", "COOKIE"),
    ]
    assert "[PASSWORD, 10 characters]" in scan(tmp_path).findings[4].excerpt


def test_json_files_are_judged_as_the_documents_they_are(tmp_path: Path) -> None:
    """What the names of a document say of each other counts, in its lines and in what a page embeds too."""
    keys = [json.dumps({"kty": "oct", "k": token(seed)[4:]}) for seed in range(3)]
    state = {
        "out": {"sensitive": True, "value": "Velvet-Otter-4711"},
        "at": {"lat": 52.51627, "lng": 13.37771},
    }
    (tmp_path / "a.json").write_text(json.dumps({"pip.conf": "x", "jwk": keys[0]}, indent=2))
    (tmp_path / "b.json").write_text("\n" + json.dumps(state, indent=2))
    (tmp_path / "c.jsonl").write_text(f"{json.dumps({})}\n{keys[1]}\n")
    page = f'<!doctype html>\n<script type="application/json">{keys[2]}</script>\n'
    (tmp_path / "d.html").write_text(page)
    assert sorted(places(tmp_path), key=str) == [
        ("a.json", None, None, "jwk.k", "PRIVATE_KEY"),
        ("b.json", None, None, "", "LOCATION"),
        ("b.json", None, None, "", "LOCATION"),
        ("b.json", None, None, "out.value", "SECRET"),
        ("c.jsonl", None, 2, "k", "PRIVATE_KEY"),
        ("d.html", None, 2, "k", "PRIVATE_KEY"),
    ]


def test_json_documents_parquet_and_sqlite(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps({"deep": [{"x": token(1)}]}, indent=2))
    rows = [{"text": "fine"}, {"text": f"see {token(2)}"}, {"text": "fine"}, {"text": f"see {token(2)}"}]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "b.parquet")
    with closing(sqlite3.connect(tmp_path / "c.sqlite")) as base:
        base.execute("CREATE TABLE answers (id INTEGER, body TEXT)")
        base.executemany("INSERT INTO answers VALUES (?, ?)", [(1, "fine"), (2, json.dumps({"t": token(3)}))])
        base.commit()
    assert places(tmp_path) == [
        ("a.json", None, None, "deep[0].x", "GITHUB_TOKEN"),
        ("b.parquet", 1, None, "text", "GITHUB_TOKEN"),
        ("c.sqlite", 1, None, "answers.body.t", "GITHUB_TOKEN"),
    ]
    assert [found.times for found in scan(tmp_path).findings] == [1, 2, 1]


def test_what_is_passed_over_is_counted_and_hidden_files_are_not(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(f"GITHUB_TOKEN={token()}\n")
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR")
    (tmp_path / "link").symlink_to(tmp_path / ".env")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_text(token(2))
    (tmp_path / "redaction.key").write_text("00" * 32)
    verdict = scan(tmp_path)
    assert [found.file for found in verdict.findings] == [".env"]
    assert verdict.passed_over == {
        "a git folder": 1,
        "a link": 1,
        "a key or lock of tracemill's own": 1,
        "a picture, film, sound or font": 1,
    }
    assert verdict.not_read == {}


def test_bad_input_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="is not there"):
        scan(tmp_path / "missing")


def test_a_value_in_two_texts_is_one_fingerprint_and_rules_tell_them_apart(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(f"first {token()}")
    (tmp_path / "b.txt").write_text(f"then {token()} and {token(2)}")
    found = [each.fingerprint for each in scan(tmp_path).findings]
    assert len(found) == 3
    assert len(set(found)) == 2
    other = Scanner(KNOWN, b"another key", {"TRACEMILL_KINGFISHER": "none"}).scan(tmp_path)
    assert not {each.fingerprint for each in other.findings} & set(found)


def test_an_excerpt_hides_other_finds_and_long_words_around(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text(f"{token(1)} {token(2)} id 9f86d081884c7d659a2feaa0c55ad015 <GITHUB_TOKEN_3f2a>")
    excerpts = [found.excerpt for found in scan(path).findings]
    assert excerpts == [
        "[GITHUB_TOKEN, 40 characters] [GITHUB_TOKEN, 40 characters]...",
        "...[GITHUB_TOKEN, 40 characters] [GITHUB_TOKEN, 40 characters] id ****************...",
    ]


@given(st.text(max_size=80), st.text("abcdefXYZ0123456789", min_size=12, max_size=60), st.text(max_size=80))
def test_an_excerpt_never_holds_the_value(before: str, value: str, after: str) -> None:
    span = Span(len(before), len(before) + len(value), "SECRET")
    excerpt = mask_finding_excerpt(before + value + after, span)
    assert value not in excerpt
    assert "\n" not in excerpt


def test_placeholders_are_no_value_of_kingfishers() -> None:
    text = "api_key = '<SECRET_0a1b>' and REDACTED_PASSWORD_3f2a but pa55-<SECRET_0a1b>-Zq81kTx0"
    assert finding_value_spans(text, "generic", "<SECRET_0a1b>") == []
    assert finding_value_spans(text, "generic", "SECRET_0a1b") == []
    assert finding_value_spans(text, "generic", "REDACTED_PASSWORD_3f2a") == []
    assert len(finding_value_spans(text, "generic", "pa55-<SECRET_0a1b>-Zq81kTx0")) == 1


def test_the_redactors_allow_list_is_not_the_gates(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text(f"key {token()} here, from Falkenauge\n")
    redactor = Redactor.from_environment({}, hostname="h", allow=[token()], redact=["Falkenauge"])
    assert token() in redactor.redact_text(path.read_text())[0]
    found = Scanner(redactor.known, KEY, {"TRACEMILL_KINGFISHER": "none"}).scan(path).findings
    assert [each.rule for each in found] == ["GITHUB_TOKEN", "LISTED"]


def test_the_private_folder_is_ours_alone_and_a_killed_scans_is_removed(tmp_path: Path) -> None:
    code = (
        "import os, signal\nfrom tracemill.privacy.publish_gate.private_folder import private_folder\n"
        "with private_folder() as folder:\n"
        "    (folder / 'texts').write_text('private')\n"
        "    print(oct(folder.stat().st_mode & 0o777), flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)"
    )
    env = dict(os.environ) | {"TMPDIR": str(tmp_path)}
    killed = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False
    )
    assert killed.stdout.strip() == "0o700"
    assert len(list(tmp_path.iterdir())) == 1
    after = (
        "from tracemill.privacy.publish_gate.private_folder import private_folder\n"
        "with private_folder() as folder: print(folder)"
    )
    subprocess.run([sys.executable, "-c", after], env=env, capture_output=True, check=True)
    assert list(tmp_path.iterdir()) == []


def test_changes_are_told_with_stars_and_nothing_is_written(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    lines = [
        {"cwd": "/home/marguerite/app", "text": f"line one\nkey {token()} here\nline three"},
        {"again": f"line one\nkey {token()} here\nline three"},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    before = path.read_bytes()
    found = preview_changes(path, "s.jsonl", KNOWN, KEY, SkippedFiles())
    assert found.counts == {"USER": 1, "GITHUB_TOKEN": 2}
    assert [(each.where, each.before) for each in found.excerpts] == [
        ("line 1 cwd", "/home/********/app"),
        ("line 1 text", "key ******** here"),
    ]
    assert found.excerpts[1].after.startswith("key <GITHUB_TOKEN_")
    assert token() not in repr(found)
    assert "marguerite" not in repr(found)
    assert token() in repr(preview_changes_with_values(path, "s.jsonl", KNOWN, KEY, SkippedFiles()))
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_scan_says_how_far_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan_paths, "_SAY_EVERY_S", 0.0)
    lines = [json.dumps({"text": f"line {number}"}) for number in range(250)]
    (tmp_path / "more.txt").write_text("some more text")
    (tmp_path / "rows.jsonl").write_text("\n".join([*lines, lines[0]]))
    told: list[ScanProgress] = []
    result = Scanner(KNOWN, KEY, {"TRACEMILL_KINGFISHER": "none"}).scan(tmp_path, told.append)
    assert 250 <= result.texts < 300
    assert (told[0].file, told[0].files, told[-1].file) == (1, 2, 2)
    assert [each.texts for each in told] == sorted(each.texts for each in told)
    assert (told[-1].texts, told[-1].characters) == (result.texts, result.characters)
