"""Measure whether a step scorer as a feature of the gate moves the cost of the correct pairs.

    python -m benchmarks.gate_scorer TABLE... [--seeds 3] [--out FOLDER]

A scorer (`method = "prm"`) begins at random, small enough for a CPU, and learns from the pairs that draws of
students and teachers make on the tune half of a table's tasks, a fifth of them held out to calibrate. The
gate then runs on the other half, from a cold start, without and with the scorer's word. Measured is the share
of the USD of tiered asking at which 90 % of the correct pairs are found, by the mean curve of the draws.
"""

# pyright: reportMissingImports=false

import argparse
import json
import random
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.gate_prior import DRAWS, FEWEST_GOOD, MOST, measured
from tracemill.data_cards.model.release_spec import ReleaseSpec
from tracemill.data_cards.writing.write_release import Release, write_release
from tracemill.evaluate.gate.gate_pass import StepSelection
from tracemill.evaluate.gate.gate_step import GateStep, build_gate_steps
from tracemill.evaluate.gate.step_facts import read_step_facts
from tracemill.evaluate.table.draw_steps import DrawStepBuilder
from tracemill.evaluate.table.recorded_states import StateTable, TableState, is_tuning, read_table
from tracemill.evaluate.table.rules import VOTERS, product_label_rule
from tracemill.evaluate.table.student_draws import (
    StudentDraw,
    TableVotes,
    draw_students,
    may_be_asked,
    student_draw_prices,
)
from tracemill.flows.labeling.action_scores import scorer_word, training_messages
from tracemill.records.message import Action
from tracemill.records.pair import DPOPair, NormalizedDPOPair
from tracemill.teachers.gate.features import GateStepFeatures
from tracemill.teachers.gate.pair_model import PairPrior
from tracemill.teachers.offline.recorded_table import RecordedState, iter_recorded_table
from tracemill.train.prm.calibration import area_under_curve

RULE = product_label_rule(VOTERS[0])
HELD_OUT = 0.2
NO_PRIOR = PairPrior("none", -1.7)
SETTINGS = {
    "method": "prm",
    "learning_rate": 1e-3,
    "batch": 16,
    "accumulate": 1,
    "epochs": 6,
    "max_length": 1024,
    "eval_steps": 100000,
    "save_steps": 100000,
    "gradient_checkpointing": False,
    "device": "cpu",
}
TEMPLATE = (
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}"
    "{% for c in m.tool_calls or [] %}<call>{{ c.function.name }} {{ c.function.arguments | tojson }}</call>"
    "{% endfor %}<|end|>{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)

Done = Mapping[tuple[int, str], Action]
"""What each model did, by state number."""


@dataclass(frozen=True)
class Recorded:
    """A table with its actions, the facts of its steps, and draws of students and teachers."""

    table: StateTable
    done: Done
    facts: Mapping[tuple[int, str], GateStepFeatures]
    draws: Sequence[StudentDraw]

    @classmethod
    def read(cls, path: Path) -> "Recorded":
        """Read a table at prices that spread from cheap to expensive; its draws as the prior's are."""
        table = read_table(path, None, {}, lambda _=1: None)
        table = read_table(path, None, student_draw_prices(table), lambda _=1: None)
        numbers = {state.state_id: state.number for state in table.states}
        done = {
            (numbers[row.state_id], model): answer.action
            for row in iter_recorded_table(path)
            if isinstance(row, RecordedState) and row.state_id in numbers
            for model, answer in row.answers.items()
        }
        draws = [d for d in draw_students(table, DRAWS, 0)[0] if may_be_asked(table, d, RULE.policy)]
        random.Random(0).shuffle(draws)
        taken = [d for side in (True, False) for d in [d for d in draws if d.stronger == side][:MOST]]
        return cls(table, done, read_step_facts(path, table), taken)


