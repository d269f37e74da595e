"""Measure what a step of the three-channel trainer costs, by arm: seconds and the most memory.

    python -m benchmarks.composer.step_cost [--size 135m 0.5b] [--device cuda]

A step samples `--generations` completions of `--completion` tokens for one prompt of `--context` tokens,
rewards them by a function, and learns from them; the hint channel takes two responses after a context of that
length with and without a hint, the replay channel two pairs with answers of that length. The models are
drawn at random, in the shapes of `benchmarks/train.py`, in mixed precision in bfloat16 on a GPU. The first
two steps of an arm are left out.
"""

import argparse
import gc
import logging
import os
import random
import statistics
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

from benchmarks.train import SIZES, WORDS, make_model

ARMS = {
    "grpo": (0.0, 0.0),
    "grpo + hints": (0.1, 0.0),
    "grpo + replay": (0.0, 0.05),
    "all": (0.1, 0.05),
}
"""Weights of hints and of pairs."""
TEMPLATE = "{% for m in messages %}{{ m.role }} {{ m.content }} <end> {% endfor %}"
WARM_UP = 2
HINT, EXAMPLES = 64, 8
LINE = "{:>6} {:>14} {:>10} {:>9} {:>9} {:>9} {:>9}"
HEAD = ("size", "arm", "s a step", "peak MB", "grpo", "hints", "replay")
PARTS = ("loss/grpo", "loss/sdpo_kl", "loss/trace_replay_dpo")


def run_arm(model: Path, arm: str, options: Any) -> tuple[float, float | None, list[float | None]]:
    """Return the median seconds of a step, MB at the most (on a GPU), and the mean loss of each channel."""
    import torch
    from transformers import PreTrainedTokenizerFast

    from tracemill.train.composer.composer_trainer import Channels

    on_gpu = options.device == "cuda"
    gc.collect()
    if on_gpu:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    tokenizer: Any = PreTrainedTokenizerFast.from_pretrained(model)
    tokenizer.chat_template, tokenizer.padding_side = TEMPLATE, "left"
    contexts, hints, pairs = make_examples(options)
    alpha, beta = ARMS[arm]
    reference = measure_reference(model, tokenizer, pairs, options.device) if beta else None
    channels = Channels(hints=hints, pairs=pairs, alpha_sdpo=alpha, beta_replay=beta, reference=reference)
    seconds = list[float]()
    logs = [
        each for each in train(model, tokenizer, contexts, channels, seconds, options) if "loss/total" in each
    ]
    losses = [
        statistics.mean(abs(each[name]) for each in logs) if name in logs[0] else None for name in PARTS
    ]
    peak = torch.cuda.max_memory_allocated() / 1e6 if on_gpu else None
    return statistics.median(seconds[WARM_UP:]), peak, losses


def make_examples(options: Any) -> tuple[list[tuple[int, ...]], list[Any], list[Any]]:
    """Return random contexts, and a hint example and a pair for each."""
    from tracemill.train.composer.encode_rows import HintExample, PairExample

    drawn = random.Random(0)

    def ids(count: int) -> tuple[int, ...]:
        return tuple(drawn.randrange(3, WORDS) for _ in range(count))

    contexts = [ids(options.context) for _ in range(EXAMPLES)]
    said = [(ids(options.completion), ids(options.completion)) for _ in range(EXAMPLES)]
    hints = [
        HintExample(f"hint {number}", (context, sides[0]), (context + ids(HINT), sides[0]))
        for number, (context, sides) in enumerate(zip(contexts, said, strict=True))
    ]
    pairs = [
        PairExample(f"pair {number}", (context, sides[0]), (context, sides[1]))
        for number, (context, sides) in enumerate(zip(contexts, said, strict=True))
    ]
    return contexts, hints, pairs


