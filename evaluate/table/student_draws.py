"""Draws of a student and three teachers from a table, and what their votes decide at each state.

A decision depends on the state, the student and who votes there, and so is made once for all draws that
have these in common.
"""

import random
import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, islice
from math import comb

from tracemill.agreement.equivalence.ladder import Keys, Rung
from tracemill.agreement.voting.calibration import calibrate_policy
from tracemill.agreement.voting.labels import Label, Voice, label_of
from tracemill.agreement.voting.policy import Policy
from tracemill.agreement.voting.teacher_standing import Heard
from tracemill.evaluate.table.model_prices import spread_model_prices
from tracemill.evaluate.table.recorded_states import Table, TableState
from tracemill.evaluate.table.rules import Rule
from tracemill.records.families import UNKNOWN
from tracemill.records.identity import digest
from tracemill.teachers.core.teacher_settings import PriceSettings

TEACHERS = 3
"""Teachers of a draw."""


@dataclass(frozen=True, slots=True)
class Draw:
    """A student and the teachers asked about it. `stronger`: each teacher's mean reward on first steps is
    at least the student's; False also where rewards are missing."""

    student: str
    teachers: tuple[str, ...]
    stronger: bool = False


@dataclass(frozen=True, slots=True)
class Decided:
    """A pair that a rule makes: the student's action is rejected for that of the model `chosen`."""

    state: TableState
    student: str
    chosen: str

    @property
    def score(self) -> str:
        """`good`, `tie` or `bad` by reward; `unscored` where one of the two has none."""
        chosen, rejected = (self.state.acted[name].reward for name in (self.chosen, self.student))
        if chosen is None or rejected is None:
            return "unscored"
        return "good" if chosen > rejected else "bad" if chosen < rejected else "tie"

    @property
    def operations(self) -> tuple[str, str]:
        """What the chosen action does and what the rejected one."""
        return self.state.acted[self.chosen].keys.cls, self.state.acted[self.student].keys.cls


def student_draw_rewards(table: Table) -> dict[str, float]:
    """The mean reward of each model on the first steps of its tasks, of models that have any."""
    first: dict[str, list[float]] = defaultdict(list)
    for state in table.states:
        for model, done in state.acted.items():
            if state.depth == 0 and done.reward is not None:
                first[model].append(done.reward)
    return {model: statistics.mean(rewards) for model, rewards in sorted(first.items())}


def student_draw_prices(table: Table) -> dict[str, PriceSettings]:
    """Prices from cheap to dear for its models, by their mean reward on first steps, then by name."""
    standing = student_draw_rewards(table)
    return spread_model_prices(sorted(table.models, key=lambda model: (standing.get(model, 0.0), model)))


def draw_students(
    table: Table,
    most: int,
    seed: int,
    students: Sequence[str] = (),
    teachers: Sequence[str] = (),
) -> tuple[list[Draw], int]:
    """Every (student, trio of teachers), a sample of `most` where there are more; and how many there are.
    `students` and `teachers` restrict who may be which; empty: every model."""
    learners = [model for model in table.models if not students or model in students]
    others = [model for model in table.models if not teachers or model in teachers]
    total = sum(comb(len(others) - (learner in others), TEACHERS) for learner in learners)
    standing = student_draw_rewards(table)
    found = _all(learners, others) if total <= most else _sampled(learners, others, most, seed)
    return [_draw(student, trio, standing) for student, trio in found], total


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


def _draw(student: str, trio: tuple[str, ...], standing: Mapping[str, float]) -> Draw:
    known = all(model in standing for model in (student, *trio))
    return Draw(student, trio, known and all(standing[model] >= standing[student] for model in trio))


def may_be_asked(table: Table, draw: Draw, policy: Policy) -> tuple[str, ...]:
    """The teachers of a draw that a policy asks: not those of the student's own family where these do not
    vote, and nobody where too few are left for a pair."""
    own = table.families[draw.student]
    kin = policy.exclude_student_family and own != UNKNOWN
    asked = tuple(model for model in draw.teachers if not (kin and table.families[model] == own))
    families = {table.families[model] for model in asked}
    return asked if len(asked) >= policy.threshold and len(families) >= policy.min_families else ()


