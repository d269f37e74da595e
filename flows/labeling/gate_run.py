"""Score the steps of a batch and select those that the budget is best spent on."""

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tracemill.flows.config.run_settings import RunSettings
from tracemill.flows.labeling.action_scores import ActionScores
from tracemill.flows.labeling.gate_weights import GateTrainingSet, keep_weights
from tracemill.records.identity import canonical_json, digest
from tracemill.records.pair import StepVotes
from tracemill.records.reply import AskDecision
from tracemill.records.storage.workspace import Workspace
from tracemill.teachers.build_teachers import build_teachers
from tracemill.teachers.core.question import Question
from tracemill.teachers.gate.budget_pacing import BudgetPacer, paced_choice_share, paced_explored_share
from tracemill.teachers.gate.features import GateStepFeatures, build_step_features
from tracemill.teachers.gate.gate_decisions import GATE_VERSION, GateChoice, coin
from tracemill.teachers.gate.pair_model import PRIOR, PairModel
from tracemill.teachers.gate.pair_value import ValuedStep, score_pair_values
from tracemill.teachers.gate.step_costs import (
    PricedTeacher,
    step_call_costs_usd,
    step_costs_usd,
    teachers_by_step_cost,
)
from tracemill.teachers.planning.early_stop_rates import early_stop_ask_rates
from tracemill.teachers.pricing.price_book import PriceBook
from tracemill.train.prm.trained_scorer import TrainedScorer

if TYPE_CHECKING:
    from tracemill.flows.labeling.label_shard import ShownTrace

_TOKENS = 8000
_FREE_USD = 1e-9


def gate_version(settings: RunSettings) -> str:
    """Return a name for the gate's settings and versions; its learned weights do not change it.

    Under another name decisions are made again. If the gate selects steps, cap and prior are part of it, so
    that a raised cap asks more.
    """
    gate = settings.gate.model_dump(mode="json", exclude={"step_scorer"})
    if settings.gate.step_scorer is not None:
        gate["scorer"] = TrainedScorer.read(settings.gate.step_scorer).digest
    if settings.gate.share < 1:
        gate["prior"] = PRIOR.name
        if settings.budget is not None:
            gate["cap"] = str(settings.budget.max_total_usd)
    vote = settings.agreement.model_dump(mode="json")
    names = [[teacher.name, teacher.family] for teacher in settings.asked_teachers()]
    return f"{GATE_VERSION}-{digest(canonical_json([gate, vote, names]), size=4)}"


