"""The order of questions, on a clock that the test turns: laws over random replays, and named cases."""

import heapq
import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracemill.agreement.equivalence.ladder import ActionKeys
from tracemill.agreement.voting.early_stop import Stop, StopDecision, early_stop_batch_size, why_stop_early
from tracemill.agreement.voting.labels import ValidVote
from tracemill.agreement.voting.policy import VotePolicy
from tracemill.teachers.planning.schedule import (
    AT_CAP,
    DEADLINE,
    FULL,
    NOT_NEEDED,
    PairLimits,
    ScarceBudget,
    Schedule,
    ScheduleRules,
)
from tracemill.teachers.planning.segments import SHORTEST, ChainCutRule, StepTokens, find_segment_cuts
from tracemill.teachers.planning.strand_state import OutgoingCall, StepWork
from tracemill.teachers.planning.throughput import TeacherPace
from tracemill.teachers.pricing.cache_rules import CacheRule
from tracemill.teachers.pricing.prompt_cache import PromptCache, TokenCosts

OWN, A, B = (ActionKeys(name, name, name, name, name) for name in ("student", "a", "b"))
TEACHERS = ("t0", "t1", "t2", "t3")


@dataclass
class Play:
    """A replay in simulated time: `votes` has what each teacher would vote at each step (None: nothing),
    `takes` the seconds of each question."""

    votes: dict[tuple[str, str], ActionKeys | None]
    takes: Callable[[OutgoingCall], float]
    stop: Stop = "lossless"
    policy: VotePolicy = field(default_factory=VotePolicy)
    sent: list[tuple[float, OutgoingCall]] = field(default_factory=list)
    home: dict[OutgoingCall, float] = field(default_factory=dict)
    most_out: int = 0
    heard: dict[str, dict[str, set[int]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(set))
    )
    room: int | None = None
    """Pairs that are kept of a strand; None: no limit."""
    closed: list[str] = field(default_factory=list)

    def has_pair(self, step_id: str) -> bool:
        votes = [self.votes.get((step_id, teacher)) for teacher in self.heard.get(step_id, ())]
        return any(votes.count(one) >= self.policy.threshold for one in (A, B))

    def pairs_of(self, trace_id: str) -> int:
        return sum(step_id.split(":")[0] == trace_id and self.has_pair(step_id) for step_id in self.closed)

    def limits(self) -> PairLimits | None:
        room = self.room
        if room is None:
            return None
        return PairLimits(
            lambda step_id: self.pairs_of(step_id.split(":")[0]) >= room,
            lambda trace_id: max(1, room - self.pairs_of(trace_id)),
            self.closed.append,
        )

    def decide(self, step_id: str, waiting: Sequence[str]) -> StopDecision:
        votes = [
            ValidVote(teacher, teacher, vote)
            for teacher in self.heard[step_id]
            if teacher not in waiting and (vote := self.votes.get((step_id, teacher)))
        ]
        why = why_stop_early(votes, OWN, waiting, self.policy, self.stop)
        return StopDecision(
            why, 0 if why else early_stop_batch_size(votes, OWN, waiting, self.policy, self.stop)
        )

    def run(
        self,
        works: Sequence[tuple[str, Sequence[StepWork]]],
        rules: ScheduleRules,
        lifetime_s: float = 300.0,
        meanwhile: Callable[[Schedule, float], None] = lambda schedule, now: None,
    ) -> Schedule:
        """All of it; gives the schedule at the end."""
        pace = TeacherPace(dict.fromkeys(TEACHERS, lifetime_s))
        schedule = Schedule(works, TEACHERS, rules, self.decide, pace, limits=self.limits())
        flying: list[tuple[float, OutgoingCall]] = []
        now = 0.0
        while True:
            for call in schedule.next(now, rules.width - len(flying)):
                self.sent.append((now, call))
                heapq.heappush(flying, (now + self.takes(call), call))
            self.most_out = max(self.most_out, len(flying))
            assert schedule.in_flight == len(flying)
            if not flying:
                return schedule
            now, call = heapq.heappop(flying)
            self.home[call] = now
            self.heard[call.step_id][call.teacher].add(call.sample)
            schedule.done(call, now)
            meanwhile(schedule, now)


