"""One of several gloo processes that train a split model: `RANK WORLD PORT CONFIG FOLDER`.

Each `*.json` of the folder is a job, whose training lies in a folder of its name. accelerate splits models
among accelerators alone. Here it is told that its processors are some; what it, FSDP2 or DeepSpeed then does
with the model, its optimiser and its checkpoint is its own. With WORLD 1 nothing is split.
"""

import gc
import json
import os
import sys
from pathlib import Path
from typing import Any

import torch
import torch.distributed
from accelerate import state
from accelerate.commands.config.config_args import load_config_from_file
from accelerate.utils import DeepSpeedPlugin, DistributedType
from torch.distributed.fsdp import FSDPModule

from tracemill.train.training_job import TrainingJob
from tracemill.train.trl.run_trainer import run_trainer
from tracemill.train.trl.stopping import StopSignal


def set_environment(config: Path) -> DistributedType:
    """Set the variables that `accelerate launch` makes of a configuration of FSDP or DeepSpeed."""
    given: Any = load_config_from_file(str(config))
    if given.fsdp_config:
        os.environ["ACCELERATE_USE_FSDP"] = "true"
        prefix, values, kind = "", given.fsdp_config, DistributedType.MULTI_GPU
    else:
        os.environ["ACCELERATE_USE_DEEPSPEED"] = "true"
        prefix, values, kind = "ACCELERATE_DEEPSPEED_", given.deepspeed_config, DistributedType.DEEPSPEED
    for name, value in values.items():
        told = str(value).lower() if isinstance(value, bool) else str(value)
        os.environ[prefix + name.upper()] = told
    return kind


def call_processors_accelerators(kind: DistributedType) -> None:
    """Have accelerate take the processors of this process group for GPUs."""

    def backend(self: Any, *_: Any) -> tuple[str, DistributedType]:
        return "gloo", kind

    def device(self: Any) -> None:
        self.device = torch.device("cpu")

    state.PartialState._prepare_backend = backend
    state.PartialState.set_device = device


def split_small_weights() -> None:
    """Have DeepSpeed split every weight: those of less than 100,000 numbers it would keep whole."""
    made = DeepSpeedPlugin.__post_init__

    def split(self: Any) -> None:
        made(self)
        self.deepspeed_config["zero_optimization"]["stage3_param_persistence_threshold"] = 0

    DeepSpeedPlugin.__post_init__ = split


def sharded_weights() -> int:
    """Count the weights of which this process holds a part."""
    if os.environ.get("ACCELERATE_USE_DEEPSPEED"):
        weights = [each for each in gc.get_objects() if isinstance(each, torch.nn.Parameter)]
        return sum(each.ds_status.name == "NOT_AVAILABLE" for each in weights if hasattr(each, "ds_status"))
    models = [each for each in gc.get_objects() if isinstance(each, FSDPModule)]
    return len(
        {id(weight) for model in models for weight in model.parameters() if hasattr(weight, "full_tensor")}
    )


def train(job_file: Path, write: bool) -> None:
    """Run one job, and write how many of its weights were split."""
    place, seen = job_file.with_suffix(""), [0]
    place.mkdir(exist_ok=True)
    (place / "train.log").touch()

    def watch(progress: dict[str, Any]) -> None:
        seen.append(sharded_weights() if "loss" in progress else 0)

    job = TrainingJob.model_validate_json(job_file.read_text())
    assert run_trainer(job, place, watch, StopSignal()) == {}
    if write:
        (place / "split.json").write_text(json.dumps(max(seen)))


def main() -> None:
    """Run every job."""
    rank, world, port, config, folder = sys.argv[1:]
    torch.set_num_threads(1)
    if int(world) > 1:
        os.environ |= {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": world, "LOCAL_WORLD_SIZE": world}
        os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        kind = set_environment(Path(config))
        torch.distributed.init_process_group("gloo", rank=int(rank), world_size=int(world))
        call_processors_accelerators(kind)
        split_small_weights()
    for job_file in sorted(Path(folder).glob("*.json")):
        train(job_file, rank == "0")
    if int(world) > 1:
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
