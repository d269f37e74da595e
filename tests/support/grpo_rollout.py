"""GRPO of TRL on arithmetic tasks, after a warm start: `python grpo_rollout.py TASKS FOLDER STEPS`.

Writes the loss of the warm start and TRL's own log to `log.json` in the folder.
"""

import json
import sys
from functools import partial
from pathlib import Path

import torch
from datasets import Dataset
from transformers import AutoTokenizer
from trl import GRPOConfig, GRPOTrainer
from trl.chat_template_utils import qwen3_template

from benchmarks.composer import arithmetic_tasks
from benchmarks.composer.tool_calling_model import warm_start
from tracemill.environments.episodes.environment import ClaudeCodeEnvironment
from tracemill.environments.task import read_tasks


def main(tasks: Path, folder: Path, steps: int) -> None:
    """Teach a model by scripted episodes, then train, four episodes of one task a step."""
    torch.set_num_threads(1)
    model = folder / "model"
    loss = warm_start(model, arithmetic_tasks.episodes(600, errors=0.3))
    tokenizer = AutoTokenizer.from_pretrained(model)
    tokenizer.response_template = qwen3_template
    names = [task.name for task in read_tasks(tasks)]
    rows = [{"prompt": [{"role": "user", "content": ""}], "task": name} for name in names]
    trainer = GRPOTrainer(
        model=str(model),
        args=GRPOConfig(
            output_dir=str(folder / "trainer"),
            max_steps=steps,
            per_device_train_batch_size=4,
            num_generations=4,
            max_completion_length=96,
            max_tool_calling_iterations=2,
            learning_rate=1e-3,
            top_k=0,
            logging_steps=1,
            save_strategy="no",
            report_to="none",
            use_cpu=True,
            bf16=False,
            gradient_checkpointing=False,
            disable_tqdm=True,
            seed=1,
        ),
        train_dataset=Dataset.from_list(rows * steps),
        processing_class=tokenizer,
        environment_factory=partial(ClaudeCodeEnvironment, tasks=tasks, level="terse"),
    )
    trainer.train()
    (folder / "log.json").write_text(json.dumps({"warm_start_loss": loss, "log": trainer.state.log_history}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
