"""The publish gate and `tracemill privacy` as a user meets them: exit codes, lines, files."""

import json
import random
import re
import shutil
import string
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pyarrow.parquet as pq
import pytest

from tracemill.data_cards.model.manifest import read_manifest
from tracemill.flows.config.run_settings import load_settings
from tracemill.privacy.redaction.redactor import RULES_VERSION
from tracemill.records.errors import ConfigError
from tracemill.records.storage.workspace import Workspace

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "sessions" / "claude_code"
Run = Callable[..., CompletedProcess[str]]
OWN = f"own rules {RULES_VERSION}"
WITHOUT = {"TRACEMILL_KINGFISHER": "none"}


def token(seed: int = 1) -> str:
    """A token of GitHub's form that nobody was given."""
    letters = string.ascii_letters + string.digits
    return "gh" + "p_" + "".join(random.Random(seed).choices(letters, k=36))


def plant(work: Path, value: str) -> None:
    """Put a value into the stored pairs, where no redactor looks: the words are tracemill's own."""
    workspace = Workspace.open(work, create=False)
    shard = workspace.live("pairs")[-1]
    table = workspace.read("pairs", shard)
    rows = table.to_pylist()
    rows[0]["evidence"] = f"The key is {value}."
    changed = type(table).from_pylist(rows, schema=table.schema)
    source, day = (part.split("=")[1] for part in Path(shard.path).parts[1:3])
    workspace.write("pairs", changed, sorted(workspace.covers("pairs", shard)), source, day)


def everything_below(folder: Path, pattern: str) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.rglob(pattern)))


def test_a_key_behind_the_redactors_back_is_refused_until_it_is_accepted(
    console: Run, alone: Any, tmp_path: Path
) -> None:
    work, planted = Path(shutil.copytree(alone.folder / "w", tmp_path / "w")), token()
    flags = ("--workspace", work)
    first = alone.record["release"]
    assert f"texts scanned, nothing found ({OWN}, kingfisher 2." in first["gate"]
    plant(work, planted)

    refused = console("release", "write", *flags)
    assert refused.returncode == 2
    assert refused.stdout == ""
    head, *lines = refused.stderr[refused.stderr.index("tracemill: ") :].splitlines()  # after the progress
    assert head.startswith("tracemill: the release is refused: 1 private value in ")
    assert "add --redact-findings to redact them and go on" in head
    assert len(lines) == 1  # a line for each value, not for each place
    assert "  README.md line " in lines[0]  # the card shows the pair
    assert "GITHUB_TOKEN: " in lines[0]
    assert "The key is [GITHUB_TOKEN, 40 characters]." in lines[0]
    fingerprint = lines[0].split()[0]
    versions = [path.name for path in (work / "releases" / "traces").iterdir() if path.name != ".lock"]
    assert versions == [first["version"]]
    assert not (work / "accepted.json").exists()
    said = console("status", *flags).stdout.splitlines()
    assert re.fullmatch(
        r"tracemill release \S+ was refused: the release is refused: 1 private value in .*", said[0]
    )
    assert "add --redact-findings to redact them and go on, or --allow-finding" in said[0]
    assert said[1] == "The same command tries again."
    assert not any(planted in line or "The key is" in line for line in said)
    assert planted not in everything_below(work / "runs", "run.json").decode()

    passed = console("release", "write", *flags, "--allow-finding", fingerprint, "--json")
    assert passed.returncode == 0, passed.stderr
    made = json.loads(passed.stdout)
    assert " texts scanned, 1 allowed finding (" in made["gate"]
    assert "refused" not in console("status", *flags).stdout
    counts = read_manifest(Path(made["path"])).redaction_counts
    assert sum(counts.values()) > 0
    assert counts == alone.record["summary"]["redactions"]
    accepted = json.loads((work / "accepted.json").read_text())["accepted"]
    assert [entry["fingerprint"] for entry in accepted] == [fingerprint]
    told = refused.stdout + refused.stderr + passed.stdout + passed.stderr
    written = everything_below(work, "*.json")
    card = (Path(made["path"]) / "README.md").read_text()
    assert card.count(planted) == 1  # in the pair that the card shows, which the refusal named
    assert planted not in told
    assert planted[4:24] not in told
    assert planted.encode() not in written


@pytest.mark.slow
def test_what_a_first_run_is_refused_for_is_redacted_by_one_flag(tracemill: Run, tmp_path: Path) -> None:
    drawn = token()[4:28]
    said = "next_high returns a time in the past."
    sessions = tmp_path / "sessions"
    shutil.copytree(EXAMPLES, sessions)
    changed = 0
    for path in sessions.rglob("*.jsonl"):
        text = path.read_text()
        changed += said in text
        path.write_text(text.replace(said, f"{said} It answered only after I passed {drawn} to it."))
    assert changed
    command = ("run", "--claude-code", sessions, "--workspace", tmp_path / "w")
    refused = tracemill(*command)
    assert refused.returncode == 2
    assert "STRICT_RANDOM" in refused.stderr
    assert "add --redact-findings to redact them and go on" in refused.stderr

    passed = tracemill(*command, "--redact-findings")
    assert passed.returncode == 0, passed.stderr
    assert "texts scanned, nothing found" in passed.stdout
    assert "1 finding redacted before it" in passed.stdout
    [manifest] = (tmp_path / "w" / "releases").rglob("manifest.json")
    tables = sorted(manifest.parent.rglob("*.parquet"))
    held = [pq.read_table(path).to_pylist() for path in tables]
    assert "I passed <LISTED_" in str(held)
    assert drawn not in str(held)
    assert drawn.encode() not in everything_below(manifest.parent, "*.*")

    again = tracemill(*command, "--redact-findings", "--json")
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["release"]["created"] is False


