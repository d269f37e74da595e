"""Draw a student and three teachers from a table, and decide their votes at each state.

A decision depends on state, student and voters alone, so it is made once for all draws that share them.
"""

import random
import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, islice
from math import comb

from tracemill.agreement.equivalence.ladder import ActionKeys, Level
from tracemill.agreement.voting.labels import ValidVote, VoteLabel, label_of
from tracemill.agreement.voting.policy import VotePolicy
from tracemill.evaluate.table.model_prices import spread_model_prices
from tracemill.evaluate.table.recorded_states import StateTable, TableState
from tracemill.evaluate.table.rules import VoteRule
from tracemill.records.families import UNKNOWN
from tracemill.teachers.core.teacher_settings import PriceSettings

TEACHERS = 3
"""Number of teachers in a draw."""


@dataclass(frozen=True, slots=True)
class StudentDraw:
    """A student and its teachers.

    `stronger`: each teacher's mean reward on first steps is at least the student's; False where rewards are
    missing.
    """

    student: str
    teachers: tuple[str, ...]
    stronger: bool = False


@dataclass(frozen=True, slots=True)
class DecidedPair:
    """A pair made by a rule: the student's action is rejected for that of the model `chosen`."""

    state: TableState
    student: str
    chosen: str

    @property
    def score(self) -> str:
        """Return `good`, `tie` or `bad` by reward; `unscored` if one of the two has none."""
        chosen, rejected = (self.state.acted[name].reward for name in (self.chosen, self.student))
        if chosen is None or rejected is None:
            return "unscored"
        return "good" if chosen > rejected else "bad" if chosen < rejected else "tie"

    @property
    def operations(self) -> tuple[str, str]:
        """Return the operations of the chosen and of the rejected action."""
        return self.state.acted[self.chosen].keys.action_class, self.state.acted[
            self.student
        ].keys.action_class


def student_draw_rewards(table: StateTable) -> dict[str, float]:
    """Return each model's mean reward on the first steps of its tasks; models without rewards are omitted."""
    first: dict[str, list[float]] = defaultdict(list)
    for state in table.states:
        for model, done in state.acted.items():
            if state.depth == 0 and done.reward is not None:
                first[model].append(done.reward)
    return {model: statistics.mean(rewards) for model, rewards in sorted(first.items())}


def student_draw_prices(table: StateTable) -> dict[str, PriceSettings]:
    """Return prices from cheap to expensive by mean reward on first steps, then by name."""
    rewards_by_model = student_draw_rewards(table)
    return spread_model_prices(
        sorted(table.models, key=lambda model: (rewards_by_model.get(model, 0.0), model))
    )


def draw_students(
    table: StateTable,
    most: int,
    seed: int,
    students: Sequence[str] = (),
    teachers: Sequence[str] = (),
) -> tuple[list[StudentDraw], int]:
    """Return every draw of a student and three teachers, or a sample of `most`, and their total number.

    `students` and `teachers` restrict the models; empty for all.
    """
    learners = [model for model in table.models if not students or model in students]
    others = [model for model in table.models if not teachers or model in teachers]
    total = sum(comb(len(others) - (learner in others), TEACHERS) for learner in learners)
    rewards_by_model = student_draw_rewards(table)
    found = _all(learners, others) if total <= most else _sampled(learners, others, most, seed)
    return [_draw(student, trio, rewards_by_model) for student, trio in found], total


