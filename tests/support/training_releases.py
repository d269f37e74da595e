"""A release to train on, made by the product's own writer, a tiny model, and a training in this process."""

import json
import os
import runpy
import shutil
import signal
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from plain_pairs import plain_pair

from tracemill.data_cards.model.release_spec import ReleaseSpec
from tracemill.data_cards.writing.write_release import Release, write_release
from tracemill.records.message import Message, ToolCall, ToolSpec
from tracemill.records.pair import NormalizedDPOPair
from tracemill.records.views import SoftStep, StepRun
from tracemill.train.start_child import check_settings
from tracemill.train.training_job import LOG, TrainingJob, TrainingResult, read_report

TINY = Path(__file__).resolve().parents[2] / "examples" / "tiny_model.py"
TOOLS = (ToolSpec("Bash", "Runs.", {"type": "object", "properties": {"cmd": {"type": "string"}}}),)
STATE = (
    Message("system", "You are an agent."),
    Message("user", "Fix the bug."),
    Message("assistant", "I look.", (ToolCall("a", "Bash", '{"cmd": "ls"}'),)),
    Message("tool", "main.py", tool_call_id="a", name="Bash"),
)


def kept(number: int, **changes: Any) -> NormalizedDPOPair:
    """A pair: the chosen side calls a tool, the rejected one says it is done."""
    call = ToolCall("b", "Bash", json.dumps({"cmd": f"pytest test_{number}.py", "timeout": number}))
    given: dict[str, Any] = {
        "step_id": f"openhands-{number}:0:1",
        "state_messages": STATE,
        "tools": TOOLS,
        "chosen": (Message("assistant", "I test.", (call,)),),
        "rejected": (Message("assistant", f"Done with {number}."),),
        "chosen_operation": "run_test",
        "presentation": "p1/x",
        "verified": "lookahead",
    }
    pair = plain_pair(**given | changes)
    return NormalizedDPOPair(pair, "I test.", "Done.", "default-abc", "exit code 2")


def released(
    folder: Path,
    name: str = "views",
    rows: int = 8,
    steps: Iterable[StepRun | SoftStep] = (),
    validation: Iterable[int] = (),
    **changes: Any,
) -> Release:
    """`rows` pairs as a release below `folder`, those of the numbers `validation` in that split; `changes`
    are fields of every pair."""
    held = {kept(number).pair.step_id.partition(":")[0] for number in validation}
    made = write_release(
        ReleaseSpec(name=name, redaction="r1"),
        (kept(n, **changes) for n in range(rows)),
        [],
        folder,
        steps=steps,
        split_of=lambda trace_id: "validation" if trace_id in held else "train",
    )
    assert isinstance(made, Release)
    return made


def weigh(release: Path, weight_of: Callable[[str], float | None]) -> None:
    """Give the rows of a release's config `sft` other weights, told by their steps."""
    for path in (release / "data" / "sft").glob("*.parquet"):
        table = pq.read_table(path)
        weights = [weight_of(step) for step in table.column("step_id").to_pylist()]
        place = table.schema.get_field_index("weight")
        pq.write_table(table.set_column(place, "weight", pa.array(weights, pa.float64())), path)


def tiny_model(folder: Path) -> Path:
    """The model of `examples/tiny_model.py`, and its tokenizer, in `folder`."""
    make: Any = runpy.run_path(str(TINY))["make"]
    make(folder)
    return folder


def train_here(job: TrainingJob) -> TrainingResult:
    """Train in this process: to start one takes longer than a few steps of a tiny model do. The process of a
    training, its start and its ends are what `tests/train/test_child.py` is about."""
    from tracemill.train.trl.run_trainer import run_trainer
    from tracemill.train.trl.stopping import StopSignal

    assert job.settings.processes == 1
    check_settings(job.settings)
    before, environment = signal.getsignal(signal.SIGTERM), dict(os.environ)
    job.partial.mkdir(parents=True)
    (job.partial / LOG).touch()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert run_trainer(job, job.partial, lambda said: None, StopSignal()) == {}
    finally:
        signal.signal(signal.SIGTERM, before)
        os.environ.clear()
        os.environ.update(environment)
    report = read_report(job.partial / "final")
    assert report is not None
    (job.partial / "final").rename(job.target)
    shutil.rmtree(job.partial)
    return TrainingResult(job.target, report, True)
