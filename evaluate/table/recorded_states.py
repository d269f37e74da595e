"""Read a multi-model table into states with compared, priced and validated actions."""

import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import orjson

from tracemill.agreement.calls.arguments import fold_text
from tracemill.agreement.equivalence.ladder import ActionKeys, ladder_keys
from tracemill.agreement.equivalence.student_action import mark_action_broken
from tracemill.agreement.equivalence.validity import why_reply_invalid
from tracemill.agreement.voting.vote import vote_of_reply
from tracemill.agreement.world.replay_context import replay_context
from tracemill.agreement.world.world_state import EnvironmentState
from tracemill.evaluate.table.model_prices import find_model_prices
from tracemill.harnesses.agents.registry import HARNESSES, unknown_harness
from tracemill.harnesses.agents.swe_agent_commands import parse_swe_agent_command
from tracemill.records.errors import SourceError
from tracemill.records.identity import digest
from tracemill.records.message import Action, Message, ToolCall, ToolSpec
from tracemill.records.reply import TeacherReply
from tracemill.records.trace import Context
from tracemill.teachers.client.build_request import count_message_bytes
from tracemill.teachers.core.price import Price, price_of
from tracemill.teachers.core.question import Question
from tracemill.teachers.core.teacher_settings import PriceSettings, RecordedTeacherSettings
from tracemill.teachers.offline.recorded_table import (
    BrokenRow,
    RecordedAnswer,
    RecordedState,
    iter_recorded_table,
)
from tracemill.teachers.offline.recorded_teacher import RecordedTeacher
from tracemill.teachers.planning.measured_usage import BYTES_A_TOKEN

UNSENT = "evaluation"
"""Redaction version of a table's questions, which never leave this machine."""
_FOLDER = re.compile(r"\(Current directory: ([^)\n]+)\)")


@dataclass(frozen=True, slots=True)
class RecordedAction:
    """A model's action in a state.

    `reason` says why it has no vote, "" if it has one. `folded` has the normalised text as its exact key.
    `usd` is the cost of asking without a cache. `estimated` is True if tokens are estimated from bytes.
    """

    model: str
    family: str
    keys: ActionKeys
    folded: ActionKeys
    reason: str
    length: int
    reward: float | None
    prompt_tokens: int
    answer_tokens: int
    usd: float
    estimated: bool


@dataclass(frozen=True, slots=True)
class TableState:
    """A state and each model's action there; `depth` counts the actions before it."""

    number: int
    state_id: str
    task: str
    depth: int
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...]
    harness: str
    acted: Mapping[str, RecordedAction]


@dataclass(frozen=True, slots=True)
class StateTable:
    """The usable states of a table in order, and the number of skipped rows, by reason.

    `prices` has the price of each model and its source.
    """

    name: str
    states: tuple[TableState, ...]
    models: tuple[str, ...]
    families: Mapping[str, str]
    prices: Mapping[str, tuple[Price, str]]
    broken: Counter[str] = field(default_factory=Counter)
    examples: tuple[str, ...] = ()

    @property
    def tasks(self) -> tuple[str, ...]:
        """Return the tasks, in order."""
        return tuple(dict.fromkeys(state.task for state in self.states))

    def half(self, half: str) -> "StateTable":
        """Return a table of the tasks of one half only (`is_recorded_in_half`)."""
        return replace(
            self, states=tuple(state for state in self.states if is_recorded_in_half(state.task, half))
        )

    @property
    def rewarded(self) -> bool:
        """Return whether any action has a reward."""
        return any(done.reward is not None for state in self.states for done in state.acted.values())


def read_table(
    path: Path,
    harness: str | None = None,
    given: Mapping[str, PriceSettings] | None = None,
    advance: Callable[[], object] = lambda: None,
) -> StateTable:
    """Read the states of a table; unreadable rows and answers are counted and skipped.

    Raises TeacherError if the file cannot be read and SourceError if it has no usable state.
    """
    broken, examples, rows = Counter[str](), list[str](), list[RecordedState]()
    seen: set[str] = set()
    for row in iter_recorded_table(path):
        why = _unusable(row, seen)
        if why and not isinstance(row, RecordedState):
            examples.append(f"line {row.line}: {row.why}")
        if why:
            broken[why] += 1
        elif isinstance(row, RecordedState):
            seen.add(row.state_id)
            rows.append(row)
            broken.update(f"answer of {model}" for model in row.broken)
            broken.update(f"reward of {model}, no finite number" for model in row.unrewarded)
            broken.update(f"usage of {model}, no number of tokens or seconds" for model in row.unmeasured)
    if not rows:
        found = ", ".join(f"{count} x {why}" for why, count in broken.most_common(3)) or "no lines"
        raise SourceError(f"{path} has no usable state ({found})", "rows with state_id, messages, actions")
    models = sorted({model for row in rows for model in row.answers})
    costs = find_model_prices(models, given or {})
    teachers = {model: _teacher(model, path, costs[model][0]) for model in models}
    states: list[TableState] = []
    for number, row in enumerate(rows):
        states.append(_state(number, row, harness or recorded_state_harness(row), teachers))
        advance()
    return StateTable(
        path.name,
        tuple(states),
        tuple(models),
        {model: teacher.family for model, teacher in teachers.items()},
        {model: (price_of(price), source) for model, (price, source) in costs.items()},
        broken,
        tuple(examples[:5]),
    )


