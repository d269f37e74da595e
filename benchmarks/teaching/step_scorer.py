"""Measure a step scorer (`method = "prm"`) on projects that it has not seen, beside the operation alone.

    python -m benchmarks.teaching.step_scorer [--worlds repair ...] [--seeds 3] [--out FOLDER]

A student practises and plays; three scripted teachers with independent errors say what they would have done
at each of its steps. Where two agree on another action, that is a pair. The pairs of some projects are held
out: those whose tasks name modules, columns or services together that no other task does. The scorer begins
with the student's weights. Measured is how well a score tells right actions of the student from wrong ones,
by the world's truth: the area under the curve over all steps of projects held out. The baseline is the share
of chosen sides among the training pairs of an operation. Half of the projects held out calibrate, the other
half are measured.
"""

import argparse
import json
import multiprocessing
import statistics
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.teaching.arms import as_message, session_rows
from benchmarks.teaching.policies import REGIMES, Session, replay
from benchmarks.teaching.worlds.registry import WORLDS
from benchmarks.teaching.worlds.world import Action, World, draw
from tracemill.data_cards.model.release_spec import ReleaseSpec
from tracemill.data_cards.writing.write_release import Release, write_release
from tracemill.records.message import Message, ToolCall
from tracemill.records.pair import DPOPair, NormalizedDPOPair
from tracemill.train.prm.calibration import area_under_curve, expected_calibration_error

SESSIONS = 800
HELD_OUT = 0.4
"""Share of projects held out."""
VOTES = 2
SETTINGS = {
    "method": "prm",
    "learning_rate": 1e-3,
    "batch": 16,
    "accumulate": 1,
    "epochs": 6,
    "max_length": 512,
    "eval_steps": 1000,
    "save_steps": 100000,
    "gradient_checkpointing": False,
    "device": "cpu",
}


@dataclass(frozen=True)
class Step:
    """A step of the student, what the teachers agree on there, and whether the student was right."""

    project: str
    row: dict[str, Any]
    done: Action
    agreed: Action | None
    right: bool
    name: str


def project_of(text: str) -> str:
    """Return the words of a task that are no numbers."""
    return " ".join(sorted({word for word in text.split() if not word.lstrip("#").isdigit()}))


def operation_of(action: Action) -> str:
    """Return tool and, where it has one, the kind of command."""
    given = dict(action.arguments).get("command", "")
    return f"{action.tool or 'text'} {given.split()[0] if given else ''}"


def steps_of(world: World, sessions: Sequence[Session]) -> list[Step]:
    """Ask the teachers at every step of sessions."""
    found = []
    for session in sessions:
        rows = session_rows(world, [session])
        turns = [turn for turn in session.turns if turn.action.tool or turn.action.text]
        for place, (row, turn) in enumerate(zip(rows, turns, strict=True)):
            env = replay(world, session.task, [each.action for each in turns[:place]])
            key = ("prm", session.task, place)
            answers = Counter(teacher.action(world, env, key) for teacher in REGIMES["independent"])
            [(action, votes)] = answers.most_common(1)
            agreed = action if votes >= VOTES else None
            right = turn.action in world.right(env)
            name = f"{world.name}-{session.task}:0:{place}"
            found.append(Step(project_of(session.text), row, turn.action, agreed, right, name))
    return found


def message_of(action: Action) -> tuple[Message, ...]:
    """Return an action as a side of a pair."""
    [row] = as_message(action)
    calls = [
        ToolCall(call["id"], call["function"]["name"], json.dumps(call["function"]["arguments"]))
        for call in row["tool_calls"] or []
    ]
    return (Message("assistant", row["content"], tuple(calls)),)


def pairs_of(steps: Sequence[Step]) -> Iterator[NormalizedDPOPair]:
    """Yield a pair of each step where the teachers agree on another action."""
    for step in steps:
        if step.agreed is None or step.agreed == step.done:
            continue
        state = tuple(
            Message(
                each["role"],
                each["content"],
                tuple(
                    ToolCall(call["id"], call["function"]["name"], json.dumps(call["function"]["arguments"]))
                    for call in each["tool_calls"] or []
                ),
                each["tool_call_id"],
                each["name"],
            )
            for each in step.row["prompt"]
        )
        pair = DPOPair(
            step_id=step.name,
            label_source="teachers",
            state_messages=state,
            tools=(),
            chosen=message_of(step.agreed),
            rejected=message_of(step.done),
            chosen_operation="edit",
            rejected_operation="edit",
            source="scripted",
            harness="openhands",
            presentation="p1",
            student_model=None,
            student_family="unknown",
            n_teachers_agreeing=VOTES,
            simulated=True,
        )
        yield NormalizedDPOPair(pair, "", "", "none", "")


