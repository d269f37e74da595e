"""Compare arms of `method = "composer"` on tasks of an environment, over seeds.

    python -m benchmarks.composer.arms configs/train/arms.toml --out composer-results [--short]

A seed is one student: taught to call tools by sessions that are partly wrong, then trained by each arm with
`tracemill`'s own training. Teachers are scripted and their answers priced as if they were bought. Results are
stored an arm at a time in `--out`, and a run goes on where one stopped. To run arms side by side, make the
students first (`--arm none`), then start a process for each `--seed N --arm NAME`, then one for the table.
"""

import argparse
import json
import random
import re
import statistics
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.composer import arithmetic_tasks as given
from tracemill.data_cards.model.release_spec import ReleaseSpec
from tracemill.data_cards.writing.write_release import Release, write_release
from tracemill.environments.episodes.environment import ClaudeCodeEnvironment
from tracemill.environments.sandbox.choose_sandbox import choose_sandbox
from tracemill.environments.sandbox.sandbox import SandboxName
from tracemill.records.message import ErrorKind, Message, ToolCall
from tracemill.records.pair import DPOPair, NormalizedDPOPair
from tracemill.train.hints.hint_rows import add_hint
from tracemill.train.hints.hint_text import write_hint
from tracemill.train.start_child import run_training
from tracemill.train.training_job import TrainingJob, TrainingRelease
from tracemill.train.training_settings import TrainingSettings

USD_A_MILLION = (0.5, 2.0)
"""Price of a million tokens of a teacher's prompt, and of its answer."""
CHARACTERS_A_TOKEN = 4
SHORT = {"seeds": [0], "steps": 2, "samples": 2, "asked": 12}
COLUMNS = ("grpo", "sdpo_kl", "trace_replay_dpo")


@dataclass(frozen=True)
class Labels:
    """The answers of teachers at failed actions: hint rows, a release of pairs, and a vendor's price."""

    hints: Path
    release: TrainingRelease
    usd: float


def make_labels(folder: Path, config: Mapping[str, Any], seed: int) -> Labels:
    """Ask scripted teachers at failed actions of the student; so many equal votes make a label."""
    errors = config["warm_errors"]
    rng, rows, pairs, usd = random.Random(f"labels {seed}"), list[dict[str, Any]](), list[DPOPair](), 0.0
    while len(pairs) < config["asked"]:
        name = given.random_name(rng)
        failed = given.expression(name, rng, errors)
        if failed == given.expression(name):
            continue
        answers = [given.expression(name, rng, odds) for odds in config["teacher_errors"]]
        text, number = given.text_of(name), len(pairs)
        sizes = [(len(text), len(given.command_of(answer))) for answer in answers]
        prices = [part / 1e6 / CHARACTERS_A_TOKEN for part in USD_A_MILLION]
        usd += sum(prices[0] * read + prices[1] * wrote for read, wrote in sizes)
        agreed, votes = Counter(answers).most_common(1)[0]
        if votes < config["votes"] or agreed == failed:
            continue
        prompt = [{"role": "user", "content": text}]
        rows.append(
            {
                "step_id": f"numbers-{number}:0:0",
                "prompt": prompt,
                "hinted_prompt": add_hint(prompt, _hint(config, name, failed, agreed)),
                "completion": [given.call_of(failed)],
                "tools": [],
            }
        )
        pairs.append(_pair(number, text, agreed, failed, votes))
    folder.mkdir(exist_ok=True)
    hints = folder / "hints.jsonl"
    hints.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    kept = (NormalizedDPOPair(pair, "", "", "none", "") for pair in pairs)
    made = write_release(ReleaseSpec(name="numbers", redaction="none"), kept, [], folder / "releases")
    assert isinstance(made, Release)
    digest = made.content_fingerprint
    release = TrainingRelease(name="numbers", version=made.version, digest=digest, path=made.path)
    return Labels(hints, release, usd)


def _hint(config: Mapping[str, Any], name: str, failed: str, agreed: str) -> str:
    """Return the hint at a failed action, by the writer of a configuration.

    `agreed`, the default: the action that teachers agreed on. `template`: the error alone, in the template of
    its kind. `teacher`: what one of the teachers that agreed would write in words.
    """
    writer = config.get("hint_writer", "agreed")
    if writer == "template":
        return write_hint(ErrorKind.EXIT_CODE, given.error_of(name, failed))
    return {"agreed": given.hint_of, "teacher": given.words_of}[writer](agreed)