def measure_reference(model: Path, tokenizer: Any, pairs: list[Any], device: str) -> Any:
    """Return the log probabilities of the pairs by the model before it learns."""
    import torch
    from transformers import AutoModelForCausalLM

    from tracemill.train.composer.reference import ReferenceLogProbs

    policy: Any = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)
    policy.to(device).eval()
    reference = ReferenceLogProbs(
        policy,
        str(model),
        tokenizer.pad_token_id,
        None,
        lambda: torch.autocast(device, torch.bfloat16, enabled=device == "cuda"),
    )
    reference.settle(pairs, torch.device(device))
    return reference


def step_clock(seconds: list[float], on_gpu: bool) -> Any:
    """Return a callback that adds the seconds of each step; the peak of memory counts behind the warm-up."""
    import torch
    from transformers import TrainerCallback

    class Clock(TrainerCallback):
        def on_step_begin(self, *_: Any, **__: Any) -> None:
            self.began = time.perf_counter()

        def on_step_end(self, *_: Any, **__: Any) -> None:
            if on_gpu:
                torch.cuda.synchronize()
            seconds.append(time.perf_counter() - self.began)
            if on_gpu and len(seconds) == WARM_UP:
                torch.cuda.reset_peak_memory_stats()

    return Clock()


def train(
    model: Path, tokenizer: Any, contexts: Any, channels: Any, seconds: list[float], options: Any
) -> list[dict[str, Any]]:
    """Train on the contexts as prompts of words, and return the trainer's log."""
    from datasets import Dataset
    from transformers.trainer_callback import PrinterCallback
    from trl.trainer.grpo_config import GRPOConfig

    from tracemill.train.composer.composer_trainer import ComposerReplicationTrainer

    words = (" ".join(f"w{number}" for number in context) for context in contexts)
    rows = [{"prompt": [{"role": "user", "content": text}]} for text in words]
    on_gpu = options.device == "cuda"

    def reward(completions: list[Any], **_: Any) -> list[float]:
        return [len(each[0]["content"]) % 7 / 7 for each in completions]

    with tempfile.TemporaryDirectory() as folder:
        trainer = ComposerReplicationTrainer(
            model=str(model),
            args=GRPOConfig(
                output_dir=folder,
                per_device_train_batch_size=options.generations,
                gradient_accumulation_steps=1,
                num_generations=options.generations,
                max_completion_length=options.completion,
                max_steps=options.steps,
                learning_rate=1e-6,
                use_cpu=not on_gpu,
                bf16=on_gpu,
                gradient_checkpointing=True,
                logging_steps=1,
                save_strategy="no",
                report_to="none",
                disable_tqdm=True,
            ),
            processing_class=tokenizer,
            train_dataset=Dataset.from_list(rows),
            reward_funcs=[reward],
            callbacks=[step_clock(seconds, on_gpu)],
            channels=channels,
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    return trainer.state.log_history


def main() -> None:
    """Print a line for every size and arm."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--size", choices=SIZES, nargs="+", default=["small"])
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--context", type=int, default=512)
    parser.add_argument("--completion", type=int, default=128)
    parser.add_argument("--generations", type=int, default=8)
    parser.add_argument("--steps", type=int, default=6)
    options = parser.parse_args()
    if options.steps <= WARM_UP:
        parser.error(f"--steps is {options.steps}; the first {WARM_UP} are left out, so give more")
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    sys.stdout.write(LINE.format(*HEAD) + "\n")
    for size in options.size:
        with tempfile.TemporaryDirectory() as folder:
            model = Path(folder)
            make_model(model, size)
            for arm in ARMS:
                seconds, peak, losses = run_arm(model, arm, options)
                told = ["off" if each is None else f"{each:.1e}" for each in losses]
                most = "-" if peak is None else f"{peak:.0f}"
                sys.stdout.write(LINE.format(size, arm, f"{seconds:.2f}", most, *told) + "\n")
                sys.stdout.flush()


if __name__ == "__main__":
    main()
