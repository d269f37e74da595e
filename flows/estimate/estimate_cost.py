"""Estimate what a replay of the workspace would cost and take, before anything is spent.

Each figure rests on what the workspace has measured where it holds enough replies of a teacher, and on a
stated assumption where not. Nothing of a session is sent.
"""

import asyncio
import os
from collections.abc import Container, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import accumulate
from typing import Any

import orjson

from tracemill.flows.config.run_settings import RunSettings
from tracemill.flows.estimate.estimate_hints import estimate_workspace_hints
from tracemill.flows.estimate.expected_pairs import ExpectedPairs, PairForecast
from tracemill.flows.estimate.pending_questions import QuestionBatch, batch_pending_questions
from tracemill.flows.labeling.judge_setup import judge_of, judge_text
from tracemill.flows.labeling.price_history import open_book
from tracemill.flows.labeling.vote_policy import check_vote
from tracemill.pairs.judge import ORDERS
from tracemill.records.identity import digest
from tracemill.records.message import ToolSpec
from tracemill.records.storage.workspace import Workspace
from tracemill.teachers.build_teachers import build_teachers, check_all
from tracemill.teachers.client.build_request import count_message_bytes
from tracemill.teachers.client.chat_teacher import ChatTeacher
from tracemill.teachers.core.price import Price, nanousd_to_usd
from tracemill.teachers.core.teacher_protocol import Teacher
from tracemill.teachers.planning.early_stop_rates import early_stop_ask_rates
from tracemill.teachers.planning.measured_usage import MeasuredUsage, measure_usage
from tracemill.teachers.planning.prompt_length import find_overlong_prompts
from tracemill.teachers.pricing.cache_rules import CacheRule, cache_rule
from tracemill.teachers.pricing.price_book import PriceBook

_SUMMED = (
    *("calls", "calls_early", "bought", "too_long", "prompt_tokens", "answer_tokens"),
    *("usd_uncached", "usd_cached", "usd_early"),
)
"""Figures of which all teachers together have the sum."""


@dataclass(slots=True)
class CostFigures:
    """Estimated calls and cost of one teacher, or of all of them.

    Tokens and USD are those of calls still to be made; `bought` answers are in the ledger. `calls_early`
    and `usd_early` are expected values with early stopping and caching; `usd_worst` is the reservation of
    the most expensive call. `price_from` and the other texts name the source of a figure.
    """

    teacher: str
    model: str = ""
    states: int = 0
    calls: int = 0
    calls_early: int = 0
    bought: int = 0
    prompt_tokens: int = 0
    answer_tokens: int = 0
    usd_uncached: float = 0.0
    usd_cached: float = 0.0
    usd_early: float = 0.0
    usd_worst: float = 0.0
    wall_s: float = 0.0
    too_long: int = 0
    price_from: str = ""
    measured: MeasuredUsage = field(default_factory=MeasuredUsage)

    def to_json(self) -> dict[str, Any]:
        """Return JSON values, with money to the nearest 1e-6 USD."""
        return {k: round(v, 6) if isinstance(v, float) else v for k, v in asdict(self).items()}


@dataclass(frozen=True, slots=True)
class Estimate:
    """The figures by teacher, in the order of asking under early stopping, and their total."""

    teachers: tuple[CostFigures, ...]
    total: CostFigures
    shares: tuple[float, ...]
    cap_usd: float | None
    decided_later: int = 0
    """Steps of which a gate decides anew once answers to earlier ones are in."""
    by_share: tuple[ExpectedPairs, ...] = ()
    """Pairs that are expected of shares of the full cost, by beliefs that rest on `learned_steps` beside the
    prior of the gate."""
    learned_steps: int = 0
    judge: str = ""
    """What is known of the judge and the most it may cost, "" if there is none."""
    hints: str = ""
    """What the hints of a training may cost, "" if no teacher writes them."""
    no_room: int = 0
    """Steps that are expected to be left out, since the caps of the release would drop their pairs."""

    def to_json(self) -> dict[str, Any]:
        """Return the estimate as JSON values."""
        return {
            "teachers": [figures.to_json() for figures in self.teachers],
            "total": self.total.to_json(),
            "asked_shares": [round(share, 4) for share in self.shares],
            "cap_usd": self.cap_usd,
            "decided_later": self.decided_later,
            "by_share": [each.to_json() for each in self.by_share],
            "learned_steps": self.learned_steps,
            "judge": self.judge,
            "hints": self.hints,
            "no_room": self.no_room,
        }