def pairs_of(recorded: Recorded) -> Iterator[NormalizedDPOPair]:
    """Yield each pair of the draws on the tune half once; the task is its session."""
    poll, seen = TableVotes(recorded.table), set[tuple[int, Action, Action]]()
    for draw in recorded.draws:
        for found in poll.pairs(draw, RULE):
            number, task = found.state.number, found.state.task
            chosen, rejected = (recorded.done[number, name] for name in (found.chosen, draw.student))
            if not is_tuning(task) or (number, chosen, rejected) in seen:
                continue
            seen.add((number, chosen, rejected))
            pair = DPOPair(
                step_id=f"{task}:0:{len(seen)}",
                label_source="teachers",
                state_messages=found.state.messages,
                tools=found.state.tools,
                chosen=(chosen.to_message(),),
                rejected=(rejected.to_message(),),
                chosen_operation=found.operations[0],
                rejected_operation=found.operations[1],
                source="table",
                harness=found.state.harness,
                presentation="p1",
                student_model=draw.student,
                student_family="unknown",
                n_teachers_agreeing=2,
                simulated=False,
            )
            yield NormalizedDPOPair(pair, "", "", "none", "")


def row_of(state: TableState, action: Action) -> dict[str, Any]:
    """Return an action in its state as a scorer reads it."""
    return {
        "prompt": training_messages(state.messages),
        "completion": training_messages([action.to_message()]),
        "tools": [tool.to_wire() for tool in state.tools],
    }