def _pair(number: int, text: str, agreed: str, failed: str, votes: int) -> DPOPair:
    def side(answer: str) -> tuple[Message, ...]:
        call = ToolCall("call_0", "Bash", json.dumps({"command": given.command_of(answer)}))
        return (Message("assistant", "", (call,)),)

    return DPOPair(
        step_id=f"numbers-{number}:0:0",
        label_source="teachers",
        state_messages=(Message("user", text),),
        tools=(),
        chosen=side(agreed),
        rejected=side(failed),
        chosen_operation="edit",
        rejected_operation="edit",
        source="scripted",
        harness="claude_code",
        presentation="p1",
        student_model=None,
        student_family="unknown",
        n_teachers_agreeing=votes,
        simulated=True,
    )


class Examiner:
    """A count of how many answers to the tasks are right. The tests of a task judge each answer once."""

    def __init__(self, tasks: Path, names: Sequence[str], sandbox: SandboxName) -> None:
        self._environment = ClaudeCodeEnvironment(tasks, sandbox, level="terse")
        self._names = names
        self._known: dict[tuple[str, str], float] = {}

    def success(self, folder: Path, samples: int, seed: int) -> float:
        """Return the share of sampled answers of a model that solve their task."""
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        torch.manual_seed(seed)
        tokenizer: Any = AutoTokenizer.from_pretrained(folder)
        model: Any = AutoModelForCausalLM.from_pretrained(folder)
        solved = 0
        for name in self._names:
            asked = [{"role": "user", "content": self._environment.reset(name)}]
            text = tokenizer.apply_chat_template(asked, tokenize=False, add_generation_prompt=True)
            prompt = tokenizer(text, add_special_tokens=False, return_tensors="pt")["input_ids"]
            said = model.generate(
                prompt.repeat(samples, 1), do_sample=True, top_k=0, max_new_tokens=64, attention_mask=None
            )
            for ids in said:
                solved += self._reward(name, tokenizer.decode(ids[prompt.shape[1] :])) == 1.0
        return solved / (samples * len(self._names))

    def _reward(self, name: str, said: str) -> float:
        call = re.search(r"<tool_call>\n(\{.*\})\n</tool_call>", said)
        try:
            command = json.loads(call[1])["arguments"]["command"] if call else None
        except (ValueError, KeyError, TypeError):
            command = None
        if not isinstance(command, str):
            return 0.0
        if (name, command) not in self._known:
            self._environment.reset(name)
            self._environment.Bash(command)
            self._known[name, command] = self._environment.get_reward()
        return self._known[name, command]


def make_student(config: Mapping[str, Any], seed: int, folder: Path) -> None:
    """Make the tasks and the student of a seed, if they are not there."""
    from transformers import AutoTokenizer
    from trl.chat_template_utils import qwen3_template

    from benchmarks.composer.tool_calling_model import warm_start

    if (folder / "student" / "ready").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    given.make(folder, choose_sandbox(_sandbox_of(config)))
    episodes = given.episodes(900, config["warm_errors"], seed, hinted=0.3)
    warm_start(folder / "student", episodes, steps=config["warm_steps"], seed=seed)
    tokenizer: Any = AutoTokenizer.from_pretrained(folder / "student")
    tokenizer.response_template = qwen3_template
    tokenizer.save_pretrained(folder / "student")
    (folder / "student" / "ready").touch()


def run_seed(config: Mapping[str, Any], seed: int, out: Path) -> list[dict[str, Any]]:
    """Make a student, train it by every arm that has no result yet, and return all results."""
    folder = out / f"seed{seed}"
    tasks = folder / "tasks"
    make_student(config, seed, folder)
    examiner = Examiner(tasks, [path.name for path in sorted(tasks.iterdir())], _sandbox_of(config))
    start, results = None, []
    for arm in config["arms"]:
        name = arm["name"].replace(" ", "")
        place = folder / f"{name}.json"
        if not place.exists():
            labels = make_labels(folder / name, config, seed)
            if start is None:
                start = examiner.success(folder / "student", config["samples"], seed)
            result = {"seed": seed, "start": start, **_run_arm(config, arm, seed, folder, labels, examiner)}
            place.write_text(json.dumps(result), encoding="utf-8")
            print(f"seed {seed} {arm['name']}: success {start:.2f} to {result['success']:.2f}", flush=True)
        results.append(json.loads(place.read_text(encoding="utf-8")))
    return results


