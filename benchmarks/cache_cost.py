"""Measure what the order of questions costs under a model of prompt caches, against the best order.

    python benchmarks/cache_cost.py [--traces N] [--steps N] [--concurrency N] [--seed N]

In simulated time, for six models one after the other: three teachers at that model's prices, answers of
8 s (lognormal median), lossless early stopping, cache entries that live as long as the vendor says and
can be read once the answer they belong to is there. The optimum is searched exhaustively, trace by trace:
every order of the teachers, and for each teacher every order of its steps, as if no entry ever ended and
nobody waited. Unordered are the same questions, and all questions, in random order, as many at once.
"""

import argparse
import heapq
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import permutations

from tracemill.agreement.equivalence.ladder import ActionKeys
from tracemill.agreement.voting.early_stop import StopDecision, early_stop_batch_size, why_stop_early
from tracemill.agreement.voting.labels import ValidVote
from tracemill.agreement.voting.policy import VotePolicy
from tracemill.teachers.planning.schedule import Schedule, ScheduleRules
from tracemill.teachers.planning.strand_state import OutgoingCall, StepWork
from tracemill.teachers.planning.throughput import TeacherPace
from tracemill.teachers.pricing.cache_rules import cache_rule
from tracemill.teachers.pricing.prompt_cache import PromptCache, TokenCosts

ROWS: dict[str, tuple[str, float, float, float, float]] = {
    "claude-opus-5.5": ("anthropic", 4, 20, 0.2, 5),
    "gpt-6.1-sol": ("openai", 2, 10, 0.1, 2.5),
    "deepseek-v4-pro-0813": ("deepseek", 0.66, 1.98, 0.022, 0),
    "kimi-k3.1-pro": ("moonshot", 2, 10, 0.2, 0),
    "glm-5.3": ("zai", 1.4, 4.4, 0.26, 0),
    "qwen3.8-27b": ("qwen", 0.425, 2.55, 0.085, 0.53),
}
"""Family, then USD per million tokens: prompt, answer, cache read, cache write (openrouter.ai/models)."""

TEACHERS = ("a", "b", "c")
MOST_STEPS = 6
"""Of longer traces the optimum is not searched."""
ANSWER_TOKENS = 600
POLICY = VotePolicy()


def _keys(name: str) -> ActionKeys:
    return ActionKeys(name, name, name, name, name)


OWN = _keys("student")
Sent = list[tuple[float, float, OutgoingCall]]
"""Questions with the seconds at which they went out and came home."""


@dataclass(frozen=True)
class StateVotes:
    """The traces, and what each teacher votes and how long it takes at each step."""

    tokens: dict[str, int]
    steps: list[tuple[str, list[str]]]
    votes: dict[tuple[str, str], ValidVote]
    takes_s: dict[tuple[str, str], float]

    @classmethod
    def drawn(cls, traces: int, steps: int, seed: int) -> "StateVotes":
        """Prompts that begin with 6,000 to 12,000 tokens and grow by 500 to 3,000 a step."""
        rng = random.Random(seed)
        tokens: dict[str, int] = {}
        made: list[tuple[str, list[str]]] = []
        for number in range(traces):
            size, names = rng.randrange(6000, 12000), [f"t{number}:{step}" for step in range(steps)]
            for name in names:
                tokens[name] = size
                size += rng.randrange(500, 3000)
            made.append((f"t{number}", names))
        asked = [(step, teacher) for _, names in made for step in names for teacher in TEACHERS]
        votes = {place: _vote(rng.random(), place[1]) for place in asked}
        return cls(tokens, made, votes, {place: 8 * rng.lognormvariate(0, 0.6) for place in asked})

    def decide(self, step: str, waiting: Sequence[str], heard: Sequence[str]) -> StopDecision:
        """Return whether asking ends at a step."""
        votes = [self.votes[step, teacher] for teacher in heard]
        why = why_stop_early(votes, OWN, waiting, POLICY, "lossless")
        return StopDecision(why, 0 if why else early_stop_batch_size(votes, OWN, waiting, POLICY, "lossless"))

    def asked(self, step: str, order: Sequence[str]) -> list[str]:
        """Whom a step needs where its teachers are asked in an order."""
        for heard in range(len(order)):
            if self.decide(step, order[heard:], order[:heard]).reason:
                return list(order[:heard])
        return list(order)


def _vote(drawn: float, teacher: str) -> ValidVote:
    if drawn < 0.45:
        return ValidVote(teacher, teacher, OWN)
    return ValidVote(teacher, teacher, _keys("better" if drawn < 0.8 else teacher))


