"""TRL's trainers take each config as `load_dataset` gives it: two steps of a tiny model, made here."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from training_releases import STATE, TOOLS, released, tiny_model

from tracemill.data_cards.writing.write_release import Release
from tracemill.records.message import Message, ToolCall
from tracemill.records.views import CandidateAction, SoftStep, StepOrigin, StepRun

pytestmark = pytest.mark.slow

ORIGIN = StepOrigin("openhands-1", "openhands", "openhands", "p1/x", None, "unknown")


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Release:
    run = StepRun(
        ORIGIN,
        STATE[:2],
        ("openhands-1:0:0", "openhands-1:0:1"),
        ((STATE[2],), (STATE[3], Message("assistant", "Done."))),
        (True, False),
        ("teachers", "hindsight"),
    )
    votes = (
        CandidateAction(Message("assistant", "I test."), "run_test", ("qwen-a", "zai-a")),
        CandidateAction(Message("assistant", "Done."), "finish", ("kimi-a",)),
    )
    soft = SoftStep(ORIGIN, "openhands-1:0:1", STATE, TOOLS, "no_agreement", votes, 1, 0.25)
    return released(tmp_path_factory.mktemp("releases"), steps=[run, soft])


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A folder with a tiny model and its tokenizer, and the tokenizer."""
    from transformers import AutoTokenizer

    folder = tiny_model(tmp_path_factory.mktemp("tiny"))
    return folder, AutoTokenizer.from_pretrained(folder)


def rows(release: Release, config: str, cache: Path) -> Any:
    from datasets import load_dataset

    return load_dataset(str(release.path), config, split="train", cache_dir=str(cache))


def arguments(out: Path) -> dict[str, Any]:
    return {
        "output_dir": str(out),
        "max_steps": 2,
        "per_device_train_batch_size": 2,
        "report_to": "none",
        "use_cpu": True,
        "bf16": False,
        "save_strategy": "no",
        "logging_steps": 1,
        "disable_tqdm": True,
    }


def losses(trainer: Any) -> list[float]:
    trainer.train()
    return [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]


@pytest.mark.parametrize("config", ["dpo", "sft", "kto"])
@pytest.mark.filterwarnings("ignore")
def test_a_trainer_of_trl_takes_its_config_unchanged(
    config: str, release: Release, tiny: Any, tmp_path: Path
) -> None:
    import trl

    folder, tokenizer = tiny
    name = config.upper()
    args = getattr(trl, f"{name}Config")(max_length=512, gradient_checkpointing=False, **arguments(tmp_path))
    trainer = getattr(trl, f"{name}Trainer")(
        model=str(folder),
        args=args,
        train_dataset=rows(release, config, tmp_path / "cache"),
        processing_class=tokenizer,
    )
    assert len(trainer.train_dataset) == (16 if config == "kto" else 8)
    seen = tokenizer.decode(next(iter(trainer.get_train_dataloader()))["input_ids"].flatten())
    assert "<tool>Bash</tool>" in seen
    assert '<call>Bash {"cmd": "ls"}</call>' in seen
    found = losses(trainer)
    assert len(found) == 2
    assert all(loss > 0 for loss in found)


TRL_WITH_PRM = Path(sys.prefix) / "trl-1.13"
"""Where `make test-all` puts the last TRL that has a PRMTrainer, by itself, beside the one we train with."""

PRM = """
import json
import sys
import trl
from datasets import load_dataset
from transformers import AutoTokenizer, Qwen2ForTokenClassification
from trl.experimental.prm import PRMConfig, PRMTrainer

release, model, arguments = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
steps = load_dataset(release, "prm", split="train", cache_dir=arguments["output_dir"] + "/cache")
trainer = PRMTrainer(
    model=Qwen2ForTokenClassification.from_pretrained(model, num_labels=2),
    args=PRMConfig(gradient_checkpointing=False, **arguments),
    train_dataset=steps,
    processing_class=AutoTokenizer.from_pretrained(model),
)
judged = [[label for label in row["labels"] if label != -100] for row in trainer.train_dataset]
trainer.train()
losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
found = {"version": trl.__version__, "file": trl.__file__, "labels": steps["labels"][:]}
print(json.dumps(found | {"judged": judged, "losses": losses}))
"""


