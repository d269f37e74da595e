"""Compare the arms of the three-channel trainer in a world of `benchmarks/teaching`, over students.

    python -m benchmarks.composer.world_arms --world repair query --out composer-worlds [--short]

A student has practised on sessions of the weak policy, hints among them, and plays tasks. `tracemill run`
makes a release of its sessions with scripted teachers: its pairs are those of the replay channel, and the
actions that the teachers agreed on are the hints. GRPO then plays whole sessions of other tasks. Results are
stored an arm at a time, and a run goes on where one stopped; `--seed N --arm NAME` runs one alone.
"""

import argparse
import json
import math
import statistics
import sys
import time
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast
from trl.trainer.grpo_config import GRPOConfig

from benchmarks.teaching.arms import Material, action_of, as_message, disagreements
from benchmarks.teaching.experiment import TEST_FROM, VALIDATION_FROM, Cell, cost_of, measure, prepare
from benchmarks.teaching.formats import actions_of_messages
from benchmarks.teaching.report import difference
from benchmarks.teaching.student import MOST_WORDS, hint_text, parse_action, practise
from benchmarks.teaching.worlds.registry import WORLDS
from benchmarks.teaching.worlds.world import World, act
from tracemill.train.composer.composer_trainer import Channels, ComposerReplicationTrainer
from tracemill.train.composer.encode_rows import encode_hint_rows, encode_pair_rows
from tracemill.train.composer.reference import ReferenceLogProbs
from tracemill.train.hints.hint_rows import add_hint

CONFIG = Path(__file__).parents[2] / "configs" / "train" / "world_arms.toml"
PLAYED_FROM = 7_000_000
"""Number of the first task that GRPO plays."""
MOST_TOKENS = 512
COLUMNS = ("grpo", "sdpo_kl", "trace_replay_dpo")


def hint_rows(material: Material) -> list[dict[str, Any]]:
    """Return a row for each step at which the teachers agreed on another action than the student's."""
    rows = []
    for number, (row, done) in enumerate(disagreements(material)):
        prompt = _plain(done["prompt"])
        hinted = add_hint(prompt, hint_text(action_of(row)))
        if len(prompt) == 1:  # the hint is on the line of the task in the text that the student practised on
            hinted[0]["content"] = " ".join(hinted[0]["content"].split())
        rows.append(
            {
                "step_id": f"step-{number}",
                "prompt": prompt,
                "hinted_prompt": hinted,
                "completion": _plain(done["completion"]),
                "tools": [],
            }
        )
    return rows


