"""`tracemill init`: the questions, the file, and that `doctor` and `run` take it as it is."""

import json
import os
import pty
import re
import select
import shutil
import signal
import sys
import termios
import tomllib
from pathlib import Path

import pytest
from console_says import Call, record_of, refusal_of

from tracemill.flows.config.config_schema import config_schema
from tracemill.flows.config.run_settings import load_settings

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "sessions"
SCRIPT = Path(sys.executable).parent / "tracemill"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with sessions and a home without any."""
    shutil.copytree(EXAMPLES, tmp_path / "sessions")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "no-claude"))
    return tmp_path


def talk(arguments: list[str], answers: list[str], folder: Path) -> tuple[int, str]:
    """Run `tracemill` on a terminal and answer what it asks, in turn: its exit code and what it printed."""
    child, terminal = pty.fork()
    if child == 0:
        quiet = termios.tcgetattr(0)
        quiet[3] &= ~termios.ECHO  # else what is typed stands in what is said, here or there
        termios.tcsetattr(0, termios.TCSANOW, quiet)
        os.chdir(folder)
        os.execv(SCRIPT, [str(SCRIPT), *arguments])
    said, left, seen = b"", list(answers), 0
    while True:
        if not select.select([terminal], [], [], 120)[0]:
            os.kill(child, signal.SIGKILL)
            pytest.fail(f"it waits for something: {said.decode()}")
        try:
            part = os.read(terminal, 4096)
        except OSError:  # the terminal of a process that ended
            break
        if not part:
            break
        said += part
        if left and said[seen:].endswith((b"]: ", b"]:", b"sessions: ")):
            seen = len(said)
            os.write(terminal, left.pop(0).encode() + b"\n")
    _, status = os.waitpid(child, 0)
    assert left == [], said.decode()
    return os.waitstatus_to_exitcode(status), said.decode().replace("\r\n", "\n")


def test_six_answers_make_a_configuration(folder: Path) -> None:
    answers = ["sessions/claude_code", "claude-code", "open", "7.5", "me/traces", "work"]
    code, said = talk(["init", "conf/night.toml"], answers, folder)
    assert code == 0, said
    asked = (
        "File or folder of sessions",
        "Agent",
        "Teachers",
        "Hard cap in USD",
        "Dataset of the Hub",
        "Workspace",
    )
    assert re.findall("|".join(asked), said)[:6] == list(asked)
    assert said.endswith(
        "wrote conf/night.toml, and tracemill.schema.json for editors\n"
        "next: export OPENROUTER_API_KEY=...\n"
        f"next: {SCRIPT} doctor conf/night.toml\n"
        f"then: {SCRIPT} run conf/night.toml\n"
    )
    settings = load_settings(folder / "conf" / "night.toml", {})
    assert settings.sources.claude_code == (folder / "sessions" / "claude_code",)
    assert settings.workspace == folder / "work"
    assert (settings.preset, settings.cap_usd(), settings.release.hub) == ("open", 7.5, "me/traces")
    text = (folder / "conf" / "night.toml").read_text()
    assert text.startswith("#:schema ./tracemill.schema.json\n")
    schema = json.loads((folder / "conf" / "tracemill.schema.json").read_text())
    assert schema == config_schema()


def test_a_wrong_answer_is_asked_again_and_nobody_asked_needs_no_cap(folder: Path) -> None:
    answers = ["nowhere", "sessions", "", "opan", "none", "no dataset", "none", ""]
    code, said = talk(["init"], answers, folder)
    assert code == 0, said
    for line in (
        "nowhere does not exist",
        "expected one of none, open, frontier, simulated",
        "expected OWNER/NAME or none",
    ):
        assert f"Error: {line}\n" in said, said
    assert "USD" not in said
    found = tomllib.loads((folder / "tracemill.toml").read_text())
    assert found == {
        "workspace": "tracemill-workspace",
        "preset": "none",
        "sources": {"paths": ["sessions"]},
        "release": {"name": "traces"},
    }


def test_an_option_answers_its_question(folder: Path) -> None:
    options = ["--openhands", "sessions/openhands", "--preset", "simulated", "--hub", "none", "-w", "w"]
    code, said = talk(["init", *options], ["2"], folder)
    assert code == 0, said
    assert said.startswith("Hard cap in USD [10.0]: ")
    found = tomllib.loads((folder / "tracemill.toml").read_text())
    assert found["sources"] == {"openhands": ["sessions/openhands"]}
    assert found["budget"] == {"max_total_usd": 2.0}


def test_a_file_that_is_there_is_kept_unless_the_user_says_yes(folder: Path, console: Call) -> None:
    (folder / "tracemill.toml").write_text("mine")
    code, said = talk(["init", "--path", "sessions"], ["n"], folder)
    assert code == 2, said
    kept = "tracemill: tracemill.toml exists; give another FILE, or --force"
    assert said == f"tracemill.toml exists. Overwrite it? [y/N]: {kept}\n"
    assert refusal_of(console("init", "--yes", "--path", "sessions")) == kept
    assert (folder / "tracemill.toml").read_text() == "mine"
    assert not (folder / "tracemill.schema.json").exists()
    assert console("init", "--yes", "--force", "--path", "sessions").returncode == 0
    assert load_settings(folder / "tracemill.toml", {}).sources.paths == (folder / "sessions",)


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ((), "init asks questions, and there is no terminal; expected answers as options; pass --yes with"),
        (("--yes",), "no sessions are named, and "),
        (("--yes", "--path", "nowhere"), "nowhere is not there; expected a file or folder of sessions"),
        (("--yes", "--path", "sessions", "--preset", "open"), "teachers are configured but no budget; set"),
        (("--yes", "--path", "sessions", "--preset", "opan"), "the configuration: preset: Input should be"),
        (("--yes", "--path", "sessions", "--hub", "x"), "the configuration: release.hub: a dataset of the"),
        (("--yes", "--path", "sessions", "-w", "s3://b/p"), "the workspace s3://b/p has no ledger on Postgr"),
    ],
)
def test_what_is_wrong_is_one_line_and_nothing_is_written(
    folder: Path, console: Call, options: tuple[str, ...], line: str
) -> None:
    assert refusal_of(console("init", *options)).startswith(f"tracemill: {line}")
    assert {path.name for path in folder.iterdir()} == {"sessions"}


def test_doctor_and_run_take_the_file_as_it_is(folder: Path, tracemill: Call) -> None:
    options = ("--yes", "--path", "sessions", "--preset", "simulated", "--max-usd", "1")
    assert tracemill("init", *options).returncode == 0
    checked = tracemill("doctor", PREFECT_API_URL="")  # others deploy at the server
    assert checked.returncode == 0, checked.stdout
    done = tracemill("run", "--yes", "--json")
    assert done.stderr.startswith("tracemill: using tracemill.toml of this folder\n")
    record = record_of(done)
    assert record["release"]["path"].startswith(str(folder / "tracemill-workspace" / "releases" / "traces"))
    assert record["cap_usd"] == 1.0


def test_terms_are_said_and_the_sessions_of_claude_code_are_the_default(
    folder: Path, console: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    projects = folder / "no-claude" / "projects"
    shutil.copytree(EXAMPLES / "claude_code", projects)
    done = console("init", "--yes", "--preset", "frontier", "--max-usd", "1")
    assert "terms of these teachers restrict training: a run needs accept_terms = true\n" in done.stdout
    settings = load_settings(folder / "tracemill.toml", {})
    assert settings.sources.claude_code == (projects,)
    assert not settings.accept_terms
    done = console("init", "--yes", "--force", "--preset", "frontier", "--max-usd", "1", "--accept-terms")
    assert "terms of" not in done.stdout
    assert load_settings(folder / "tracemill.toml", {}).accept_terms


def test_it_ends_with_the_commands_to_type(folder: Path, console: Call) -> None:
    """The file that commands find by themselves is not named in them."""
    said = console("init", "--yes", "--path", "sessions").stdout.splitlines()
    assert said[1:] == ["next: tracemill doctor", "then: tracemill run"]
    said = console("init", "my night.toml", "--yes", "--path", "sessions").stdout.splitlines()
    assert said[1:] == ["next: tracemill doctor 'my night.toml'", "then: tracemill run 'my night.toml'"]


def test_the_schema_is_printed_and_nothing_is_written(folder: Path, console: Call) -> None:
    assert record_of(console("init", "--schema")) == config_schema()
    assert {path.name for path in folder.iterdir()} == {"sessions"}


def test_the_shell_completes_commands_and_options(console: Call) -> None:
    def completed(words: str, at: int) -> set[str]:
        shell = {"_TRACEMILL_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(at)}
        return set(console(**shell).stdout.split())

    assert completed("tracemill re", 1) == {"replay", "release"}
    assert completed("tracemill release re", 2) == {"report", "retract"}
    assert completed("tracemill init --p", 2) == {"--path", "--preset"}
    script = console(_TRACEMILL_COMPLETE="source_bash").stdout
    assert script.rstrip().endswith("complete -o default -F _tracemill_completion tracemill")
    assert "--install-completion" in console("--help").stdout
