"""Ask a draw's teachers at the student's steps, as the product would.

Steps come in order and teachers cheapest first, with every answer, its cost and the resulting pair.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import mean

from tracemill.agreement.equivalence.ladder import ActionKeys
from tracemill.agreement.voting.early_stop import Stop, why_stop_early
from tracemill.agreement.voting.labels import ValidVote
from tracemill.agreement.voting.policy import VotePolicy
from tracemill.evaluate.table.recorded_states import RecordedAction, TableState
from tracemill.evaluate.table.rules import VoteRule
from tracemill.evaluate.table.student_draws import DecidedPair, StudentDraw, TableVotes, may_be_asked
from tracemill.records.message import Message
from tracemill.teachers.pricing.cache_rules import cache_rule
from tracemill.teachers.pricing.prompt_cache import PromptCache, TokenCosts

CALL_S = 10.0
"""Assumed seconds of a call, for the lifetime of caches."""


@dataclass(frozen=True, slots=True)
class TeacherAnswer:
    """A teacher's action at a step and its vote, None if the action is not valid.

    `usd` is the call's cost without a prompt cache, `cached_usd` with one if every earlier step was asked
    too.
    """

    teacher: str
    acted: RecordedAction
    vote: ValidVote | None
    usd: float
    cached_usd: float


@dataclass(frozen=True, slots=True)
class AskedStep:
    """A step of the student.

    `replies` are in the order asked; `asked` is the number of them that each stopping rule asks. `pair` is
    the result of the full vote, `kept` that of each stopping rule: None for no pair, else its score
    (`good`, `tie`, `bad`, `unscored`).
    """

    state: TableState
    student: RecordedAction
    replies: tuple[TeacherAnswer, ...]
    pair: str | None
    asked: dict[Stop, int]
    kept: dict[Stop, str | None]

    @property
    def task(self) -> str:
        """Return the task, the unit of resampling."""
        return self.state.task

    @property
    def depth(self) -> int:
        """Return the number of actions before it."""
        return self.state.depth

    @property
    def context(self) -> tuple[Message, ...]:
        """Return the messages that student and teachers were shown."""
        return self.state.messages

    def usd(self, stop: Stop = "off", cached: bool = False) -> float:
        """Return the cost of its calls in USD."""
        asked = self.replies[: self.asked[stop]]
        return sum(reply.cached_usd if cached else reply.usd for reply in asked)


WAYS: tuple[Stop, ...] = ("off", "lossless", "tiered")


@dataclass(slots=True)
class DrawStepBuilder:
    """A builder of the steps of draws under one vote rule; decisions are cached across draws."""

    poll: TableVotes
    rule: VoteRule
    _decided: dict[tuple[int, str, tuple[str, ...], tuple[str, ...], Stop], bool] = field(
        default_factory=dict
    )
    _means: dict[str, float] = field(default_factory=dict)

    def order(self, draw: StudentDraw) -> tuple[str, ...]:
        """Return the teachers asked, the one with the cheapest mean call in the table first."""
        asked = may_be_asked(self.poll.table, draw, self.rule.policy)
        return tuple(sorted(asked, key=lambda model: (self._mean_usd(model), model)))

    def _mean_usd(self, model: str) -> float:
        if model not in self._means:
            self._means[model] = mean(state.acted[model].usd for state in self.poll.states(model))
        return self._means[model]

    def steps(self, draw: StudentDraw) -> list[AskedStep]:
        """Return the student's steps at which every asked teacher has an answer, by task, then depth.

        Return no step if no teacher may be asked.
        """
        order = self.order(draw)
        if not order:
            return []
        caches = {model: PromptCache(cache_rule(self.poll.table.families[model])) for model in order}
        chain, before, now = "", (), 0.0
        found: list[AskedStep] = []
        for state in self.poll.states(draw.student):
            if not all(model in state.acted for model in order):
                continue
            if not before or state.messages[: len(before)] != before:
                chain = f"{state.number}"
            before, now = state.messages, now + CALL_S
            answers = tuple(self._answer(state, model, caches[model], chain, now) for model in order)
            found.append(self._step(state, draw.student, answers))
        return found

    def _answer(
        self, state: TableState, model: str, cache: PromptCache, chain: str, now: float
    ) -> TeacherAnswer:
        done = state.acted[model]
        costs = TokenCosts.of(self.poll.table.prices[model][0])
        cached = cache.read(chain, done.prompt_tokens, now)
        cache.answered(chain, done.prompt_tokens, now)
        vote = None if done.reason else self.poll.vote(state, model)
        usd = costs.call_usd(done.prompt_tokens, cached, done.answer_tokens)
        return TeacherAnswer(model, done, vote, done.usd, usd)

    def _step(self, state: TableState, student: str, answers: Sequence[TeacherAnswer]) -> AskedStep:
        asked: dict[Stop, int] = {stop: self._count_asked(state, student, answers, stop) for stop in WAYS}
        kept: dict[Stop, str | None] = {
            stop: self._score(state, student, answers[:count]) for stop, count in asked.items()
        }
        return AskedStep(state, state.acted[student], tuple(answers), kept["off"], asked, kept)

    def _count_asked(
        self, state: TableState, student: str, answers: Sequence[TeacherAnswer], stop: Stop
    ) -> int:
        if stop == "off":
            return len(answers)
        own, policy = state.acted[student].keys, self.rule.policy
        for count in range(len(answers)):
            if self._is_decided(state, student, own, answers, count, stop, policy):
                return count
        return len(answers)

    def _is_decided(
        self,
        state: TableState,
        student: str,
        own: ActionKeys,
        answers: Sequence[TeacherAnswer],
        count: int,
        stop: Stop,
        policy: VotePolicy,
    ) -> bool:
        votes = [each.vote for each in answers[:count] if each.vote is not None]
        waiting = tuple(each.acted.family for each in answers[count:])
        place = (state.number, student, tuple(vote.teacher for vote in votes), waiting, stop)
        if place not in self._decided:
            self._decided[place] = bool(why_stop_early(votes, own, waiting, policy, stop))
        return self._decided[place]

    def _score(self, state: TableState, student: str, answers: Sequence[TeacherAnswer]) -> str | None:
        voters = tuple(sorted(each.teacher for each in answers if each.vote is not None))
        if len(voters) < self.rule.policy.threshold:
            return None
        label = self.poll.panel(state, student, voters).label(self.rule)
        return None if label.chosen is None else DecidedPair(state, student, voters[label.chosen]).score