def estimate_cost(settings: RunSettings, refresh: bool = False) -> Estimate:
    """Estimate the cost of a replay.

    With `refresh` prices are read from the servers first, which also finds teachers that cannot be asked;
    else nothing uses the network. Raises WorkspaceError if there are no traces or the prices cannot be
    stored, ConfigError if there are no teachers or the vote cannot be won, TeacherError if `refresh` finds
    a teacher that cannot be asked.
    """
    check_vote(settings)
    work = Workspace.open(settings.workspace, create=False, writes=refresh)
    book = open_book(work)
    if refresh:
        asyncio.run(check_all(build_teachers(settings.asked_teachers(), os.environ, book=book)))
    teachers = build_teachers(settings.asked_teachers(), os.environ, book=book, to_ask=False)
    tallies, sizes = [_Tally.of(teacher) for teacher in teachers], dict[str, int]()
    forecast = PairForecast(settings, work, teachers)
    later, no_room, asked = 0, 0, set[str]()
    for batch in batch_pending_questions(settings, work):
        later += batch.open_steps
        forecast.add(batch.questions, batch.shown)
        asked |= {decision.step_id for decision in batch.decisions if decision.verdict == "ask"}
        fresh = _sizes(batch)
        settled = batch.settled(teachers, settings) | batch.no_room
        no_room += len(batch.no_room)
        for tally in tallies:
            tally.add(batch, fresh, settings.replay.samples, settled)
        sizes |= fresh
    known = measure_usage(work, sizes)
    for tally in tallies:
        tally.measured = known.get(tally.teacher.name, tally.measured)
    tallies.sort(key=lambda tally: tally.usd_a_call())
    vote = settings.agreement.rule()
    shares = early_stop_ask_rates(len(tallies), vote.threshold, settings.replay.stop, settings.gate.explore)
    figures = [tally.figures(share) for tally, share in zip(tallies, shares, strict=True)]
    cap = None if settings.budget is None else float(settings.budget.max_total_usd)
    total = _total(figures, tallies, settings.replay.concurrency)
    pairs = _priced_like(forecast.by_share(), total, forecast.usd_of(asked))
    judge = _judge_text(settings, work, asked, sizes, book)
    hints, learned = estimate_workspace_hints(settings, work, book), forecast.belief().asked
    return Estimate(tuple(figures), total, shares, cap, later, pairs, learned, judge, hints, no_room)


def _priced_like(
    pairs: tuple[ExpectedPairs, ...], total: CostFigures, asked_usd: float
) -> tuple[ExpectedPairs, ...]:
    """Return the expected pairs at shares of the total cost, which includes cached answers at their price.

    `asked_usd` is what the forecast expects for the steps that `total` is of.
    """
    if not total.calls or not total.usd_early or not asked_usd:
        return pairs
    dearer = total.usd_early * (total.calls + total.bought) / total.calls / asked_usd
    return tuple(replace(each, usd=each.usd * dearer) for each in pairs)


def _judge_text(
    settings: RunSettings, work: Workspace, asked: set[str], sizes: dict[str, int], book: PriceBook
) -> str:
    """Return the judge's precision and its highest possible cost as text, "" without a judge.

    The cost is that of both orders at every step that teachers are asked at and the judge was not, since
    the votes that decide which steps it is shown are not known yet.
    """
    judge = judge_of(settings)
    if judge is None or settings.judge is None:
        return ""
    if judge.precision is None or not judge.precision.may_vote:
        return judge_text(judge)
    [teacher] = build_teachers((settings.judge,), os.environ, book=book, to_ask=False)
    names = {judge.teacher(order) for order in ORDERS}
    for table in work.current("replies", columns=("step_id", "teacher")):
        asked = asked - {row["step_id"] for row in table.to_pylist() if row["teacher"] in names}
    usage = MeasuredUsage()
    answer = round(usage.answer_tokens)
    prompts = [round(sizes[step] / usage.bytes_a_token) + 2 * answer for step in asked]
    nanousd = sum(teacher.price.charge_nanousd(tokens, answer, 0, 0) for tokens in prompts)
    calls, usd = len(ORDERS) * len(prompts), len(ORDERS) * nanousd_to_usd(nanousd)
    return f"{judge_text(judge)}; at most {calls:,} calls, ${usd:.4f}, under the same cap"


def _sizes(batch: QuestionBatch) -> dict[str, int]:
    """Count the bytes of the prompt at every step, by step id; each message is measured once."""
    found: dict[str, int] = {}
    for item in batch.shown:
        ends = {
            index: list(
                accumulate((count_message_bytes([m]) for m in p.messages), initial=_tool_bytes(p.tools))
            )
            for index, p in item.presentations.items()
        }
        for state in item.trace.states():
            cut = item.presentations[state.context.index].cuts[state.step.index]
            found[str(state.step_id)] = ends[state.context.index][cut]
    return found


def _tool_bytes(tools: Iterable[ToolSpec]) -> int:
    return sum(len(orjson.dumps(tool.to_wire())) for tool in tools)


Call = tuple[str, str, int]
"""Chain, step, bytes of the prompt."""


