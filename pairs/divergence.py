"""A parting: a step up to which runs of one task are the same, and what each of them did there."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from tracemill.agreement.calls.canonical import EMPTY_KEY
from tracemill.agreement.equivalence.ladder import Keys, in_ladder_dead_zone, ladder_keys
from tracemill.agreement.world.fold_context import record_of, world_of
from tracemill.harnesses.core.schema_builders import clean_schema_name
from tracemill.harnesses.operations import find_action_operation
from tracemill.harnesses.presentation import present_context
from tracemill.records.message import Message, ToolCall
from tracemill.records.pair import DPOPair
from tracemill.records.storage.trace_rows import tools_from_json, tools_to_json
from tracemill.records.trace import TraceState

SAME = "a resolved run did the same"
NOT_OFFERED = "calls a tool that was not shown"


@dataclass(frozen=True, slots=True)
class Member:
    """What one run did at a parting, and what a pair would say of it. `exact`, `intent`, `cls` and `reads`
    are its action on the ladder; `offered` the names of the tools that were shown, `whole` whether these are
    recorded, so that there were no others; `called` the tools it called, as JSON."""

    trace: str
    resolved: bool
    step_id: str
    message: Message
    exact: str
    intent: str
    cls: str
    reads: frozenset[str]
    offered: frozenset[str]
    whole: bool
    called: str
    operation: str
    source: str
    harness: str
    presentation: str
    student_model: str | None
    student_family: str
    project: str | None
    repository: str | None
    instance_id: str | None
    licence: str | None

    def alike(self, other: "Member") -> bool:
        """Whether the two did the same, or one a part of what the other did."""
        return self.intent == other.intent or in_ladder_dead_zone(self._keys(), other._keys())

    def _keys(self) -> Keys:
        return Keys(self.exact, "", "", self.intent, self.cls, reads=self.reads)

    @property
    def order(self) -> tuple[int, str, str]:
        """Of members that did the same the first one stands for them: the shortest."""
        calls = sum(len(call.arguments) for call in self.message.tool_calls)
        return len(self.message.content) + calls, self.exact, self.trace


def build_divergence_member(state: TraceState) -> Member:
    """What a run did at a step."""
    trace, cut = state.trace, state.step.cut
    steps = state.context.steps[: state.step.index + 1]
    until = replace(state.context, messages=state.context.messages[: cut + 1], steps=steps)
    state = TraceState(trace, until, state.step)
    shown = present_context(trace, until)
    called = _names(state.student_action.tool_calls)
    known = ladder_keys(
        state.student_action, world_of(state, shown.tools, record_of(state.context, trace.harness))
    )
    return Member(
        trace=trace.trace_id,
        resolved=trace.outcome == "resolved",
        step_id=str(state.step_id),
        message=state.student_action.to_message(),
        exact=known.exact,
        intent=known.intent,
        cls=known.cls,
        reads=known.reads,
        offered=frozenset(tool.name for tool in shown.tools),
        whole=bool(until.tools),
        called=tools_to_json([tool for tool in shown.tools if tool.name in called]),
        operation=str(find_action_operation(state.student_action, trace.harness)),
        source=trace.source,
        harness=trace.harness,
        presentation=shown.label,
        student_model=state.step.model,
        student_family=state.step.family,
        project=trace.project,
        repository=trace.repository,
        instance_id=trace.instance_id,
        licence=trace.licence,
    )


def to_json(member: Member) -> str:
    """A member as one JSON object."""
    sets = {"reads": sorted(member.reads), "offered": sorted(member.offered)}
    return json.dumps(asdict(member) | sets)


def from_json(body: str) -> Member:
    """The inverse of `to_json`."""
    value = json.loads(body)
    told = value["message"]
    calls = tuple(ToolCall(**call) for call in told["tool_calls"])
    value["message"] = Message("assistant", told["content"], calls)
    value |= {name: frozenset(value[name]) for name in ("reads", "offered")}
    return Member(**value)


def judge_divergence(members: Sequence[Member]) -> tuple[list[DPOPair], Counter[str]]:
    """The pairs of one parting, and for what an unresolved run did without giving one the reason, counted.
    The order of the members does not matter."""
    by_intent: dict[str, list[Member]] = {}
    for member in sorted(members, key=lambda member: member.order):
        if member.cls != EMPTY_KEY:
            by_intent.setdefault(member.intent, []).append(member)
    groups = list(by_intent.values())
    better = sorted((group for group in groups if any(m.resolved for m in group)), key=_merit)
    pairs: list[DPOPair] = []
    reasons: Counter[str] = Counter()
    for group in groups:
        rejected = next((member for member in group if not member.resolved), None)
        if rejected is None:
            continue
        if any(rejected.alike(member) for other in better for member in other):
            reasons[SAME] += 1
            continue
        offered = (other for other in better if _is_offered(_first_resolved(other), rejected))
        chosen = next(offered, None)
        if chosen is None:
            reasons[NOT_OFFERED] += bool(better)
        else:
            pairs.append(_pair(rejected, group, chosen))
    return pairs, +reasons


def _merit(group: Sequence[Member]) -> tuple[float, int, tuple[int, str, str]]:
    resolved = sum(member.resolved for member in group)
    return -resolved / len(group), -resolved, group[0].order


def _first_resolved(group: Sequence[Member]) -> Member:
    return next(member for member in group if member.resolved)


def _is_offered(chosen: Member, rejected: Member) -> bool:
    return not rejected.whole or _names(chosen.message.tool_calls) <= rejected.offered


def _names(calls: Sequence[ToolCall]) -> set[str]:
    return {clean_schema_name(call.name) for call in calls}


def _pair(rejected: Member, group: Sequence[Member], others: Sequence[Member]) -> DPOPair:
    chosen = _first_resolved(others)
    licences = sorted({member.licence or "unknown" for member in (rejected, chosen)})
    evidence = (
        f"{sum(member.resolved for member in others)} of {len(others)} runs that did the chosen action "
        f"here were resolved, 0 of {len(group)} that did the rejected"
    )
    made = DPOPair(
        step_id=rejected.step_id,
        label_source="siblings",
        state_messages=(),
        tools=tools_from_json(chosen.called),
        chosen=(chosen.message,),
        rejected=(rejected.message,),
        chosen_operation=chosen.operation,
        rejected_operation=rejected.operation,
        source=rejected.source,
        harness=rejected.harness,
        presentation=rejected.presentation,
        student_model=rejected.student_model,
        student_family=rejected.student_family,
        policy="siblings",
        verified="outcome",
        evidence=evidence,
        project=rejected.project,
        repository=rejected.repository,
        instance_id=rejected.instance_id,
        licence=rejected.licence,
        outcome="not_resolved",
    )
    return made if len(licences) == 1 else replace(made, licence=" and ".join(licences))