def _sandbox_of(config: Mapping[str, Any]) -> SandboxName:
    return config["training"]["composer"].get("sandbox", "auto")


def _run_arm(
    config: Mapping[str, Any],
    arm: Mapping[str, Any],
    seed: int,
    folder: Path,
    labels: Labels,
    examiner: Examiner,
) -> dict[str, Any]:
    weights = {key: arm[key] for key in ("alpha_sdpo", "beta_replay")}
    composer = {**config["training"]["composer"], **weights, "tasks": folder / "tasks"}
    if weights["alpha_sdpo"] and composer.get("composition") != "advantage":
        composer |= {"hints": labels.hints}
    settings = {
        **config["training"],
        "method": "composer",
        "model": str(folder / "student"),
        "output": folder / "trained" / arm["name"].replace(" ", ""),
        "device": "cpu",
        "gradient_checkpointing": False,
        "seed": seed,
        "composer": composer,
    }
    began = time.monotonic()
    job = TrainingJob(
        release=labels.release,
        settings=TrainingSettings.model_validate(settings),
        tracemill_version="benchmark",
    )
    made = run_training(job, lambda said: None)
    losses = made.report["losses"]
    last = losses[-max(1, len(losses) // 5) :]
    parts = {name: [each[f"loss/{name}"] for each in last if f"loss/{name}" in each] for name in COLUMNS}
    return {
        "arm": arm["name"],
        "success": examiner.success(made.path, config["samples"], seed),
        "reward": statistics.mean(each["reward"] for each in last),
        "losses": {name: statistics.mean(values) if values else None for name, values in parts.items()},
        "seconds": time.monotonic() - began,
        "teacher_usd": labels.usd if any(weights.values()) else 0.0,
        "steps": made.report["steps"],
    }


def table(results: Sequence[Mapping[str, Any]]) -> str:
    """Return the results as a table in Markdown: means over seeds, success with its least and most."""
    head = ["arm", "seeds", "before", "success", "reward", *COLUMNS, "seconds", "teacher USD"]
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for arm in dict.fromkeys(result["arm"] for result in results):
        of_arm = [result for result in results if result["arm"] == arm]

        def mean(key: str, rows: Sequence[Mapping[str, Any]] = of_arm) -> float:
            return statistics.mean(row[key] for row in rows)

        success = [row["success"] for row in of_arm]
        cells = [arm, str(len(of_arm)), f"{mean('start'):.2f}"]
        cells += [
            f"{mean('success'):.2f} ({min(success):.2f} to {max(success):.2f})",
            f"{mean('reward'):.2f}",
        ]
        for name in COLUMNS:
            values = [row["losses"][name] for row in of_arm]
            cells.append("off" if values[0] is None else f"{statistics.mean(values):.4f}")
        cells += [f"{mean('seconds'):.0f}", f"{mean('teacher_usd'):.4f}"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> int:
    """Run the arms of a configuration and print their table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.composer.arms", description=__doc__)
    parser.add_argument("config", type=Path)
    parser.add_argument("--out", type=Path, default=Path("composer-results"))
    parser.add_argument("--short", action="store_true", help="one seed, two steps")
    parser.add_argument("--seed", type=int, nargs="+", help="these seeds alone")
    parser.add_argument("--arm", nargs="+", help="these arms alone, or `none`")
    parser.add_argument("--sandbox", default="auto", help="where calls run; see docs/environments.md")
    arguments = parser.parse_args()
    config = tomllib.loads(arguments.config.read_text(encoding="utf-8"))
    config["training"]["composer"]["sandbox"] = arguments.sandbox
    if arguments.short:
        config |= {key: value for key, value in SHORT.items() if key != "steps"}
        config["training"]["max_steps"] = SHORT["steps"]
    if arguments.arm:
        config["arms"] = [arm for arm in config["arms"] if arm["name"].replace(" ", "") in arguments.arm]
    out = arguments.out.resolve()
    seeds = arguments.seed or config["seeds"]
    results = [result for seed in seeds for result in run_seed(config, seed, out)]
    if not (arguments.seed or arguments.arm):
        (out / "table.md").write_text(table(results) + "\n", encoding="utf-8")
        print(table(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