class Gate:
    """A gate that selects the steps to ask, batch by batch.

    Its weights are fixed for a batch and updated after it by `learn`.
    """

    def __init__(self, settings: RunSettings, work: Workspace, teachers: Sequence[PricedTeacher]) -> None:
        self.settings = settings
        self._work = work
        self._teachers = teachers
        self._training_set = GateTrainingSet.of(work)
        self.belief: PairModel = self._training_set.belief()
        self._scores = ActionScores.open(settings.gate.step_scorer, work)
        self._pacer = BudgetPacer()
        self._promised_usd, self._promised_states = 0.0, 0
        self._seen, self._seen_usd = 0, 0.0

    @classmethod
    def open(cls, settings: RunSettings, work: Workspace, book: PriceBook) -> "Gate | None":
        """Open the gate of a configuration; None if all steps are asked."""
        if settings.gate.share >= 1:
            return None
        built = build_teachers(settings.asked_teachers(), os.environ, book=book, to_ask=False)
        return cls(settings, work, [PricedTeacher(t.name, t.family, t.price) for t in built])

    def choose(
        self,
        questions: Sequence[Question],
        shown: "Sequence[ShownTrace]",
        version: str,
        left_usd: float | None,
        states_left: int,
    ) -> dict[str, GateChoice]:
        """Score the steps and select.

        `left_usd` is the rest of the budget, None without a budget; `states_left` is the number of states
        that it must last for.
        """
        if left_usd is not None:
            left_usd = max(left_usd - self._promised_usd, 0.0)
        asked, teachers = questions, self._shares()
        everywhere = self.value(asked, shown)
        steps, beliefs = [step.facts for step in everywhere], [step.belief for step in everywhere]
        costs = [step.expected_usd for step in everywhere]
        share = self._share(costs, left_usd, states_left)
        full_usd = sum(map(sum, step_call_costs_usd(asked, teachers)))
        of_full = share * max(sum(costs), _FREE_USD) / max(full_usd, _FREE_USD)
        explore = paced_explored_share(self.settings.gate.explore, of_full)
        first = self._weighed(steps, beliefs, costs, share, explore)
        out = self._out(first, explore)  # at the price that the choice leaves
        costs = step_costs_usd(asked, teachers, out)
        share = self._share(costs, left_usd, states_left)
        chosen = self._weighed(steps, beliefs, costs, share, explore)
        made = [step for step, _ in chosen]
        self._pacer.remember(*_scores_and_costs(made))
        out = self._out(chosen, explore)
        self._promised_usd += sum(step.expected_usd for step in made if step.facts.step_id in out)
        self._promised_states += sum(item.trace.step_count for item in shown)
        self._seen += len(made)
        self._seen_usd += sum(step.expected_usd for step in made)
        name = f"{version}+{self.belief.version}"
        return {step.facts.step_id: GateChoice(step, taken, name, explore) for step, taken in chosen}

    def value(self, questions: Sequence[Question], shown: "Sequence[ShownTrace]") -> list[ValuedStep]:
        """Return every step with its expected value if all steps are asked."""
        facts = self._facts(questions, shown)
        steps = [facts[question.step_id] for question in questions]
        beliefs = [self.belief.probability(step.words) for step in steps]
        return score_pair_values(steps, beliefs, step_costs_usd(questions, self._shares()))

    def _weighed(
        self,
        steps: Sequence[GateStepFeatures],
        beliefs: Sequence[float],
        costs: Sequence[float],
        share: float,
        explore: float,
    ) -> list[tuple[ValuedStep, bool]]:
        """Score all steps at these costs and select the best within a share of the budget."""
        made = score_pair_values(steps, beliefs, costs)
        left = paced_choice_share(share, explore)
        threshold = self._pacer.threshold(*_scores_and_costs(made), left)
        return [(step, step.score >= threshold) for step in made]

    def _out(self, chosen: Sequence[tuple[ValuedStep, bool]], explore: float) -> frozenset[str]:
        """Return the steps to ask at, those drawn at random included."""
        seed = self.settings.gate.seed
        names = ((step.facts.step_id, taken) for step, taken in chosen)
        return frozenset(name for name, taken in names if taken or coin(seed, name) < explore)

    def asked(self) -> None:
        """Count the decided steps as asked and paid."""
        self._promised_usd, self._promised_states = 0.0, 0

    def learn(self, decisions: Sequence[AskDecision], votes: Sequence[StepVotes]) -> None:
        """Update and store the weights with the votes of a batch; they are used from the next batch on."""
        self._training_set.add(decisions, {step.step_id: step.verdict for step in votes})
        self.belief = self._training_set.belief()
        keep_weights(self._work, self.belief)
        if self._scores is not None:
            self._scores.keep()

    def _facts(
        self, questions: Sequence[Question], shown: "Sequence[ShownTrace]"
    ) -> dict[str, GateStepFeatures]:
        found = {
            step.step_id: step
            for item in shown
            for step in build_step_features(
                item.trace, {at: given.tools for at, given in item.presentations.items()}
            )
        }
        if self._scores is None:
            return found
        done = {str(state.step_id): state.student_action for item in shown for state in item.trace.states()}
        words = self._scores.words([(question, done[question.step_id]) for question in questions])
        return {
            question.step_id: replace(
                found[question.step_id], words=(*found[question.step_id].words, words[question.step_id])
            )
            for question in questions
        }

    def _shares(self) -> list[PricedTeacher]:
        """Return the teachers with the share of steps at which each is asked, cheapest first."""
        settings = self.settings
        order = teachers_by_step_cost(self._teachers, _TOKENS)
        threshold = settings.agreement.rule().threshold
        shares = early_stop_ask_rates(len(order), threshold, settings.replay.stop, settings.gate.explore)
        return [
            PricedTeacher(t.name, t.family, t.price, self._training_set.share(t.name, share))
            for t, share in zip(order, shares, strict=True)
        ]

    def _share(self, costs: Sequence[float], left_usd: float | None, states_left: int) -> float:
        """Return the budget left as a share of the cost of all remaining steps."""
        most = self.settings.gate.share
        seen = self._seen + len(costs)
        mean_usd = (self._seen_usd + sum(costs)) / seen if seen else 0.0
        coming = max(states_left - self._promised_states, len(costs)) * mean_usd
        return most if left_usd is None or coming <= 0 else min(most, left_usd / coming)


def _scores_and_costs(steps: Sequence[ValuedStep]) -> tuple[list[float], list[float]]:
    return [step.score for step in steps], [max(step.expected_usd, _FREE_USD) for step in steps]
