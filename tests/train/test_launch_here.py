"""Trainings in processes of this machine: TRL's, and a shell command; found again, stopped, taken up."""

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from console_says import Call
from hub_stub import READ_TOKEN, TOKEN, Hub
from training_releases import released, tiny_model

from tracemill.data_cards.model.manifest import read_manifest
from tracemill.flows.config.run_settings import RunSettings
from tracemill.flows.training.training_run import (
    describe_training,
    start_training,
    stop_training,
    train_on,
    training_log,
    training_table_rows,
)
from tracemill.flows.training.training_run import figures as figures_of
from tracemill.records.errors import ConfigError, TrainingError
from tracemill.train.launch.job_record import JobRecord
from tracemill.train.launch.launch_training import SubmittedJob
from tracemill.train.launch.launcher import JobState
from tracemill.train.model_repository import ModelRepository
from tracemill.train.training_job import TrainingJob, TrainingRelease
from tracemill.train.training_settings import TrainingSettings

SAVE = 'echo trained on $TRACEMILL_RELEASE_NAME; echo weights > "$TRACEMILL_OUTPUT/model.bin"'


def settings_of(work: Path, command: str | None = None, **training: Any) -> RunSettings:
    given: dict[str, Any] = {"model": "a/b", "device": "cpu"}
    if command is not None:
        given |= {"launcher": "command", "launch": {"command": command}}
    return RunSettings.model_validate({"workspace": work, "training": given | training})


@pytest.fixture
def work(tmp_path: Path) -> Iterator[Path]:
    released(tmp_path / "w" / "releases")
    yield tmp_path / "w"
    for pid in tmp_path.glob("w/trainings/*/*/*/pid"):
        subprocess.run(["kill", "-9", pid.read_text()], capture_output=True, check=False)


def record_of(work: Path) -> JobRecord:
    [path] = work.glob("trainings/views/*/record.json")
    return JobRecord.model_validate_json(path.read_bytes())


def until(submitted: SubmittedJob) -> JobState:
    deadline = time.monotonic() + 60
    while not (status := submitted.poll()).state.final:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return status.state


def test_a_command_gets_the_release_and_a_minimal_environment(
    work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENROUTER_API_KEY", "HF_TOKEN", "MY_SETTING", "NAMED_KEY"):
        monkeypatch.setenv(name, f"value of {name}")
    monkeypatch.chdir(tmp_path)
    settings = settings_of(work, f"{SAVE}; env > seen.env", method="dpo", environment=["NAMED_KEY"])
    made = train_on(settings, "views")
    seen = dict(line.split("=", 1) for line in (tmp_path / "seen.env").read_text().splitlines())
    release = made.report["release"]
    assert (
        seen["TRACEMILL_RELEASE"] == release["path"] == str(work / "releases" / "views" / release["version"])
    )
    assert seen["TRACEMILL_RELEASE_NAME"] == "views"
    assert (seen["TRACEMILL_RELEASE_VERSION"], seen["TRACEMILL_RELEASE_DIGEST"]) == (
        release["version"],
        release["digest"],
    )
    assert (seen["TRACEMILL_MODEL"], seen["TRACEMILL_METHOD"]) == ("a/b", "dpo")
    assert seen["NAMED_KEY"] == "value of NAMED_KEY"
    assert {"OPENROUTER_API_KEY", "HF_TOKEN", "MY_SETTING"} & seen.keys() == set()
    assert (made.path / "model.bin").read_text() == "weights\n"
    assert made.path == work / "checkpoints" / "views" / release["version"]
    assert [path.name for path in made.path.parent.iterdir()] == [release["version"]]
    record = record_of(work)
    assert (record.launcher, record.state, record.attempt) == ("command", JobState.SUCCEEDED, 1)
    assert (record.digest, record.checkpoint) == (release["digest"], str(made.path))
    assert record.job["variables"]["TRACEMILL_RELEASE"] == release["path"]
    assert "value of NAMED_KEY" not in record.model_dump_json()
    assert list(training_log(settings, "views")) == ["trained on views"]
    again = train_on(settings, "views")
    assert (again.created, again.report) == (False, made.report)
    [(_, said)] = training_table_rows(figures_of(made))
    assert said.startswith(f"{made.path}\na command in ")


def test_another_command_makes_another_checkpoint(work: Path) -> None:
    train_on(settings_of(work, SAVE), "views")
    with pytest.raises(TrainingError, match="holds another training"):
        train_on(settings_of(work, f"{SAVE} "), "views")


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("exit 3", "the training command ended with exit code 3; expected exit code 0"),
        ("true", r"the command left no file in \$TRACEMILL_OUTPUT; expected a checkpoint in that folder"),
    ],
)
def test_a_command_that_fails_is_one_line_and_is_tried_again(work: Path, command: str, said: str) -> None:
    for attempt in (1, 2):
        with pytest.raises(TrainingError, match=said):
            train_on(settings_of(work, command), "views")
        assert (record_of(work).attempt, record_of(work).state) == (attempt, JobState.FAILED)
    assert not any((work / "checkpoints" / "views").glob("*"))