@dataclass(slots=True)
class Panel:
    """Votes at one state against one student; what they decide by each rule is looked at once."""

    state: TableState
    student: str
    voters: tuple[str, ...]
    own: Keys
    votes: tuple[Voice, ...]
    _labels: dict[str, Label] = field(default_factory=dict)
    _distinct: dict[Rung, int] = field(default_factory=dict)

    def label(self, rule: Rule) -> Label:
        """What the votes decide; of a rule that weighs votes, before they are weighed."""
        found = self._labels.get(rule.group)
        if found is None:
            found = label_of(self.votes, self.own, rule.bare) if self._may_agree(rule.bare) else _OPEN
            self._labels[rule.group] = found
        if rule.policy.min_families > 1 and found.chosen is not None:
            families = {self.votes[place].family for place in found.backers}
            return found if len(families) >= rule.policy.min_families else Label("one_family", found.backers)
        return found

    def _may_agree(self, policy: Policy) -> bool:
        """False where no `threshold` of the votes can be for one action: equal keys on a rung have equal
        keys on those above it, and what is alike has the same intent."""
        rung: Rung = policy.level if policy.level in ("exact", "canonical") else "intent"
        distinct = self._distinct.get(rung)
        if distinct is None:
            distinct = self._distinct[rung] = len({vote.keys.at(rung) for vote in self.votes})
        return distinct <= len(self.votes) - policy.threshold + 1


def _fold(task: str) -> bool:
    """One of two folds of tasks, each about half of either half of a table."""
    return int(digest("fold", task)[0], 16) % 2 == 0


_OPEN = Label("no_agreement")


@dataclass(slots=True)
class Poll:
    """The votes of any models on a table, by any rule. Decisions are kept as long as the student is the
    same: go through draws by student."""

    table: Table
    _student: str = ""
    _panels: dict[tuple[int, tuple[str, ...], bool], Panel] = field(default_factory=dict)
    _voices: dict[tuple[int, str, bool], Voice] = field(default_factory=dict)
    _by_student: dict[str, list[TableState]] = field(default_factory=dict)
    _of_draw: dict[tuple[Draw, bool, bool], list[Panel]] = field(default_factory=dict)

    def states(self, student: str) -> Sequence[TableState]:
        """The states where a model acted, by task, then depth."""
        if student not in self._by_student:
            found = [state for state in self.table.states if student in state.acted]
            places = {task: at for at, task in enumerate(self.table.tasks)}
            found.sort(key=lambda state: (places[state.task], state.depth, state.number))
            self._by_student[student] = found
        return self._by_student[student]

    def pairs(self, draw: Draw, rule: Rule) -> Iterator[Decided]:
        """The pairs a rule makes of a draw, by task, then depth."""
        policies = self._weighed(draw, rule) if rule.weighed else {}
        for panel in self.panels(draw, rule):
            if len(panel.voters) < rule.policy.threshold:
                continue
            label = panel.label(rule)
            if policies and label.chosen is not None:
                label = label_of(panel.votes, panel.own, policies[_fold(panel.state.task)])
            if label.chosen is not None:
                yield Decided(panel.state, draw.student, panel.voters[label.chosen])

    def panels(self, draw: Draw, rule: Rule) -> Sequence[Panel]:
        """The states of the student, each with those who vote there by this rule, by task, then depth."""
        own = self.table.families[draw.student]
        kin = rule.policy.exclude_student_family and own != UNKNOWN
        place = (draw, kin, rule.folded)
        if place not in self._of_draw:
            if all(known[0] != draw for known in self._of_draw):
                self._of_draw.clear()
            teachers = [t for t in draw.teachers if not (kin and self.table.families[t] == own)]
            found: list[Panel] = []
            for state in self.states(draw.student):
                acted = state.acted
                voters = tuple([t for t in teachers if t in acted and (rule.folded or not acted[t].reason)])
                found.append(self.panel(state, draw.student, voters, rule.folded))
            self._of_draw[place] = found
        return self._of_draw[place]

    def panel(self, state: TableState, student: str, voters: tuple[str, ...], folded: bool = False) -> Panel:
        """Some votes at a state; `voters` are sorted."""
        if student != self._student:
            self._panels.clear()
            self._student = student
        place = (state.number, voters, folded)
        found = self._panels.get(place)
        if found is None:
            own = self.voice(state, student, folded).keys
            votes = tuple([self.voice(state, name, folded) for name in voters])
            found = self._panels[place] = Panel(state, student, voters, own, votes)
        return found

    def voice(self, state: TableState, model: str, folded: bool = False) -> Voice:
        """What a model did at a state, as a vote."""
        place = (state.number, model, folded)
        if place not in self._voices:
            done = state.acted[model]
            known = done.folded if folded else done.keys
            self._voices[place] = Voice(model, done.family, known, done.length)
        return self._voices[place]

    def _weighed(self, draw: Draw, rule: Rule) -> dict[bool, Policy]:
        """The policy for the tasks of each fold, calibrated on what those of the other one tell of the
        teachers: who was behind the leading action, where there was one."""
        heard: dict[bool, list[Heard]] = {True: [], False: []}
        for panel in self.panels(draw, rule):
            if len(panel.voters) < rule.policy.threshold:
                continue
            backers = panel.label(rule).backers
            if len(backers) >= 2:
                told = {name: "lead" if at in backers else name for at, name in enumerate(panel.voters)}
                heard[not _fold(panel.state.task)].append(Heard(told))
        return {fold: calibrate_policy(rule.policy, steps) for fold, steps in heard.items()}
