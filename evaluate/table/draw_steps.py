"""The steps of a student as the product would put them to the teachers of a draw: in order, cheapest first,
each with what every teacher would say and cost, and the pair that comes of it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import mean

from tracemill.agreement.equivalence.ladder import Keys
from tracemill.agreement.voting.early_stop import Stop, why_stop_early
from tracemill.agreement.voting.labels import Voice
from tracemill.agreement.voting.policy import Policy
from tracemill.evaluate.table.recorded_states import Acted, TableState
from tracemill.evaluate.table.rules import Rule
from tracemill.evaluate.table.student_draws import Decided, Draw, Poll, may_be_asked
from tracemill.records.message import Message
from tracemill.teachers.pricing.cache_rules import cache_rule
from tracemill.teachers.pricing.prompt_cache import PromptCache, TokenCosts

CALL_S = 10.0
"""Seconds a call takes; what is cached lives on through the steps of a task that follow each other."""


@dataclass(frozen=True, slots=True)
class Told:
    """What a teacher says at a step: its action and its vote, None where that is not valid. Money of one
    call without a prompt cache, and with one where every step before it in the task was asked."""

    teacher: str
    acted: Acted
    vote: Voice | None
    usd: float
    cached_usd: float


@dataclass(frozen=True, slots=True)
class AskedStep:
    """A step of the student. `replies` are in the order in which they are asked; `heard` is how many of
    them are by way to stop. `pair` is what the full vote makes of it, `kept` by way to stop: None where
    there is no pair, else its score (`good`, `tie`, `bad`, `unscored`)."""

    state: TableState
    student: Acted
    replies: tuple[Told, ...]
    pair: str | None
    heard: dict[Stop, int]
    kept: dict[Stop, str | None]

    @property
    def task(self) -> str:
        """The task, the unit of resampling."""
        return self.state.task

    @property
    def depth(self) -> int:
        """Actions before it."""
        return self.state.depth

    @property
    def context(self) -> tuple[Message, ...]:
        """What student and teachers were shown."""
        return self.state.messages

    def usd(self, stop: Stop = "off", cached: bool = False) -> float:
        """What its calls cost."""
        heard = self.replies[: self.heard[stop]]
        return sum(told.cached_usd if cached else told.usd for told in heard)

    def found(self, answers: int) -> str | None:
        """The pair after so many answers, wherever asking ended: None where there is none, else its score."""
        for way in WAYS:
            if answers >= self.heard[way]:
                return self.kept[way]
        return None


WAYS: tuple[Stop, ...] = ("off", "lossless", "tiered")


@dataclass(slots=True)
class Asker:
    """Steps of draws by one rule; what settles a step is looked at once for all draws that share it."""

    poll: Poll
    rule: Rule
    _settled: dict[tuple[int, str, tuple[str, ...], tuple[str, ...], Stop], bool] = field(
        default_factory=dict
    )
    _means: dict[str, float] = field(default_factory=dict)

    def order(self, draw: Draw) -> tuple[str, ...]:
        """The teachers asked, the cheapest first: by what the calls of the table cost in the mean."""
        asked = may_be_asked(self.poll.table, draw, self.rule.policy)
        return tuple(sorted(asked, key=lambda model: (self._mean_usd(model), model)))

    def _mean_usd(self, model: str) -> float:
        if model not in self._means:
            self._means[model] = mean(state.acted[model].usd for state in self.poll.states(model))
        return self._means[model]

    def steps(self, draw: Draw) -> list[AskedStep]:
        """The steps of the student at which every teacher that is asked has an answer in the table, by task,
        then depth. None where the product would ask nobody."""
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
            told = tuple(self._told(state, model, caches[model], chain, now) for model in order)
            found.append(self._step(state, draw.student, told))
        return found

    def _told(self, state: TableState, model: str, cache: PromptCache, chain: str, now: float) -> Told:
        done = state.acted[model]
        costs = TokenCosts.of(self.poll.table.prices[model][0])
        cached = cache.read(chain, done.prompt_tokens, now)
        cache.answered(chain, done.prompt_tokens, now)
        vote = None if done.reason else self.poll.voice(state, model)
        usd = costs.call_usd(done.prompt_tokens, cached, done.answer_tokens)
        return Told(model, done, vote, done.usd, usd)

    def _step(self, state: TableState, student: str, told: Sequence[Told]) -> AskedStep:
        heard: dict[Stop, int] = {stop: self._heard(state, student, told, stop) for stop in WAYS}
        kept: dict[Stop, str | None] = {
            stop: self._score(state, student, told[:count]) for stop, count in heard.items()
        }
        return AskedStep(state, state.acted[student], tuple(told), kept["off"], heard, kept)

    def _heard(self, state: TableState, student: str, told: Sequence[Told], stop: Stop) -> int:
        if stop == "off":
            return len(told)
        own, policy = state.acted[student].keys, self.rule.policy
        for count in range(len(told)):
            if self._is_settled(state, student, own, told, count, stop, policy):
                return count
        return len(told)

    def _is_settled(
        self,
        state: TableState,
        student: str,
        own: Keys,
        told: Sequence[Told],
        count: int,
        stop: Stop,
        policy: Policy,
    ) -> bool:
        votes = [each.vote for each in told[:count] if each.vote is not None]
        waiting = tuple(each.acted.family for each in told[count:])
        place = (state.number, student, tuple(vote.teacher for vote in votes), waiting, stop)
        if place not in self._settled:
            self._settled[place] = bool(why_stop_early(votes, own, waiting, policy, stop))
        return self._settled[place]

    def _score(self, state: TableState, student: str, told: Sequence[Told]) -> str | None:
        voters = tuple(sorted(each.teacher for each in told if each.vote is not None))
        if len(voters) < self.rule.policy.threshold:
            return None
        label = self.poll.panel(state, student, voters).label(self.rule)
        return None if label.chosen is None else Decided(state, student, voters[label.chosen]).score