def strands(lengths: Sequence[int], teachers: int = 3, samples: int = 1) -> list[tuple[str, list[StepWork]]]:
    return [
        (
            f"s{number}",
            [
                StepWork(f"s{number}:{step}", dict.fromkeys(TEACHERS[:teachers], range(samples)))
                for step in range(length)
            ],
        )
        for number, length in enumerate(lengths)
    ]


def vote_at_random(
    works: list[tuple[str, list[StepWork]]], seed: int
) -> dict[tuple[str, str], ActionKeys | None]:
    rng = random.Random(seed)
    options = [None, OWN, OWN, OWN, A, A, B]
    return {(s.step_id, t): rng.choice(options) for _, steps in works for s in steps for t in s.wanted}


def lognormal(seed: int, median_s: float = 8.0, sigma: float = 0.6) -> Callable[[OutgoingCall], float]:
    return lambda call: median_s * random.Random(f"{seed}{call}").lognormvariate(0, sigma)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.integers(0, 7), min_size=1, max_size=4),
    st.integers(1, 4),
    st.integers(1, 3),
    st.integers(1, 9),
    st.sampled_from(["off", "lossless", "tiered"]),
    st.sampled_from([None, 1, 2, 8]),
    st.sampled_from([None, 0.0, 20.0, 90.0]),
    st.sampled_from([0.0, 12.0, 300.0]),
    st.sampled_from(["", "chain", "teacher", "all"]),
    st.sampled_from([None, 1, 2]),
    st.integers(0, 10**6),
)
def test_laws(
    lengths: list[int],
    teachers: int,
    samples: int,
    width: int,
    stop: Stop,
    lead: int | None,
    deadline: float | None,
    lifetime_s: float,
    ends: str,
    room: int | None,
    seed: int,
) -> None:
    works = strands(lengths, teachers, samples)
    rng = random.Random(seed)
    for _, steps in works:  # some was answered before, and is not asked
        for number, step in enumerate(steps):
            kept = {t: [s for s in given if rng.random() < 0.9] for t, given in step.wanted.items()}
            steps[number] = StepWork(step.step_id, kept)
    play = Play(vote_at_random(works, seed), lognormal(seed), stop, room=room)
    ending = rng.randrange(1, 12)

    def meanwhile(schedule: Schedule, now: float) -> None:
        if ends and len(play.home) == ending:
            trace, teacher = ("s0" if ends == "chain" else None), (None if ends == "all" else "t0")
            schedule.end("ended", now, trace, teacher)

    schedule = play.run(works, ScheduleRules(lead, deadline, width), lifetime_s, meanwhile)
    wanted = [
        OutgoingCall(s.step_id, t, n)
        for _, steps in works
        for s in steps
        for t in s.wanted
        for n in s.wanted[t]
    ]
    asked = [call for _, call in play.sent]
    # every question goes out once, or is dropped with a reason, and nothing else does
    assert sorted([*asked, *schedule.dropped]) == sorted(wanted)
    assert all(
        reason == "ended" or reason == DEADLINE or reason.startswith(NOT_NEEDED)
        for reason in schedule.dropped.values()
    )
    assert play.most_out <= width
    assert deadline is None or all(now < deadline for now, _ in play.sent)
    if not ends and deadline is None and stop == "off" and room is None:
        assert not schedule.dropped
    for _, steps in works:
        check_chains(play, steps)


def check_chains(play: Play, steps: list[StepWork]) -> None:
    """In the order of steps, one unanswered first question at a time, samples behind the first."""
    went = {call: now for now, call in play.sent}
    place = {call: number for number, (_, call) in enumerate(play.sent)}
    for teacher in TEACHERS:
        last: OutgoingCall | None = None
        for step in steps:
            here = [OutgoingCall(step.step_id, teacher, n) for n in step.wanted.get(teacher, ())]
            here = [call for call in here if call in went]
            for call in here[:1]:
                if last is not None:
                    assert place[call] > place[last]
                    assert went[call] >= play.home[last]
                last = call
            for call in here[1:]:
                assert went[call] >= play.home[here[0]]


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 6), st.integers(1, 12), st.sampled_from(["lossless", "tiered"]), st.integers(0, 10**6))
def test_no_answer_is_bought_that_the_others_had_made_superfluous(
    length: int, width: int, stop: Stop, seed: int
) -> None:
    """Whoever is asked was needed whatever those on their way would answer."""
    works = strands([length, length])
    play = Play(vote_at_random(works, seed), lognormal(seed), stop)
    play.run(works, ScheduleRules(width=width))
    for step_id, by_teacher in play.heard.items():
        for teacher in by_teacher:
            others = [
                ValidVote(other, other, vote)
                for other in by_teacher
                if other < teacher and (vote := play.votes[step_id, other])
            ]
            later = [t for t in TEACHERS[:3] if t >= teacher]
            assert not why_stop_early(others, OWN, later, play.policy, stop)


