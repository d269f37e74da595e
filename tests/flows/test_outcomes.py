"""`[release] outcomes`: what a file says of sessions whose own files do not tell."""

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pyarrow.parquet as pq
import pytest
from claude_code_records import SESSION, answer, says, user, write
from console_says import record_of, refusal_of

from benchmarks.teaching.formats import write_sessions
from benchmarks.teaching.policies import Session, weak_session
from benchmarks.teaching.worlds.registry import WORLDS
from tracemill.flows.config.run_settings import load_settings
from tracemill.flows.release.outcome_file import outcome_in_file, read_outcome_file
from tracemill.records.errors import ConfigError

QUERY = WORLDS["query"]
WANTED = (
    'expected a line for each session: {"session": "<id of session, instance or trace>", "resolved": true}'
)
Call = Callable[..., CompletedProcess[str]]


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Session]]:
    """60 sessions of Claude Code in a folder, and what became of them in a file beside it."""
    sessions = [weak_session(QUERY, task) for task in range(60)]
    return write_sessions(QUERY, sessions, tmp_path_factory.mktemp("query") / "sessions"), sessions


def configure(folder: Path, sessions: Path, outcomes: str) -> Path:
    """A run without teachers that holds nothing out."""
    lines = ["workspace = 'w'", "[sources]", f"paths = ['{sessions}']", "min_age_minutes = 0", "[release]"]
    path = folder / "run.toml"
    path.write_text("\n".join([*lines, "validation = 0", "test = 0", *([outcomes] if outcomes else [])]))
    return path


def rows(release: dict[str, Any], config: str) -> list[dict[str, Any]]:
    files = sorted((Path(release["path"]) / "data" / config).glob("*.parquet"))
    return [row for file in files for row in pq.read_table(file).to_pylist()]


def test_steps_of_sessions_that_the_file_calls_solved_are_rows(
    tracemill: Call, tmp_path: Path, played: tuple[Path, list[Session]]
) -> None:
    folder, sessions = played
    (tmp_path / "told.jsonl").write_bytes((folder.parent / "sessions-outcomes.jsonl").read_bytes())
    config = configure(tmp_path, folder, "outcomes = 'told.jsonl'")  # beside the configuration
    release = record_of(tracemill("run", config, "--json"))["release"]
    solved = [session for session in sessions if session.reward]
    assert (len(solved), len(sessions) - len(solved)) == (33, 27)
    found = rows(release, "solved")
    assert len({row["trace_id"] for row in found}) == len(solved)
    assert {row["outcome"] for row in found} == {"resolved"}
    assert all(row["weight"] == row["outcome_weight"] for row in found)
    assert min(row["weight"] for row in found) < 0.5  # a step that rather goes with failure
    assert all(row["outcome_support"] >= 0 for row in found)
    dropped = [count for why, count in release["labels_dropped"].items() if why.startswith("solved: ")]
    steps = sum(len(session.turns) for session in solved)
    assert len(found) == release["labels"]["solved"] == steps - sum(dropped)
    assert {row["outcome"] for row in rows(release, "dpo")} <= {"resolved", "not_resolved"}


def test_without_the_file_no_session_of_claude_code_is_solved(
    tracemill: Call, tmp_path: Path, played: tuple[Path, list[Session]]
) -> None:
    release = record_of(tracemill("run", configure(tmp_path, played[0], ""), "--json"))["release"]
    assert (release["path"], release["note"], release["labels"]) == (None, "no pair was found", {})


