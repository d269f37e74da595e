"""Compute the gate's features of a table's steps.

A row has what the student saw and did, the result, and whether the session ended there. What the student did
afterwards is not taken from deeper rows: that a table has them says that other models did the same.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson

from tracemill.evaluate.table.recorded_states import StateTable, TableState
from tracemill.records.message import Action, Message
from tracemill.records.storage.text_lines import lines_of
from tracemill.records.trace import Context, Outcome, Step, Trace
from tracemill.teachers.gate.features import GateStepFeatures, build_step_features
from tracemill.teachers.offline.recorded_table import RecordedState, iter_recorded_table
from tracemill.teachers.offline.recorded_values import recorded_ending_value

_GOES_ON = Message("assistant", "(the session goes on)")


@dataclass(frozen=True, slots=True)
class ActionResult:
    """The result of an action, and the outcome of its session; `unknown` if the session went on."""

    result: str | None
    ended: bool
    outcome: Outcome


def read_step_facts(path: Path, table: StateTable) -> dict[tuple[int, str], GateStepFeatures]:
    """Return the gate's features of every step of a table, by state number and model.

    Raises TeacherError if the file cannot be read.
    """
    acts = {
        (row.state_id, model): answer.action
        for row in iter_recorded_table(path)
        if isinstance(row, RecordedState)
        for model, answer in row.answers.items()
    }
    after = dict(_aftermaths(path))
    found: dict[tuple[int, str], GateStepFeatures] = {}
    for state in table.states:
        for model in state.acted:
            action = acts[state.state_id, model]
            trace = _trace(state, model, action, after.get((state.state_id, model)))
            facts = build_step_features(trace, {0: state.tools})[_steps(state)]
            found[state.number, model] = facts
    return found


def _aftermaths(path: Path) -> Iterator[tuple[tuple[str, str], ActionResult]]:
    for line in lines_of(path):
        try:
            row = orjson.loads(line)
            state_id, given = str(row["state_id"]), row["actions"].items()
        except (ValueError, KeyError, TypeError, AttributeError):
            continue
        for model, action in given:
            if isinstance(action, dict):
                yield (state_id, str(model)), _aftermath(action)


def _aftermath(action: Mapping[str, Any]) -> ActionResult:
    result, ended = action.get("observation"), action.get("last_turn") is True
    ending = recorded_ending_value(action)
    outcome: Outcome = "unknown"
    if ended and ending is not None:
        outcome = "resolved" if ending >= 1 else "not_resolved"
    return ActionResult(result if isinstance(result, str) else None, ended, outcome)


def _steps(state: TableState) -> int:
    return sum(message.role == "assistant" for message in state.messages)


def _trace(state: TableState, model: str, action: Action, after: ActionResult | None) -> Trace:
    """Return the session up to the result of the action."""
    calls = tuple(replace(call, id=f"last-{place}") for place, call in enumerate(action.tool_calls))
    messages = [*state.messages, replace(action.to_message(), tool_calls=calls)]
    if after is not None and after.result is not None:
        answered = calls[0].id if calls else None
        messages.append(Message("tool" if calls else "user", after.result, tool_call_id=answered))
    if after is None or not after.ended:
        messages.append(_GOES_ON)
    cuts = [at for at, message in enumerate(messages) if message.role == "assistant"]
    steps = tuple(Step(number, cut, model) for number, cut in enumerate(cuts))
    return Trace(
        f"table-{state.number}-{model}",
        "swe_agent",
        "table",
        state.harness,
        (Context(0, tuple(messages), steps, tools=state.tools),),
        outcome="unknown" if after is None else after.outcome,
    )
