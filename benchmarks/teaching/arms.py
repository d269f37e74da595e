"""The arms: what each of them trains on, and how.

Every arm but the untrained ones is a method of `tracemill train` on a release or on a variant of it. `truth`
knows the world; nothing else does.
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.teaching.formats import actions_of_messages, call_arguments
from benchmarks.teaching.policies import REGIMES, Session, replay
from benchmarks.teaching.variants import Row, message_row, read_config, weighted
from benchmarks.teaching.worlds.world import Action, World, draw
from tracemill.agreement.calls.arguments import fold_text


@dataclass(frozen=True)
class Material:
    """Input of the arms: the student's sessions and the release `tracemill run` made of them."""

    world: World
    sessions: Sequence[Session]
    release: Path
    regime: str

    def rows(self, config: str) -> list[Row]:
        """Return the rows of a config of the release."""
        return read_config(self.release, config)


@dataclass(frozen=True)
class Arm:
    """One arm of the experiment.

    `rows` makes its training rows, None for the release as it is; `config` is the format of those rows;
    `settings` are keys of `[training]` that differ between arms.
    """

    name: str
    says: str
    config: str = "sft"
    rows: Callable[[Material], list[Row]] | None = None
    settings: Mapping[str, Any] | None = None
    trained: bool = True
    taught: bool = True
    """Whether teachers have a part in it: what they have none in is the same in every regime."""


def state_of(world: World, row: Row) -> tuple[Any, int, int]:
    """Return the environment at the state of a row, its task, and how many actions came before."""
    text, actions = actions_of_messages(row["prompt"])
    task = int(text.split("#")[1].split()[0])
    return replay(world, task, actions), task, len(actions)


def action_of(row: Row, side: str = "completion") -> Action:
    """Return the action on a side of a row."""
    return actions_of_messages([message_row("user", ""), *row[side]])[1][0]


def as_message(action: Action) -> list[Row]:
    """Return an action as a side of a row."""
    if not action.tool:
        return [message_row("assistant", action.text)]
    function = {"name": action.tool, "arguments": json.loads(call_arguments(action))}
    call = {"id": "call_a", "type": "function", "function": function}
    return [message_row("assistant", "", tool_calls=[call])]


def is_right(world: World, row: Row, side: str = "completion") -> bool:
    """Return whether the action of a row is right by the world's truth."""
    return action_of(row, side) in world.right(state_of(world, row)[0])


def session_rows(world: World, sessions: Sequence[Session]) -> list[Row]:
    """Return a row for each step of sessions, with the student's action as its completion.

    A last turn without text or call is no step.
    """
    rows = []
    for session in sessions:
        prompt = [message_row("user", session.text)]
        for place, turn in enumerate(session.turns):
            if not (turn.action.tool or turn.action.text):
                continue
            done = as_message(turn.action)
            rows.append({"prompt": list(prompt), "completion": done, "tools": [], "weight": 1.0})
            result = message_row("tool", turn.result, tool_call_id="call_a", name=turn.action.tool)
            prompt += [*done, result] if place + 1 < len(session.turns) else done
    return rows


def _solved(material: Material) -> list[Row]:
    return session_rows(material.world, [each for each in material.sessions if each.reward])


def _solved_filtered(material: Material) -> list[Row]:
    """Return the steps of solved sessions, weighted by outcomes alone."""
    from benchmarks.teaching.outcome_filter import weigh_solved

    return weigh_solved(material.world, material.sessions, material.release.parents[2] / "filter")


def _truth(material: Material) -> list[Row]:
    return weighted(row for row in material.rows("sft") if is_right(material.world, row))


def _wrong_instead(material: Material, share: float) -> list[Row]:
    """Return the rows of `sft`, with a wrong action in a share of them."""
    rows = []
    for row in material.rows("sft"):
        env, task, place = state_of(material.world, row)
        rng = draw("flip", share, task, place)
        if rng.random() < share:
            flaw = material.world.flaw(env)
            wrong = [*material.world.slips(env), *([flaw] if flaw else [])]
            row = {**row, "completion": as_message(rng.choice(wrong))}
        rows.append(row)
    return weighted(rows)


def _replies(material: Material, names: Sequence[str]) -> list[tuple[Row, list[Action]]]:
    """Every asked step with what these teachers answered there."""
    teachers = [each for each in REGIMES[material.regime] if each.name in names]
    found = []
    for row in session_rows(material.world, material.sessions):
        env, task, place = state_of(material.world, row)
        key = (material.world.name, task, place)
        found.append((row, [each.action(material.world, env, key) for each in teachers]))
    return found


def _every_reply(material: Material) -> list[Row]:
    names = [each.name for each in REGIMES[material.regime]]
    return [
        {**row, "completion": as_message(action)}
        for row, actions in _replies(material, names)
        for action in actions
    ]


