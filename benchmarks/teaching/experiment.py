"""One cell of the experiment: a world, a student, a regime, an arm; stored as it ends, never done twice."""

import functools
import json
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

import torch

import tracemill
from benchmarks.teaching.arms import ARMS, Arm, Material, is_right
from benchmarks.teaching.formats import write_sessions
from benchmarks.teaching.policies import Session, Turn, weak_session
from benchmarks.teaching.student import SMALL, Size, Student, action_text, practise, session_text, success
from benchmarks.teaching.tracemill_runs import make_release, train
from benchmarks.teaching.variants import write_variant
from benchmarks.teaching.worlds.registry import WORLDS
from benchmarks.teaching.worlds.world import Action, World, act

SESSIONS, TEST_TASKS, VALIDATION_TASKS, PROBES = 300, 200, 150, 200
SAMPLES = 2
TEST_FROM, VALIDATION_FROM = 5_000_000, 6_000_000
SHARED: Mapping[str, Any] = {
    "max_steps": 100,
    "batch": 32,
    "accumulate": 1,
    "max_length": 512,
    "device": "cpu",
    "gradient_checkpointing": False,
    "save_steps": 10_000,
}
"""Settings of all trained arms: as many gradient steps, of as many rows each."""
RATES: Mapping[str, tuple[float, ...]] = {
    "sft": (3e-4, 1e-3, 3e-3),
    "dpo": (3e-5, 1e-4, 3e-4),
}
"""Learning rates of the sweep; the middle one where no sweep was made."""


@dataclass(frozen=True)
class Cell:
    """World, student and seed that an arm is run with."""

    world: str
    seed: int
    regime: str = "independent"
    size: Size = SMALL

    def student_folder(self, out: Path) -> Path:
        """Folder of the student and of its sessions, the same for all regimes."""
        return out / "work" / self.world / self.size.name / f"seed{self.seed}"

    def result(self, out: Path, arm: str) -> Path:
        """File of an arm's result."""
        return out / "results" / self.world / self.size.name / self.regime / arm / f"seed{self.seed}.json"


@functools.cache
def source_digest() -> str:
    """Return a digest of the product's and this benchmark's source: results of another one may be others."""
    folders = [Path(__file__).parent, *(each.resolve() for each in Path(tracemill.__file__).parent.iterdir())]
    digest = blake2b(digest_size=6)
    for folder in sorted({each for each in folders if each.is_dir()}):
        for path in sorted(folder.rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()


def prepare(cell: Cell, out: Path) -> Material:
    """Return what the arms of a cell are made of: student, sessions and release, each made once."""
    world, folder = WORLDS[cell.world], cell.student_folder(out)
    practise(world, folder / "student", cell.size, cell.seed)
    stored = folder / "sessions.json"
    if not stored.exists():
        first = 10_000 * (cell.seed + 1)
        played = Student(folder / "student").play(world, range(first, first + SESSIONS), cell.seed)
        write_sessions(world, played, folder / "sessions")
        stored.write_text(json.dumps([asdict(session) for session in played]), encoding="utf-8")
    sessions = [_session(value) for value in json.loads(stored.read_text(encoding="utf-8"))]
    release = make_release(world, folder / "sessions", cell.regime, folder / cell.regime)
    return Material(world, sessions, release, cell.regime)


def _session(value: Mapping[str, Any]) -> Session:
    turns = [
        Turn(
            Action(
                turn["action"]["tool"],
                tuple((key, text) for key, text in turn["action"]["arguments"]),
                turn["action"]["text"],
            ),
            turn["result"],
            turn["failed"],
        )
        for turn in value["turns"]
    ]
    return Session(value["task"], value["text"], turns, value["reward"], value["sample"])


def run_arm(cell: Cell, name: str, out: Path, rate: float | None = None) -> dict[str, Any]:
    """Run an arm where it has not been run, and return its result."""
    arm = ARMS[name]
    cell = cell if arm.taught else replace(cell, regime="independent")
    path = cell.result(out, name)
    if path.exists():
        return json.loads(path.read_text(encoding="utf-8"))
    torch.set_num_threads(1)
    material, began = prepare(cell, out), time.monotonic()
    chosen = rate or chosen_rate(cell, arm, out)
    checkpoint, rows = _checkpoint(cell, arm, material, out, chosen)
    if checkpoint is None:
        result: dict[str, Any] = {"rows": 0, "note": "nothing to train on"}
    else:
        temperature = 0.5 if name == "cooler" else 1.0
        result = measure(material.world, checkpoint, cell.seed, TEST_FROM, TEST_TASKS, temperature)
    result |= {"arm": name, "world": cell.world, "seed": cell.seed, "regime": cell.regime}
    result |= {"size": cell.size.name, "rows": rows, "rate": chosen if arm.trained else None}
    result |= {"source": source_digest()}
    result |= {"seconds": round(time.monotonic() - began, 1), **cost_of(material)}
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(result), encoding="utf-8")
    temporary.replace(path)
    return result