def test_the_first_runs_ahead_by_no_more_than_its_lead() -> None:
    works = strands([40])
    always: dict[tuple[str, str], ActionKeys | None] = {
        (f"s0:{n}", t): ActionKeys(t, t, t, t, t) for n in range(40) for t in TEACHERS[:3]
    }
    play = Play(always, lambda call: 1.0 if call.teacher == "t0" else 5.0, "tiered")
    play.run(works, ScheduleRules(lead=4, width=8))
    ahead = []
    for now, call in play.sent:
        if call.teacher == "t0":
            third = [c for c, home in play.home.items() if c.teacher == "t2" and home <= now]
            ahead.append(int(call.step_id[3:]) - len(third))
    assert max(ahead) == 3


def gaps_s(play: Play, teacher: str) -> list[float]:
    """Seconds between an answer of a chain and its next question."""
    found: dict[str, float] = {}
    gaps = []
    for now, call in play.sent:
        trace = call.step_id.split(":")[0]
        if call.teacher == teacher:
            if trace in found:
                gaps.append(now - found[trace])
            found[trace] = play.home[call]
    return gaps


def test_chains_stay_inside_the_lifetime_of_the_cache_however_many_there_are() -> None:
    """400 chains on 8 places: round robin would come back to each after 400 s and more."""
    works = strands([12] * 400, teachers=1)
    play = Play({}, lognormal(1), "off")
    play.run(works, ScheduleRules(lead=None, width=8), lifetime_s=60.0)
    assert max(gaps_s(play, "t0")) < 1.0


def test_a_follower_whose_calls_would_lie_apart_makes_them_in_one_burst() -> None:
    """Every tenth step needs the second teacher. Of the long trace it keeps pace, since all wait for that
    one; of the short one it waits, once that is known, until the first is through."""
    works = strands([200, 80])
    votes: dict[tuple[str, str], ActionKeys | None] = {}
    for _, steps in works:
        for number, step in enumerate(steps):
            votes |= {
                (step.step_id, t): ActionKeys(t, t, t, t, t) if number % 10 == 5 else OWN
                for t in TEACHERS[:3]
            }
    play = Play(votes, lambda call: 30.0, "tiered")
    play.run(works, ScheduleRules(width=8), lifetime_s=300.0)
    went = {call: now for now, call in play.sent}
    through = play.home[OutgoingCall("s1:79", "t0", 0)]
    short = [went[call] for call in went if call.teacher == "t1" and call.step_id.startswith("s1:")]
    assert len(short) == 8
    assert min(short[2:]) >= through
    assert short[-1] - short[2] == 5 * 30
    assert max(play.home.values()) <= 200 * 30 + 4 * 60


@pytest.mark.parametrize("room", [1, 2, 3])
def test_no_step_is_begun_whose_pair_has_no_room(room: int) -> None:
    """Of 8 strands of 40 steps with a pair at some of them, none buys more pairs than it has room for;
    and where there are as many, no fewer."""
    works = strands([40] * 8)
    play = Play(vote_at_random(works, 7), lognormal(3), "lossless", room=room)
    schedule = play.run(works, ScheduleRules(None, None, 32))
    assert [play.pairs_of(trace_id) for trace_id, _ in works] == [room] * 8
    begun = {call.step_id for _, call in play.sent}
    left_out = {call.step_id for call, reason in schedule.dropped.items() if reason == FULL}
    assert begun.isdisjoint(left_out)
    assert len(begun) + len(left_out) == 320
    assert len(begun) == {1: 69, 2: 95, 3: 115}[room]
    assert play.most_out >= 8  # the strands go side by side


def test_a_step_that_waits_for_a_teacher_who_is_held_up_before_it_does_not_stop_the_strand() -> None:
    steps = [
        StepWork("s0:0", {"t1": range(1)}),  # t0 is of the student's family there
        StepWork("s0:1", {"t0": range(1), "t1": range(1)}),
    ]
    play = Play({(s.step_id, t): OWN for s in steps for t in s.wanted}, lambda call: 1.0, "off", room=1)
    schedule = play.run([("s0", steps)], ScheduleRules(None, None, 1))
    assert len(play.sent) == 3
    assert not schedule.dropped


