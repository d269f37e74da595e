"""One process of a three-channel training: MODEL FOLDER; process 0 writes the weights it ends with."""

import os
import sys
from pathlib import Path

import torch
from transformers import AutoTokenizer

sys.path.insert(0, str(Path(__file__).parent))
import composer_training as given


def main() -> None:
    """Train two steps: four examples a step in all processes together."""
    tiny, folder = Path(sys.argv[1]), Path(sys.argv[2])
    torch.set_num_threads(1)
    processes = int(os.environ["WORLD_SIZE"])
    channels = given.channels_of(
        tiny,
        AutoTokenizer.from_pretrained(tiny),
        alpha_sdpo=0.5,
        beta_replay=0.5,
        batch_size=2 // processes,
    )
    trainer = given.trainer_of(
        tiny,
        folder,
        channels,
        per_device_train_batch_size=4 // processes,
        max_steps=3,
        optim="sgd",
        learning_rate=0.1,
    )
    trainer.train()
    if trainer.accelerator.is_main_process:
        folder.mkdir(parents=True, exist_ok=True)
        model = trainer.accelerator.unwrap_model(trainer.model)
        torch.save({name: value.detach() for name, value in model.named_parameters()}, folder / "weights.pt")


main()
