"""`ingest --unredacted`: recorded text for analysis here, in a folder from which nothing can leave."""

import json
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tracemill.cli.main import main
from tracemill.records.storage.workspace import Workspace

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "sessions"
SESSION = EXAMPLES / "claude_code" / "-home-dev-parcels" / "87751d4c-a850-4e2c-84dc-da6a797d76de.jsonl"
TOKEN = "ghp_EXAMPLEexampleEXAMPLEexampleEXAMPLEe"
COMMANDS = (
    ("run", "--path", str(SESSION)),
    ("run", "--path", str(SESSION), "--preset", "simulated", "--max-usd", "1"),
    ("replay", "--preset", "simulated", "--max-usd", "1", "--yes"),
    ("label",),
    ("dev", "normalize"),
    ("release", "write"),
    ("status",),
    ("privacy", "forget", "a project", "--yes"),
    ("privacy", "scan", str(SESSION)),
    ("privacy", "diff", str(SESSION)),
)
Capture = pytest.CaptureFixture[str]


def call(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    """A command in this process; gives its exit code."""
    monkeypatch.setattr(sys, "argv", ["tracemill", *map(str, arguments)])
    with pytest.raises(SystemExit) as stopped:
        main()
    return int(stopped.value.code or 0)


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> Path:
    """A workspace of recorded text."""
    assert call(monkeypatch, "ingest", SESSION, "--workspace", tmp_path / "recorded", "--unredacted") == 0
    capsys.readouterr()
    return tmp_path / "recorded"


def _files(folder: Path) -> dict[str, bytes]:
    """Every file but locks, which are opened by whoever looks."""
    return {str(p): p.read_bytes() for p in folder.rglob("*") if p.is_file() and "lock" not in p.name}


def test_the_text_is_as_recorded_and_marked_as_such(recorded: Path) -> None:
    assert json.loads((recorded / "workspace.json").read_text()) == {
        "layout": 1,
        "text": "recorded",
        "modes": "owner",
    }
    assert not (recorded / "redaction.key").exists()
    (shard,) = recorded.rglob("*.parquet")
    assert pq.read_metadata(shard).metadata[b"tracemill.text"] == b"recorded"
    table = pq.read_table(shard)
    assert table["redaction"].to_pylist() == [None]
    messages = table["contexts"].to_pylist()[0][0]["messages"]
    assert sum(TOKEN in message["content"] for message in messages) == 1
    assert TOKEN in SESSION.read_text()


def test_without_the_flag_the_same_session_is_redacted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert call(monkeypatch, "ingest", SESSION, "--workspace", tmp_path / "w") == 0
    (shard,) = (tmp_path / "w").rglob("*.parquet")
    text = json.dumps(pq.read_table(shard).to_pylist())
    assert TOKEN not in text
    assert "<GITHUB_TOKEN_" in text
    assert pq.read_metadata(shard).metadata[b"tracemill.text"] == b"redacted"


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_other_command_takes_it(
    recorded: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture, command: tuple[str, ...]
) -> None:
    before = _files(recorded)
    assert call(monkeypatch, *command, "--workspace", recorded) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.strip().count("\n") == 0
    assert f"{recorded} holds recorded text (ingest --unredacted)" in said.err
    assert _files(recorded) == before


def test_without_a_workspace_ingest_takes_the_one_of_all_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    assert call(monkeypatch, "ingest", SESSION, "--unredacted") == 2
    assert "--unredacted is given without --workspace" in capsys.readouterr().err
    assert call(monkeypatch, "ingest", SESSION, "--out", "w") == 2
    assert [*tmp_path.iterdir()] == []
    assert call(monkeypatch, "ingest", SESSION) == 0
    assert call(monkeypatch, "label", "-w", "tracemill-workspace") == 0
    assert call(monkeypatch, "ingest", SESSION, "-w", "other") == 0
    assert {path.name for path in tmp_path.iterdir()} == {"other", "tracemill-workspace"}


def test_the_two_kinds_do_not_mix(recorded: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    redacted = recorded.parent / "redacted"
    assert call(monkeypatch, "ingest", SESSION, "--workspace", redacted) == 0
    capsys.readouterr()
    before = _files(redacted), _files(recorded)
    assert call(monkeypatch, "ingest", SESSION, "--workspace", redacted, "--unredacted") == 2
    assert f"{redacted} is a workspace of redacted text" in capsys.readouterr().err
    assert call(monkeypatch, "ingest", SESSION, "--workspace", recorded) == 2
    assert f"{recorded} holds recorded text" in capsys.readouterr().err
    assert (_files(redacted), _files(recorded)) == before


def test_sessions_are_chosen_as_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flags = ("--unredacted", "--project", "parcels")
    assert call(monkeypatch, "ingest", EXAMPLES, "--workspace", tmp_path / "w", *flags) == 0
    work = Workspace.open(tmp_path / "w", create=False, text="recorded")
    assert [name for table in work.current("traces") for name in table["project"].to_pylist()] == [
        "parcels"
    ] * 2


def test_a_scan_of_such_a_folder_finds_what_is_in_it(
    recorded: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert call(monkeypatch, "privacy", "scan", recorded, "--json") == 1
    assert TOKEN[:8] not in capsys.readouterr().out


def test_what_was_forgotten_in_a_workspace_stays_out_of_recorded_text_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """A workspace named with --forgotten, and the default one without; what lies there since is said."""
    monkeypatch.chdir(tmp_path)
    sessions, out = EXAMPLES / "claude_code", tmp_path / "recorded"
    asked = ("ingest", sessions, "--unredacted", "--min-age", 0, "--json")
    assert call(monkeypatch, *asked, "--workspace", out) == 0
    assert call(monkeypatch, "ingest", sessions, "--min-age", 0) == 0
    assert call(monkeypatch, "privacy", "forget", "almanac", "--as", "project", "--yes") == 0
    capsys.readouterr()
    assert call(monkeypatch, *asked, "--workspace", out) == 2
    assert "recorded holds 1 session forgotten since; " in capsys.readouterr().err
    for name, more in (("again", ()), ("named", ("--forgotten", tmp_path / "tracemill-workspace"))):
        assert call(monkeypatch, *asked, "--workspace", tmp_path / name, *more) == 0
        assert json.loads(capsys.readouterr().out)["totals"]["left_out"] == {"forgotten": 1}
        shards = (tmp_path / name / "traces").rglob("*.parquet")
        taken = [project for shard in shards for project in pq.read_table(shard)["project"].to_pylist()]
        assert taken == ["parcels", "parcels"]
        monkeypatch.chdir(tmp_path / name)
    assert call(monkeypatch, *asked, "--workspace", tmp_path / "x", "--forgotten", tmp_path / "none") == 2
    assert call(monkeypatch, "ingest", sessions, "--workspace", tmp_path / "y", "--forgotten", out) == 2
    assert "none is not a workspace" in (said := capsys.readouterr().err)
    assert "--forgotten is given without --unredacted" in said


def test_an_ingest_takes_the_lists_of_a_configuration_and_says_what_it_knows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    (tmp_path / "app.env").write_text("GREETING=customs-declaration\nPORT=8080\n")
    config = tmp_path / "run.toml"
    config.write_text("[privacy]\nredact = ['seedling']\nenv_files = ['app.env']\n")
    out = tmp_path / "w"
    asked = ("ingest", EXAMPLES / "claude_code", "--workspace", out, "--min-age", 0, "--privacy", config)
    assert call(monkeypatch, *asked) == 0
    assert "1  values known from app.env" in capsys.readouterr().out
    assert b"seedling" not in b"".join(_files(out / "traces").values())
    replay = ("replay", config, "--workspace", out, "--preset", "simulated", "--max-usd", 1)
    assert call(monkeypatch, *replay) == 0
    assert "1  values known from app.env" in capsys.readouterr().out
    config.write_text("[privacy]\nredact = ['seedling', 'falcon']\nenv_files = ['app.env']\n")
    assert call(monkeypatch, *replay) == 0
    assert " calls 0 sent, " in " ".join(capsys.readouterr().out.split())
    assert call(monkeypatch, *asked, "--unredacted") == 2
    assert "--unredacted redacts nothing and --privacy says what to redact" in capsys.readouterr().err