def _one_teacher(material: Material) -> list[Row]:
    return [{**row, "completion": as_message(actions[0])} for row, actions in _replies(material, ["birch"])]


def _folded(material: Material) -> list[Row]:
    """Return actions that two teachers gave in the same text, whitespace folded, at any step."""
    names = [each.name for each in REGIMES[material.regime]]
    rows = []
    for row, actions in _replies(material, names):
        texts = [fold_text(f"{each.tool} {call_arguments(each)} {each.text}") for each in actions]
        text, votes = Counter(texts).most_common(1)[0]
        if votes >= 2:
            rows.append({**row, "completion": as_message(actions[texts.index(text)])})
    return rows


def disagreements(material: Material) -> list[tuple[Row, Row]]:
    """Return the steps at which teachers agreed on another action than the student's.

    A step is its row of `agreed`, and that of the student's own session (`session_rows`).
    """
    own = {}
    for row in session_rows(material.world, material.sessions):
        text, actions = actions_of_messages(row["prompt"])
        own[text, tuple(actions)] = row
    found = []
    for row in material.rows("agreed"):
        text, actions = actions_of_messages(row["prompt"])
        done = own.get((text, tuple(actions)))
        if not row["same_as_student"] and done is not None:
            found.append((row, done))
    return found


def _all_pairs(material: Material) -> list[Row]:
    """Return a pair for every step at which teachers agreed on another action than the student's."""
    return [
        {**row, "chosen": row["completion"], "rejected": done["completion"]}
        for row, done in disagreements(material)
    ]


def _random_pairs(material: Material) -> list[Row]:
    pairs = []
    for number, row in enumerate(_all_pairs(material)):
        sides = [row["chosen"], row["rejected"]]
        draw("sides", number).shuffle(sides)
        pairs.append({**row, "chosen": sides[0], "rejected": sides[1]})
    return pairs


def _only(source: str) -> Callable[[Material], list[Row]]:
    return lambda material: weighted(row for row in material.rows("sft") if row["label_source"] == source)


_DPO, _NLL = {"method": "dpo", "nll_weight": 0.0}, {"method": "dpo", "nll_weight": 1.0}
ARMS: dict[str, Arm] = {
    arm.name: arm
    for arm in (
        Arm("start", "the student, untrained", trained=False, taught=False),
        Arm("cooler", "the student, untrained, at temperature 0.5", trained=False, taught=False),
        Arm("solved", "SFT on its own solved sessions, no teacher", rows=_solved, taught=False),
        Arm("solved_filtered", "the same, weighted by outcomes", rows=_solved_filtered, taught=False),
        Arm("default", "the default release and method"),
        Arm("unweighted", "the same without weights", settings={"use_weights": False}),
        Arm("agreed", "SFT on `agreed`, without weights", rows=lambda m: weighted(m.rows("agreed"))),
        Arm("truth", "SFT on the rows of `sft` that are right", rows=_truth),
        Arm("every_reply", "SFT on every reply of every teacher", rows=_every_reply),
        Arm("one_teacher", "SFT on every reply of one teacher", rows=_one_teacher),
        Arm("folded", "SFT on what two teachers said alike as text", rows=_folded),
        Arm("hindsight", "SFT on `hindsight` alone", rows=_only("hindsight")),
        Arm("flip_10", "SFT on `sft`, 10 % of actions wrong", rows=lambda m: _wrong_instead(m, 0.1)),
        Arm("flip_20", "SFT on `sft`, 20 % of actions wrong", rows=lambda m: _wrong_instead(m, 0.2)),
        Arm("flip_40", "SFT on `sft`, 40 % of actions wrong", rows=lambda m: _wrong_instead(m, 0.4)),
        Arm("random", "SFT on `sft`, half of the actions wrong", rows=lambda m: _wrong_instead(m, 0.5)),
        Arm("dpo", "DPO on the default release", "dpo", settings=_DPO),
        Arm("dpo_nll", "DPO and NLL on the default release", "dpo", settings=_NLL),
        Arm("dpo_all", "DPO on all pairs", "dpo", _all_pairs, _DPO),
        Arm("dpo_nll_all", "DPO and NLL on all pairs", "dpo", _all_pairs, _NLL),
        Arm("dpo_random", "DPO and NLL on all pairs, sides at random", "dpo", _random_pairs, _NLL),
    )
}
SHORT = ("start", "solved", "default", "truth", "random")
"""The arms of the short form, and of the larger student."""
REGIME_ARMS = ("start", "solved", "solved_filtered", "default", "unweighted", "truth", "folded")
"""The arms that are run in every regime."""
