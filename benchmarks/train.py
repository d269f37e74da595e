"""Measure a step of DPO with NLL over the rows of one trace: TRL's trainer beside packed rows.

    python benchmarks/train.py [--context N ...] [--rows N ...] [--model FOLDER] [--checkpointing]

A trace has `context` tokens and rows at evenly spaced steps of it: the prompt of row k of n has k / n of
its tokens, the chosen side has `--answer` tokens and is what the trace goes on with, the rejected one half
of that. A step is both forward passes of the policy and the reference and the backward pass, without the
optimiser. `trl` takes a pair at a time, which pads least; `packed` takes all rows in one batch, so that
one row shares its prompt among the two sides alone. Each figure comes from a process of its own, with one
thread: CPU seconds of a step after one over the first row alone, and how much the most memory of the process
was above that before its trainer was made. The model is drawn at random: Qwen2, 4 layers of width 256,
8,192 words.
"""

import argparse
import logging
import multiprocessing
import os
import random
import resource
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

WORDS = 8192
LINE = "{:>8} {:>5} {:>6} {:>10} {:>9} {:>9} {:>8} {:>8} {:>9}"
HEAD = ("context", "rows", "path", "of rows", "computed", "CPU s", "rows/s", "faster", "peak MB")


def make_model(folder: Path) -> None:
    """Write the model and a tokenizer of one token a word."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

    names = ("<unknown>", "<end>", "<pad>", *(f"w{number}" for number in range(3, WORDS)))
    words = Tokenizer(models.WordLevel(dict(zip(names, range(WORDS), strict=True)), unk_token=names[0]))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, eos_token=names[1], pad_token=names[2])
    config = Qwen2Config(
        vocab_size=WORDS,
        hidden_size=256,
        intermediate_size=688,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=65536,
    )
    torch.manual_seed(0)
    Qwen2ForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def make_rows(context: int, count: int, answer: int) -> list[dict[str, str]]:
    """Return the rows of a trace."""
    drawn = random.Random(0)
    trace = [f"w{drawn.randrange(3, WORDS)}" for _ in range(context + answer)]
    rows = []
    for number in range(1, count + 1):
        end = context * number // count
        rejected = [f"w{drawn.randrange(3, WORDS)}" for _ in range(answer // 2)]
        sides = (trace[:end], trace[end : end + answer], rejected)
        rows.append(dict(zip(("prompt", "chosen", "rejected"), map(" ".join, sides), strict=True)))
    return [{**row, "chosen": " " + row["chosen"], "rejected": " " + row["rejected"]} for row in rows]


def measure(model: Path, packed: bool, context: int, count: int, answer: int, checkpointing: bool) -> Any:
    """Return tokens of the rows, tokens computed, CPU seconds of a step, and peak memory in MB."""
    import torch
    from datasets import Dataset, disable_progress_bars
    from transformers import PreTrainedTokenizerFast
    from trl.trainer.dpo_config import DPOConfig
    from trl.trainer.dpo_trainer import DPOTrainer

    from tracemill.train.trl.packed_trainers import PackedDPOTrainer

    torch.set_num_threads(1)
    disable_progress_bars()
    batch = count if packed else 1
    tokens: dict[str, Any] = {"packing_tokens": 2 * context + 2 * count * answer}
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with tempfile.TemporaryDirectory() as folder:
        arguments = DPOConfig(
            output_dir=folder,
            max_length=context + answer + 1,
            loss_type=["sigmoid", "sft"],
            loss_weights=[1.0, 1.0],
            gradient_checkpointing=checkpointing,
            use_cpu=True,
            bf16=False,
            report_to="none",
        )
        trainer: Any = (PackedDPOTrainer if packed else DPOTrainer)(
            model=str(model),
            args=arguments,
            train_dataset=Dataset.from_list(make_rows(context, count, answer)),
            processing_class=PreTrainedTokenizerFast.from_pretrained(model),
            **(tokens if packed else {}),
        )
        rows = [trainer.train_dataset[place] for place in range(count)]
        if checkpointing:
            trainer.model.gradient_checkpointing_enable()
        trainer.model.train()
        batches = [trainer.data_collator(rows[at : at + batch]) for at in range(0, count, batch)]
        whole = sum(int(each["attention_mask"].sum()) for each in batches)
        seconds = 0.0
        for part in ([trainer.data_collator(rows[:1])], batches):  # packing compares itself on the first
            trainer.model.zero_grad()
            for forward in getattr(trainer, "packed", ()):
                forward.computed = 0
            begin = time.process_time()
            for each in part:
                trainer.compute_loss(trainer.model, each).backward()
            seconds = time.process_time() - begin
        computed = sum(each["input_ids"].numel() for each in batches)
        if packed:
            assert not trainer.packing_notes
            computed = trainer.packed[0].computed
    peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    return whole, computed, seconds, peak


def in_process(*given: Any) -> Any:
    """Return what `measure` does, in a forked process, which has its own peak of memory."""
    context = multiprocessing.get_context("fork")
    receiving, sending = context.Pipe(duplex=False)
    child = context.Process(target=lambda: sending.send(measure(*given)))
    child.start()
    sending.close()
    try:
        return receiving.recv()
    except EOFError:
        return None
    finally:
        child.join()


def main() -> None:
    """Print a line for every context, number of rows and path."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--context", type=int, nargs="+", default=[512, 1024, 2048, 4096, 8192])
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 2, 4, 8, 16])
    parser.add_argument("--answer", type=int, default=128)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--checkpointing", action="store_true", help="with gradient checkpointing")
    options = parser.parse_args()
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    import tracemill.train.trl.packed_trainers  # noqa: F401  imported once, before processes are forked

    with tempfile.TemporaryDirectory() as folder:
        model = options.model or Path(folder)
        if options.model is None:
            child = multiprocessing.get_context("fork").Process(target=make_model, args=(model,))
            child.start()
            child.join()
        sys.stdout.write(LINE.format(*HEAD) + "\n")
        for context in options.context:
            for count in options.rows:
                plain = None
                for packed in (False, True):
                    found = in_process(model, packed, context, count, options.answer, options.checkpointing)
                    name = "packed" if packed else "trl"
                    if found is None:
                        sys.stdout.write(LINE.format(context, count, name, *["-"] * 6) + "\n")
                        continue
                    whole, computed, seconds, peak = found
                    plain = plain or seconds
                    told = (
                        f"{seconds:.2f}",
                        f"{count / seconds:.2f}",
                        f"{plain / seconds:.2f}",
                        f"{peak:.0f}",
                    )
                    sys.stdout.write(LINE.format(context, count, name, whole, computed, *told) + "\n")
                    sys.stdout.flush()


if __name__ == "__main__":
    main()
