"""What a training of three channels wants: tasks with tests, a student that half solves them, sessions."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import orchard
import torch
from datasets import Dataset
from torch import Tensor
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl.chat_template_utils import qwen3_template

import tracemill as tm
from benchmarks.composer import arithmetic_tasks
from benchmarks.composer.tool_calling_model import warm_start
from tracemill.data_cards.model.release_spec import ReleaseSpec
from tracemill.data_cards.writing.write_release import Release, write_release
from tracemill.flows.ingest.ingest_order import IngestOptions
from tracemill.flows.ingest.ingest_run import ingest_everything
from tracemill.flows.labeling.label_shard import load_traces
from tracemill.flows.sources.source_spec import order_of
from tracemill.records.identity import StepId
from tracemill.records.pair import DPOPair, NormalizedDPOPair
from tracemill.records.storage.workspace import Workspace
from tracemill.records.trace import Trace
from tracemill.train.composer.method_trainer import composer_trainer
from tracemill.train.training_settings import TrainingSettings
from tracemill.train.trl.fit_rows import FittedRows

LENGTH = 4096
ONE_STEP: dict[str, Any] = {"save_strategy": "no", "report_to": "none", "logging_steps": 1, "use_cpu": True}


class World(NamedTuple):
    """Folders of tasks and student, a workspace of sessions with a release `sessions`, and its parts.

    `held_out` are the traces of the split `validation`: every third one that has a pair.
    """

    folder: Path
    tasks: Path
    student: Path
    workspace: Path
    release: Release
    held_out: frozenset[str]
    traces: list[Trace]
    pairs: list[DPOPair]


def make_world(folder: Path, sessions: Sequence[Path]) -> World:
    """Make the tasks, a workspace of the sessions, and a student that has learned to call tools."""
    arithmetic_tasks.make(folder, orchard.sandbox())
    workspace = folder / "w"
    order = order_of(paths=[str(path) for path in sessions], min_age_minutes=0)
    ingest_everything(IngestOptions(order, workspace))
    work = Workspace.open(workspace, create=False)
    names = sorted({name for table in work.current("traces") for name in table["trace_id"].to_pylist()})
    traces = load_traces(work, names)
    pairs = tm.extract_session_pairs([state for trace in traces for state in trace.states()])
    held_out = frozenset(sorted({trace_of(pair.step_id) for pair in pairs})[2::3])
    made = write_release(
        ReleaseSpec(name="sessions", redaction="r1"),
        (NormalizedDPOPair(pair, "", "", "none", "") for pair in pairs),
        [],
        workspace / "releases",
        split_of=lambda trace: "validation" if trace in held_out else "train",
    )
    assert isinstance(made, Release)
    _make_student(folder / "student", traces)
    return World(folder, folder / "tasks", folder / "student", workspace, made, held_out, traces, pairs)


def _make_student(folder: Path, traces: Sequence[Trace]) -> None:
    torch.set_num_threads(1)
    texts = [[each.to_wire() for each in context.messages] for trace in traces for context in trace.contexts]
    episodes = arithmetic_tasks.episodes(900, errors=0.3, hinted=0.3)
    warm_start(folder, episodes, texts=texts, vocabulary=2000)
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    tokenizer.response_template = qwen3_template
    tokenizer.save_pretrained(folder)


def trace_of(step_id: str) -> str:
    return StepId.parse(step_id).trace_id


def task_trainer(world: World, folder: Path, student: Path | None = None, **composer: Any) -> Any:
    """A trainer of the method on the tasks, without hints and pairs, of `student`, else of the world's."""
    place = student or world.student
    given = {"tasks": world.tasks, "level": "terse", "generations": 4, "max_completion_length": 96}
    given |= {"max_tool_rounds": 2, "beta_replay": 0, "alpha_sdpo": 0}
    settings = TrainingSettings.model_validate(
        {"model": str(place), "method": "composer", "composer": given | composer}
    )
    common: dict[str, Any] = {"output_dir": str(folder), "max_steps": 3, "learning_rate": 1e-3, "seed": 1}
    common |= {"per_device_train_batch_size": 4, "bf16": False, "gradient_checkpointing": False}
    data: Any = {"train": (Dataset.from_list([]), FittedRows())}
    return composer_trainer(settings, common | ONE_STEP, AutoTokenizer.from_pretrained(place), data, [])


def tokenizer_of(world: World) -> Any:
    return AutoTokenizer.from_pretrained(world.student)


def model_of(world: World) -> Any:
    return AutoModelForCausalLM.from_pretrained(world.student, dtype=torch.float32)


def rollouts(trainer: Any, numbers: Sequence[int]) -> dict[str, Tensor]:
    """Four episodes of each of these tasks, as `compose_loss` takes them."""
    rows = [trainer.train_dataset[number] for number in numbers for _ in range(4)]
    trainer.model.train()
    made = trainer._generate_and_score_completions(rows)
    keep = made["completion_mask"] * made.get("tool_mask", 1)
    prompt, said = made["prompt_ids"], made["completion_ids"]
    none = torch.zeros_like(prompt)
    batch = {
        "input_ids": torch.cat([prompt, said], 1),
        "attention_mask": torch.cat([made["prompt_mask"], made["completion_mask"]], 1),
        "response_mask": torch.cat([none, keep], 1),
        "advantages": made["advantages"],
    }
    now = trainer._log_probs(made, prompt, made["prompt_mask"])
    return batch | {"old_log_probs": torch.cat([none.to(now.dtype), now], 1)}
