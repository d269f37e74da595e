"""Draw pairs of near actions, to be judged by hand without knowing what the ladder says of them.

    TRACEMILL_REAL_TRACES=FOLDER python benchmarks/near_actions.py PAIRS KEY [--tables TABLE ...] [--seed 0]
        [--first 1] [--last 5] [--same 90] [--intent 60] [--without PAIRS ...]

Near are two actions that are written otherwise and that the ladder calls one effect, or one intent alone: of
one context of a recorded session, `--first` to `--last` steps apart, or of two models in one state of a
table. Both are put on the ladder in the world of the earlier one, as a teacher's and the agent's action are.
A text without a call is left out. As many are drawn of each source as there are, round by round. PAIRS has
them in a drawn order, KEY what the ladder says, with the rewards of a table; `--without` leaves out pairs
that were read before.
"""

import argparse
import json
import os
import random
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

from tracemill.agreement.equivalence.ladder import ActionKeys, ladder_keys
from tracemill.agreement.world.replay_context import environment_at, replay_context
from tracemill.agreement.world.world_state import EnvironmentState
from tracemill.evaluate.table.recorded_states import (
    recorded_state_calls,
    recorded_state_harness,
    recorded_state_world,
)
from tracemill.harnesses.presentation import present_all
from tracemill.ingesters.discover import discover
from tracemill.ingesters.read_source import ingest_source
from tracemill.records.message import Action
from tracemill.records.trace import Trace
from tracemill.teachers.offline.recorded_table import RecordedState, iter_recorded_table

Pair = dict[str, Any]


def near_pair(one: tuple[Action, ActionKeys], other: tuple[Action, ActionKeys]) -> Pair | None:
    """Return two actions as they are told, with the ladder's verdict; None if they are not near."""
    keys, others = one[1], other[1]
    if keys.bare or others.bare or keys.intent != others.intent or keys.exact == others.exact:
        return None
    verdict = "same effect" if keys.effect == others.effect else "same intent"
    return {"verdict": verdict, "class": keys.action_class, "first": told(one[0]), "second": told(other[0])}


def told(action: Action) -> str:
    """Return the calls of an action, a line each."""
    return "\n".join(f"{call.name} {call.arguments}" for call in action.tool_calls)


def session_pairs(folder: Path, first: int, last: int) -> Iterator[Pair]:
    """Yield near actions of recorded sessions, `first` to `last` steps apart."""
    for source in discover([folder]):
        for trace in ingest_source(source)[0] if source.dialect is not None else ():
            for pair in _trace_pairs(trace, first, last):
                yield pair | {"source": trace.harness}


def _trace_pairs(trace: Trace, first: int, last: int) -> Iterator[Pair]:
    records = {each.index: replay_context(each, trace.harness) for each in trace.contexts}
    tools = {index: shown.tools for index, shown in present_all(trace).items()}
    states = list(trace.states())
    for at, state in enumerate(states):
        index = state.context.index
        world = environment_at(state, tools.get(index, ()), records[index])
        one = (state.student_action, ladder_keys(state.student_action, world))
        for later in states[at + first : at + last + 1]:
            if later.context.index == index and one[0].tool_calls:
                other = (later.student_action, ladder_keys(later.student_action, world))
                if (found := near_pair(one, other)) is not None:
                    yield found | {"cwd": world.cwd}


def table_pairs(path: Path) -> Iterator[Pair]:
    """Yield near actions of two models in a state of a table, with their rewards."""
    for row in iter_recorded_table(path):
        if isinstance(row, RecordedState):
            harness = recorded_state_harness(row)
            world = recorded_state_world(row, harness)
            asked = next((each.content for each in world.record.messages if each.role == "user"), "")
            for found in _state_pairs(row, harness, world):
                yield found | {"source": path.name.partition(".")[0], "cwd": world.cwd, "asked": asked}


def _state_pairs(row: RecordedState, harness: str, world: EnvironmentState) -> Iterator[Pair]:
    done: dict[str, tuple[Action, ActionKeys, float | None]] = {}
    for _, answer in sorted(row.answers.items()):
        given = answer.action
        action = Action(given.text, recorded_state_calls(given.tool_calls, harness))
        if action.tool_calls:
            keys = ladder_keys(action, world)
            done.setdefault(keys.exact, (action, keys, answer.reward))
    for one, other in combinations(done.values(), 2):
        if (found := near_pair(one[:2], other[:2])) is not None:
            yield found | {"rewards": (one[2], other[2])}


def drawn(found: Iterable[Pair], wanted: int, rng: random.Random) -> list[Pair]:
    """Return `wanted` distinct pairs, one of each source in turn."""
    by_source: dict[str, dict[tuple[str, str], Pair]] = defaultdict(dict)
    for pair in found:
        by_source[pair["source"]].setdefault((pair["first"], pair["second"]), pair)
    piles = [list(pairs.values()) for _, pairs in sorted(by_source.items())]
    for pile in piles:
        rng.shuffle(pile)
    taken: list[Pair] = []
    while len(taken) < wanted and any(piles):
        taken += [pile.pop() for pile in piles if pile]
    return taken[:wanted]


def main() -> None:
    """Draw and write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pairs", type=Path)
    parser.add_argument("key", type=Path)
    parser.add_argument("--tables", type=Path, nargs="*", default=[])
    parser.add_argument("--seed", type=int, default=0)
    for name, usual in (("--first", 1), ("--last", 5), ("--same", 90), ("--intent", 60)):
        parser.add_argument(name, type=int, default=usual)
    parser.add_argument("--without", type=Path, nargs="*", default=[])
    given = parser.parse_args()
    read = {
        (pair["first"], pair["second"])
        for path in given.without
        for pair in map(json.loads, path.read_text().splitlines())
    }
    found = list(session_pairs(Path(os.environ["TRACEMILL_REAL_TRACES"]), given.first, given.last))
    found += [pair for path in given.tables for pair in table_pairs(path)]
    found = [pair for pair in found if (pair["first"], pair["second"]) not in read]
    rng = random.Random(given.seed)
    taken: list[Pair] = []
    for verdict, wanted in (("same effect", given.same), ("same intent", given.intent)):
        taken += drawn([pair for pair in found if pair["verdict"] == verdict], wanted, rng)
    rng.shuffle(taken)
    hidden = ("verdict", "rewards")
    with given.pairs.open("w") as pairs, given.key.open("w") as key:
        for number, pair in enumerate(taken, 1):
            shown = {name: value for name, value in pair.items() if name not in hidden}
            pairs.write(json.dumps({"number": number} | shown, ensure_ascii=False) + "\n")
            key.write(json.dumps({"number": number} | {name: pair.get(name) for name in hidden}) + "\n")


if __name__ == "__main__":
    main()
