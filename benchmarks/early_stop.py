"""What early stopping saves, and what it costs in pairs, on recorded multi-model tables.

    TRACEMILL_MULTITEACHER=FOLDER python benchmarks/early_stop.py

The folder is that of `labels.py`. Every (student, trio of teachers), at every state where all four acted;
the trio is asked in each of its orders, teachers of the student's family not at all. Per table, policy and
way to stop: calls made of all calls, pairs made of all pairs, labels that differ from those of the full vote
(another group is chosen, or none), and pairs whose chosen action has another effect than in the full vote.
"""

import itertools
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from labels import State, draws, read_states

from agreement.labels import Label, Voice, agrees_by_intent, label_of
from agreement.ladder import Keys
from agreement.policy import DEFAULT, LENIENT, STRICT, Policy
from agreement.settling import Stop, settled
from records.families import UNKNOWN

POLICIES = (DEFAULT, STRICT, LENIENT)
WAYS: tuple[Stop, ...] = ("lossless", "tiered")
Ballot = tuple[str, Voice | None]
"""The family of a teacher, and what it votes; None where that is not valid."""


@dataclass(slots=True)
class Panel:
    """A student and the teachers that may vote, at one state; labels are kept by who was heard."""

    student: Keys
    ballots: Sequence[Ballot]
    policy: Policy
    _labels: dict[frozenset[int], tuple[list[Voice], Label]] = field(default_factory=dict)

    def label(self, heard: Sequence[int]) -> tuple[list[Voice], Label]:
        """The votes of some of the teachers, and what they decide."""
        who = frozenset(heard)
        if who not in self._labels:
            votes = [vote for at in sorted(who) if (vote := self.ballots[at][1]) is not None]
            self._labels[who] = (votes, label_of(votes, self.student, self.policy))
        return self._labels[who]

    def heard(self, order: Sequence[int], stop: Stop) -> Sequence[int]:
        """Who is asked, one after the other, until the step is settled."""
        for size in range(len(order)):
            votes, _ = self.label(order[:size])
            waiting = [self.ballots[at][0] for at in order[size:]]
            if settled(votes, self.student, waiting, self.policy, stop):
                return order[:size]
        return order


def panels(states: Sequence[State], policy: Policy) -> Iterator[Panel]:
    """Every student and trio at every state where all four acted, apart from those of whom no pair could
    come: fewer teachers or families than the vote needs."""
    trios, _ = draws(states)
    for state in states:
        for student, trio in trios:
            if student not in state.done or not all(teacher in state.done for teacher in trio):
                continue
            own = state.done[student]
            acted = [(name, state.done[name]) for name in trio]
            asked = [(n, d) for n, d in acted if not (d.family == own.family != UNKNOWN)]
            if len(asked) < policy.threshold or len({d.family for _, d in asked}) < policy.min_families:
                continue
            ballots = [
                (d.family, Voice(n, d.family, d.keys, d.length) if d.reason is None else None)
                for n, d in asked
            ]
            yield Panel(own.keys, ballots, policy)


def compare(states: Sequence[State], policy: Policy) -> Counter[str]:
    """The counts of all panels, each in every order."""
    count: Counter[str] = Counter()
    for panel in panels(states, policy):
        everyone = range(len(panel.ballots))
        votes, full = panel.label(everyone)
        for order in itertools.permutations(everyone):
            count["calls"] += len(order)
            count["pairs"] += full.verdict == "pair"
            for stop in WAYS:
                heard = panel.heard(order, stop)
                some, part = panel.label(heard)
                count[f"{stop} calls"] += len(heard)
                count[f"{stop} pairs"] += part.verdict == "pair"
                same = _chosen(votes, full, panel), _chosen(some, part, panel)
                count[f"{stop} other label"] += same[0][0] != same[1][0]
                count[f"{stop} other effect"] += same[0][1] != same[1][1] and same[0][0] == same[1][0]
    return count


def _chosen(votes: Sequence[Voice], label: Label, panel: Panel) -> tuple[str, str]:
    """The group an action is chosen from, by the intent where that is enough; and the action's effect."""
    if label.chosen is None:
        return "", ""
    keys = votes[label.chosen].keys
    far = agrees_by_intent(keys, panel.student, panel.policy)
    return keys.intent if far else keys.effect, keys.effect


def main() -> None:
    """Measure and print."""
    folder = os.environ.get("TRACEMILL_MULTITEACHER")
    if not folder:
        sys.exit("TRACEMILL_MULTITEACHER is not set: name the folder with the tables")
    root = Path(folder)
    prefixes = json.loads((root / "msb_prefix.json").read_text())
    tables = {
        "sql": read_states(root / "intercode_sql.jsonl.gz", "intercode"),
        "bash": read_states(root / "intercode_bash.jsonl.gz", "intercode"),
        "java": read_states(root / "msb_swe_agent.jsonl.gz", "swe_agent", prefixes),
    }
    print("| table | policy | stop | calls | fewer | pairs | pairs kept | other label | other effect |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name, states in tables.items():
        for policy in POLICIES:
            count = compare(states, policy)
            for stop in WAYS:
                pairs, fewer = count[f"{stop} pairs"], 1 - count[f"{stop} calls"] / count["calls"]
                print(
                    f"| {name} | {policy.name} | {stop} | {count['calls']:,} | {fewer:.1%}"
                    f" | {count['pairs']:,} | {pairs / max(1, count['pairs']):.1%}"
                    f" | {count[f'{stop} other label']:,} | {count[f'{stop} other effect']:,} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