def test_what_a_command_left_is_there_for_the_next_attempt(work: Path) -> None:
    command = 'cd "$TRACEMILL_OUTPUT"; if [ -e half ]; then mv half whole; else echo 1 > half; exit 1; fi'
    with pytest.raises(TrainingError, match="ended with exit code 1"):
        train_on(settings_of(work, command), "views")
    made = train_on(settings_of(work, command), "views")
    assert sorted(path.name for path in made.path.iterdir()) == ["training.json", "whole"]


def test_a_job_is_submitted_once_and_found_again(work: Path, tmp_path: Path) -> None:
    """By a caller that waits, one that does not, and one that died before it could note the id."""
    command = f"echo run >> '{tmp_path}/runs'; while [ ! -e '{tmp_path}/go' ]; do sleep 0.05; done; {SAVE}"
    settings = settings_of(work, command)
    first = start_training(settings, "views")
    again = start_training(settings, "views")
    assert (again.job_id, again.record.key) == (first.job_id, first.record.key)
    [path] = work.glob("trainings/views/*/record.json")
    path.write_text(
        first.record.model_copy(update={"job_id": None, "state": JobState.SUBMITTING}).model_dump_json()
    )
    third = start_training(settings, "views")
    assert (third.job_id, third.record.attempt) == (first.job_id, 1)
    (tmp_path / "go").touch()
    made = train_on(settings, "views")
    assert made.created
    assert (tmp_path / "runs").read_text() == "run\n"
    assert record_of(work).state == JobState.SUCCEEDED


def test_a_job_goes_on_without_the_process_that_submitted_it(work: Path, tmp_path: Path) -> None:
    code = (
        "import sys; from test_launch_here import *;"
        "print(start_training(settings_of(Path(sys.argv[1]), sys.argv[2]), 'views').job_id)"
    )
    command = f"while [ ! -e '{tmp_path}/go' ]; do sleep 0.05; done; {SAVE}"
    support = str(Path(__file__).parents[1] / "support")
    env = dict(os.environ) | {"PYTHONPATH": os.pathsep.join((str(Path(__file__).parent), support))}
    done = subprocess.run(
        [sys.executable, "-c", code, str(work), command], env=env, capture_output=True, text=True, check=True
    )
    submitted = start_training(settings_of(work, command), "views")
    assert submitted.job_id == done.stdout.strip()
    assert submitted.poll().state == JobState.RUNNING
    (tmp_path / "go").touch()
    assert until(submitted) == JobState.SUCCEEDED


def test_a_job_is_cancelled_and_submitted_anew(work: Path, tmp_path: Path) -> None:
    command = f"trap 'echo saved > \"{tmp_path}/saved\"; exit 0' TERM; echo up; sleep 60 & wait"
    settings = settings_of(work, command)
    with pytest.raises(TrainingError, match="no job was submitted that trains on views@"):
        stop_training(settings, "views")
    first = start_training(settings, "views")
    while list(training_log(settings, "views")) != ["up"]:
        time.sleep(0.05)
    stop_training(settings, "views")
    assert until(first) == JobState.CANCELLED
    assert (tmp_path / "saved").read_text() == "saved\n"
    second = start_training(settings, "views")
    assert (second.record.attempt, second.job_id != first.job_id) == (2, True)
    stop_training(settings, "views")
    assert until(second) == JobState.CANCELLED


