"""A multi-model table as states whose actions are on the ladder, each priced and each with its reason not
to vote: what every figure of `tracemill evaluate` is counted from."""

import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import orjson

from tracemill.agreement.calls.arguments import fold_text
from tracemill.agreement.equivalence.ladder import Keys, ladder_keys
from tracemill.agreement.equivalence.student_action import mark_action_broken
from tracemill.agreement.equivalence.validity import why_action_impossible, why_reply_invalid
from tracemill.agreement.voting.vote import vote_of_reply
from tracemill.agreement.world.fold_context import record_of
from tracemill.agreement.world.world_state import World
from tracemill.evaluate.table.model_prices import find_model_prices
from tracemill.harnesses.agents.registry import HARNESSES, unknown_harness
from tracemill.harnesses.agents.swe_agent_commands import parse_swe_agent_command
from tracemill.records.errors import SourceError
from tracemill.records.identity import digest
from tracemill.records.message import Action, Message, ToolCall, ToolSpec
from tracemill.records.trace import Context
from tracemill.teachers.client.build_request import count_message_bytes
from tracemill.teachers.core.price import Price, price_of
from tracemill.teachers.core.question import Question
from tracemill.teachers.core.teacher_settings import PriceSettings, RecordedSettings
from tracemill.teachers.offline.recorded_table import (
    BrokenRow,
    RecordedAnswer,
    RecordedState,
    iter_recorded_table,
)
from tracemill.teachers.offline.recorded_teacher import RecordedTeacher
from tracemill.teachers.planning.measured_usage import BYTES_A_TOKEN

UNSENT = "evaluation"
"""Stands where the version of the redaction rules does: nothing of a table leaves this machine."""
_FOLDER = re.compile(r"\(Current directory: ([^)\n]+)\)")


@dataclass(frozen=True, slots=True)
class Acted:
    """What a model did in a state: its keys, why it has no vote ("" where it has one), what that was worth
    and what asking costs without a cache. `folded` has the folded text as exact key. `estimated` is True
    where the tokens are those of bytes, because the table has none."""

    model: str
    family: str
    keys: Keys
    folded: Keys
    reason: str
    length: int
    reward: float | None
    prompt_tokens: int
    answer_tokens: int
    usd: float
    estimated: bool


@dataclass(frozen=True, slots=True)
class TableState:
    """A state and what each model did there. `depth` counts the actions before it; `number` is its place in
    the table."""

    number: int
    state_id: str
    task: str
    depth: int
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...]
    harness: str
    acted: Mapping[str, Acted]


