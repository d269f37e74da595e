"""Trainings in a work pool: a real Prefect server and a real worker on loopback."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from training_releases import released, tiny_model

from tracemill.flows.config.run_settings import RunSettings
from tracemill.flows.training.training_run import (
    describe_training,
    start_training,
    stop_training,
    train_on,
    training_log,
)
from tracemill.records.errors import TrainingError
from tracemill.train.launch.job_record import JobRecord
from tracemill.train.launch.launcher import JobState, LaunchAttempt
from tracemill.train.launch.prefect_pool import PREFECT
from tracemill.train.training_job import TrainingJob

POOL = "gpu"


def settings_of(folder: Path, model: object = "a/b", **training: Any) -> RunSettings:
    given = {"launcher": "prefect", "launch": {"work_pool": POOL}, "model": str(model), "device": "cpu"}
    small = {"max_steps": 2, "batch": 2, "accumulate": 1, "gradient_checkpointing": False}
    return RunSettings.model_validate({"workspace": folder / "w", "training": given | small | training})


@pytest.fixture
def server(prefect_server: dict[str, str], tmp_path: Path) -> Iterator[None]:
    """This process reports to the Prefect server of the session."""
    from prefect.settings import PREFECT_API_URL, PREFECT_HOME, temporary_settings

    released(tmp_path / "w" / "releases")
    values = {
        PREFECT_API_URL: prefect_server["PREFECT_API_URL"],
        PREFECT_HOME: Path(prefect_server["PREFECT_HOME"]),
    }
    with temporary_settings(values):
        yield


@pytest.fixture
def worker(server: None, prefect_server: dict[str, str], tmp_path: Path) -> Iterator[Path]:
    """A worker of the pool, which has a key in its environment that no training is to see."""
    log = tmp_path / "worker.log"
    env = dict(os.environ) | prefect_server | {"OPENROUTER_API_KEY": "k", "PREFECT_WORKER_QUERY_SECONDS": "1"}
    command = [str(Path(sys.executable).parent / "prefect"), "worker", "start", "--pool", POOL]
    command += ["--type", "process", "--name", "trainer"]
    with log.open("wb") as said, subprocess.Popen(command, env=env, stdout=said, stderr=said) as process:
        try:
            until(lambda: online(), log)
            yield log
        finally:
            process.terminate()


def online() -> bool:
    from prefect.client.orchestration import get_client
    from prefect.exceptions import ObjectNotFound

    with get_client(sync_client=True) as client:
        try:
            client.read_work_pool(POOL)
            return any(each.status == "ONLINE" for each in client.read_workers_for_work_pool(POOL))
        except ObjectNotFound:
            return False


def until(reached: Any, log: Path) -> None:
    deadline = time.monotonic() + 240
    while not reached():
        assert time.monotonic() < deadline, log.read_text()[-3000:]
        time.sleep(0.3)


def test_without_a_server_it_is_one_line(tmp_path: Path) -> None:
    from prefect.settings import PREFECT_API_URL, temporary_settings

    released(tmp_path / "w" / "releases")
    with (
        temporary_settings(restore_defaults={PREFECT_API_URL}),
        pytest.raises(
            TrainingError, match="no Prefect server is named; expected its address as PREFECT_API_URL"
        ),
    ):
        train_on(settings_of(tmp_path), "views")
    with (
        temporary_settings({PREFECT_API_URL: "http://127.0.0.1:9/api"}),
        pytest.raises(TrainingError, match="the Prefect server does not take the request"),
    ):
        train_on(settings_of(tmp_path), "views")


@pytest.mark.slow
def test_a_pool_without_workers_is_one_line(server: None, tmp_path: Path) -> None:
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.actions import WorkPoolCreate

    with pytest.raises(
        TrainingError, match=r"there is no work pool 'nobody'; expected one as training\.launch"
    ):
        train_on(settings_of(tmp_path, launch={"work_pool": "nobody"}), "views")
    with get_client(sync_client=True) as client:
        client.create_work_pool(WorkPoolCreate(name="idle", type="process"))
    settings = settings_of(tmp_path, launch={"work_pool": "idle"})
    with pytest.raises(
        TrainingError, match="'idle' has no worker online; expected one; prefect worker start"
    ):
        train_on(settings, "views")
    [path] = tmp_path.glob("w/trainings/views/*/record.json")
    record = JobRecord.model_validate_json(path.read_bytes())
    assert (record.job_id, record.state) == (None, JobState.FAILED)


@pytest.mark.slow
def test_a_worker_of_the_pool_trains_and_the_run_is_found_again(worker: Path, tmp_path: Path) -> None:
    from prefect.client.orchestration import get_client

    settings = settings_of(tmp_path, tiny_model(tmp_path / "tiny"))
    described = describe_training(settings, "views")["job"]
    submitted = start_training(settings, "views")
    assert start_training(settings, "views").job_id == submitted.job_id
    [path] = tmp_path.glob("w/trainings/views/*/record.json")
    lost = submitted.record.model_copy(update={"job_id": None, "state": JobState.SUBMITTING})
    path.write_text(lost.model_dump_json())
    assert start_training(settings, "views").job_id == submitted.job_id
    made = train_on(settings, "views")
    assert made.created
    assert (made.report["steps"], made.report["device"]) == (2, "cpu")
    assert (made.path / "model.safetensors").exists()
    with get_client(sync_client=True) as client:
        [run] = [
            run for run in client.read_flow_runs() if run.idempotency_key == described["idempotency_key"]
        ]
        assert client.read_deployment(run.deployment_id).work_pool_name == POOL
        text = client.read_flow_run(run.id).model_dump_json()
    assert (str(run.id), run.name) == (
        submitted.job_id,
        f"train {made.report['release']['name']}@{made.path.name}",
    )
    assert set(run.tags) == {"tracemill-training", "release:views"}
    assert run.parameters == described["parameters"]
    assert run.state is not None
    assert run.state.is_completed()
    assert "a/b" not in text
    assert any("train_loss" in line for line in training_log(settings, "views"))


@pytest.mark.slow
def test_a_run_that_fails_is_one_line_and_one_that_waits_is_cancelled(worker: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text("{}")
    with pytest.raises(TrainingError, match=r"flow run [0-9a-f-]+ failed: model .* cannot be loaded"):
        train_on(settings_of(tmp_path, model), "views")
    submitted = start_training(settings_of(tmp_path, model, seed=2), "views")
    stop_training(settings_of(tmp_path, model, seed=2), "views")
    until(lambda: submitted.poll().state.final, worker)
    assert submitted.poll().state in (JobState.CANCELLED, JobState.FAILED)


@pytest.mark.slow
def test_a_run_that_no_worker_cancels_is_cancelled_after_a_while(
    server: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker may have lost its process, as when it is cancelled while it starts."""
    from prefect.client.orchestration import get_client
    from prefect.states import Cancelling

    launch = LaunchAttempt(cast("TrainingJob", None), "key", tmp_path)
    with get_client(sync_client=True) as client:
        flow_id = client.create_flow_from_name("lost")
        body = {"flow_id": str(flow_id), "name": "lost"}
        run_id = client.request("POST", "/flow_runs/", json=body).json()["id"]
        client.set_flow_run_state(run_id, Cancelling(), force=True)
    assert PREFECT.poll(launch, run_id).state == JobState.RUNNING
    monkeypatch.setattr("tracemill.train.launch.prefect_pool._CANCELLED_AFTER", timedelta(0))
    assert PREFECT.poll(launch, run_id).state == JobState.CANCELLED