def small_model(recorded: Recorded, folder: Path, seed: int) -> None:
    """Write a model of about half a million weights at random, with a tokenizer of the tune half's words."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

    words = Tokenizer(models.BPE(unk_token=None))
    words.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    words.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=4000,
        special_tokens=["<|end|>", "<pad>", "<|user|>", "<|assistant|>", "<|system|>", "<|tool|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    texts = (
        json.dumps(row_of(state, recorded.done[state.number, model])["completion"])
        + state.messages[-1].content
        for state in recorded.table.states
        if is_tuning(state.task)
        for model in state.acted
    )
    words.train_from_iterator(texts, trainer)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, eos_token="<|end|>", pad_token="<pad>")
    tokenizer.chat_template = TEMPLATE
    torch.manual_seed(seed)
    config = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=96,
        intermediate_size=192,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=4,
        initializer_range=0.06,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    Qwen2ForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def train_scorer(recorded: Recorded, folder: Path, seed: int) -> tuple[Path, dict[str, Any]]:
    """Train a scorer on the tune half; return its folder and what came of it."""
    from tracemill.train.start_child import run_training
    from tracemill.train.training_job import TrainingJob, TrainingRelease
    from tracemill.train.training_settings import TrainingSettings

    pairs = list(pairs_of(recorded))
    tasks = sorted({pair.pair.step_id.partition(":")[0] for pair in pairs})
    held = set(random.Random(seed).sample(tasks, round(HELD_OUT * len(tasks))))
    made = write_release(
        ReleaseSpec(name="table", redaction="none"),
        pairs,
        [],
        folder / "releases",
        split_of=lambda trace: "validation" if trace in held else "train",
    )
    assert isinstance(made, Release)
    small_model(recorded, folder / "model", seed)
    settings = TrainingSettings.model_validate(
        {**SETTINGS, "model": str(folder / "model"), "output": folder / "trained", "seed": seed}
    )
    release = TrainingRelease(
        name="table", version=made.version, digest=made.content_fingerprint, path=made.path
    )
    trained = run_training(
        TrainingJob(release=release, settings=settings, tracemill_version="benchmark"), lambda said: None
    )
    return trained.path, {**trained.report["calibration"], "pairs": len(pairs)}


def with_words(recorded: Recorded, folder: Path) -> dict[tuple[int, str], GateStepFeatures]:
    """Return the facts of the other half's steps with the scorer's word, as a run makes it."""
    from tracemill.train.prm.step_scorer import StepScorer

    asked = [state for state in recorded.table.states if not is_tuning(state.task)]
    places = [(state, model) for state in asked for model in state.acted]
    rows = [row_of(state, recorded.done[state.number, model]) for state, model in places]
    scores = StepScorer(folder, batch=64).score_what_renders(rows)
    return {
        (state.number, model): replace(
            recorded.facts[state.number, model],
            words=(*recorded.facts[state.number, model].words, scorer_word("x", score)),
        )
        for (state, model), score in zip(places, scores, strict=True)
    }


def steps_of(
    recorded: Recorded, facts: Mapping[tuple[int, str], GateStepFeatures], strong: bool
) -> list[list[GateStep]]:
    """Return the steps of each draw on the other half, of draws with enough correct pairs there."""
    asker = DrawStepBuilder(TableVotes(recorded.table), RULE)
    found = []
    for draw in recorded.draws:
        if draw.stronger == strong:
            some = [step for step in asker.steps(draw) if not is_tuning(step.task)]
            found.append(build_gate_steps(some, facts, recorded.table.rewarded))
    return [steps for steps in found if sum(step.good for step in steps) >= FEWEST_GOOD]


def tells(draws: Sequence[Sequence[GateStep]]) -> float:
    """Return how well the word alone tells steps without a pair from those with one, over all draws."""
    every = [step for steps in draws for step in steps]
    known = [(step.facts.words[-1].rpartition("*")[2], not step.tiered_pair) for step in every]
    return area_under_curve(*zip(*[(int(t), label) for t, label in known if t != "none"], strict=True))


def measure(recorded: Recorded, seed: int, out: Path, say: Callable[[str], None]) -> list[dict[str, Any]]:
    """Train a scorer on a table and run the gate without and with it."""
    trained, training = train_scorer(recorded, out, seed)
    say(f"{recorded.table.name} seed {seed}: {json.dumps(training)}")
    scored, found = with_words(recorded, trained), []
    for strong in (True, False) if recorded.table.rewarded else (False,):
        plain, helped = steps_of(recorded, recorded.facts, strong), steps_of(recorded, scored, strong)
        if not plain:
            continue
        result: dict[str, Any] = {
            "table": recorded.table.name.partition(".")[0],
            "teachers": "stronger" if strong else "other",
            "seed": seed,
            "draws": len(plain),
            "training": training,
            "tells": tells(helped),
            "random": measured(plain, StepSelection("random")),
            "oracle": measured(plain, None),
        }
        for name, mode in (("prior", StepSelection()), ("none", StepSelection(prior=NO_PRIOR))):
            result[name] = measured(plain, mode)
            result[f"{name} + scorer"] = measured(helped, mode)
        say(json.dumps(result))
        found.append(result)
    return found


def table(results: Sequence[Mapping[str, Any]]) -> str:
    """Return means over seeds, with the least and the most where they differ."""
    ways = ("random", "none", "none + scorer", "prior", "prior + scorer", "oracle")
    lines = [f"| table, teachers | draws | pairs | AUC on validation | AUC on steps | {' | '.join(ways)} |"]
    lines.append("|---|" + "---|" * (4 + len(ways)))

    def spread(values: Sequence[float]) -> str:
        middle = f"{statistics.fmean(values):.2f}"
        return middle if min(values) == max(values) else f"{middle} ({min(values):.2f} to {max(values):.2f})"

    for place in dict.fromkeys((row["table"], row["teachers"]) for row in results):
        rows = [row for row in results if (row["table"], row["teachers"]) == place]
        cells = [f"`{place[0]}`, {place[1]}", str(rows[0]["draws"]), str(rows[0]["training"]["pairs"])]
        cells += [spread([row["training"]["auc"] for row in rows]), spread([row["tells"] for row in rows])]
        cells += [spread([row[way] for row in rows]) for way in ways]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> int:
    """Measure every table and print the figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gate_scorer", description=__doc__)
    parser.add_argument("tables", type=Path, nargs="+")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("gate-scorer-results"))
    given = parser.parse_args()

    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    results = []
    for path in given.tables:
        recorded = Recorded.read(path)
        for seed in range(given.seeds):
            results += measure(recorded, seed, (given.out / path.name / f"seed{seed}").resolve(), say)
    print(table(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