@dataclass(frozen=True, slots=True)
class Table:
    """The usable states of a table in its order, and what of it could not be used, by reason. `prices` has
    the price of each model and where it is from."""

    name: str
    states: tuple[TableState, ...]
    models: tuple[str, ...]
    families: Mapping[str, str]
    prices: Mapping[str, tuple[Price, str]]
    broken: Counter[str] = field(default_factory=Counter)
    examples: tuple[str, ...] = ()

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks, in their order."""
        return tuple(dict.fromkeys(state.task for state in self.states))

    def half(self, half: str) -> "Table":
        """The same with the tasks of one half alone (`is_recorded_in_half`)."""
        return replace(
            self, states=tuple(state for state in self.states if is_recorded_in_half(state.task, half))
        )

    @property
    def rewarded(self) -> bool:
        """Whether any action has a reward."""
        return any(done.reward is not None for state in self.states for done in state.acted.values())


def read_table(
    path: Path,
    harness: str | None = None,
    given: Mapping[str, PriceSettings] | None = None,
    advance: Callable[[], object] = lambda: None,
) -> Table:
    """The states of a table. A row or an answer that cannot be read is counted and left out. Raises
    TeacherError where the file cannot be read and SourceError where it has no usable state."""
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
    return Table(
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
    return RecordedTeacher(RecordedSettings(name=model, model=model, path=path, prices=price))


def is_recorded_in_half(task: str, half: str) -> bool:
    """Whether a task is of a half, `tune` or `test`, by a hash of its name; of `all` every task is."""
    return half == "all" or (half == "tune") == is_tuning(task)


def is_tuning(task: str) -> bool:
    """Whether a task is of the half that rules may be tuned on."""
    return int(digest("half", task)[:8], 16) % 2 == 0


def recorded_state_harness(row: RecordedState) -> str:
    """The harness a row says it is of, or its source, or to which most of its tools belong; else generic."""
    for said in (row.harness, row.source):
        plain = re.sub(r"[^a-z]", "", said.lower())
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
    messages = tuple(_as_called(message, harness) for message in row.messages)
    tools = row.tools
    texts = (m.content for m in reversed(messages))
    folder = row.cwd or next((found[-1] for text in texts if (found := _FOLDER.findall(text))), None)
    world = World(harness, folder, tools, record_of(Context(0, messages, ()), harness), len(messages))
    question = row.question(lambda message: message, UNSENT)
    acted = {
        model: _acted(teachers[model], question, answer, world)
        for model, answer in sorted(row.answers.items())
    }
    task = row.task_id or row.state_id
    return TableState(number, row.state_id, task, row.depth, messages, tools, harness, acted)


def _as_called(message: Message, harness: str) -> Message:
    calls = recorded_state_calls(message.tool_calls, harness)
    return message if calls == message.tool_calls else replace(message, tool_calls=calls)


def recorded_state_calls(calls: Sequence[ToolCall], harness: str) -> tuple[ToolCall, ...]:
    """The calls as made; in SWE-agent a recorded command line is the call that this line makes."""
    if harness != "swe_agent":
        return tuple(calls)
    return tuple(_of_line(call) for call in calls)


def _of_line(call: ToolCall) -> ToolCall:
    given = call.parsed() or {}
    line = given.get("command")
    if set(given) != {"command"} or not isinstance(line, str):
        return call
    return replace(parse_swe_agent_command(line), id=call.id)


def _acted(teacher: RecordedTeacher, question: Question, answer: RecordedAnswer, world: World) -> Acted:
    action = Action(answer.action.text, recorded_state_calls(answer.action.tool_calls, world.harness))
    bare = not answer.prompt_tokens and not answer.completion_tokens
    if bare:
        tokens = _prompt_tokens(question), _answer_tokens(answer.action)
        answer = replace(answer, prompt_tokens=tokens[0], completion_tokens=tokens[1])
    reply = replace(teacher.told(question, 0, answer).reply, action=action)
    known = mark_action_broken(ladder_keys(action, world), action, world)
    tools = world.tools or tuple(_spec(call) for call in action.tool_calls)
    reason = why_reply_invalid(reply, tools, world.harness) or why_action_impossible(action, known, world)
    voice = vote_of_reply(reply, known)
    return Acted(
        teacher.model,
        teacher.family,
        known,
        replace(known, exact=_folded(action)),
        reason or "",
        voice.length,
        answer.reward,
        answer.prompt_tokens,
        answer.completion_tokens,
        reply.cost_usd,
        bare,
    )


def _spec(call: ToolCall) -> ToolSpec:
    return ToolSpec(call.name, "", {"properties": {}}, "inferred")


def _folded(action: Action) -> str:
    """The action as a text with its blanks folded, knowing nothing of tools."""
    told = (f"{c.name} {fold_text(str(list((c.parsed() or {}).values())))}" for c in action.tool_calls)
    return digest(" ".join(told) or fold_text(action.text))


def _prompt_tokens(question: Question) -> int:
    return round(
        (count_message_bytes(question.messages) + len(orjson.dumps(question.wire_tools()))) / BYTES_A_TOKEN
    )


def _answer_tokens(action: Action) -> int:
    return round(count_message_bytes([action.to_message()]) / BYTES_A_TOKEN)


def recorded_states_without_vote(states: Iterable[TableState]) -> Counter[str]:
    """Why actions have no vote, each with how many."""
    return Counter(done.reason for state in states for done in state.acted.values() if done.reason)