def scheduled(panel: StateVotes, lifetime_s: float, width: int) -> Sent:
    """Return the questions in the order in which the schedule sends them."""
    heard: dict[str, list[str]] = {}

    def decide(step: str, waiting: Sequence[str]) -> StopDecision:
        return panel.decide(step, waiting, [t for t in heard.get(step, ()) if t not in waiting])

    works = [
        (trace, [StepWork(step, dict.fromkeys(TEACHERS, (0,))) for step in names])
        for trace, names in panel.steps
    ]
    schedule = Schedule(
        works, TEACHERS, ScheduleRules(width=width), decide, TeacherPace(dict.fromkeys(TEACHERS, lifetime_s))
    )
    flying: list[tuple[float, float, OutgoingCall]] = []
    sent: Sent = []
    now = 0.0
    while True:
        for call in schedule.next(now, width - len(flying)):
            heapq.heappush(flying, (now + panel.takes_s[call[:2]], now, call))
        if not flying:
            return sent
        now, went, call = heapq.heappop(flying)
        sent.append((went, now, call))
        heard.setdefault(call.step_id, []).append(call.teacher)
        schedule.done(call, now)


def unordered(panel: StateVotes, calls: Sequence[OutgoingCall], width: int, seed: int) -> Sent:
    """Return the questions in random order, each sent as soon as one is answered."""
    waiting = list(calls)
    random.Random(seed).shuffle(waiting)
    free = [0.0] * width
    sent: Sent = []
    for call in waiting:
        went = heapq.heappop(free)
        home = went + panel.takes_s[call[:2]]
        heapq.heappush(free, home)
        sent.append((went, home, call))
    return sent


def cost_usd(panel: StateVotes, sent: Sent, family: str, costs: TokenCosts) -> float:
    """Return the cost of all questions in USD, with a cache for each teacher."""
    caches = {teacher: PromptCache(cache_rule(family)) for teacher in TEACHERS}
    events = [(went, 1, call) for went, _, call in sent] + [(home, 0, call) for _, home, call in sent]
    total = 0.0
    for now, goes_out, call in sorted(events):
        trace, tokens = call.step_id.split(":")[0], panel.tokens[call.step_id]
        if goes_out:
            cached = caches[call.teacher].read(trace, tokens, now)
            total += costs.call_usd(tokens, cached, ANSWER_TOKENS)
        else:
            caches[call.teacher].answered(trace, tokens, now)
    return total


def optimum_usd(panel: StateVotes, family: str, costs: TokenCosts) -> float:
    """Return the lowest cost over all orders of teachers and of steps, in USD."""
    best: dict[tuple[str, ...], float] = {}

    def chain_usd(steps: tuple[str, ...]) -> float:
        if steps not in best:
            best[steps] = min(_walk_usd(panel, order, family, costs) for order in permutations(steps))
        return best[steps]

    def panel_usd(order: Sequence[str]) -> float:
        total = 0.0
        for _, names in panel.steps:
            needed = {step: panel.asked(step, order) for step in names}
            total += sum(chain_usd(tuple(s for s in names if t in needed[s])) for t in order)
        return total

    return min(panel_usd(order) for order in permutations(TEACHERS))


def _walk_usd(panel: StateVotes, steps: Sequence[str], family: str, costs: TokenCosts) -> float:
    """One teacher along some steps, one after the other, in no time."""
    cache, total = PromptCache(cache_rule(family)), 0.0
    for step in steps:
        tokens = panel.tokens[step]
        total += costs.call_usd(tokens, cache.read("", tokens, 0.0), ANSWER_TOKENS)
        cache.answered("", tokens, 0.0)
    return total


def row(name: str, panel: StateVotes, width: int, seed: int) -> str:
    """Return the line of the table for one model."""
    family, prompt, answer, read, write = ROWS[name]
    costs = TokenCosts(max(prompt, write) / 1e6, read / 1e6, answer / 1e6)
    ours = scheduled(panel, cache_rule(family).lifetime_s, width)
    every = [
        OutgoingCall(step, teacher, 0) for _, names in panel.steps for step in names for teacher in TEACHERS
    ]
    price: Callable[[Sent], float] = lambda sent: cost_usd(panel, sent, family, costs)  # noqa: E731
    spent, short = price(ours), len(panel.steps[0][1]) <= MOST_STEPS
    best = optimum_usd(panel, family, costs) if short else float("nan")
    same = price(unordered(panel, [call for _, _, call in ours], width, seed))
    all_of_them = price(unordered(panel, every, width, seed))
    return (
        f"| {name} | {len(ours):,} of {len(every):,} | {spent:.3f} | {best:.3f} | {spent / best:.3f}"
        f" | {spent / same:.3f} | {spent / all_of_them:.3f} |"
    )


def main() -> None:
    """Simulate and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--traces", type=int, default=200)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--concurrency", type=int, default=16)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    panel = StateVotes.drawn(given.traces, given.steps, given.seed)
    print("| three teachers at the prices of | asked | USD | optimum | ratio | unordered | all, unordered |")
    print("|---|---|---|---|---|---|---|")
    for name in ROWS:
        print(row(name, panel, given.concurrency, given.seed), flush=True)


if __name__ == "__main__":
    main()
