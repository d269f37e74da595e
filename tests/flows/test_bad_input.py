"""Bad input: one clear line, exit code 2, nothing half-written, nothing spent."""

import json
import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from console_says import Call, refusal_of

from tracemill.teachers.core.presets import OPEN
from tracemill.teachers.openrouter_stub.server import running
from tracemill.teachers.openrouter_stub.stub_settings import FaultKind, FaultSettings, StubSettings

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "sessions"
Run = Callable[..., CompletedProcess[str]]


def _write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("just prose, no session\n", "no known format"),
        ('{"a": 1}\n{"b": 2}\n', "no known format"),
        ("", "is empty"),
        ("\x00\x01\x02", "no known format"),
    ],
)
def test_a_file_that_is_no_trace(console: Run, tmp_path: Path, content: str, said: str) -> None:
    path = _write(tmp_path / "notes.jsonl", content)
    line = refusal_of(console("run", "--path", path, "--workspace", tmp_path / "w"))
    assert said in line
    assert str(path) in line
    assert not (tmp_path / "w").exists()


def test_a_session_of_another_format_than_was_said(console: Run, tmp_path: Path) -> None:
    path = EXAMPLES / "swe_gym" / "trajectories.jsonl"
    line = refusal_of(console("run", "--claude-code", path, "--workspace", tmp_path / "w"))
    assert line.endswith(
        "is swe_gym, not claude_code; expected a claude_code session; name the file with `--swe-gym`"
    )


