"""Three channels end to end: a student that calls tools, sessions with failures, and tasks with tests."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-all")

import composer_training as given  # noqa: E402
import composer_world as made  # noqa: E402
from transformers import AutoTokenizer  # noqa: E402

import tracemill as tm  # noqa: E402
from benchmarks.composer.arithmetic_tasks import FILE  # noqa: E402
from tracemill.environments.task import read_tasks  # noqa: E402
from tracemill.flows.config.run_settings import load_settings  # noqa: E402
from tracemill.flows.training.training_run import train_on  # noqa: E402
from tracemill.train.compose import compose_loss  # noqa: E402
from tracemill.train.composer.encode_rows import (  # noqa: E402
    collate_hints,
    collate_pairs,
    encode_hint_rows,
    encode_pair_rows,
)
from tracemill.train.composer.reference import ReferenceLogProbs  # noqa: E402
from tracemill.train.hints.hint_rows import add_hint, build_hint_rows  # noqa: E402
from tracemill.train.training_job import REPORT  # noqa: E402

pytestmark = [
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.filterwarnings("ignore"),  # TRL's own, of experimental parts and defaults
]
EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "sessions"
REAL = os.environ.get("TRACEMILL_REAL_TRACES")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> made.World:
    """Tasks of one line and of two, a student that solves about half of them, and the example sessions; with
    TRACEMILL_REAL_TRACES recorded ones beside them."""
    sessions = [EXAMPLES]
    if REAL is not None:
        recorded = sorted(Path(REAL, "claude_code").rglob("*.jsonl"))
        sessions += [path for path in recorded if path.stat().st_size < 550_000]
        sessions += [Path(REAL, name) for name in ("codex", "pi", "openhands", "swe_agent", "swe_gym")]
    return made.make_world(tmp_path_factory.mktemp("world"), sessions)


def test_a_training_on_sessions_and_tasks_has_three_channels(world: made.World) -> None:
    """One configuration: tasks are played, hints and pairs are those of the workspace."""
    config = world.folder / "train.toml"
    config.write_text(f"""