@pytest.mark.slow
def test_without_kingfisher_the_table_and_the_manifest_say_so(tracemill: Run, tmp_path: Path) -> None:
    work = tmp_path / "w"
    done = tracemill("run", "--claude-code", EXAMPLES, "--workspace", work, **WITHOUT)
    assert done.returncode == 0, done.stderr
    assert "no second opinion: kingfisher is absent (pip install kingfisher-bin)" in done.stdout
    manifest = json.loads(everything_below(work / "releases", "manifest.json"))
    assert manifest["gate"]["statement"] == f"own rules only ({OWN}); kingfisher was not installed"
    assert b"own rules only" in everything_below(work / "releases", "README.md")


def test_a_second_opinion_that_is_demanded_and_absent_stops_before_anything(
    console: Run, tmp_path: Path
) -> None:
    config = tmp_path / "run.toml"
    config.write_text(f'[sources]\nclaude_code = ["{EXAMPLES}"]\n[release]\nrequire_second_opinion = true\n')
    done = console("run", config, "--workspace", tmp_path / "w", **WITHOUT)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.strip().splitlines()) == 1
    assert "kingfisher is not installed and release.require_second_opinion is set" in done.stderr
    assert not (tmp_path / "w").exists()


def test_accepted_fingerprints_of_file_and_flags_add_up_and_make_no_other_run(tmp_path: Path) -> None:
    config = tmp_path / "run.toml"
    config.write_text('[release]\nallow_findings = ["0123456789ab"]\n')
    settings = load_settings(config, {"release": {"allow_findings": ["ba9876543210"]}})
    assert settings.release.allow_findings == ("0123456789ab", "ba9876543210")
    assert settings.fingerprint() == load_settings(None, {}).fingerprint()
    with pytest.raises(ConfigError, match="12 hex digits"):
        load_settings(None, {"release": {"allow_findings": ["everything"]}})


def test_scan_says_what_is_where_and_exits_with_one(console: Run, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.log").write_text(f"one\nGITHUB_TOKEN={token()}\n")
    (folder / "b.txt").write_text("nothing here\n")
    state = {"XDG_STATE_HOME": str(tmp_path / "state")}
    done = console("privacy", "scan", folder, **state)
    assert done.returncode == 1
    line, last = done.stdout.strip().splitlines()
    fingerprint = line.split()[0]
    assert (
        line == f"{fingerprint}  a.log line 2: GITHUB_TOKEN: one GITHUB_TOKEN=[GITHUB_TOKEN, 40 characters]"
    )
    assert last.startswith(f"1 private value in 1 place: 2 files with 2 texts scanned ({OWN}, kingfisher 2.")
    assert token() not in done.stdout + done.stderr

    record = console("privacy", "scan", folder, "--json", **state)
    assert record.returncode == 1
    finding = json.loads(record.stdout)["findings"][0]
    assert (finding["file"], finding["line"], finding["rule"]) == ("a.log", 2, "GITHUB_TOKEN")
    assert finding["opinions"] == ["own rules", "kingfisher"]
    assert finding["fingerprint"] == fingerprint
    assert token() not in record.stdout

    accepted = console("privacy", "scan", folder, "--allow-finding", fingerprint, **state)
    assert accepted.returncode == 0
    assert accepted.stdout.startswith("nothing found, 1 allowed: 2 files with ")


def test_scan_of_what_is_clean_absent_or_wrong(console: Run, tmp_path: Path) -> None:
    state = {"XDG_STATE_HOME": str(tmp_path / "state"), **WITHOUT}
    (tmp_path / "b.txt").write_text("nothing here\n")
    clean = console("privacy", "scan", tmp_path / "b.txt", **state)
    assert (clean.returncode, clean.stdout) == (0, f"nothing found: 1 file with 1 text scanned ({OWN})\n")
    assert clean.stderr == "no second opinion: kingfisher is absent (pip install kingfisher-bin)\n"
    missing = console("privacy", "scan", tmp_path / "nowhere", **state)
    assert (missing.returncode, missing.stdout) == (2, "")
    assert missing.stderr.startswith("tracemill: ")
    assert "is not there" in missing.stderr
    wrong = console("privacy", "scan", tmp_path / "b.txt", "--allow-finding", "all", **state)
    assert wrong.returncode == 2
    assert "no fingerprint" in wrong.stderr


def test_diff_shows_stars_and_values_on_a_terminal_alone(console: Run, tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text(json.dumps({"content": f"export GITHUB_TOKEN={token()}\n"}) + "\n")
    done = console("privacy", "diff", path)
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[:4] == [
        "--- s.jsonl",
        "+++ s.jsonl redacted: 1 GITHUB_TOKEN",
        "@@ line 1 content @@",
        "-export GITHUB_TOKEN=********",
    ]
    assert lines[4].startswith("+export GITHUB_TOKEN=<GITHUB_TOKEN_")
    assert lines[5] == "1 of 1 file would change: 1 GITHUB_TOKEN"
    assert token() not in done.stdout
    asked = console("privacy", "diff", path, "--show-values")
    assert (asked.returncode, asked.stdout) == (2, "")
    assert "no terminal" in asked.stderr
    record = json.loads(console("privacy", "diff", path, "--json").stdout)
    assert record["changed"][0]["counts"] == {"GITHUB_TOKEN": 1}
    assert list(tmp_path.iterdir()) == [path]