def test_paths_that_are_not_there_and_no_paths_at_all(console: Run, tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    assert str(missing) in refusal_of(console("run", "--path", missing, "--workspace", tmp_path / "w"))
    assert "no sources" in refusal_of(console("run", "--workspace", tmp_path / "w"))
    for option in ("path", "claude-code", "codex", "openhands", "swe-gym", "hub"):
        said = refusal_of(console("run", f"--{option}", "", "--workspace", tmp_path / "w"))
        assert f"a --{option} is empty; expected a " in said
    assert not (tmp_path / "w").exists()
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "no recorded session" in refusal_of(console("ingest", empty, "--workspace", tmp_path / "w"))
    assert not (tmp_path / "w").exists()


def test_an_unknown_key_in_the_configuration(console: Run, tmp_path: Path) -> None:
    text = f"presett = 'simulated'\n[sources]\npaths = ['{EXAMPLES}']\n"
    config = _write(tmp_path / "run.toml", text)
    line = refusal_of(console("run", config, "--workspace", tmp_path / "w"))
    assert "unknown key 'presett'" in line
    assert not (tmp_path / "w").exists()


def test_a_missing_key_for_a_teacher(console: Run, tmp_path: Path) -> None:
    flags = ("--path", EXAMPLES, "--workspace", tmp_path / "w", "--max-usd", 1)
    line = refusal_of(console("run", *flags, "--preset", "open"))
    assert "OPENROUTER_API_KEY" in line
    assert not (tmp_path / "w").exists()


@pytest.mark.parametrize(
    "key", ["sk-or-ключ", "sk-or\nv1", "sk or"], ids=["not ASCII", "two lines", "a blank"]
)
def test_a_key_that_no_header_can_hold(console: Run, tmp_path: Path, key: str) -> None:
    flags = ("--path", EXAMPLES, "--workspace", tmp_path / "w", "--max-usd", 1, "--preset", "open")
    line = refusal_of(console("run", *flags, OPENROUTER_API_KEY=key))
    assert "OPENROUTER_API_KEY holds characters that no API key has" in line
    assert key not in line
    assert not (tmp_path / "w").exists()
    looked = console("doctor", "--workspace", tmp_path / "w", OPENROUTER_API_KEY=key, PREFECT_API_URL="")
    assert looked.returncode == 2
    [failed] = [line for line in looked.stdout.splitlines() if not line.startswith("ok ")]
    assert failed.startswith("FAIL  teachers: OPENROUTER_API_KEY holds characters")
    assert key not in looked.stdout


def test_a_replay_that_nobody_answers_ends_with_1_and_says_why(console: Run, tmp_path: Path) -> None:
    """A schedule must be able to tell it from a night in which there was nothing to ask."""
    work = ("--workspace", tmp_path / "w")
    console("ingest", EXAMPLES / "claude_code", "--workspace", tmp_path / "w")
    with running(StubSettings(api_key="k", faults=(FaultSettings(kind=FaultKind.WRONG_KEY),))) as server:
        env = {"TRACEMILL_OPENROUTER_URL": server.url, "OPENROUTER_API_KEY": "k"}
        done = console("replay", *work, "--preset", "open", "--max-usd", 1, "--yes", **env)
    assert done.returncode == 1
    (line,) = done.stderr.strip().splitlines()[-1:]
    assert line.startswith("tracemill: teachers were asked and none answered (")
    assert "Traceback" not in done.stderr


def test_a_replay_that_asks_again_what_failed_ends_well_where_others_answered(
    console: Run, tmp_path: Path
) -> None:
    """Each ask of one of four models fails: the second replay asks that one alone, and nobody answers it."""
    work = ("--workspace", tmp_path / "w")
    console("ingest", EXAMPLES / "claude_code", "--workspace", tmp_path / "w")
    broken = FaultSettings(kind=FaultKind.BAD_REQUEST, model="z-ai/glm-5.3")
    with running(StubSettings(api_key="k", faults=(broken,))) as server:
        env = {"TRACEMILL_OPENROUTER_URL": server.url, "OPENROUTER_API_KEY": "k"}
        ask = ("replay", *work, "--preset", "open", "--max-usd", 1, "--yes", "--json")
        first, second = console(*ask, **env), console(*ask, **env)
    assert first.returncode == second.returncode == 0, second.stderr[-500:]
    summary = json.loads(second.stdout)["summary"]
    assert summary["asked"] > summary["reused"] > 0
    assert sum(summary["failures"].values()) == summary["asked"] - summary["reused"]


def test_teachers_without_a_cap(console: Run, tmp_path: Path) -> None:
    flags = ("--path", EXAMPLES, "--workspace", tmp_path / "w", "--preset", "simulated")
    line = refusal_of(console("run", *flags))
    assert "--max-usd" in line


def test_too_few_families(console: Run, tmp_path: Path) -> None:
    text = "[budget]\nmax_total_usd = 1\n" + "".join(
        f"[[teachers]]\ntype = 'simulated'\nmodel = 'simulated/{name}'\n" for name in ("glm-a", "glm-b")
    )
    config = _write(tmp_path / "run.toml", text)
    line = refusal_of(console("run", config, "--path", EXAMPLES, "--workspace", tmp_path / "w"))
    assert "families" in line


def test_a_folder_that_cannot_be_written(console: Run, tmp_path: Path) -> None:
    """A path below a file can be written by nobody, not even by root."""
    blocker = _write(tmp_path / "file", "x")
    line = refusal_of(console("run", "--path", EXAMPLES, "--workspace", blocker / "w"))
    assert str(blocker) in line
    if os.getuid() != 0:
        closed = tmp_path / "closed"
        closed.mkdir(mode=0o500)
        assert "cannot be written" in refusal_of(console("run", "--path", EXAMPLES, "-w", closed / "w"))


def test_a_folder_with_other_files_is_not_taken_for_a_workspace(console: Run, tmp_path: Path) -> None:
    _write(tmp_path / "thesis.txt", "mine")
    line = refusal_of(console("run", "--path", EXAMPLES, "--workspace", tmp_path))
    assert "holds other files" in line
    assert sorted(p.name for p in tmp_path.iterdir()) == ["thesis.txt"]


@pytest.mark.parametrize(
    ("recipe", "said"),
    [
        ("process: [{unheard_of_filter: {}}]", "unheard_of_filter"),
        ("process: [{side_length_filter: {text_key: middle}}]", "middle"),
        ("process: 3", "process"),
        ("{", "recipe"),
    ],
)
def test_a_recipe_that_cannot_run(console: Run, tmp_path: Path, recipe: str, said: str) -> None:
    path = _write(tmp_path / "recipe.yaml", recipe)
    config = _write(tmp_path / "run.toml", f"[normalize]\nrecipe = '{path}'\n")
    line = refusal_of(console("run", config, "--path", EXAMPLES, "--workspace", tmp_path / "w"))
    assert said in line
    assert not (tmp_path / "w").exists()


def _local(folder: Path) -> Path:
    """A configuration of the open teachers at a server that is said to send nothing on."""
    path = folder / "run.toml"
    path.write_text(
        "".join(
            f"[[teachers]]\ntype = 'openrouter'\nmodel = '{teacher.model}'\nlocal = true\n"
            for teacher in OPEN.teachers
        )
    )
    return path


def test_no_network(console: Run, tmp_path: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    flags = (_local(tmp_path), "--path", EXAMPLES, "--workspace", tmp_path / "w", "--max-usd", 1)
    url = f"http://127.0.0.1:{port}/api/v1"
    env = {"TRACEMILL_OPENROUTER_URL": url, "OPENROUTER_API_KEY": "not-a-key-0001"}
    line = refusal_of(console("run", *flags, **env))
    assert "not-a-key-0001" not in line
    assert not (tmp_path / "w").exists()


def test_a_wrong_key_and_a_model_nobody_has_are_refused_before_anything_is_read(
    console: Run, tmp_path: Path
) -> None:
    flags = (_local(tmp_path), "--path", EXAMPLES, "--workspace", tmp_path / "w", "--max-usd", 1)
    with running(StubSettings(api_key="the-right-key")) as server:
        env = {"TRACEMILL_OPENROUTER_URL": server.url, "OPENROUTER_API_KEY": "the-wrong-key"}
        assert "key" in refusal_of(console("run", *flags, **env))
    with running(StubSettings(api_key="k", models={})) as server:
        env = {"TRACEMILL_OPENROUTER_URL": server.url, "OPENROUTER_API_KEY": "k"}
        assert "deepseek/deepseek-v4-pro-0813" in refusal_of(console("run", *flags, **env))
        assert server.stats()["received"] == 0
    assert not (tmp_path / "w").exists()


@pytest.mark.parametrize(
    "flags",
    [
        ("run", "--path", EXAMPLES, "--preset", "simulated", "--max-usd", "1e300"),
        ("run", "--path", EXAMPLES, "--preset", "simulated", "--max-usd", "-1"),
        ("run", "--path", EXAMPLES, "--preset", "simulated", "--max-usd", "nan"),
        ("run", "--path", EXAMPLES, "--preset", "best"),
        ("dev", "openrouter-stub", "--port", "99999"),
        ("status", "--pairs", "-1"),
        ("status", "--source", "bogus"),
    ],
    ids=lambda flags: " ".join(map(str, flags[-2:])),
)
def test_a_flag_out_of_range(console: Run, tmp_path: Path, flags: tuple[object, ...]) -> None:
    done = console(*flags, *(("--workspace", tmp_path / "w") if flags[0] == "run" else ()))
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "w").exists()


def test_a_file_that_is_cut_off_and_holds_no_whole_session_is_one_line(console: Run, tmp_path: Path) -> None:
    whole = sorted((EXAMPLES / "claude_code").rglob("*.jsonl"))[0].read_text()
    end = next(at for at in range(len(whole)) if '"type":"assistant"' in whole[:at].replace(" ", ""))
    torn = _write(tmp_path / "torn.jsonl", whole[:end])
    for _ in range(2):  # also where it is known from the run before
        line = refusal_of(console("ingest", torn, "--workspace", tmp_path / "w"))
        assert "torn.jsonl holds no whole session: 1 not json" in line
    good = _write(tmp_path / "good.jsonl", whole)
    done = console("ingest", torn, good, "--workspace", tmp_path / "w", "--json")
    assert (done.returncode, json.loads(done.stdout)["totals"]["traces"]) == (0, 1)


def test_pipes_devices_and_links_are_named_and_never_waited_for(console: Run, tmp_path: Path) -> None:
    folder = tmp_path / "sessions"
    folder.mkdir()
    first = sorted((EXAMPLES / "claude_code").rglob("*.jsonl"))[0]
    (folder / "a.jsonl").symlink_to(first)
    (folder / "gone.jsonl").symlink_to(tmp_path / "nowhere")
    (folder / "zero.jsonl").symlink_to("/dev/zero")
    (folder / "circle").symlink_to(folder)
    (folder / "ring.jsonl").symlink_to(folder / "rang.jsonl")
    (folder / "rang.jsonl").symlink_to(folder / "ring.jsonl")
    (folder / "empty.jsonl").touch()
    os.mkfifo(folder / "pipe.jsonl")
    done = console("ingest", folder, "--workspace", tmp_path / "w", "--json")
    assert done.returncode == 0
    record = json.loads(done.stdout)
    assert record["totals"]["files"] == 1
    assert {Path(item["path"]).name: item["reason"] for item in record["unread_files"]} == {
        "circle": "a linked folder, not followed",
        "empty.jsonl": "empty",
        "gone.jsonl": "a broken link",
        "pipe.jsonl": "not a regular file",
        "rang.jsonl": "a broken link",
        "ring.jsonl": "a broken link",
        "zero.jsonl": "not a regular file",
    }
    assert "not a regular file" in refusal_of(
        console("ingest", folder / "pipe.jsonl", "--workspace", tmp_path / "x")
    )


@pytest.mark.parametrize("content", ["[1]", "{", '{"shards": [{}]}'])
def test_a_broken_pointer_is_one_line(console: Run, tmp_path: Path, content: str) -> None:
    work = tmp_path / "w"
    assert console("ingest", EXAMPLES, "--workspace", work).returncode == 0
    (work / "traces" / "live.json").write_text(content)
    line = refusal_of(console("label", "--workspace", work))
    assert "live.json" in line
    assert "restore it" in line


def test_a_stage_on_no_workspace_or_an_empty_one(console: Run, tmp_path: Path) -> None:
    for command in (("label",), ("dev", "normalize"), ("release", "write"), ("status",)):
        line = refusal_of(console(*command, "--workspace", tmp_path / "none"))
        assert "is not a workspace" in line
    assert not (tmp_path / "none").exists()


def test_sessions_of_another_agent_name_their_option(console: Call, tmp_path: Path) -> None:
    sessions = tmp_path / "sessions"
    sessions.mkdir()
    shutil.copytree(ROOT / "examples" / "sessions" / "claude_code", sessions / "claude")
    done = console("run", "--codex", sessions, "--workspace", tmp_path / "w")
    assert refusal_of(done) == (
        f"tracemill: no session of codex under {sessions}, but of claude_code; "
        "name the folder with `--claude-code`"
    )