workspace = "w"
[release]
name = "sessions"
[training]
model = "./student"
method = "composer"
output = "out"
device = "cpu"
gradient_checkpointing = false
max_steps = 6
learning_rate = 1e-3
batch = 8
accumulate = 1
max_length = {made.LENGTH}
[training.composer]
tasks = "tasks"
level = "terse"
max_completion_length = 96
max_tool_rounds = 2
""")
    result = train_on(load_settings(config, {}), "sessions")
    report = json.loads((result.path / REPORT).read_text())
    held_out = sum(made.trace_of(pair.step_id) in world.held_out for pair in world.pairs)
    counts = {
        name: each["examples"] + sum(each["dropped"].values()) for name, each in report["channels"].items()
    }
    assert counts["grpo"] == 6
    assert counts["replay"] == len(world.pairs) - held_out
    assert counts["sdpo"] >= 10
    assert all(each["off"] is None for each in report["channels"].values())
    steps = report["losses"]
    assert len(steps) == 6
    assert sum(each["tools/call_frequency"] for each in steps) / 6 > 0.5
    assert sum(each["loss/grpo"] != 0 for each in steps) >= 3  # rewards of the tests differ within a task
    assert all(each["loss/sdpo_kl"] > 1e-4 for each in steps)
    assert steps[0]["loss/trace_replay_dpo"] == pytest.approx(0.6931, abs=1e-3)
    assert all(each["loss/trace_replay_dpo"] > 0 for each in steps)
    for each in steps:
        whole = each["loss/grpo"] + 0.1 * each["loss/sdpo_kl"] + 0.05 * each["loss/trace_replay_dpo"]
        assert each["loss/total"] == pytest.approx(whole, rel=1e-4, abs=1e-6)


def batches_of(world: made.World, name: str, folder: Path) -> list[Any]:
    """Two batches to learn from and one that is held out, as `compose_loss` takes them.

    `grpo`: episodes of three tasks each, and other episodes of all six. `sdpo` and `replay`: rows of
    the sessions to train on, and rows of sessions that are held out.
    """
    tokenizer = made.tokenizer_of(world)
    if name == "grpo":
        trainer = made.task_trainer(world, folder)
        torch.manual_seed(0)
        return [made.rollouts(trainer, part) for part in ((0, 1, 2), (3, 4, 5), range(6))]
    if name == "sdpo":
        rows = list(build_hint_rows(world.traces))
        examples = encode_hint_rows(rows, tokenizer, made.LENGTH).examples
        steps = {each.name: each.name for each in examples}
    else:
        examples = encode_pair_rows(list(tm.pair_rows(world.pairs)), tokenizer, made.LENGTH).examples
        steps = {pair.pair_id: pair.step_id for pair in world.pairs}
    examples.sort(
        key=lambda each: len((each.hinted if name == "sdpo" else each.chosen)[0])
    )  # short ones first
    kept = [each for each in examples if made.trace_of(steps[each.name]) in world.held_out]
    learned = [each for each in examples if each not in kept]
    assert len(learned) >= 4
    # Pairs of few sessions have little in common: with four of each the loss of those held out rises.
    half, pad_id = min(8, len(learned) // 2), tokenizer.pad_token_id
    parts = [learned[:half], learned[half : 2 * half], kept[:8]]
    if name == "sdpo":
        return [collate_hints(part, pad_id) for part in parts]
    reference = ReferenceLogProbs(made.model_of(world).eval(), "student", pad_id)
    return [collate_pairs(part, pad_id) | reference.of(part) for part in parts]


@pytest.mark.parametrize(("name", "weights"), [("grpo", (0, 0)), ("sdpo", (1, 0)), ("replay", (0, 1))])
def test_a_channel_alone_lowers_its_loss_on_two_batches_in_turn_and_on_one_that_is_held_out(
    world: made.World, tmp_path: Path, name: str, weights: tuple[float, float]
) -> None:
    batches, model = batches_of(world, name, tmp_path), made.model_of(world).eval()
    assert name != "grpo" or all(batch["advantages"].abs().max() > 0.5 for batch in batches)

    def losses() -> list[float]:
        with torch.no_grad():
            return [compose_loss(model, batch, *weights)[0].item() for batch in batches]

    before = losses()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-4 if name == "grpo" else 3e-4)
    for step in range(8):
        loss, _ = compose_loss(model, batches[step % 2], *weights)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    after = losses()
    for now, first in zip(after[:2], before[:2], strict=True):
        # the policy loss begins near 0 and is a mean over all tokens, of which the model is sure of most
        assert now < (first - 0.002 if name == "grpo" else 0.9 * first)
    assert after[2] < before[2] - (0.002 if name == "grpo" else 0)


def test_the_other_text_of_a_task_shapes_the_advantages_of_its_episodes(
    world: made.World, tmp_path: Path
) -> None:
    """Every token is computed again: what the model said after the terse text, and after both texts."""
    shaped = {"composition": "advantage", "alpha_sdpo": 0.25, "hint_level": "detailed"}
    trainer = made.task_trainer(world, tmp_path, **shaped)
    assert trainer.channel_counts["sdpo"]["examples"] == 6
    tokenizer, model = made.tokenizer_of(world), made.model_of(world).eval()
    texts = {task.name: task.texts for task in read_tasks(world.tasks)}
    rows = [trainer.train_dataset[number] for number in (0, 0, 0, 0, 3, 3, 3, 3)]
    torch.manual_seed(0)
    trainer.model.train()
    batch = trainer._generate_and_score_completions(rows)
    noted = trainer._metrics["train"]

    def log_probs(prompt: Any, said: list[int]) -> Any:
        text = tokenizer.apply_chat_template(prompt, add_generation_prompt=True, tokenize=False)
        context = tokenizer(text, add_special_tokens=False)["input_ids"]
        with torch.no_grad():
            logits = model(torch.tensor([[*context, *said]])).logits[0, len(context) - 1 : -1]
        return logits.log_softmax(-1)[range(len(said)), said]

    told, results = [], 0
    for number, row in enumerate(rows):
        asked = [{"role": "user", "content": texts[row["task"]]["terse"]}]
        assert FILE in asked[0]["content"]
        assert row["hint"] == texts[row["task"]]["detailed"] != asked[0]["content"]
        keep = batch["completion_mask"][number].bool()
        said = batch["completion_ids"][number][keep].tolist()
        own = batch["tool_mask"][number][keep].bool()
        results += int((~own).sum())
        part = log_probs(add_hint(asked, row["hint"]), said) - log_probs(asked, said)
        told.append(part[own].abs())
        found = batch["advantages"][number][keep]
        plain = found - 0.25 * part  # 0.75 of the advantage of the episode, the same for each of its tokens
        torch.testing.assert_close(plain[own], plain[own].mean().expand(int(own.sum())), rtol=1e-3, atol=1e-3)
        assert not found[~own].any()
    assert results > 0  # what tools gave back has no advantage
    assert torch.cat(told).max() > 0.1
    assert noted["advantage/hinted"] == [1.0]
    assert noted["advantage/sdpo"] == [pytest.approx(torch.cat(told).mean().item(), rel=1e-3)]
    trainer._metrics["train"].clear()
    trainer.train()
    logs = [each for each in trainer.state.log_history if "loss/grpo" in each]
    assert len(logs) == 3
    assert all(each["advantage/hinted"] == 1.0 and each["advantage/sdpo"] > 1e-2 for each in logs)
    assert all(each["loss/total"] == each["loss/grpo"] != 0 for each in logs)
    assert sum(each["tools/call_frequency"] for each in logs) > 0
    assert "loss/sdpo_kl" not in logs[0]


def test_a_student_that_calls_no_tool_is_a_warning_of_the_results(world: made.World, tmp_path: Path) -> None:
    """Its weights are drawn at random: it earns nothing, and nothing would say why."""
    untaught = given.make_tiny(tmp_path / "untaught")
    tokenizer = AutoTokenizer.from_pretrained(untaught)
    tokenizer.response_template = made.qwen3_template
    tokenizer.save_pretrained(untaught)
    trainer = made.task_trainer(world, tmp_path, untaught, max_completion_length=8, idle_steps=2)
    trainer.train()
    assert [each["tools/call_frequency"] for each in trainer.state.log_history if "reward" in each] == [
        0,
        0,
        0,
    ]
    [said] = trainer.notes
    assert said.startswith("the model called no tool in 2 steps, so it learns nothing from rewards of tools")
