"""A release to train on, made by the product's own writer, and a tiny model."""

import json
import runpy
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