def test_a_command_that_is_stopped_as_it_starts_is_not_left_behind(work: Path, tmp_path: Path) -> None:
    """The command itself has its trainer told to stop, before that knows of the command."""
    for number in range(8):
        saved = tmp_path / f"saved-{number}"
        command = f"trap 'echo saved > \"{saved}\"; exit 0' TERM; kill -TERM $PPID; sleep 60 & wait"
        assert until(start_training(settings_of(work, command), "views")) == JobState.CANCELLED
        assert saved.read_text() == "saved\n"


def test_a_job_that_was_killed_is_told(work: Path) -> None:
    submitted = start_training(settings_of(work, "sleep 60"), "views")
    os.kill(int(submitted.job_id), signal.SIGKILL)
    assert until(submitted) == JobState.FAILED
    assert submitted.poll().reason == "the process of the training was killed"


def test_the_dry_run_writes_nothing(work: Path) -> None:
    settings = settings_of(work, "train.sh", environment=["NAMED_KEY"])
    described = describe_training(settings, "views")
    version = next((work / "releases" / "views").glob("2*")).name
    assert described["launcher"] == "command"
    assert described["release"] == f"views@{version}"
    assert described["checkpoint"] == str(work / "checkpoints" / "views" / version)
    assert described["job"]["command"] == "train.sh"
    assert described["job"]["directory"] == str(Path.cwd())
    assert not (work / "trainings").exists()
    assert not (work / "checkpoints").exists()


