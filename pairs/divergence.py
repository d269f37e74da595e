"""Pairs at a divergence: a step up to which runs of one task are the same, and what each run did there."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from tracemill.agreement.calls.canonical import EMPTY_KEY
from tracemill.agreement.equivalence.ladder import ActionKeys, in_ladder_dead_zone, ladder_keys
from tracemill.agreement.world.replay_context import environment_at, replay_context
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
class DivergingRun:
    """A run at a divergence: its action, and the values that a pair records of it.

    `exact`, `intent`, `action_class` and `parts` are equivalence keys of its action. `offered` holds the
    names of the tools that were shown; `whole` is True if they are recorded, so that there were no others.
    `called` holds the tools it called, as JSON.
    """

    trace: str
    resolved: bool
    step_id: str
    message: Message
    exact: str
    intent: str
    action_class: str
    parts: frozenset[str]
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

    def alike(self, other: "DivergingRun") -> bool:
        """Return whether the runs did the same, or one did a part of the other's action."""
        return self.intent == other.intent or in_ladder_dead_zone(self._keys(), other._keys())

    def _keys(self) -> ActionKeys:
        return ActionKeys(self.exact, "", "", self.intent, self.action_class, parts=self.parts)

    @property
    def order(self) -> tuple[int, str, str]:
        """Return a sort key; of runs that did the same, the first (shortest) one represents them."""
        calls = sum(len(call.arguments) for call in self.message.tool_calls)
        return len(self.message.content) + calls, self.exact, self.trace


def build_diverging_run(state: TraceState) -> DivergingRun:
    """Build the record of a run's action at a step."""
    trace, cut = state.trace, state.step.cut
    steps = state.context.steps[: state.step.index + 1]
    until = replace(state.context, messages=state.context.messages[: cut + 1], steps=steps)
    state = TraceState(trace, until, state.step)
    prompt = present_context(trace, until)
    called_tools = _names(state.student_action.tool_calls)
    keys = ladder_keys(
        state.student_action,
        environment_at(state, prompt.tools, replay_context(state.context, trace.harness)),
    )
    return DivergingRun(
        trace=trace.trace_id,
        resolved=trace.outcome == "resolved",
        step_id=str(state.step_id),
        message=state.student_action.to_message(),
        exact=keys.exact,
        intent=keys.intent,
        action_class=keys.action_class,
        parts=keys.parts,
        offered=frozenset(tool.name for tool in prompt.tools),
        whole=bool(until.tools),
        called=tools_to_json([tool for tool in prompt.tools if tool.name in called_tools]),
        operation=str(find_action_operation(state.student_action, trace.harness)),
        source=trace.source,
        harness=trace.harness,
        presentation=prompt.label,
        student_model=state.step.model,
        student_family=state.step.family,
        project=trace.project,
        repository=trace.repository,
        instance_id=trace.instance_id,
        licence=trace.licence,
    )


def to_json(run: DivergingRun) -> str:
    """Encode a run as a JSON object."""
    sets = {"parts": sorted(run.parts), "offered": sorted(run.offered)}
    return json.dumps(asdict(run) | sets)


def from_json(body: str) -> DivergingRun:
    """Decode what `to_json` wrote."""
    value = json.loads(body)
    message = value["message"]
    calls = tuple(ToolCall(**call) for call in message["tool_calls"])
    value["message"] = Message("assistant", message["content"], calls)
    value |= {name: frozenset(value[name]) for name in ("parts", "offered")}
    return DivergingRun(**value)


def judge_divergence(runs: Sequence[DivergingRun]) -> tuple[list[DPOPair], Counter[str]]:
    """Return the pairs of one divergence, and counted reasons for the unresolved runs without one.

    The outcome does not depend on the order of the runs.
    """
    by_intent: dict[str, list[DivergingRun]] = {}
    for run in sorted(runs, key=lambda run: run.order):
        if run.action_class != EMPTY_KEY:
            by_intent.setdefault(run.intent, []).append(run)
    groups = list(by_intent.values())
    better = sorted((group for group in groups if any(run.resolved for run in group)), key=_success_order)
    pairs: list[DPOPair] = []
    reasons: Counter[str] = Counter()
    for group in groups:
        rejected = next((run for run in group if not run.resolved), None)
        if rejected is None:
            continue
        if any(rejected.alike(run) for other in better for run in other):
            reasons[SAME] += 1
            continue
        offered = (other for other in better if _is_offered(_first_resolved(other), rejected))
        chosen = next(offered, None)
        if chosen is None:
            reasons[NOT_OFFERED] += bool(better)
        else:
            pairs.append(_pair(rejected, group, chosen))
    return pairs, +reasons


def _success_order(group: Sequence[DivergingRun]) -> tuple[float, int, tuple[int, str, str]]:
    resolved = sum(run.resolved for run in group)
    return -resolved / len(group), -resolved, group[0].order


def _first_resolved(group: Sequence[DivergingRun]) -> DivergingRun:
    return next(run for run in group if run.resolved)


def _is_offered(chosen: DivergingRun, rejected: DivergingRun) -> bool:
    return not rejected.whole or _names(chosen.message.tool_calls) <= rejected.offered


def _names(calls: Sequence[ToolCall]) -> set[str]:
    return {clean_schema_name(call.name) for call in calls}


def _pair(rejected: DivergingRun, group: Sequence[DivergingRun], others: Sequence[DivergingRun]) -> DPOPair:
    chosen = _first_resolved(others)
    licences = sorted({run.licence or "unknown" for run in (rejected, chosen)})
    evidence = (
        f"{sum(run.resolved for run in others)} of {len(others)} runs that did the chosen action "
        f"here were resolved, 0 of {len(group)} that did the rejected"
    )
    return DPOPair(
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
        licence=rejected.licence if len(licences) == 1 else " and ".join(licences),
        outcome="not_resolved",
    )