@pytest.mark.long
def test_the_prm_trainer_of_trl_takes_its_config_unchanged(
    release: Release, tiny: Any, tmp_path: Path
) -> None:
    """In a process of its own, with TRL 1.13 first on its path: later ones have no such trainer."""
    there = (TRL_WITH_PRM / "trl" / "experimental" / "prm").is_dir()
    assert there, f"TRL 1.13 is not in {TRL_WITH_PRM}: `make test-all` puts it there"
    command = [sys.executable, "-c", PRM, str(release.path), str(tiny[0]), json.dumps(arguments(tmp_path))]
    env = dict(os.environ) | {"PYTHONPATH": str(TRL_WITH_PRM)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["version"].startswith("1.13.")
    assert Path(found["file"]).is_relative_to(TRL_WITH_PRM)
    assert sorted(map(len, found["labels"])) == [1] * 8 + [2]
    assert found["judged"] == [[int(label) for label in row] for row in found["labels"]]
    assert len(found["losses"]) == 2
    assert all(loss > 0 for loss in found["losses"])


@pytest.mark.filterwarnings("ignore")
def test_a_trainer_of_self_distillation_takes_hints_unchanged(
    release: Release, tiny: Any, tmp_path: Path
) -> None:
    from trl.experimental.sdft import SDFTConfig, SDFTTrainer

    folder, tokenizer = tiny
    args = SDFTConfig(max_completion_length=4, num_generations=2, **arguments(tmp_path))
    hints = rows(release, "hints", tmp_path / "cache")
    trainer = SDFTTrainer(model=str(folder), args=args, train_dataset=hints, processing_class=tokenizer)
    assert len(losses(trainer)) == 2
    assert [turn["role"] for turn in hints[0]["prompt"]] == ["system", "user"]
    assert hints[0]["prompt"][1]["content"].endswith("[tool]\nmain.py\n\nWhat do you do next?")
    assert hints[0]["privileged_context"] == (
        "What was done here:\nDone.\n\nIt failed:\nexit code 2\n\nThis fixed it later:\nI test."
    )


def test_a_run_and_a_distribution_come_back_as_they_were(release: Release, tmp_path: Path) -> None:
    [run] = [row for row in rows(release, "prm", tmp_path) if row["kind"] == "agent"]
    assert run["prompt"] == "[system]\nYou are an agent.\n[user]\nFix the bug.\n[assistant]\n"
    assert run["completions"] == ["I look.\nBash cmd: ls", "[tool]\nmain.py\n[assistant]\nDone."]
    assert (run["labels"], run["label_sources"]) == ([True, False], ["teachers", "hindsight"])
    [soft] = rows(release, "soft", tmp_path)
    tested, done = soft["candidates"]
    assert [each["weight"] for each in (tested, done)] == pytest.approx([2 / 3, 1 / 3])
    assert [each["completion"][0]["content"] for each in (tested, done)] == ["I test.", "Done."]
    assert (tested["count"], done["count"], soft["student"], soft["cost_usd"]) == (2, 1, 1, 0.25)
    assert (tested["teachers"], done["teachers"]) == (["qwen-a", "zai-a"], ["kimi-a"])


@pytest.mark.parametrize("streaming", [False, True])
def test_calls_of_a_candidate_behind_bare_text_are_no_text(tmp_path: Path, streaming: bool) -> None:
    from datasets import load_dataset

    call = ToolCall("c1", "Bash", '{"cmd": "ls"}')
    candidates = (
        CandidateAction(Message("assistant", "Done."), "finish", ("kimi-a", "qwen-a")),
        CandidateAction(Message("assistant", "", tool_calls=(call,)), "run", ("zai-a",)),
    )
    step = SoftStep(ORIGIN, "openhands-1:0:1", STATE, TOOLS, "no_agreement", candidates, -1, 0.25)
    made = released(tmp_path / "releases", steps=[step])
    [row] = load_dataset(
        str(made.path), "soft", split="train", streaming=streaming, cache_dir=str(tmp_path / "cache")
    )
    read = [each["completion"][0]["tool_calls"] for each in row["candidates"]]
    function = {"name": "Bash", "arguments": {"cmd": "ls"}}
    assert read == [None, [{"id": "c1", "type": "function", "function": function}]]