@dataclass(slots=True)
class _Tally:
    """The calls of one teacher."""

    teacher: Teacher
    price: Price
    rule: CacheRule
    price_from: str
    measured: MeasuredUsage = field(default_factory=MeasuredUsage)
    states: int = 0
    bought: int = 0
    calls: list[Call] = field(default_factory=list[Call])
    worst_nanousd: int = 0
    too_long: int = 0

    @classmethod
    def of(cls, teacher: Teacher) -> "_Tally":
        chat = teacher if isinstance(teacher, ChatTeacher) else None
        return cls(
            teacher,
            teacher.price,
            cache_rule(teacher.family) if chat else CacheRule(lifetime_s=0),
            chat.price_from if chat else "its own settings",
            MeasuredUsage() if chat else MeasuredUsage(latency_s=0.0),
        )

    def add(self, batch: QuestionBatch, sizes: dict[str, int], samples: int, settled: Container[str]) -> None:
        """Count the calls of a batch at steps that are not `settled`, those of one context in order."""
        items = batch.wanted(self.teacher, samples)
        asked = batch.asked(self.teacher.name)
        self.states += asked
        self.bought += asked * samples - len(items)
        items = [item for item in items if item.question.step_id not in settled]
        unfit = {item.index for item in find_overlong_prompts(items)}
        self.too_long += len(unfit)
        items = [item for item in items if item.index not in unfit]
        steps = [item.question.step_id for item in items]
        self.calls += [(step.rpartition(":")[0], step, sizes[step]) for step in steps]
        if items:
            longest = max(items, key=lambda item: sizes[item.question.step_id])
            self.worst_nanousd = max(self.worst_nanousd, self.teacher.bound_nanousd(longest.question))

    def _tokens(self, call: Call) -> int:
        return round(call[2] / self.measured.bytes_a_token)

    def usd_a_call(self) -> float:
        """Return the mean cost of a call with caching in USD: teachers are asked in this order."""
        return nanousd_to_usd(self._cost_nanousd(self.calls, True)) / max(len(self.calls), 1)

    def _cost_nanousd(self, calls: Sequence[Call], cached: bool) -> int:
        """Return the cost of these calls in their order.

        With `cached` each call reads the prefix that the call before it in its context left in the prompt
        cache.
        """
        total, seen = 0, dict[str, int]()
        answer = round(self.measured.answer_tokens)
        for call in calls:
            chain, tokens = call[0], self._tokens(call)
            read = seen.get(chain, 0) if cached and self.rule.lifetime_s else 0
            read = min(read, tokens) if read >= self.rule.min_tokens else 0
            writes = cached and self.rule.pays_writes and tokens >= self.rule.min_tokens
            total += self.price.charge_nanousd(tokens, answer, read, tokens - read if writes else 0)
            seen[chain] = tokens
        return total

    def figures(self, share: float) -> CostFigures:
        """Return the figures of a teacher that is asked at `share` of its steps under early stopping."""
        early = [call for call in self.calls if _drawn(call[1]) < share]
        return CostFigures(
            teacher=self.teacher.name,
            model=self.teacher.model,
            states=self.states,
            calls=len(self.calls),
            calls_early=len(early),
            bought=self.bought,
            prompt_tokens=sum(map(self._tokens, self.calls)),
            answer_tokens=round(len(self.calls) * self.measured.answer_tokens),
            usd_uncached=nanousd_to_usd(self._cost_nanousd(self.calls, False)),
            usd_cached=nanousd_to_usd(self._cost_nanousd(self.calls, True)),
            usd_early=nanousd_to_usd(self._cost_nanousd(early, True)),
            usd_worst=nanousd_to_usd(self.worst_nanousd),
            wall_s=self.longest_chain() * self.measured.latency_s,
            too_long=self.too_long,
            price_from=self.price_from,
            measured=self.measured,
        )

    def longest_chain(self) -> int:
        """Return the number of calls in the longest context, which are made one after the other."""
        lengths: dict[str, int] = {}
        for chain, _, _ in self.calls:
            lengths[chain] = lengths.get(chain, 0) + 1
        return max(lengths.values(), default=0)


def _drawn(step: str) -> float:
    """Return a number in [0, 1) by a hash of the step; it decides which steps count as unsettled."""
    return int(digest("early", step, size=7), 16) / 2**56


def _total(figures: Sequence[CostFigures], tallies: Sequence[_Tally], concurrency: int) -> CostFigures:
    """Add up the figures.

    The time is that of the longest chain, or of all calls at `concurrency` in flight if that is longer.
    """
    busy_s = sum(f.calls * f.measured.latency_s for f in figures) / max(concurrency, 1)
    total = CostFigures("all", wall_s=max([busy_s, *(f.wall_s for f in figures)]))
    total.states = len({step for tally in tallies for _, step, _ in tally.calls})
    total.usd_worst = max((f.usd_worst for f in figures), default=0.0)
    for name in _SUMMED:
        setattr(total, name, sum(getattr(f, name) for f in figures))
    return total