def test_a_subagent_has_the_outcome_of_its_session(tracemill: Call, tmp_path: Path) -> None:
    sessions, side = tmp_path / "sessions", {"isSidechain": True, "agentId": "abc1234"}
    write(
        sessions / f"{SESSION}.jsonl",
        user("1", None, "go"),
        says("2", "1", "m1", ("t1", "Task", {"prompt": "look", "description": "d"})),
        answer("3", "2", "t1", "found", toolUseResult={"agentId": "abc1234"}),
        says("4", "3", "m2", "It is done, the project has what it lacked."),
    )
    write(
        sessions / SESSION / "subagents" / "agent-abc1234.jsonl",
        user("a1", None, "look", **side),
        says("a2", "a1", "s1", ("x", "Bash", {"command": "ls"}), **side),
        answer("a3", "a2", "x", "main.py", **side),
        says("a4", "a3", "s2", "There is one file, main.py.", **side),
    )
    (tmp_path / "told.jsonl").write_text(json.dumps({"session": SESSION, "resolved": True}))
    config = configure(tmp_path, sessions, "outcomes = 'told.jsonl'")
    release = record_of(tracemill("run", config, "--json"))["release"]
    found = rows(release, "solved")
    assert {row["outcome"] for row in found} == {"resolved"}
    assert sorted(int(row["step_id"].rsplit(":", 1)[1]) for row in found) == [0, 0, 1, 1]
    assert len({row["trace_id"] for row in found}) == 2
    assert {(row["weight"], row["outcome_weight"]) for row in found} == {(1.0, None)}  # too few sessions


@pytest.mark.parametrize(
    ("line", "number"),
    [
        ('{"session": "a", "resolved": tru', 2),
        ('{"session": "a"}', 2),
        ('{"resolved": true}', 2),
        ('{"session": "", "resolved": true}', 2),
        ('{"session": 7, "resolved": true}', 2),
        ('["a", true]', 2),
        ("a,true", 2),
    ],
)
def test_a_line_that_is_no_outcome_is_refused_before_anything_is_asked(
    console: Call, tmp_path: Path, played: tuple[Path, list[Session]], line: str, number: int
) -> None:
    told = tmp_path / "told.jsonl"
    told.write_text(f'{{"session": "first", "resolved": false}}\n{line}\n')
    said = refusal_of(console("run", configure(tmp_path, played[0], f"outcomes = '{told}'"), "--json"))
    assert said == f"tracemill: release.outcomes: line {number} of {told} is not an outcome; {WANTED}"
    assert not (tmp_path / "w").exists()


def test_a_file_that_cannot_be_read_is_refused_before_anything_is_asked(
    console: Call, tmp_path: Path, played: tuple[Path, list[Session]]
) -> None:
    config = configure(tmp_path, played[0], "outcomes = 'told.jsonl'")
    told = tmp_path / "told.jsonl"
    for content, why in ((None, "No such file or directory"), (b"\xff\xfe{}", "no UTF-8")):
        if content is not None:
            told.write_bytes(content)
        said = refusal_of(console("run", config, "--json"))
        assert said == f"tracemill: release.outcomes: {told} cannot be read ({why}); {WANTED}"
    assert not (tmp_path / "w").exists()


def test_a_file_tells_by_session_instance_or_trace(tmp_path: Path) -> None:
    told = tmp_path / "told.jsonl"
    lines = [("s1", True), ("o__r-1", False), ("t3", True), ("s1", False), ("", None)]
    text = "\n\n".join(json.dumps({"session": name, "resolved": it}) for name, it in lines if name)
    told.write_text(f"{text}\n")
    outcomes = read_outcome_file(told)
    assert outcomes == {"s1": "not_resolved", "o__r-1": "not_resolved", "t3": "resolved"}
    row = {"trace_id": "t3", "origin": "s1.jsonl", "instance_id": None}
    assert outcome_in_file(row, outcomes) == "resolved"
    assert outcome_in_file(row | {"trace_id": "t4"}, outcomes) == "not_resolved"
    assert (
        outcome_in_file({"trace_id": "t", "origin": None, "instance_id": "o__r-1"}, outcomes)
        == "not_resolved"
    )
    assert outcome_in_file({"trace_id": "t", "origin": None, "instance_id": "o"}, outcomes) == "unknown"
    assert read_outcome_file(None) == {}
    with pytest.raises(ConfigError, match="cannot be read"):
        read_outcome_file(tmp_path)


def test_a_relative_path_begins_at_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text("[release]\noutcomes = 'verdicts/told.jsonl'\n")
    settings = load_settings(tmp_path / "run.toml", {})
    assert settings.release.outcomes == tmp_path / "verdicts" / "told.jsonl"
