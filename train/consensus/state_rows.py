"""Make rows of states that teachers answered in, and give an action in one its reward."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Self

from tracemill.agreement.equivalence.ladder import ladder_keys
from tracemill.agreement.voting.consensus_reward import STUDENT, ConsensusShape, consensus_reward
from tracemill.agreement.voting.policy import VotePolicy
from tracemill.agreement.world.replay_context import replay_context
from tracemill.agreement.world.world_state import EnvironmentState
from tracemill.harnesses.presentation import Presentation
from tracemill.records.message import Action, Message, ToolCall, ToolSpec
from tracemill.records.pair import Vote
from tracemill.records.reply import TeacherReply
from tracemill.records.trace import Context, MessageView, TraceState
from tracemill.train.hints.hint_rows import conversation_message

STATE_COLUMNS = ("step_id", "harness", "prompt", "tools", "answers")
_LEVEL = VotePolicy().level


def state_row(
    state: TraceState,
    shown: Presentation,
    votes: Sequence[Vote],
    replies: Sequence[TeacherReply],
    scores: Mapping[str, float] | None = None,
) -> dict[str, Any]:
    """Return the row of a state, as JSON takes it.

    It has `step_id`, `harness`, `cwd`, `prompt` (a conversation as TRL takes it), `failed` (which of its
    messages are results of failed calls), `tools`, `answers` (`teacher` and `action` of each vote that
    counts), `scored` (actions with `scores` by teacher: the student's, where `scores` are given) and
    `simulated` (whether any of the answers is).
    """
    counted = {vote.request_key for vote in votes if vote.counted}
    answers = [reply for reply in replies if reply.request_key in counted]
    messages = list(MessageView(shown.messages, shown.cuts[state.step.index]))
    own = conversation_message(state.student_action.to_message())
    return {
        "step_id": str(state.step_id),
        "harness": state.trace.harness,
        "cwd": state.step.cwd,
        "prompt": [conversation_message(each) for each in messages],
        "failed": [n for n, each in enumerate(messages) if each.is_error or each.error_kind],
        "tools": [tool.to_wire() for tool in shown.tools],
        "answers": [
            {
                "teacher": reply.teacher,
                "action": conversation_message((reply.action or Action()).to_message()),
            }
            for reply in answers
        ],
        "scored": [{"action": own, "scores": dict(scores)}] if scores else [],
        "simulated": any(reply.simulated for reply in answers),
    }


@dataclass(frozen=True, slots=True)
class AnsweredState:
    """A state with the teachers' answers, by the keys that decide whether actions are equal."""

    world: EnvironmentState
    answers: tuple[tuple[str, str], ...]
    """Teacher, and the key of its action."""
    scores: Mapping[str, Mapping[str, float]]
    """Scores by teacher of actions, by their key."""

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> Self:
        """Read a row of `state_row`."""
        failed = set(row.get("failed") or ())
        messages = tuple(message_of(each, n in failed) for n, each in enumerate(row["prompt"]))
        record = replay_context(Context(0, messages, ()), row["harness"])
        tools = tuple(_tool(each) for each in row["tools"])
        world = EnvironmentState(row["harness"], row.get("cwd"), tools, record, len(messages))
        return cls(
            world,
            tuple((each["teacher"], _key(message_of(each["action"]), world)) for each in row["answers"]),
            {_key(message_of(each["action"]), world): each["scores"] for each in row.get("scored") or ()},
        )

    def reward(
        self, action: Message, shape: ConsensusShape, teacher_weights: Mapping[str, float]
    ) -> float | None:
        """Return the reward of an action here: that of `consensus_reward`, None as there."""
        own = _key(action, self.world)
        votes = [_vote(teacher, STUDENT if key == own else key) for teacher, key in self.answers]
        return consensus_reward(votes, shape, teacher_weights, self.scores.get(own))


@lru_cache(maxsize=4096)
def read_state(text: str) -> AnsweredState:
    """Parse a state from a row as JSON."""
    return AnsweredState.of_row(json.loads(text))


def count_simulated_states(rows: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Count the states with a simulated answer, as `simulated_states`; empty if there is none."""
    count = sum(bool(row.get("simulated")) for row in rows)
    return {"simulated_states": count} if count else {}


def message_of(wire: Mapping[str, Any], failed: bool = False) -> Message:
    """Return a message of a conversation; a call may be a text of JSON, and so may its arguments."""
    calls = []
    for given in wire.get("tool_calls") or ():
        call = json.loads(given) if isinstance(given, str) else given
        function = call["function"]
        arguments = function.get("arguments", "")
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        calls.append(ToolCall(call.get("id") or "", function["name"], text))
    return Message(
        wire["role"],
        wire.get("content") or "",
        tuple(calls),
        wire.get("tool_call_id"),
        is_error=True if failed else None,
    )


def _key(action: Message, world: EnvironmentState) -> str:
    return ladder_keys(Action.of(action), world).at(_LEVEL)


def _tool(wire: Mapping[str, Any]) -> ToolSpec:
    function = wire["function"]
    return ToolSpec(function["name"], function.get("description") or "", function.get("parameters") or {})


def _vote(teacher: str, key: str) -> Vote:
    return Vote(
        teacher=teacher,
        family="",
        sample=0,
        counted=True,
        reason="",
        key=key,
        operation="",
        agrees=False,
        cost_usd=0.0,
        request_key="",
    )