@dataclass
class Purchase:
    """What a scarce budget buys of 60 strands of 10 steps, answered in an order drawn from `seed`.

    An answer costs `times` what is expected of it, and more or less by a factor of its own.
    """

    width: int
    seed: int
    times: float
    spread: float
    spent: int = 0
    took_s: float = 0.0
    bought: set[OutgoingCall] = field(default_factory=set)

    def cost_of(self, call: OutgoingCall) -> tuple[int, int]:
        """The expected and the actual cost of a call."""
        expected = 100 * (TEACHERS.index(call.teacher) + 1) + 10 * int(call.step_id.split(":")[1])
        return expected, int(expected * self.times * random.Random(str(call)).lognormvariate(0, self.spread))

    def run(self, share: float) -> "Purchase":
        works = strands([10] * 60, teachers=4)
        calls = [
            OutgoingCall(step.step_id, t, 0) for _, steps in works for step in steps for t in step.wanted
        ]
        cap = int(sum(self.cost_of(call)[1] for call in calls) * share)
        expected = {call: self.cost_of(call)[0] for call in calls}
        budget = ScarceBudget(expected, lambda: cap - self.spent, lambda: self.spent)
        rules = ScheduleRules(None, width=self.width)
        pace = TeacherPace(dict.fromkeys(TEACHERS, 300.0))
        schedule = Schedule(
            works, TEACHERS, rules, lambda _, waiting: StopDecision("", len(waiting)), pace, budget=budget
        )
        rng = random.Random(self.seed)
        flying: list[tuple[float, OutgoingCall]] = []
        now = 0.0
        while True:
            for call in schedule.next(now, self.width - len(flying)):
                heapq.heappush(flying, (now + rng.lognormvariate(0, 1), call))
            if not flying:
                self.took_s = now
                return self
            now, call = heapq.heappop(flying)
            cost = self.cost_of(call)[1]
            if self.spent + cost > cap:
                schedule.done(call, now, answered=False)
                schedule.end(AT_CAP, now, call.step_id.split(":")[0], call.teacher)
            else:
                self.spent += cost
                self.bought.add(call)
                schedule.done(call, now)

    def finished(self) -> float:
        """The share of the begun strands of which all is bought."""
        of_strand = defaultdict[str, int](int)
        for call in self.bought:
            of_strand[call.step_id.split(":")[0]] += 1
        return list(of_strand.values()).count(40) / len(of_strand)


@pytest.mark.parametrize(("times", "spread"), [(0.5, 1.0), (1.0, 1.0), (2.0, 0.3), (4.0, 1.0)])
def test_what_a_cap_buys_depends_on_no_width_no_order_of_answers_and_no_wrong_expectation(
    times: float, spread: float
) -> None:
    plays = [Purchase(width, seed, times, spread).run(share=0.3) for width in (8, 64, 256) for seed in (1, 2)]
    overlaps = [len(a.bought & b.bought) / len(a.bought | b.bought) for a in plays for b in plays]
    assert min(overlaps) >= 0.9
    assert min(play.finished() for play in plays) >= 0.65
    assert max(play.took_s for play in plays[2:]) < 0.8 * min(play.took_s for play in plays[:2])


def test_after_the_deadline_nothing_goes_out_and_what_is_left_has_its_reason() -> None:
    works = strands([30, 30], teachers=2)
    play = Play({}, lambda call: 8.0, "off")
    schedule = play.run(works, ScheduleRules(lead=None, deadline=60.0, width=4))
    assert max(now for now, _ in play.sent) == 56.0
    assert len(play.sent) == 4 * 8
    assert set(schedule.dropped.values()) == {DEADLINE}
    assert len(schedule.dropped) == 4 * 30 - 4 * 8


