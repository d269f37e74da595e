"""States of a workspace as what GRPO plays: written by the configuration, equal to the library's, removed."""

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from console_says import refusal_of
from training_releases import released, tiny_model

import tracemill as tm
from tracemill.flows.config.run_settings import RunSettings, load_settings
from tracemill.flows.labeling.label_shard import load_replies, load_traces
from tracemill.flows.training.resolve_release import resolve_training_release
from tracemill.flows.training.state_rows_file import add_state_rows
from tracemill.flows.training.workspace_rows import remove_rows
from tracemill.records.errors import TrainingError
from tracemill.records.identity import StepId
from tracemill.records.storage.workspace import Workspace
from tracemill.train.training_job import TrainingRelease
from tracemill.train.training_settings import TrainingSettings

SIMULATED = Path(__file__).resolve().parents[1] / "data" / "simulated.toml"
CONSENSUS = {"model": "a/b", "method": "composer", "composer": {"consensus": "weighted"}}
Rows = list[dict[str, Any]]


def settings_of(workspace: Path, **training: Any) -> RunSettings:
    return load_settings(SIMULATED, {"workspace": str(workspace), "training": CONSENSUS | training})


@pytest.fixture(scope="module")
def workspace(demo: Any) -> Path:
    """A workspace of the example sessions, which four simulated teachers answered in."""
    return demo.folder / "w"


def rows_of(settings: RunSettings, release: TrainingRelease) -> tuple[TrainingSettings, Rows]:
    assert settings.training is not None
    training = add_state_rows(settings, settings.training, release)
    assert training.composer is not None
    assert training.composer.states is not None
    lines = training.composer.states.read_text().splitlines()
    return training, [json.loads(line) for line in lines]


def release_of(folder: Path, step_id: str, split: str = "train") -> TrainingRelease:
    """A release of one pair at this step, in this split."""
    made = released(folder, rows=1, step_id=step_id)
    for file in (made.path / "data").glob("*/train-*.parquet"):
        file.rename(file.with_name(file.name.replace("train", split, 1)))
    digest = made.content_fingerprint
    return TrainingRelease(name="views", version=made.version, digest=digest, path=made.path)


def test_the_rows_are_those_of_the_library_but_for_sessions_that_are_held_out(
    workspace: Path, tmp_path: Path
) -> None:
    settings = settings_of(workspace)
    training, rows = rows_of(settings, release_of(tmp_path / "a", "another-trace:0:0"))
    work = Workspace.open(workspace, create=False)
    names = sorted({StepId.parse(row["step_id"]).trace_id for row in rows})
    assert len(names) == 7
    states = [state for trace in load_traces(work, names) for state in trace.states()]
    wanted = tm.build_consensus_rows(states, load_replies(work, names))
    assert rows == sorted(json.loads(json.dumps(wanted)), key=lambda row: json.dumps(row, sort_keys=True))
    assert all(row["answers"] and row["simulated"] for row in rows)
    assert len({each["teacher"] for row in rows for each in row["answers"]}) == 4

    away, _, _ = rows[0]["step_id"].partition(":")
    fewer, left = rows_of(settings, release_of(tmp_path / "b", f"{away}:0:0", "validation"))
    assert left == [row for row in rows if row["step_id"].partition(":")[0] != away]
    assert 0 < len(left) < len(rows)
    assert training.fingerprint() != fewer.fingerprint()
    for each in (training, fewer):
        assert each.composer is not None
        assert each.composer.states is not None
        assert each.composer.states.parent == (workspace / "trainings" / "states").resolve()
        assert each.composer.states.stat().st_mode & 0o077 == 0
        remove_rows(workspace, each)
        assert not each.composer.states.exists()


def test_a_file_of_the_user_stays_and_is_what_is_played(workspace: Path, tmp_path: Path) -> None:
    own = tmp_path / "states.jsonl"
    own.touch()
    settings = settings_of(workspace, composer={"states": str(own), "consensus": "plurality"})
    assert settings.training is not None
    assert add_state_rows(settings, settings.training, release_of(tmp_path, "t:0:0")) is settings.training
    remove_rows(workspace, settings.training)
    assert own.exists()


def test_a_workspace_that_no_teacher_answered_in_says_what_to_do(tmp_path: Path) -> None:
    Workspace.open(tmp_path / "w")
    settings, release = settings_of(tmp_path / "w"), release_of(tmp_path / "r", "t:0:0")
    assert settings.training is not None
    with pytest.raises(TrainingError, match="teachers answered in no session to train on; expected"):
        add_state_rows(settings, settings.training, release)
    away = release.model_copy(update={"path": None, "repository": "a/traces"})
    with pytest.raises(TrainingError, match="states cannot be made for a/traces: that release is on the Hub"):
        add_state_rows(settings, settings.training, away)


@pytest.mark.slow
def test_the_command_trains_on_the_answers_of_the_workspace(
    tracemill: Callable[..., CompletedProcess[str]], workspace: Path, tmp_path: Path
) -> None:
    """One line of a configuration: the model acts in every state that the release does not hold out."""
    from transformers import AutoTokenizer
    from trl.chat_template_utils import qwen3_template

    tokenizer = AutoTokenizer.from_pretrained(tiny_model(tmp_path / "tiny"))
    tokenizer.response_template = qwen3_template
    tokenizer.save_pretrained(tmp_path / "tiny")
    config = tmp_path / "train.toml"
    config.write_text(f"""
workspace = {str(workspace)!r}
[release]
name = "demo"
[training]
model = "./tiny"
method = "composer"
output = "out"
device = "cpu"
gradient_checkpointing = false
max_steps = 1
max_length = 4096
[training.composer]
consensus = "weighted"
max_completion_length = 8
beta_replay = 0
alpha_sdpo = 0
""")
    done = tracemill("train", config, "--json")
    assert done.returncode == 0, done.stderr
    release = resolve_training_release("demo", workspace / "releases")
    training, wanted = rows_of(settings_of(workspace), release)
    remove_rows(workspace, training)
    assert not [*(workspace / "trainings" / "states").iterdir()]  # nor is that of the command left
    report = json.loads((tmp_path / "out" / "demo" / release.version / "training.json").read_text())
    channel = report["channels"]["grpo"]
    assert channel["examples"] == channel["simulated_states"] == len(wanted) > 20
    [step] = report["losses"]
    assert 0 <= step["reward"] <= 1
    card = (tmp_path / "out" / "demo" / release.version / "README.md").read_text()
    assert f"0 dropped; {len(wanted)} with simulated answers |" in card

    config.write_text(config.read_text().replace('"weighted"', '"score_regression"'))
    said = refusal_of(tracemill("train", config))
    assert 'consensus = "score_regression" without states; expected a file' in said
