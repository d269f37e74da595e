"""Measure a step of DPO with NLL over the rows of one trace: TRL's trainer beside packed rows.

    python benchmarks/train.py [--context N ...] [--rows N ...] [--size NAME | --model FOLDER]
    python benchmarks/train.py --device cuda --size 0.5b --checkpointing

A trace has `context` tokens and rows at evenly spaced steps of it: the prompt of row k of n has k / n of
its tokens, the chosen side has `--answer` tokens and is what the trace goes on with, the rejected one half
of that. A step is both forward passes of the policy and the reference and the backward pass, without the
optimiser. `trl` takes a pair at a time, which pads least; `packed` takes all rows in one batch, so that
one row shares its prompt among the two sides alone. The model is drawn at random. The last columns are the
relative differences of the loss and of the norm of its gradient to TRL's.

On a processor each figure comes from a process of its own, with one thread: CPU seconds of a step after one
over the first row alone, and how much the most memory of the process was above that before its trainer was
made. On a GPU a path is one process, in mixed precision in bfloat16 (or with `--float32`, and no TF32):
seconds are the median of `--repeat` steps after a first one, which compiles kernels, and memory is the most
that PyTorch allocated. `-` is a step that did not fit in memory.
"""

import argparse
import logging
import multiprocessing
import os
import random
import resource
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