def run(world_name: str, seed: int, out: Path) -> dict[str, Any]:
    """Make a student and its labels, train a scorer, and measure it."""
    import torch

    from benchmarks.teaching.student import SMALL, Student, practise
    from tracemill.train.prm.step_scorer import StepScorer
    from tracemill.train.start_child import run_training
    from tracemill.train.training_job import TrainingJob, TrainingRelease
    from tracemill.train.training_settings import TrainingSettings

    torch.set_num_threads(1)
    world, folder = WORLDS[world_name], out / world_name / f"seed{seed}"
    practise(world, folder / "student", SMALL, seed)
    first = 10_000 * (seed + 1)
    played = Student(folder / "student").play(world, range(first, first + SESSIONS), seed)
    steps = steps_of(world, played)
    projects = sorted({step.project for step in steps})
    held = draw("projects", world_name, seed).sample(projects, max(2, round(HELD_OUT * len(projects))))
    calibrating, measured = set(held[::2]), set(held[1::2])
    training = [step for step in steps if step.project not in held]
    validation = [step for step in steps if step.project in calibrating]
    held_ids = {step.name.partition(":")[0] for step in validation}
    made = write_release(
        ReleaseSpec(name="prm", redaction="none"),
        pairs_of([*training, *validation]),
        [],
        folder / "releases",
        split_of=lambda trace: "validation" if trace in held_ids else "train",
    )
    assert isinstance(made, Release)
    digest = made.content_fingerprint
    release = TrainingRelease(name="prm", version=made.version, digest=digest, path=made.path)
    settings = TrainingSettings.model_validate(
        {**SETTINGS, "model": str(folder / "student"), "output": folder / "trained", "seed": seed}
    )
    job = TrainingJob(release=release, settings=settings, tracemill_version="benchmark")
    trained = run_training(job, lambda said: None)
    test = [step for step in steps if step.project in measured]
    labels = [step.right for step in test]
    scores = StepScorer(trained.path, batch=64).score([step.row for step in test])
    chosen = Counter(
        operation_of(step.agreed) for step in training if step.agreed not in (None, step.done) and step.agreed
    )
    rejected = Counter(operation_of(step.done) for step in training if step.agreed not in (None, step.done))
    known = {name: (chosen[name] + 1) / (chosen[name] + rejected[name] + 2) for name in chosen | rejected}
    baseline = [known.get(operation_of(step.done), 0.5) for step in test]
    return {
        "world": world_name,
        "seed": seed,
        "pairs": sum(chosen.values()),
        "projects": len(projects),
        "steps": len(test),
        "right": statistics.fmean(labels),
        "auc": area_under_curve(scores, labels),
        "baseline": area_under_curve(baseline, labels),
        "ece": expected_calibration_error(scores, labels),
        "calibration": trained.report["calibration"],
    }


def table(results: Sequence[dict[str, Any]]) -> str:
    """Return means over seeds, with the least and the most, by world."""
    lines = ["| world | seeds | projects | pairs | steps measured | right | operation alone | step scorer |"]
    lines.append("|---|" + "---|" * 7)

    def spread(rows: Sequence[dict[str, Any]], key: str) -> str:
        values = [row[key] for row in rows]
        return f"{statistics.fmean(values):.3f} ({min(values):.3f} to {max(values):.3f})"

    for world in dict.fromkeys(result["world"] for result in results):
        rows = [result for result in results if result["world"] == world]
        counts = (
            f"{statistics.fmean(row[key] for row in rows):,.0f}" for key in ("projects", "pairs", "steps")
        )
        right = f"{statistics.fmean(row['right'] for row in rows):.2f}"
        areas = (spread(rows, "baseline"), spread(rows, "auc"))
        lines.append(f"| {' | '.join((f'`{world}`', str(len(rows)), *counts, right, *areas))} |")
    return "\n".join(lines)


def _stored(given: tuple[str, int, Path]) -> dict[str, Any]:
    world, seed, out = given
    path = out / world / f"seed{seed}.json"
    if not path.exists():
        result = run(world, seed, out)
        path.write_text(json.dumps(result), encoding="utf-8")
        print(json.dumps(result), file=sys.stderr, flush=True)
    return json.loads(path.read_text(encoding="utf-8"))


def main() -> int:
    """Run what has no result yet and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.teaching.step_scorer", description=__doc__)
    parser.add_argument("--worlds", nargs="+", choices=[*WORLDS], default=[*WORLDS])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("prm-results"))
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    tasks = [
        (world, seed, options.out.resolve()) for world in options.worlds for seed in range(options.seeds)
    ]
    with multiprocessing.get_context("spawn").Pool(options.processes, maxtasksperchild=1) as pool:
        results = pool.map(_stored, tasks, chunksize=1)
    print(table(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