def test_a_teacher_that_is_out_makes_way_for_the_next() -> None:
    works = strands([5])
    votes: dict[tuple[str, str], ActionKeys | None] = {(f"s0:{n}", t): A for n in range(5) for t in TEACHERS}
    play = Play(votes, lambda call: 8.0)

    def meanwhile(schedule: Schedule, now: float) -> None:
        if len(play.home) == 2:
            schedule.end("teacher out", now, teacher="t1")

    schedule = play.run(works, ScheduleRules(), meanwhile=meanwhile)
    by_teacher = {t: [c.step_id for _, c in play.sent if c.teacher == t] for t in TEACHERS[:3]}
    assert by_teacher["t0"] == [f"s0:{n}" for n in range(5)]
    assert len(by_teacher["t1"]) in (1, 2)
    assert [step for step in by_teacher["t0"] if step not in by_teacher["t1"]] == by_teacher["t2"]
    assert sum(reason == "teacher out" for reason in schedule.dropped.values()) == 5 - len(by_teacher["t1"])


def shaped(seed: int) -> list[int]:
    """Lengths of 60 sessions, median 30 steps, one of them longer than all others."""
    rng = random.Random(seed)
    return [*(min(150, max(1, round(rng.lognormvariate(3.4, 0.9)))) for _ in range(59)), 240]


@pytest.mark.parametrize("stop", ["lossless", "tiered"])
def test_the_makespan_is_near_what_the_longest_path_and_the_work_allow(stop: Stop) -> None:
    works = strands(shaped(3))
    takes = lognormal(3)
    play = Play(vote_at_random(works, 3), takes, stop)
    schedule = play.run(works, ScheduleRules(width=12))
    assert len(play.sent) + len(schedule.dropped) == sum(len(steps) for _, steps in works) * 3
    work_s = sum(takes(call) for _, call in play.sent) / 12
    path_s = max(sum(takes(OutgoingCall(s.step_id, "t0", 0)) for s in steps) for _, steps in works)
    assert max(play.home.values()) <= 1.05 * max(work_s, path_s)


CHEAP = TokenCosts(fresh_usd=1e-6, read_usd=1e-7, answer_usd=4e-6)


def growing(steps: int) -> list[StepTokens]:
    """Prompts that grow from 10,000 by 500 tokens a step; at step 100 the session was compacted."""
    tokens = [10_000 + 500 * (n if n < 100 else n - 100) for n in range(steps)]
    return [StepTokens(t, 0 if n in (0, 100) else tokens[n - 1]) for n, t in enumerate(tokens)]


@pytest.mark.parametrize(
    ("target_s", "max_extra", "expected"),
    [
        (1600.0, 0.5, [0]),  # 200 steps of 8 s fit
        (1500.0, 0.0, [0, 100]),  # where the prompt was compacted, a cut is free
        (700.0, 0.01, [0, 100]),  # a second one is not
        (700.0, 0.5, [0, 25, 100, 125]),  # the earlier the cut, the less is written again
    ],
)
def test_a_chain_is_cut_where_time_is_worth_a_prefix_written_again(
    target_s: float, max_extra: float, expected: list[int]
) -> None:
    found = find_segment_cuts(growing(200), [CHEAP, CHEAP], 600, ChainCutRule(target_s, 8.0, max_extra))
    assert found == expected


@settings(deadline=None)
@given(st.integers(0, 300), st.floats(1, 5000), st.floats(0, 1))
def test_cuts_are_in_order_and_segments_are_not_crumbs(steps: int, target_s: float, max_extra: float) -> None:
    found = find_segment_cuts(growing(steps), [CHEAP], 600, ChainCutRule(target_s, 8.0, max_extra))
    assert found[0] == 0
    assert all(b - a >= SHORTEST for a, b in zip(found, [*found[1:], steps], strict=True) if len(found) > 1)


def test_a_cache_keeps_what_was_answered_for_its_lifetime_and_what_is_read_lives_on() -> None:
    cache = PromptCache(CacheRule(marked=True))
    assert cache.read("a", 5000, 0.0) == 0
    cache.answered("a", 5000, 10.0)
    assert cache.read("b", 6000, 20.0) == 0
    assert cache.read("a", 6000, 310.0) == 5000
    assert cache.read("a", 6000, 610.0) == 5000  # read at 310
    assert cache.read("a", 4000, 611.0) == 0  # no breakpoint there
    assert cache.read("a", 6000, 911.0) == 0
    cache.answered("a", 900, 911.0)
    assert cache.read("a", 1000, 912.0) == 0  # too short to be kept
    anywhere = PromptCache(CacheRule())
    anywhere.answered("a", 5000, 0.0)
    assert anywhere.read("a", 4000, 1.0) == 4000
    assert CHEAP.call_usd(10_000, 6_000, 100) == pytest.approx(0.004 + 0.0006 + 0.0004)
