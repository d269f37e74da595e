"""Configs for trainers with short contexts, and that TRL's trainers take them with the lengths they have."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kept_pairs import Kept
from labelled_sessions import fill
from sibling_runs import Turn, bash, run
from training_releases import tiny_model

from tracemill.data_cards.model.manifest import Manifest, read_manifest
from tracemill.flows.config.from_settings import make_reredactor
from tracemill.flows.config.run_settings import load_settings
from tracemill.flows.release.release_run import release_pairs
from tracemill.flows.run_state.run_summary import Summary
from tracemill.records.errors import ConfigError
from tracemill.records.message import ToolSpec
from tracemill.records.pair import DPOPair
from tracemill.records.storage.table_rows import pairs_to_table
from tracemill.records.storage.workspace import Workspace
from tracemill.records.trace import Trace

SESSIONS, STEPS = 12, 8


def session(number: int) -> Trace:
    """A session with a long system prompt, many tools and long observations that solved its task."""
    turns: list[Turn] = [bash(f"cat {number}-{step}.py", "line of code\n" * 400) for step in range(STEPS)]
    made = run(str(number), "resolved", *turns, task=f"Fix lantern {number}. " + "Mind the wick. " * 150)
    [context] = made.contexts
    system = replace(context.messages[0], content="You keep to the rules. " * 900)
    schema = {"type": "object", "properties": {"command": {"type": "string", "description": "words " * 90}}}
    tools = tuple(ToolSpec(f"tool_{n}", "It helps. " * 50, schema) for n in range(9))
    named = (ToolSpec("execute_bash", "Runs.", {"type": "object"}), *tools)
    context = replace(context, messages=(system, *context.messages[1:]), tools=named)
    return replace(made, contexts=(context,), instance_id=None, repository=f"o/{number}", redaction="r1")


def pair(made: Trace) -> DPOPair:
    from growing_traces import pair

    [context] = made.contexts
    chosen = replace(context.messages[4], content="I read it first.")
    return replace(
        pair(made, 5), chosen=(chosen,), rejected=(replace(chosen, content="", tool_calls=chosen.tool_calls),)
    )


def released(folder: Path, **release: Any) -> tuple[Path, Manifest]:
    work = Workspace.open(folder / "w")
    over = {"workspace": str(work.root), "pairs": {"siblings": False}, "release": release}
    settings = load_settings(None, over)
    reredactor = make_reredactor(work, settings)
    sessions = [session(number) for number in range(SESSIONS)]
    fill(work, reredactor, sessions)
    ids = [each.trace_id for each in sessions]
    work.write("pairs", pairs_to_table([pair(each) for each in sessions]), ids, "openhands", "2026-11-21")
    outcome = release_pairs(work, settings, Kept(), reredactor, "run", Summary())
    assert outcome.path is not None, outcome.note
    return Path(outcome.path), read_manifest(Path(outcome.path))


def rows(folder: Path, config: str) -> list[dict[str, Any]]:
    import pyarrow.parquet as pq

    return [
        row
        for path in (folder / "data" / config).glob("*.parquet")
        for row in pq.read_table(path).to_pylist()
    ]


def test_each_length_has_its_configs_and_keeps_the_rows(tmp_path: Path) -> None:
    folder, manifest = released(tmp_path, short=[1024, 4096], views=["sft", "kto"])
    found = {name: table.rows for name, table in manifest.tables.items()}
    full = {"dpo": SESSIONS, "sft": SESSIONS * STEPS, "kto": 2 * SESSIONS}
    assert found == full | {f"{name}_{size}": n for size in ("1k", "4k") for name, n in full.items()}
    for config, most in (("sft_1k", 1024), ("sft_4k", 4096), ("dpo_1k", 1024)):
        for row in rows(folder, config):
            text = json.dumps([row["prompt"], row.get("completion") or row["chosen"], row["tools"]])
            assert len(text) < most * 4
            assert [json.loads(tool)["function"]["name"] for tool in row["tools"]] == ["execute_bash"]
    [one, *_] = [row for row in rows(folder, "sft_1k") if row["step_id"].endswith(":0:7")]
    assert "characters left out" in one["prompt"][0]["content"]
    assert one["prompt"][1]["content"].startswith("Fix lantern")
    assert one["prompt"][-1]["role"] == "tool"
    assert {row["n_tokens"] <= 1024 < row["n_tokens_whole"] for row in rows(folder, "dpo_1k")} == {True}
    card = (folder / "README.md").read_text()
    assert f"| `sft_4k` | {SESSIONS * STEPS} | `sft` with contexts cut to 4,096 tokens |" in card


def test_lengths_that_a_release_keeps_anyway_are_left_out(tmp_path: Path) -> None:
    _, manifest = released(tmp_path, short=[1024, 16384], views=[], max_tokens=16384)
    assert sorted(manifest.tables) == ["dpo", "dpo_1k"]
    for wrong in ([1000], [0]):
        with pytest.raises(ConfigError, match="multiples of 1024 tokens"):
            load_settings(None, {"release": {"short": wrong}})


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_trainers_of_trl_take_the_shortest_with_their_own_lengths(tmp_path: Path) -> None:
    """Lengths are counted by the tokenizer that is trained with; nothing is said of lengths to TRL."""
    import trl
    from datasets import load_dataset
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    model = tiny_model(tmp_path / "tiny")
    folder, _ = released(tmp_path, short=[1024], tokenizer=str(model / "tokenizer.json"))
    tokenizer: Any = AutoTokenizer.from_pretrained(model)
    common = {"max_steps": 1, "per_device_train_batch_size": 2, "use_cpu": True, "bf16": False}
    common |= {"report_to": "none", "save_strategy": "no", "disable_tqdm": True}
    for name, config in (("DPO", "dpo_1k"), ("SFT", "sft_1k"), ("KTO", "kto_1k"), ("Reward", "dpo_1k")):
        split = load_dataset(str(folder), config, split="train", cache_dir=str(tmp_path / "cache"))
        args = getattr(trl, f"{name}Config")(
            output_dir=str(tmp_path / name), gradient_checkpointing=False, **common
        )
        assert args.max_length == 1024
        loaded: Any = str(model)
        if name == "Reward":
            loaded = AutoModelForSequenceClassification.from_pretrained(model, num_labels=1)
        trainer = getattr(trl, f"{name}Trainer")(
            model=loaded, args=args, train_dataset=split, processing_class=tokenizer
        )
        assert len(split) >= SESSIONS
        assert len(trainer.train_dataset) >= 0.95 * len(split), name
        if name == "DPO":
            whole = [
                len(row["prompt_ids"]) + max(len(row["chosen_ids"]), len(row["rejected_ids"])) <= 1024
                for row in trainer.train_dataset
            ]
            assert sum(whole) >= 0.95 * len(split)
        trainer.train()
        assert trainer.state.global_step == 1