def _checkpoint(cell: Cell, arm: Arm, material: Material, out: Path, rate: float) -> tuple[Path | None, int]:
    """Return the checkpoint of an arm and its training rows; None if it has no rows."""
    folder = cell.student_folder(out)
    if not arm.trained:
        return folder / "student", 0
    release = material.release
    rows = material.rows(arm.config) if arm.rows is None else arm.rows(material)
    if not rows:
        return None, 0
    if arm.rows is not None:
        release = write_variant(release, folder / cell.regime / "variants" / arm.name, arm.config, rows)
    settings = {**SHARED, **(arm.settings or {}), "learning_rate": rate, "seed": cell.seed}
    output = folder / cell.regime / "checkpoints" / f"{arm.name}-{rate:g}"
    return train(release, folder / "student", output, settings), len(rows)


def chosen_rate(cell: Cell, arm: Arm, out: Path) -> float:
    """Return the learning rate of an arm in a world: that of the sweep, or the middle one without one."""
    sweep = out / "sweeps" / f"{cell.world}-{arm.name}.json"
    if sweep.exists():
        return float(json.loads(sweep.read_text(encoding="utf-8"))["chosen"])
    return RATES[_method(arm)][1]


def sweep_rates(cell: Cell, name: str, out: Path) -> float:
    """Try the learning rates of an arm on validation tasks of one seed; store and return the best."""
    path, arm = out / "sweeps" / f"{cell.world}-{name}.json", ARMS[name]
    if not path.exists() and arm.trained:
        torch.set_num_threads(1)
        material, found = prepare(cell, out), dict[str, float]()
        for rate in RATES[_method(arm)]:
            checkpoint, _ = _checkpoint(cell, arm, material, out, rate)
            if checkpoint is not None:
                scores = measure(material.world, checkpoint, cell.seed, VALIDATION_FROM, VALIDATION_TASKS)
                found[f"{rate:g}"] = scores["success"]
        best = max(found, key=lambda rate: found[rate]) if found else f"{RATES[_method(arm)][1]:g}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"found": found, "chosen": float(best)}), encoding="utf-8")
    return chosen_rate(cell, arm, out)


def _method(arm: Arm) -> str:
    return "dpo" if arm.config == "dpo" else "sft"


def measure(
    world: World, checkpoint: Path, seed: int, first: int, tasks: int, temperature: float = 1.0
) -> dict[str, Any]:
    """Return success over all plays, solved plays of each task as digits, and the mean probe margin."""
    student = Student(checkpoint)
    played = student.play(world, range(first, first + tasks), seed, temperature, SAMPLES)
    solved = Counter({session.task: 0 for session in played})
    solved.update(session.task for session in played if session.reward)
    digits = "".join(str(count) for _, count in sorted(solved.items()))
    return {
        "success": success(played),
        "solved": digits,
        "samples": SAMPLES,
        "margin": margin(world, student),
    }


def margin(world: World, student: Student) -> float:
    """Return by how many nats the right action is likelier than the student's flaw.

    It is the mean over states of the weak policy in which it has a flaw.
    """
    prompts: list[str] = []
    right: list[str] = []
    wrong: list[str] = []
    task = TEST_FROM + 100_000
    while len(prompts) < PROBES:
        session, env = weak_session(world, task), world.environment()
        env.reset(task=task)
        for place, turn in enumerate(session.turns):
            flaw = world.flaw(env)
            if flaw is not None:
                prompts.append(f"{session_text(session, place)} <agent>")
                right.append(action_text(world.right(env)[0]))
                wrong.append(action_text(flaw))
            act(env, turn.action)
        task += 1
    prompts, right, wrong = prompts[:PROBES], right[:PROBES], wrong[:PROBES]
    ours, theirs = student.log_probability(prompts, right), student.log_probability(prompts, wrong)
    return sum(one - other for one, other in zip(ours, theirs, strict=True)) / len(prompts)


def cost_of(material: Material) -> dict[str, Any]:
    """Return what the labels of the release cost, at the list prices of its teachers."""
    record = json.loads((material.release.parents[3] / "release.json").read_text())["record"]
    summary = record["summary"]
    return {"usd": summary["spent_usd"], "calls": summary["calls"], "warnings": record["release"]["warnings"]}


def label_figures(material: Material) -> dict[str, float]:
    """Return how many labels of the release are right, and how many of the right ones it holds."""
    rows = material.rows("sft")
    right = [is_right(material.world, row) for row in rows]
    weight = sum(row["weight"] for row in rows)
    kept = sum(row["weight"] for row, ok in zip(rows, right, strict=True) if ok)
    return {"rows": len(rows), "right": sum(right) / len(rows), "right_by_weight": kept / weight}
