"""Whole trainings of two gloo processes under FSDP2 or DeepSpeed ZeRO-3 are those of one process."""

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

CONFIGS = Path(__file__).resolve().parents[2] / "configs" / "train"
DEEPSPEED = Path(sys.prefix) / "deepspeed"
LORA = {"r": 4, "target_modules": ["q_proj", "v_proj", "down_proj"]}
TRAININGS: dict[str, dict[str, Any]] = {
    "dpo": {},
    "dpo-packed": {"packing": "prefix"},
    "dpo-lora": {"lora": LORA, "learning_rate": 1e-2},
    "dpo-lora-packed": {"lora": LORA, "learning_rate": 1e-2, "packing": "prefix"},
    "sft-packed": {"method": "sft", "packing": "prefix"},
}
SHARDED = ("fsdp2", "deepspeed_zero3")
"""Configurations in `configs/train` that split the model."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a release, a model, and in `one` every training in one process.

    That process has both batches of a step in turn.
    """
    folder = tmp_path_factory.mktemp("sharded")
    made = released(folder / "releases", rows=12)
    release = TrainingRelease(
        name="views", version=made.version, digest=made.content_fingerprint, path=made.path
    )
    (folder / "release.json").write_text(release.model_dump_json())
    tiny_model(folder / "tiny")
    train(folder, "one", 1)
    return folder


@pytest.fixture(scope="module")
def config(request: pytest.FixtureRequest, folder: Path) -> str:
    """The name of a configuration, under which two processes have done every training."""
    name: str = request.param
    there = name == "fsdp2" or (DEEPSPEED / "deepspeed").is_dir()
    assert there, f"DeepSpeed is not in {DEEPSPEED}: `make test-all` puts it there"
    train(folder, name, 2)
    return name


def train(folder: Path, name: str, world: int) -> None:
    """Run every training in `folder/name`, in `world` processes; two have a batch each."""
    release = TrainingRelease.model_validate_json((folder / "release.json").read_text())
    base = {"method": "dpo", "batch": 3, "max_steps": 3, "device": "cpu", "gradient_checkpointing": False}
    base |= {"learning_rate": 1e-3, "model": str(folder / "tiny"), "output": folder / "out"}
    (folder / name).mkdir()
    for training, given in TRAININGS.items():
        settings = TrainingSettings.model_validate({**base, "accumulate": 2 // world, **given})
        job = TrainingJob(release=release, settings=settings, tracemill_version="0")
        (folder / name / f"{training}.json").write_text(job.model_dump_json())
    for each in start(folder, name, world):
        _, said = each.communicate(timeout=500)
        assert each.returncode == 0, said[-3000:]


def start(folder: Path, name: str, world: int) -> list[subprocess.Popen[str]]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    script = Path(__file__).with_name("sharded_training.py")
    config = CONFIGS / f"{name}.yaml"
    paths = [str(DEEPSPEED)] * name.startswith("deepspeed") + [each for each in sys.path if each]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "DS_ACCELERATOR": "cpu"}
    return [
        subprocess.Popen(
            [sys.executable, str(script), str(rank), str(world), port, str(config), str(folder / name)],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(world)
    ]


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("config", SHARDED, indirect=True)
@pytest.mark.parametrize("name", TRAININGS)
def test_two_processes_that_split_a_model_train_as_one_does(name: str, folder: Path, config: str) -> None:
    from safetensors.torch import load_file

    places = {1: folder / "one" / name, 2: folder / config / name}
    reports = {
        world: json.loads((place / "final" / "training.json").read_text()) for world, place in places.items()
    }
    assert [reports[world]["processes"] for world in (1, 2)] == [1, 2]
    assert reports[2]["warnings"] == []
    losses = {world: [entry["loss"] for entry in report["losses"]] for world, report in reports.items()}
    assert len(losses[1]) == 3
    assert losses[2] == pytest.approx(losses[1], abs=1e-5)
    assert losses[1][0] != pytest.approx(losses[1][-1], abs=1e-3)
    file = "adapter_model.safetensors" if "lora" in name else "model.safetensors"
    one, two = (load_file(places[world] / "final" / file) for world in (1, 2))
    assert one.keys() == two.keys()
    for key, weight in one.items():
        assert weight.allclose(two[key], atol=1e-5), key
    split = {world: json.loads((place / "split.json").read_text()) for world, place in places.items()}
    assert split[1] == 0
    assert split[2] >= len(one)
