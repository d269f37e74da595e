"""Whole trainings of two gloo processes under accelerate's FSDP2 are those of one process."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from training_releases import released, tiny_model

from tracemill.train.training_job import TrainingJob, TrainingRelease
from tracemill.train.training_settings import TrainingSettings

ROOT = Path(__file__).resolve().parents[2]
CONFIG = ROOT / "configs" / "train" / "fsdp2.yaml"
LORA = {"r": 4, "target_modules": ["q_proj", "v_proj", "down_proj"]}
TRAININGS: dict[str, dict[str, Any]] = {
    "dpo": {},
    "dpo-packed": {"packing": "prefix"},
    "dpo-lora": {"lora": LORA, "learning_rate": 1e-2},
    "dpo-lora-packed": {"lora": LORA, "learning_rate": 1e-2, "packing": "prefix"},
    "sft-packed": {"method": "sft", "packing": "prefix"},
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """Every training by the number of its processes; two have a batch each, one has both in turn."""
    folder = tmp_path_factory.mktemp("fsdp")
    made = released(folder / "releases", rows=12)
    release = TrainingRelease(
        name="views", version=made.version, digest=made.content_fingerprint, path=made.path
    )
    model, started = tiny_model(folder / "tiny"), list[subprocess.Popen[str]]()
    base = {"method": "dpo", "batch": 3, "max_steps": 3, "device": "cpu", "gradient_checkpointing": False}
    base |= {"learning_rate": 1e-3, "model": str(model), "output": folder / "out"}
    for world in (1, 2):
        (folder / str(world)).mkdir()
        for name, given in TRAININGS.items():
            settings = TrainingSettings.model_validate({**base, "accumulate": 2 // world, **given})
            job = TrainingJob(release=release, settings=settings, tracemill_version="0")
            (folder / str(world) / f"{name}.json").write_text(job.model_dump_json())
        started += start(world, folder / str(world))
    for each in started:
        _, said = each.communicate(timeout=500)
        assert each.returncode == 0, said[-3000:]
    return {world: folder / str(world) for world in (1, 2)}


def start(world: int, folder: Path) -> list[subprocess.Popen[str]]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    script = Path(__file__).with_name("fsdp_training.py")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(each for each in sys.path if each)}
    return [
        subprocess.Popen(
            [sys.executable, str(script), str(rank), str(world), port, str(CONFIG), str(folder)],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(world)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", TRAININGS)
def test_two_processes_of_fsdp_train_as_one_does(name: str, trained: dict[int, Path]) -> None:
    from safetensors.torch import load_file

    reports = {
        world: json.loads((folder / name / "final" / "training.json").read_text())
        for world, folder in trained.items()
    }
    assert [reports[world]["processes"] for world in (1, 2)] == [1, 2]
    assert reports[2]["warnings"] == []
    losses = {world: [entry["loss"] for entry in report["losses"]] for world, report in reports.items()}
    assert len(losses[1]) == 3
    assert losses[2] == pytest.approx(losses[1], abs=1e-5)
    assert losses[1][0] != pytest.approx(losses[1][-1], abs=1e-3)
    file = "adapter_model.safetensors" if "lora" in name else "model.safetensors"
    one, two = (load_file(trained[world] / name / "final" / file) for world in (1, 2))
    assert one.keys() == two.keys()
    for key, weight in one.items():
        assert weight.allclose(two[key], atol=1e-5), key
    assert json.loads((trained[1] / name / "split.json").read_text()) == 0
    assert json.loads((trained[2] / name / "split.json").read_text()) >= len(one)