def _as_played(
    text: str, actions: Sequence[Any], prompt: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return a prompt of the release as the student's chat template takes it."""
    results = [message["content"] for message in prompt if message["role"] == "tool"]
    played: list[dict[str, Any]] = [{"role": "user", "content": text}]
    for place, action in enumerate(actions):
        played += _plain(as_message(action))
        if action.tool and place < len(results):
            played.append({"role": "tool", "content": results[place]})
    return played


def _plain(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return messages whose arguments of calls are objects, as chat templates take them."""
    made = []
    for message in messages:
        calls = []
        for call in message.get("tool_calls") or ():
            arguments = call["function"]["arguments"]
            arguments = json.loads(arguments) if isinstance(arguments, str) else arguments
            calls.append({"type": "function", "function": {**call["function"], "arguments": arguments}})
        plain = {"role": message["role"], "content": message.get("content") or ""}
        made.append({**plain, **({"tool_calls": calls} if calls else {})})
    return made


class Rollouts:
    """Whole sessions played by the model that is trained, as TRL's `rollout_func`."""

    def __init__(self, world: World) -> None:
        self._world = world

    def __call__(self, prompts: list[Any], trainer: Any) -> dict[str, Any]:
        """Return the token ids of each session, which of them the model wrote, and the world's reward."""
        tokenizer, games = trainer.processing_class, []
        for prompt in prompts:
            env = self._world.environment()
            text = env.reset(task=int(prompt[0]["content"]))
            games.append(
                (env, tokenizer(f"<user> {text} <end> <agent>")["input_ids"], list[int](), list[int]())
            )
        open_games = list(games)
        for _ in range(self._world.turns):
            if not open_games:
                break
            said = self._say([head + rest for _, head, rest, _ in open_games], trainer)
            for (env, _, rest, mask), ids in zip(open_games, said, strict=True):
                rest += ids
                mask += [1] * len(ids)
                if ids[-1] != tokenizer.eos_token_id:
                    env.done = True  # a turn without an end
                    continue
                action = parse_action(tokenizer.convert_ids_to_tokens(ids[:-1]))
                result = act(env, action)
                if not env.done:
                    shown = tokenizer(f"<result> {result.text} <end> <agent>")["input_ids"]
                    rest += shown
                    mask += [0] * len(shown)
            open_games = [game for game in open_games if not game[0].done]
        for _, _, rest, mask in games:  # a session that was cut ends with what the model said last
            while mask and mask[-1] == 0:
                rest.pop()
                mask.pop()
        return {
            "prompt_ids": [head for _, head, _, _ in games],
            "completion_ids": [rest for _, _, rest, _ in games],
            "env_mask": [mask for _, _, _, mask in games],
            "logprobs": None,
            "solved": [env.get_reward() for env, *_ in games],
        }

    def _say(self, contexts: Sequence[Sequence[int]], trainer: Any) -> list[list[int]]:
        tokenizer, model = trainer.processing_class, trainer.accelerator.unwrap_model(trainer.model)
        longest = max(map(len, contexts))
        ids = torch.full((len(contexts), longest), tokenizer.pad_token_id)
        seen = torch.zeros_like(ids)
        for place, context in enumerate(contexts):
            ids[place, longest - len(context) :] = torch.tensor(context)
            seen[place, longest - len(context) :] = 1
        was_training = model.training
        model.eval()
        with torch.no_grad():
            made = model.generate(
                input_ids=ids,
                attention_mask=seen,
                max_new_tokens=MOST_WORDS,
                do_sample=True,
                top_k=0,
                top_p=1.0,
                pad_token_id=tokenizer.pad_token_id,
                eos_token_id=tokenizer.eos_token_id,
            )
        model.train(was_training)
        said = []
        for row in made[:, longest:].tolist():
            end = row.index(tokenizer.eos_token_id) + 1 if tokenizer.eos_token_id in row else len(row)
            said.append(row[:end])
        return said


def solved_reward(completions: list[Any], solved: list[float], **_: Any) -> list[float]:
    """Return what the world says of each session."""
    return solved


def run_arm(
    config: Mapping[str, Any], arm: Mapping[str, Any], cell: Cell, out: Path, first: int, rate: float
) -> dict[str, Any]:
    """Train a student by an arm and measure it on tasks from `first` on."""
    material = prepare_student(config, cell, out)
    student = cell.student_folder(out) / "student"
    tokenizer: Any = PreTrainedTokenizerFast.from_pretrained(student, padding_side="left")
    began = time.monotonic()
    hints = encode_hint_rows(hint_rows(material), tokenizer, MOST_TOKENS)
    pairs = encode_pair_rows([_pair(row) for row in material.rows("dpo")], tokenizer, MOST_TOKENS)
    reference = None
    if arm["beta_replay"]:
        model = AutoModelForCausalLM.from_pretrained(student, dtype=torch.float32).eval()
        reference = ReferenceLogProbs(model, str(student), tokenizer.pad_token_id)
        reference.settle(pairs.examples, torch.device("cpu"))
    channels = Channels(
        hints=hints.examples,
        pairs=pairs.examples,
        alpha_sdpo=arm["alpha_sdpo"],
        beta_replay=arm["beta_replay"],
        batch_size=config["channel_batch"],
        seed=cell.seed,
        reference=reference,
    )
    output = out / "checkpoints" / cell.world / f"{_name(arm)}-{rate:g}-seed{cell.seed}"
    plays = PLAYED_FROM + 100_000 * cell.seed
    rows = [{"prompt": [{"role": "user", "content": str(plays + n)}]} for n in range(config["tasks"])]
    trainer = ComposerReplicationTrainer(
        model=str(student),
        args=_grpo_config(config, cell, output, rate),
        processing_class=tokenizer,
        train_dataset=Dataset.from_list(rows),
        reward_funcs=solved_reward,
        rollout_func=Rollouts(material.world),
        channels=channels,
    )
    trainer.train()
    logs = [each for each in trainer.state.log_history if "loss/total" in each]
    last = logs[-max(1, len(logs) // 5) :]
    parts = {name: [each[f"loss/{name}"] for each in last if f"loss/{name}" in each] for name in COLUMNS}
    taught = bool(arm["alpha_sdpo"] or arm["beta_replay"])
    at = {
        str(step): measure(
            material.world, output / f"checkpoint-{step}", cell.seed, first, config["test_tasks"]
        )
        for step in config["measured"]
    }
    return {
        "at": at,
        "arm": arm["name"],
        "world": cell.world,
        "seed": cell.seed,
        "rate": rate,
        "reward": statistics.mean(each["reward"] for each in last),
        "losses": {name: statistics.mean(values) if values else None for name, values in parts.items()},
        "hints": len(hints.examples),
        "pairs": len(pairs.examples),
        "seconds": time.monotonic() - began,
        "teacher_usd": cost_of(material)["usd"] if taught else 0.0,
    }


def _grpo_config(config: Mapping[str, Any], cell: Cell, output: Path, rate: float) -> GRPOConfig:
    return GRPOConfig(
        output_dir=str(output),
        max_steps=max(config["measured"]),
        per_device_train_batch_size=config["batch"],
        num_generations=config["generations"],
        learning_rate=rate,
        lr_scheduler_type="cosine",
        warmup_steps=2,
        max_completion_length=MOST_TOKENS,
        beta=0.0,
        top_k=0,
        seed=cell.seed,
        logging_steps=1,
        save_strategy="steps",
        save_steps=math.gcd(*config["measured"]),
        save_only_model=True,
        report_to="none",
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
        disable_tqdm=True,
        disable_dropout=True,
    )


def prepare_student(config: Mapping[str, Any], cell: Cell, out: Path) -> Material:
    """Return a student that reads hints, its sessions and their release, each made once."""
    folder = cell.student_folder(out) / "student"
    practise(WORLDS[cell.world], folder, cell.size, cell.seed, config["practice_steps"], config["hinted"])
    return prepare(cell, out)


def _pair(row: Mapping[str, Any]) -> dict[str, Any]:
    text, actions = actions_of_messages(row["prompt"])
    sides = {side: _plain(row[side]) for side in ("chosen", "rejected")}
    return {
        "pair_id": row["pair_id"],
        "prompt": _as_played(text, actions, row["prompt"]),
        **sides,
        "tools": [],
    }


def _name(arm: Mapping[str, Any]) -> str:
    return arm["name"].replace(" ", "")


def result_of(config: Mapping[str, Any], arm: Mapping[str, Any], cell: Cell, out: Path) -> dict[str, Any]:
    """Return the result of an arm, run where there is none yet; `start` is the student as it is."""
    path = out / "results" / cell.world / f"{_name(arm)}-seed{cell.seed}.json"
    if not path.exists():
        torch.set_num_threads(1)
        if arm["name"] == "start":
            material = prepare_student(config, cell, out)
            student = cell.student_folder(out) / "student"
            found = measure(material.world, student, cell.seed, TEST_FROM, config["test_tasks"])
            result = {"at": {"0": found}, "arm": "start", "world": cell.world, "seed": cell.seed}
        else:
            result = run_arm(config, arm, cell, out, TEST_FROM, config["learning_rate"])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(result), encoding="utf-8")
        print(f"{cell.world} seed {cell.seed} {arm['name']}: {_told(result)}", flush=True)
    return json.loads(path.read_text(encoding="utf-8"))


def _told(result: Mapping[str, Any]) -> str:
    return ", ".join(f"{found['success']:.3f} after {step} steps" for step, found in result["at"].items())


def table(results: Sequence[Mapping[str, Any]]) -> str:
    """Return the results as tables in Markdown, one for each world; intervals are 95 %, by bootstrap."""
    parts = []
    for world in dict.fromkeys(result["world"] for result in results):
        arms: dict[str, dict[int, Mapping[str, Any]]] = {}
        for result in results:
            if result["world"] == world:
                arms.setdefault(result["arm"], {})[result["seed"]] = result
        trained = {name: seeds for name, seeds in arms.items() if name != "start"}
        steps = list(next(iter(next(iter(trained.values())).values()))["at"]) if trained else []
        head = ["arm", "seeds"]
        for step in steps:
            head += [f"after {step} steps", "over `grpo`"]
        head += ["reward", *COLUMNS, "seconds", "teacher USD"]
        start = [result["at"]["0"]["success"] for result in arms.get("start", {}).values()]
        told = f", {statistics.mean(start):.2f} before" if start else ""
        parts += [f"### `{world}`{told}", "", f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
        for name, seeds in trained.items():
            parts.append(f"| {' | '.join([name, str(len(seeds)), *_cells(name, seeds, trained, steps)])} |")
        parts.append("")
    return "\n".join(parts)


def _cells(
    name: str,
    seeds: Mapping[int, Mapping[str, Any]],
    arms: Mapping[str, Mapping[int, Mapping[str, Any]]],
    steps: Sequence[str],
) -> list[str]:
    cells, rows = list[str](), list(seeds.values())
    for step in steps:
        ours, base = (
            {seed: row["at"][step] for seed, row in each.items()} for each in (seeds, arms.get("grpo", {}))
        )
        success = [each["success"] for each in ours.values()]
        cells.append(f"{statistics.mean(success):.3f} ({min(success):.2f} to {max(success):.2f})")
        over = difference(ours, base) if name != "grpo" else None
        cells.append(f"{over[0]:+.3f} [{over[1]:+.3f}, {over[2]:+.3f}]" if over else "-")
    cells.append(f"{statistics.mean(row['reward'] for row in rows):.2f}")
    for column in COLUMNS:
        values = [row["losses"][column] for row in rows]
        cells.append("off" if None in values else f"{statistics.mean(values):.4f}")
    return cells + [f"{statistics.mean(row[key] for row in rows):.3g}" for key in ("seconds", "teacher_usd")]


def main() -> int:
    """Run the arms in worlds and print their tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.composer.world_arms", description=__doc__)
    parser.add_argument("config", type=Path, nargs="?", default=CONFIG)
    parser.add_argument("--world", choices=[*WORLDS], nargs="+", default=["repair", "query"])
    parser.add_argument("--out", type=Path, default=Path("composer-worlds"))
    parser.add_argument("--short", action="store_true", help="one student of each world, two steps")
    parser.add_argument("--seed", type=int, nargs="+", help="these students alone")
    parser.add_argument("--arm", nargs="+", help="these arms alone, names without spaces")
    parser.add_argument("--rates", type=float, nargs="+", help="try these learning rates on validation tasks")
    given = parser.parse_args()
    config = tomllib.loads(given.config.read_text(encoding="utf-8"))
    if given.short:
        config |= {"measured": [1, 2], "test_tasks": 10, "seeds": [0]}
    arms = [{"name": "start"}, *config["arms"]]
    if given.arm:
        arms = [arm for arm in arms if _name(arm) in given.arm]
    out, results = given.out.resolve(), []
    for world in given.world:
        for seed in given.seed or config["seeds"]:
            for arm in arms:
                cell = Cell(world, seed)
                if not given.rates:
                    results.append(result_of(config, arm, cell, out))
                    continue
                torch.set_num_threads(1)
                for rate in given.rates:
                    found = run_arm(config, arm, cell, out, VALIDATION_FROM, rate)
                    print(f"{world} seed {seed} {arm['name']} {rate:g}: {_told(found)}", flush=True)
    if results:
        (out / "table.md").write_text(table(results) + "\n", encoding="utf-8")
        print(table(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
