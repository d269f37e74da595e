"""Slurm, jobs of the Hub and Modal, each against a stand-in: the exact job, found again, ended, cancelled."""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hub_stub import TOKEN, Hub
from training_releases import released

from tracemill.flows.config.run_settings import RunSettings
from tracemill.flows.training.training_run import (
    describe_training,
    start_training,
    stop_training,
    train_on,
    training_log,
)
from tracemill.records.errors import TrainingError
from tracemill.train.launch.launcher import JobState

STUBS = Path(__file__).parents[1] / "support" / "sdk_stubs"
ENVIRONMENT = {"HF_TOKEN": TOKEN, "WANDB_API_KEY": "wandb-key", "OPENROUTER_API_KEY": "openrouter-key"}


def settings_of(
    work: Path, launcher: str, launch: dict[str, Any] | None = None, **training: Any
) -> RunSettings:
    given = {"launcher": launcher, "launch": launch or {}, "model": "Qwen/Qwen3-0.6B", "device": "auto"}
    return RunSettings.model_validate({"workspace": work, "training": given | training})


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def at_the_hub(hub: Hub, environment: None, monkeypatch: pytest.MonkeyPatch) -> str:
    """A release at the Hub; its commit."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    return hub.put("ann/set", {"README.md": b"---\n---\n"}, tag="2026.11.21")


@pytest.fixture
def slurm(tmp_path: Path, environment: None, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the stand-ins of Slurm."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("sbatch", "sacct", "scancel"):
        program = programs / name
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "{STUBS / "slurm.py"}" {name} "$@"\n')
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(programs), prepend=":")
    monkeypatch.setenv("SLURM_STUB", str(tmp_path))
    return tmp_path


@pytest.fixture
def modal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], dict[str, Any]]]:
    """What the stand-in of modal was called with."""
    monkeypatch.syspath_prepend(str(STUBS))
    monkeypatch.setenv("MODAL_STUB", str(tmp_path / "modal.json"))
    yield lambda: json.loads((tmp_path / "modal.json").read_text())
    sys.modules.pop("modal", None)


def test_slurm_gets_the_exact_job(slurm: Path, tmp_path: Path) -> None:
    made = released(tmp_path / "w" / "releases")
    launch = {
        "partition": "gpu",
        "gpus": 2,
        "setup": ["module load cuda"],
        "sbatch": ["--qos=high"],
        "time": "02:00:00",
    }
    settings = settings_of(
        tmp_path / "w", "slurm", launch, environment=["WANDB_API_KEY", "UNSET"], processes=2
    )
    described = describe_training(settings, "views")["job"]
    submitted = start_training(settings, "views")
    key, folder = submitted.record.key, submitted.launch.folder
    assert described["command"] == [
        "sbatch",
        "--parsable",
        f"--job-name={key}",
        "--export=WANDB_API_KEY",
        f"--output={folder}/job.log",
        "--open-mode=append",
        f"--chdir={folder}",
        "--nodes=1",
        "--ntasks=1",
        "--cpus-per-task=8",
        "--mem=32G",
        "--time=02:00:00",
        "--signal=B:TERM@120",
        "--partition=gpu",
        "--gpus=2",
        "--qos=high",
        f"{folder}/job.sh",
    ]
    run = f"{sys.executable} -P -m tracemill.train.launch.run_job {folder}"
    script = f"#!/bin/sh\nset -e\nmodule load cuda\nexec {run}\n"
    assert described["script"] == script
    jobs = json.loads((slurm / "jobs.json").read_text())
    assert jobs == {"4000": {"name": key, "state": "PENDING", "script": script}}
    calls = [json.loads(line) for line in (slurm / "calls.jsonl").read_text().splitlines()]
    assert described["command"] in calls
    job = json.loads((folder / "launch.json").read_text())["job"]
    assert job["release"]["digest"] == made.content_fingerprint
    assert job["settings"]["processes"] == 2
    record = submitted.record
    assert (record.job_id, record.digest) == ("4000", made.content_fingerprint)
    assert record.checkpoint == str(tmp_path / "w" / "checkpoints" / "views" / made.version)


def test_a_job_of_slurm_is_found_again_and_its_end_is_told(slurm: Path, tmp_path: Path) -> None:
    released(tmp_path / "w" / "releases")
    settings = settings_of(tmp_path / "w", "slurm")
    submitted = start_training(settings, "views")
    assert "--export=NONE" in describe_training(settings, "views")["job"]["command"]
    [path] = tmp_path.glob("w/trainings/views/*/record.json")
    lost = submitted.record.model_copy(update={"job_id": None, "state": JobState.SUBMITTING})
    path.write_text(lost.model_dump_json())
    assert start_training(settings, "views").job_id == "4000"
    for word, state in (("RUNNING", "running"), ("COMPLETING", "running"), ("REQUEUED", "queued")):
        _set(slurm, "4000", word)
        assert submitted.poll().state == state
    (submitted.launch.folder / "progress.jsonl").write_text('{"step": 1}\n{"step": 2, "total": 9}\n{"st')
    _set(slurm, "4000", "RUNNING")
    assert submitted.poll().progress == {"step": 2, "total": 9}
    for word in ("OUT_OF_MEMORY", "TIMEOUT", "NODE_FAIL"):
        _set(slurm, "4000", word)
        assert submitted.poll().reason == f"job 4000 of Slurm failed: {word}"
    with pytest.raises(TrainingError, match=r"ended and .* holds no checkpoint"):
        _set_next(slurm, settings, "COMPLETED")
    assert json.loads((slurm / "jobs.json").read_text()).keys() == {"4000", "4001"}


def _set(slurm: Path, job_id: str, state: str) -> None:
    jobs = json.loads((slurm / "jobs.json").read_text())
    jobs[job_id]["state"] = state
    (slurm / "jobs.json").write_text(json.dumps(jobs))


def _set_next(slurm: Path, settings: RunSettings, state: str) -> None:
    second = start_training(settings, "views")
    assert second.record.attempt == 2
    _set(slurm, second.job_id, state)
    train_on(settings, "views")


def test_a_job_of_slurm_is_cancelled_and_a_refusal_is_one_line(slurm: Path, tmp_path: Path) -> None:
    released(tmp_path / "w" / "releases")
    settings = settings_of(tmp_path / "w", "slurm")
    submitted = start_training(settings, "views")
    stop_training(settings, "views")
    assert submitted.poll().state == JobState.CANCELLED
    (slurm / "refuses").touch()
    with pytest.raises(
        TrainingError, match=r"^sacct failed: sacct: error: Unable to contact slurm controller"
    ):
        submitted.poll()


def test_without_slurm_it_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    released(tmp_path / "w" / "releases")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(
        TrainingError, match="sbatch is not there; expected the programs of Slurm; call it on a lo"
    ):
        start_training(settings_of(tmp_path / "w", "slurm"), "views")


REMOTE = {"hub": "maker/student", "environment": ["HF_TOKEN", "WANDB_API_KEY"], "max_steps": 2}


def test_a_job_that_may_have_been_submitted_is_looked_for_or_given_up(
    hub: Hub, at_the_hub: str, slurm: Path, tmp_path: Path
) -> None:
    """The answer to the submission is lost: nothing is submitted a second time, there or elsewhere."""
    settings = settings_of(tmp_path / "w", "hf-jobs", **REMOTE)
    hub.loses = lambda request: request.method == "POST" and request.path.startswith("/api/jobs/")
    with pytest.raises(TrainingError, match="jobs of the Hub cannot be reached"):
        start_training(settings, "ann/set")
    hub.loses = lambda request: False
    elsewhere = settings_of(tmp_path / "w", "slurm", **REMOTE)
    with pytest.raises(TrainingError, match=r"it is unknown whether tracemill-\S+-1 was submitted"):
        start_training(elsewhere, "ann/set")
    assert start_training(settings, "ann/set").job_id == "job0"
    assert len(hub.jobs) == 1
    [path] = tmp_path.glob("w/trainings/ann--set/*/record.json")
    lost = json.loads(path.read_text()) | {"job_id": None, "state": "submitting"}
    path.write_text(json.dumps(lost))
    assert stop_training(settings, "ann/set").state == JobState.CANCELLED
    assert start_training(elsewhere, "ann/set").job_id == "4000"
    assert (len(hub.jobs), hub.jobs[0]["stage"]) == (1, "SCHEDULING")


def test_a_job_that_was_refused_is_tried_elsewhere(
    hub: Hub, at_the_hub: str, slurm: Path, tmp_path: Path
) -> None:
    hub.faults = lambda request: 403 if request.path.startswith("/api/jobs/") else 0
    with pytest.raises(TrainingError, match="the Hub answers 403 to a request about jobs"):
        start_training(settings_of(tmp_path / "w", "hf-jobs", **REMOTE), "ann/set")
    submitted = start_training(settings_of(tmp_path / "w", "slurm", **REMOTE), "ann/set")
    assert (submitted.job_id, submitted.record.attempt) == ("4000", 2)


def test_the_hub_gets_the_exact_job(hub: Hub, at_the_hub: str, tmp_path: Path) -> None:
    launch = {"flavor": "l4x1", "timeout": "90m", "setup": ["pip install ./tracemill"], "namespace": "team"}
    settings = settings_of(tmp_path / "w", "hf-jobs", launch, **REMOTE)
    described = describe_training(settings, "ann/set@2026.11.21")["job"]
    assert described["secrets"] == ["HF_TOKEN", "WANDB_API_KEY"]
    assert hub.jobs == []
    submitted = start_training(settings, "ann/set@2026.11.21")
    assert start_training(settings, "ann/set@2026.11.21").job_id == submitted.job_id
    [job] = hub.jobs
    assert job["namespace"] == "team"
    environment = job["spec"].pop("environment")
    key = submitted.record.key
    assert job["spec"] == {
        "dockerImage": "python:3.12",
        "command": [
            "sh",
            "-c",
            "set -e\npip install ./tracemill\nexec python -P -m tracemill.train.launch.run_job",
        ],
        "arguments": [],
        "flavor": "l4x1",
        "timeoutSeconds": 5400,
        "secrets": {"HF_TOKEN": TOKEN, "WANDB_API_KEY": "wandb-key"},
        "labels": {"tracemill-job": key, "name": key},
    }
    assert sorted(environment) == [
        "DO_NOT_TRACK",
        "HF_HUB_DISABLE_TELEMETRY",
        "TRACEMILL_JOB",
        "TRACEMILL_KEY",
    ]
    sent = json.loads(environment["TRACEMILL_JOB"])
    assert sent["release"]["repository"] == "ann/set"
    assert sent["release"]["digest"] == at_the_hub == submitted.record.digest
    assert sent["settings"]["output"] is None
    assert environment["TRACEMILL_KEY"] == key
    assert TOKEN not in json.dumps(environment) + submitted.record.model_dump_json() + json.dumps(described)


def test_a_job_of_the_hub_is_found_again_and_its_end_is_told(
    hub: Hub, at_the_hub: str, tmp_path: Path
) -> None:
    settings = settings_of(tmp_path / "w", "hf-jobs", **REMOTE)
    submitted = start_training(settings, "ann/set")
    [path] = tmp_path.glob("w/trainings/ann--set/*/record.json")
    lost = submitted.record.model_copy(update={"job_id": None, "state": JobState.SUBMITTING})
    path.write_text(lost.model_dump_json())
    assert start_training(settings, "ann/set").job_id == "job0"
    assert submitted.poll().state == JobState.QUEUED
    assert list(training_log(settings, "ann/set")) == ["step 1 of 2", "step 2 of 2"]
    hub.jobs[0]["stage"] = "RUNNING"
    assert submitted.poll().state == JobState.RUNNING
    hub.jobs[0]["stage"] = "ERROR"
    assert submitted.poll().reason == "job job0 of the Hub failed (no message)"
    second = start_training(settings, "ann/set")
    assert (second.job_id, second.record.attempt, len(hub.jobs)) == ("job1", 2, 2)
    report = {"fingerprint": second.launch.job.fingerprint(), "steps": 2}
    files = {"training.json": json.dumps(report).encode(), "model.safetensors": b"weights"}
    hub.put("models/maker/student", files, tag=second.record.key, private=True)
    hub.jobs[1]["stage"] = "COMPLETED"
    made = train_on(settings, "ann/set")
    assert (made.report, made.created) == (report, True)
    assert (made.path / "model.safetensors").read_bytes() == b"weights"
    assert sorted(path.name for path in made.path.iterdir()) == ["model.safetensors", "training.json"]
    assert len(hub.jobs) == 2


def test_a_job_of_the_hub_is_cancelled(hub: Hub, at_the_hub: str, tmp_path: Path) -> None:
    settings = settings_of(tmp_path / "w", "hf-jobs", **REMOTE)
    submitted = start_training(settings, "ann/set")
    stop_training(settings, "ann/set")
    assert hub.jobs[0]["stage"] == "CANCELED"
    assert submitted.poll().state == JobState.CANCELLED


@pytest.mark.parametrize(
    ("changes", "asked", "said"),
    [
        ({"hub": None}, "ann/set", "shares no files with this machine and needs training.hub"),
        ({"environment": []}, "ann/set", "training.environment does not name HF_TOKEN"),
        (
            {"environment": ["HF_TOKEN", "OTHER"]},
            "ann/set",
            "training.environment names OTHER, which is not set",
        ),
        ({"model": "MODEL"}, "ann/set", "but training.model is a path on it; expected a model of the Hub"),
        ({}, "views", "is on this machine and the job runs elsewhere; expected a release on the Hub"),
    ],
)
@pytest.mark.parametrize("launcher", ["hf-jobs", "modal"])
def test_what_no_machine_elsewhere_can_have_is_one_line(
    launcher: str,
    changes: dict[str, Any],
    asked: str,
    said: str,
    hub: Hub,
    at_the_hub: str,
    modal: Callable[[], dict[str, Any]],
    tmp_path: Path,
) -> None:
    released(tmp_path / "w" / "releases")
    (tmp_path / "config.json").write_text("{}")
    given = {key: str(tmp_path) if value == "MODEL" else value for key, value in changes.items()}
    settings = settings_of(tmp_path / "w", launcher, **REMOTE | given)
    with pytest.raises(TrainingError) as caught:
        start_training(settings, asked)
    assert said in str(caught.value)
    assert hub.jobs == []
    assert not (tmp_path / "w" / "trainings").exists() or not list(
        tmp_path.glob("w/trainings/*/*/record.json")
    )


def test_modal_gets_the_exact_sandbox(
    at_the_hub: str, modal: Callable[[], dict[str, Any]], tmp_path: Path
) -> None:
    launch = {"gpu": "H100:2", "setup": ["pip install ./tracemill"], "timeout_s": 600, "app": "students"}
    settings = settings_of(tmp_path / "w", "modal", launch, **REMOTE)
    described = describe_training(settings, "ann/set@2026.11.21")["job"]
    submitted = start_training(settings, "ann/set@2026.11.21")
    assert start_training(settings, "ann/set@2026.11.21").job_id == submitted.job_id == "sb-0"
    called = modal()["sb-0"]["called"]
    assert len(modal()) == 1
    sent = json.loads(called["env"]["TRACEMILL_JOB"])
    assert (sent["release"]["repository"], sent["release"]["digest"]) == ("ann/set", at_the_hub)
    assert called == {
        "command": ["python", "-P", "-m", "tracemill.train.launch.run_job"],
        "app": "students",
        "name": submitted.record.key,
        "env": described["env"],
        "image": "python:3.12",
        "setup": ["pip install ./tracemill"],
        "gpu": "H100:2",
        "timeout": 600,
        "secrets": [{"HF_TOKEN": TOKEN, "WANDB_API_KEY": "wandb-key"}],
    }
    assert described == called | {"secrets": ["HF_TOKEN", "WANDB_API_KEY"]}


def test_a_sandbox_is_found_again_ended_and_terminated(
    at_the_hub: str, modal: Callable[[], dict[str, Any]], tmp_path: Path
) -> None:
    settings = settings_of(tmp_path / "w", "modal", **REMOTE)
    submitted = start_training(settings, "ann/set")
    [path] = tmp_path.glob("w/trainings/ann--set/*/record.json")
    lost = submitted.record.model_copy(update={"job_id": None, "state": JobState.SUBMITTING})
    path.write_text(lost.model_dump_json())
    assert start_training(settings, "ann/set").job_id == "sb-0"
    assert submitted.poll().state == JobState.RUNNING
    assert list(training_log(settings, "ann/set")) == ["step 1 of 2", "step 2 of 2"]
    stop_training(settings, "ann/set")
    assert submitted.poll().reason == "sandbox sb-0 of Modal ended with code 137"
    assert start_training(settings, "ann/set").job_id == "sb-1"


def test_without_modal_it_is_one_line(at_the_hub: str, tmp_path: Path) -> None:
    with pytest.raises(
        TrainingError, match="modal is not installed; expected the package modal; pip install"
    ):
        start_training(settings_of(tmp_path / "w", "modal", **REMOTE), "ann/set")