def _unusable(row: RecordedState | BrokenRow, seen: Container[str]) -> str:
    if isinstance(row, BrokenRow):
        return row.why
    if not row.answers:
        return "no answer that can be read"
    return "state_id of an earlier line" if row.state_id in seen else ""


def _teacher(model: str, path: Path, price: PriceSettings) -> RecordedTeacher:
    return RecordedTeacher(RecordedTeacherSettings(name=model, model=model, path=path, prices=price))


def is_recorded_in_half(task: str, half: str) -> bool:
    """Return whether a task is in a half, `tune` or `test`, by a hash; every task is in `all`."""
    return half == "all" or (half == "tune") == is_tuning(task)


def is_tuning(task: str) -> bool:
    """Return whether a task is in the half that rules may be tuned on."""
    return int(digest("half", task)[:8], 16) % 2 == 0


def recorded_state_harness(row: RecordedState) -> str:
    """Return the harness a row names, else the one with most of its tools, else a generic one."""
    for given in (row.harness, row.source):
        plain = re.sub(r"[^a-z]", "", given.lower())
        for harness in sorted(HARNESSES, key=lambda each: -len(each.name)):
            if harness.name.replace("_", "") in plain:
                return harness.name
    names = {tool.name for tool in row.tools}
    fitting = {harness.name: len(names & harness.rules.keys()) for harness in HARNESSES}
    best = max(fitting, key=lambda name: fitting[name])
    if fitting[best] >= 2 and 2 * fitting[best] > len(names):
        return best
    return unknown_harness(names).name


def _state(
    number: int, row: RecordedState, harness: str, teachers: Mapping[str, RecordedTeacher]
) -> TableState:
    world = recorded_state_world(row, harness)
    question = row.question(lambda message: message, UNSENT)
    acted = {
        model: _acted(teachers[model], question, answer, world)
        for model, answer in sorted(row.answers.items())
    }
    task = row.task_id or row.state_id
    messages = tuple(world.record.messages)
    return TableState(number, row.state_id, task, row.depth, messages, row.tools, harness, acted)


def recorded_state_world(row: RecordedState, harness: str) -> EnvironmentState:
    """Return the environment of a state in a harness."""
    messages = tuple(_as_called(message, harness) for message in row.messages)
    texts = (m.content for m in reversed(messages))
    folder = row.cwd or next((found[-1] for text in texts if (found := _FOLDER.findall(text))), None)
    history = replay_context(Context(0, messages, ()), harness)
    return EnvironmentState(harness, folder, row.tools, history, len(messages))


def _as_called(message: Message, harness: str) -> Message:
    calls = recorded_state_calls(message.tool_calls, harness)
    return message if calls == message.tool_calls else replace(message, tool_calls=calls)


def recorded_state_calls(calls: Sequence[ToolCall], harness: str) -> tuple[ToolCall, ...]:
    """Return the calls as made; a recorded command line of SWE-agent becomes a call of its tool."""
    if harness != "swe_agent":
        return tuple(calls)
    return tuple(_of_line(call) for call in calls)


def _of_line(call: ToolCall) -> ToolCall:
    given = call.parsed() or {}
    line = given.get("command")
    if set(given) != {"command"} or not isinstance(line, str):
        return call
    return replace(parse_swe_agent_command(line), id=call.id)


def _acted(
    teacher: RecordedTeacher, question: Question, answer: RecordedAnswer, world: EnvironmentState
) -> RecordedAction:
    action = Action(answer.action.text, recorded_state_calls(answer.action.tool_calls, world.harness))
    estimated = not answer.prompt_tokens and not answer.completion_tokens
    if estimated:
        tokens = _prompt_tokens(question), _answer_tokens(answer.action)
        answer = replace(answer, prompt_tokens=tokens[0], completion_tokens=tokens[1])
    reply = replace(teacher.reply_with(question, 0, answer).reply, action=action)
    known, reason = judge_recorded_reply(reply, world)
    vote = vote_of_reply(reply, known)
    return RecordedAction(
        teacher.model,
        teacher.family,
        known,
        replace(known, exact=_folded(action)),
        reason,
        vote.length,
        answer.reward,
        answer.prompt_tokens,
        answer.completion_tokens,
        reply.cost_usd,
        estimated,
    )


def judge_recorded_reply(reply: TeacherReply, world: EnvironmentState) -> tuple[ActionKeys, str]:
    """Return the keys of a reply's action, and why it has no vote, "" if it has one."""
    action = reply.action or Action()
    known = mark_action_broken(ladder_keys(action, world), action, world)
    tools = world.tools or tuple(
        ToolSpec(call.name, "", {"properties": {}}, "inferred") for call in action.tool_calls
    )
    return known, why_reply_invalid(reply, tools, world.harness) or ""


def _folded(action: Action) -> str:
    """Return a digest of the action's text with case and whitespace normalised, without reading its calls."""
    parts = (f"{c.name} {fold_text(str(list((c.parsed() or {}).values())))}" for c in action.tool_calls)
    return digest(" ".join(parts) or fold_text(action.text))


def _prompt_tokens(question: Question) -> int:
    return round(
        (count_message_bytes(question.messages) + len(orjson.dumps(question.wire_tools()))) / BYTES_A_TOKEN
    )


def _answer_tokens(action: Action) -> int:
    return round(count_message_bytes([action.to_message()]) / BYTES_A_TOKEN)


def recorded_states_without_vote(states: Iterable[TableState]) -> Counter[str]:
    """Count the reasons for which actions have no vote."""
    return Counter(done.reason for state in states for done in state.acted.values() if done.reason)