WORDS = 8192
LINE = "{:>8} {:>5} {:>6} {:>10} {:>9} {:>9} {:>8} {:>8} {:>9} {:>9} {:>9}"
HEAD = (
    "context",
    "rows",
    "path",
    "of rows",
    "computed",
    "s",
    "rows/s",
    "faster",
    "peak MB",
    "loss",
    "gradient",
)
SIZES = {
    "small": {"vocab_size": WORDS, "hidden_size": 256, "intermediate_size": 688, "num_hidden_layers": 4}
    | {"num_attention_heads": 4, "num_key_value_heads": 2},
    "135m": {"vocab_size": 49152, "hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 30}
    | {"num_attention_heads": 9, "num_key_value_heads": 3, "tie_word_embeddings": True},
    "0.5b": {"vocab_size": 151936, "hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 24}
    | {"num_attention_heads": 14, "num_key_value_heads": 2, "tie_word_embeddings": True},
}
"""Shapes of models: `135m` is that of SmolLM2-135M, `0.5b` that of Qwen2.5-0.5B; all with Qwen2's layers."""


class Measured(NamedTuple):
    """A step."""

    tokens: int
    """Of the rows."""
    computed: int
    seconds: float
    peak: float
    """MB."""
    loss: float
    gradient: float
    """Norm."""


def make_model(folder: Path, size: str) -> None:
    """Write the model and a tokenizer of one token a word."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

    names = ("<unknown>", "<end>", "<pad>", *(f"w{number}" for number in range(3, WORDS)))
    words = Tokenizer(models.WordLevel(dict(zip(names, range(WORDS), strict=True)), unk_token=names[0]))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, eos_token=names[1], pad_token=names[2])
    torch.manual_seed(0)
    config = Qwen2Config(max_position_embeddings=65536, **SIZES[size])
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


def make_trainer(model: Path, packed: bool, cells: Sequence[tuple[int, int]], options: Any, out: str) -> Any:
    """Return TRL's trainer, or ours, over the rows of all cells one after the other."""
    from datasets import Dataset
    from transformers import PreTrainedTokenizerFast
    from trl.trainer.dpo_config import DPOConfig
    from trl.trainer.dpo_trainer import DPOTrainer

    from tracemill.train.trl.packed_trainers import PackedDPOTrainer

    context, count = max(each[0] for each in cells), max(each[1] for each in cells)
    tokens: dict[str, Any] = {"packing_tokens": 2 * context + 2 * count * options.answer}
    arguments = DPOConfig(
        output_dir=out,
        max_length=context + options.answer + 1,
        loss_type=["sigmoid", "sft"],
        loss_weights=[1.0, 1.0],
        gradient_checkpointing=options.checkpointing,
        use_cpu=options.device == "cpu",
        bf16=options.device == "cuda" and not options.float32,
        report_to="none",
    )
    rows = [row for cell in cells for row in make_rows(*cell, options.answer)]
    trainer: Any = (PackedDPOTrainer if packed else DPOTrainer)(
        model=str(model),
        args=arguments,
        train_dataset=Dataset.from_list(rows),
        processing_class=PreTrainedTokenizerFast.from_pretrained(model),
        **(tokens if packed else {}),
    )
    if options.checkpointing:
        trainer.model.gradient_checkpointing_enable()
    trainer.model.train()
    return trainer


def measure(model: Path, packed: bool, cells: Sequence[tuple[int, int]], options: Any) -> Iterator[Any]:
    """Yield what a step over each cell of context and rows takes, or None where memory does not suffice."""
    import torch
    from datasets import disable_progress_bars

    if options.device == "cpu":
        torch.set_num_threads(1)
    disable_progress_bars()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with tempfile.TemporaryDirectory() as folder:
        trainer = make_trainer(model, packed, cells, options, folder)
        number = 0
        for _, count in cells:
            rows = [trainer.train_dataset[number + place] for place in range(count)]
            number += count
            try:
                found = measure_on_gpu if options.device == "cuda" else measure_on_cpu
                measured = found(trainer, rows, count if packed else 1, options.repeat)
            except torch.OutOfMemoryError:
                yield None
                continue
            if options.device == "cpu":
                peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
                measured = measured._replace(peak=peak)
            yield measured


def step(trainer: Any, batches: Sequence[Any]) -> tuple[int, float]:
    """Add up the gradient of the mean loss of batches; return the tokens computed and the loss."""
    packed = getattr(trainer, "packed", ())
    assert not getattr(trainer, "packing_notes", ())
    trainer.model.zero_grad()
    for forward in packed:
        forward.computed = 0
    losses = []
    for each in batches:
        with trainer.accelerator.autocast():
            loss = trainer.compute_loss(trainer.model, each) / len(batches)
        loss.backward()
        losses.append(loss.detach())
    assert not getattr(trainer, "packing_notes", ()), trainer.packing_notes
    computed = packed[0].computed if packed else sum(each["input_ids"].numel() for each in batches)
    return computed, float(sum(losses))


def batches_of(trainer: Any, rows: Sequence[Any], size: int) -> list[Any]:
    """Return the batches of rows on the device of the model."""
    made = [trainer.data_collator(rows[at : at + size]) for at in range(0, len(rows), size)]
    return [trainer._prepare_inputs(each) for each in made]


def measure_on_cpu(trainer: Any, rows: Sequence[Any], size: int, repeat: int) -> Measured:
    """Measure one step in CPU seconds."""
    batches = batches_of(trainer, rows, size)
    step(trainer, batches_of(trainer, rows[:1], 1))  # packing compares itself with the plain path
    begin = time.process_time()
    computed, loss = step(trainer, batches)
    seconds = time.process_time() - begin
    return Measured(_tokens(batches), computed, seconds, 0.0, loss, _norm(trainer))


def measure_on_gpu(trainer: Any, rows: Sequence[Any], size: int, repeat: int) -> Measured:
    """Measure the median of steps in seconds."""
    import torch

    torch.cuda.empty_cache()
    batches = batches_of(trainer, rows, size)
    step(trainer, batches)
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    seconds = []
    for _ in range(repeat):
        begin = time.perf_counter()
        computed, loss = step(trainer, batches)
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - begin)
    peak = torch.cuda.max_memory_allocated() / 1e6
    return Measured(_tokens(batches), computed, statistics.median(seconds), peak, loss, _norm(trainer))


def _tokens(batches: Sequence[Any]) -> int:
    return sum(int(each["attention_mask"].sum()) for each in batches)


def _norm(trainer: Any) -> float:
    import torch

    parts = [each.grad.norm() for each in trainer.model.parameters() if each.grad is not None]
    return float(torch.stack(parts).norm())


def in_process(
    model: Path, packed: bool, cells: Sequence[tuple[int, int]], options: Any
) -> Iterator[Measured | None]:
    """Yield what `measure` does for each cell, in a forked process, which has its own peak of memory."""
    context = multiprocessing.get_context("fork")
    receiving, sending = context.Pipe(duplex=False)

    def work() -> None:
        for measured in measure(model, packed, cells, options):
            sending.send(measured)

    child = context.Process(target=work)
    child.start()
    sending.close()
    for _ in cells:
        try:
            yield receiving.recv()
        except EOFError:  # the system ended it, for want of memory
            yield None
    child.join()


def line_of(cell: tuple[int, int], packed: bool, found: Measured | None, plain: Measured | None) -> str:
    """Return the line of a path, compared with TRL's."""
    name = "packed" if packed else "trl"
    if found is None:
        return LINE.format(*cell, name, *["-"] * 8)
    faster, apart = "-", ["-", "-"]
    if plain is not None:
        faster = f"{plain.seconds / found.seconds:.2f}"
        figures = ((found.loss, plain.loss), (found.gradient, plain.gradient))
        apart = [f"{abs(one - other) / abs(other):.1e}" for one, other in figures]
    told = (f"{found.seconds:.3f}", f"{cell[1] / found.seconds:.2f}", faster, f"{found.peak:.0f}", *apart)
    return LINE.format(*cell, name, found.tokens, found.computed, *told)


def main() -> None:
    """Print a line for every context, number of rows and path."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--context", type=int, nargs="+", default=[512, 1024, 2048, 4096, 8192])
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 2, 4, 8, 16])
    parser.add_argument("--answer", type=int, default=128)
    parser.add_argument("--size", choices=SIZES, default="small", help="shape of the model")
    parser.add_argument("--model", type=Path, help="a folder in its place")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--float32", action="store_true", help="on a GPU: no bfloat16")
    parser.add_argument("--repeat", type=int, default=3, help="on a GPU: steps, whose median counts")
    parser.add_argument("--checkpointing", action="store_true", help="with gradient checkpointing")
    options = parser.parse_args()
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    if options.device == "cpu":
        import tracemill.train.trl.packed_trainers  # noqa: F401  imported once, before processes are forked

    cells = [(context, count) for context in options.context for count in options.rows]
    with tempfile.TemporaryDirectory() as folder:
        model = options.model or Path(folder)
        if options.model is None:
            make_model(model, options.size)
        sys.stdout.write(LINE.format(*HEAD) + "\n")
        plain: dict[tuple[int, int], Measured | None] = {}
        for part in [cells] if options.device == "cuda" else [[cell] for cell in cells]:
            for packed in (False, True):
                run = measure if options.device == "cuda" else in_process
                for cell, found in zip(part, run(model, packed, part, options), strict=True):
                    if not packed:
                        plain[cell] = found
                    sys.stdout.write(line_of(cell, packed, found, plain[cell]) + "\n")
                    sys.stdout.flush()


if __name__ == "__main__":
    main()