def test_a_plan_needs_no_torch(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows, settings and job are told, with what to install; a training is refused before it begins."""
    there = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "torch" else there(name))
    settings = settings_of(work, method="dpo")
    described = describe_training(settings, "views")
    assert described["missing"].startswith("torch is not installed; expected the extra `train`; pip install ")
    manifest = read_manifest(next((work / "releases" / "views").glob("2*")))
    assert described["rows"] == manifest.splits
    assert sum(described["rows"].values()) == manifest.rows > 0
    assert (described["settings"]["method"], described["settings"]["model"]) == ("dpo", "a/b")
    with pytest.raises(TrainingError, match="torch is not installed"):
        start_training(settings, "views")


@pytest.mark.parametrize(
    ("launcher", "launch", "said"),
    [
        (
            "command",
            {},
            "launch.command: Field required; expected options of the launcher 'command': command",
        ),
        ("command", {"command": "a", "gpu": 1}, "launch.gpu: Extra inputs are not permitted"),
        ("local", {"gpus": 1}, "expected options of the launcher 'local': no option"),
        ("prefect", {}, "launch.work_pool: Field required"),
        ("hf-jobs", {"timeout": "soon"}, "launch.timeout: String should match pattern"),
        ("slurm", {"gpus": -1}, "launch.gpus: Input should be greater than or equal to 0"),
        ("modal", {"timeout_s": 1}, "launch.timeout_s: Input should be greater than or equal to 60"),
    ],
)
def test_options_that_a_launcher_does_not_take_are_one_line(
    launcher: str, launch: dict[str, Any], said: str, tmp_path: Path
) -> None:
    from tracemill.flows.config.run_settings import load_settings

    with pytest.raises(ConfigError) as caught:
        load_settings(None, {"training": {"model": "a/b", "launcher": launcher, "launch": launch}})
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_damaged_record_is_one_line(work: Path) -> None:
    train_on(settings_of(work, SAVE), "views")
    [path] = work.glob("trainings/views/*/record.json")
    path.write_text("{}")
    with pytest.raises(
        TrainingError, match=r"record\.json is damaged; expected the record of a training job"
    ):
        start_training(settings_of(work, SAVE), "views")


def test_the_command_line_submits_shows_and_cancels(console: Call, work: Path, tmp_path: Path) -> None:
    config = tmp_path / "run.toml"
    command = f"echo up; while [ ! -e {tmp_path}/go ]; do sleep 0.05; done; {SAVE}"
    config.write_text(
        f"workspace = 'w'\n[training]\nmodel = 'a/b'\nlauncher = 'command'\n"
        f"[training.launch]\ncommand = {json.dumps(command)}\n"
    )
    call = ("train", config, "--release", "views")
    described = json.loads(console(*call, "--dry-run").stdout)
    assert described["job"]["command"] == command
    said = console(*call, "--dry-run", "--detach")
    assert (said.returncode, said.stderr) == (
        2,
        "tracemill: --dry-run and --detach are both given; expected one of them\n",
    )
    assert "no job was submitted that trains on views@" in console(*call, "--logs").stderr
    submitted = json.loads(console(*call, "--detach", "--json").stdout)
    assert (submitted["launcher"], submitted["release"]) == ("command", described["release"])
    assert submitted["checkpoint"] == described["checkpoint"]
    while (logs := console(*call, "--logs")).stdout != "up\n":
        assert logs.returncode == 0, logs.stderr
    assert f"{submitted['job_id']} of command, told to stop" in console(*call, "--cancel").stdout
    (tmp_path / "go").touch()
    done = console(*call)
    assert done.returncode == 0, done.stderr
    assert "a command in " in done.stdout
    assert "not compared: the release holds out no pair" in done.stdout
    assert record_of(work).attempt == 2


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of libraries
@pytest.mark.long
def test_a_job_without_our_files_brings_its_checkpoint_by_the_hub(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What `hf-jobs` and `modal` run there, but for the model, which is a folder here."""
    made = released(tmp_path / "releases")
    files = {str(path.relative_to(made.path)): path.read_bytes() for path in made.path.rglob("*.*")}
    commit = hub.put("ann/set", files, tag="2026.11.21")
    release = TrainingRelease(name="ann--set", version="1", digest=commit, repository="ann/set")
    given = {"model": str(tiny_model(tmp_path / "tiny")), "max_steps": 2, "device": "cpu"}
    settings = TrainingSettings.model_validate(given | {"hub": "maker/student", "environment": ["HF_TOKEN"]})
    job = TrainingJob(release=release, settings=settings, tracemill_version="0")
    env = dict(os.environ) | {"HF_TOKEN": TOKEN, "HF_HUB_OFFLINE": "0", "HF_HOME": str(tmp_path / "hf")}
    env |= {"TRACEMILL_JOB": job.model_dump_json(), "TRACEMILL_KEY": "tracemill-key-1"}
    command = [sys.executable, "-P", "-m", "tracemill.train.launch.run_job"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout.splitlines()[-1])["step"] == 2
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    (tmp_path / "out").mkdir()
    ModelRepository("maker/student").fetch("tracemill-key-1", tmp_path / "out" / "1")
    report = json.loads((tmp_path / "out" / "1" / "training.json").read_text())
    assert (report["fingerprint"], report["steps"]) == (job.fingerprint(), 2)
    assert (tmp_path / "out" / "1" / "model.safetensors").stat().st_size > 10_000
    refused = subprocess.run(
        command, env=env | {"HF_TOKEN": READ_TOKEN}, capture_output=True, text=True, check=False
    )
    assert refused.returncode == 1
    assert refused.stderr.splitlines()[-1].startswith(
        "tracemill: the Hub answers 403 to create maker/student"
    )


@pytest.mark.slow
def test_two_processes_of_accelerate_train_one_model(work: Path, tmp_path: Path) -> None:
    model = str(tiny_model(tmp_path / "tiny"))
    given = {"model": model, "max_steps": 2, "batch": 2, "accumulate": 1, "gradient_checkpointing": False}
    made = train_on(settings_of(work, **given, processes=2), "views")
    assert made.report["steps"] == 2
    assert made.report["settings"]["processes"] == 2
    assert made.report["processes"] == 2
    single = train_on(settings_of(work, **given | {"batch": 4}, output=str(tmp_path / "one")), "views")
    losses = [[entry["loss"] for entry in each.report["losses"]] for each in (made, single)]
    assert losses[0] == pytest.approx(losses[1], abs=1e-3)


def test_the_report_of_a_command_keeps_what_its_trainer_wrote(work: Path) -> None:
    made = train_on(
        settings_of(work, f'{SAVE}; echo \'{{"mine": 1}}\' > "$TRACEMILL_OUTPUT/training.json"'), "views"
    )
    assert json.loads((made.path / "training.json").read_text())["trainer"] == {"mine": 1}