def _all(learners: Sequence[str], others: Sequence[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    for learner in learners:
        for trio in combinations([model for model in others if model != learner], TEACHERS):
            yield learner, trio


def _sampled(
    learners: Sequence[str], others: Sequence[str], most: int, seed: int
) -> Iterator[tuple[str, tuple[str, ...]]]:
    rng, seen = random.Random(seed), set[tuple[str, tuple[str, ...]]]()

    def drawn() -> Iterator[tuple[str, tuple[str, ...]]]:
        while True:
            learner = rng.choice(learners)
            choice = [model for model in others if model != learner]
            draw = (learner, tuple(sorted(rng.sample(choice, TEACHERS)))) if len(choice) >= TEACHERS else None
            if draw is not None and draw not in seen:
                seen.add(draw)
                yield draw

    return iter(sorted(islice(drawn(), most)))


def _draw(student: str, trio: tuple[str, ...], rewards_by_model: Mapping[str, float]) -> StudentDraw:
    known = all(model in rewards_by_model for model in (student, *trio))
    return StudentDraw(
        student, trio, known and all(rewards_by_model[model] >= rewards_by_model[student] for model in trio)
    )


def may_be_asked(table: StateTable, draw: StudentDraw, policy: VotePolicy) -> tuple[str, ...]:
    """Return the teachers of a draw that a policy asks.

    Teachers of the student's own family are left out if they may not vote, and all if too few remain.
    """
    own = table.families[draw.student]
    exclude_own = policy.exclude_student_family and own != UNKNOWN
    asked = tuple(model for model in draw.teachers if not (exclude_own and table.families[model] == own))
    families = {table.families[model] for model in asked}
    return asked if len(asked) >= policy.threshold and len(families) >= policy.min_families else ()


@dataclass(slots=True)
class StateVotes:
    """The votes in one state for one student; labels are cached by rule."""

    state: TableState
    student: str
    voters: tuple[str, ...]
    own: ActionKeys
    votes: tuple[ValidVote, ...]
    _labels: dict[str, VoteLabel] = field(default_factory=dict)
    _distinct: dict[Level, int] = field(default_factory=dict)

    def label(self, rule: VoteRule) -> VoteLabel:
        """Return the label of a rule."""
        found = self._labels.get(rule.group)
        if found is None:
            found = label_of(self.votes, self.own, rule.bare) if self._may_agree(rule.bare) else _OPEN
            self._labels[rule.group] = found
        if rule.policy.min_families > 1 and found.chosen is not None:
            families = {self.votes[place].family for place in found.backers}
            return (
                found if len(families) >= rule.policy.min_families else VoteLabel("one_family", found.backers)
            )
        return found

    def _may_agree(self, policy: VotePolicy) -> bool:
        """Return whether `threshold` votes can be for one action.

        Equal keys on a level imply equal keys on later levels, and equal actions share an intent.
        """
        level: Level = policy.level if policy.level in ("exact", "canonical") else "intent"
        distinct = self._distinct.get(level)
        if distinct is None:
            distinct = self._distinct[level] = len({vote.keys.at(level) for vote in self.votes})
        return distinct <= len(self.votes) - policy.threshold + 1


_OPEN = VoteLabel("no_agreement")


@dataclass(slots=True)
class TableVotes:
    """The votes of all models on a table, by any rule.

    Decisions are cached for one student: process draws by student.
    """

    table: StateTable
    _student: str = ""
    _panels: dict[tuple[int, tuple[str, ...], bool], StateVotes] = field(default_factory=dict)
    _votes: dict[tuple[int, str, bool], ValidVote] = field(default_factory=dict)
    _by_student: dict[str, list[TableState]] = field(default_factory=dict)
    _of_draw: dict[tuple[StudentDraw, bool, bool], list[StateVotes]] = field(default_factory=dict)

    def states(self, student: str) -> Sequence[TableState]:
        """Return the states in which a model acted, by task, then depth."""
        if student not in self._by_student:
            found = [state for state in self.table.states if student in state.acted]
            places = {task: at for at, task in enumerate(self.table.tasks)}
            found.sort(key=lambda state: (places[state.task], state.depth, state.number))
            self._by_student[student] = found
        return self._by_student[student]

    def pairs(self, draw: StudentDraw, rule: VoteRule) -> Iterator[DecidedPair]:
        """Yield the pairs that a rule makes of a draw, by task, then depth."""
        for panel in self.panels(draw, rule):
            if len(panel.voters) < rule.policy.threshold:
                continue
            label = panel.label(rule)
            if label.chosen is not None:
                yield DecidedPair(panel.state, draw.student, panel.voters[label.chosen])

    def panels(self, draw: StudentDraw, rule: VoteRule) -> Sequence[StateVotes]:
        """Return the student's states with their voters under this rule, by task, then depth."""
        own = self.table.families[draw.student]
        exclude_own = rule.policy.exclude_student_family and own != UNKNOWN
        place = (draw, exclude_own, rule.folded)
        if place not in self._of_draw:
            if all(known[0] != draw for known in self._of_draw):
                self._of_draw.clear()
            teachers = [t for t in draw.teachers if not (exclude_own and self.table.families[t] == own)]
            found: list[StateVotes] = []
            for state in self.states(draw.student):
                acted = state.acted
                voters = tuple([t for t in teachers if t in acted and (rule.folded or not acted[t].reason)])
                found.append(self.panel(state, draw.student, voters, rule.folded))
            self._of_draw[place] = found
        return self._of_draw[place]

    def panel(
        self, state: TableState, student: str, voters: tuple[str, ...], folded: bool = False
    ) -> StateVotes:
        """Return the votes in a state; `voters` are sorted."""
        if student != self._student:
            self._panels.clear()
            self._student = student
        place = (state.number, voters, folded)
        found = self._panels.get(place)
        if found is None:
            own = self.vote(state, student, folded).keys
            votes = tuple([self.vote(state, name, folded) for name in voters])
            found = self._panels[place] = StateVotes(state, student, voters, own, votes)
        return found

    def vote(self, state: TableState, model: str, folded: bool = False) -> ValidVote:
        """Return a model's action at a state as a vote."""
        place = (state.number, model, folded)
        if place not in self._votes:
            done = state.acted[model]
            known = done.folded if folded else done.keys
            self._votes[place] = ValidVote(model, done.family, known, done.length)
        return self._votes[place]
