"""`tracemill.toml` of the folder a command is called in: where it is used, where not, and that it is said."""

from pathlib import Path

import pytest
from console_says import Call

USED = "tracemill: using tracemill.toml of this folder"
TEXT = """workspace = "work"
[sources]
paths = ["sessions"]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "sessions").mkdir()
    (tmp_path / "tracemill.toml").write_text(TEXT)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "command",
    [
        ("label",),
        ("export", "--format", "atif", "--out", "out"),
        ("release", "write"),
        ("dev", "normalize"),
        ("replay", "--preset", "simulated", "--max-usd", "1"),
        ("estimate", "--preset", "simulated", "--max-usd", "1"),
    ],
)
def test_commands_use_it_and_say_so(folder: Path, console: Call, command: tuple[str, ...]) -> None:
    done = console(*command)
    used, missing, *more = done.stderr.splitlines()
    assert (done.returncode, used, more) == (2, USED, [])
    assert missing.startswith(f"tracemill: {folder / 'work'} is not a workspace")


def test_commands_without_a_configuration_use_its_workspace(folder: Path, console: Call) -> None:
    place = folder / "work"
    for command in (("status",), ("release", "list")):
        said = console(*command).stderr.splitlines()
        assert said[0] == f"tracemill: using the workspace of tracemill.toml: {place}"
        assert said[1].startswith(f"tracemill: {place} is not a workspace")
        [said] = console(*command, "-w", "other").stderr.splitlines()
        assert said.startswith("tracemill: other is not a workspace")


def test_it_is_not_mixed_with_sessions_that_options_name(folder: Path, console: Call) -> None:
    """A run of `--path` alone has the workspace of `--path` alone; with the file named it has both."""
    for option in ("path", "claude-code", "codex", "openhands", "swe-gym", "hub"):
        named = "a/b" if option == "hub" else "sessions"
        apart, wrong = console("run", f"--{option}", named, "--preset", "zz").stderr.splitlines()
        line = f"tracemill.toml is not used, as --{option} names the sessions; name it to use both"
        assert apart == f"tracemill: {line}"
        assert wrong.startswith("tracemill: the configuration: preset: ")
    [wrong] = console("run", "tracemill.toml", "--path", "sessions", "--preset", "zz").stderr.splitlines()
    assert wrong.startswith("tracemill: tracemill.toml: preset: ")
    [wrong] = console("run", "-q", "--preset", "zz").stderr.splitlines()
    assert wrong.startswith("tracemill: tracemill.toml: preset: ")
    assert {path.name for path in folder.iterdir()} == {"sessions", "tracemill.toml"}


def test_a_schedule_needs_one(folder: Path, console: Call) -> None:
    used, said = console("schedule", "--cron", "soon").stderr.splitlines()
    assert (used, "five fields" in said) == (USED, True)
    (folder / "tracemill.toml").unlink()
    for command in ("schedule", "deploy"):
        [said] = console(command, "--cron", "0 3 * * *").stderr.splitlines()
        assert said == (
            "tracemill: no configuration is named, and this folder has none; expected a file, or "
            "tracemill.toml; write one with `tracemill init`"
        )
