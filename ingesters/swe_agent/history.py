"""Build the turns of a SWE-agent run: what the agent was shown at each step of `trajectory`.

| file holds | prompt of step t |
|---|---|
| `query` (1.1 and later) | `query` of step t, exactly |
| `messages` (1.0) | `messages` of step t - 1: they end with that step's action and result |
| `history` alone (0.x) | `history` up to the action: older observations may have been shown shortened |

`trajectory` and `history` differ: an answer that was refused, or cut out by hand, is in `trajectory` alone,
and so may be the last step. Such a step was shown the same as the next one.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from tracemill.harnesses.agents.swe_agent_commands import parse_swe_agent_command
from tracemill.ingesters.common.chat_messages import find_chat_cwd
from tracemill.ingesters.common.growing_context import StepMetadata
from tracemill.ingesters.common.openai_messages import openai_content_text
from tracemill.ingesters.common.prompt_contexts import Turn

REBUILT_CALL = "call rebuilt from the recorded command"
EXIT_STEP = "step made by the harness at its exit"
NO_ANSWER = "step without a recorded answer"
OTHER_AGENT = "message of another agent"

_EXIT = re.compile(r"Exit(?:ing)? due to ")
_EXIT_ACTION = re.compile(r"exit_(?!forfeit\b)\w+")


@dataclass(slots=True)
class RunTurns:
    """The turns of a run, with counted flags.

    `steps` counts the recorded steps, `synthetic` those of them that the harness made.
    """

    turns: list[Turn] = field(default_factory=list)
    flags: Counter[str] = field(default_factory=Counter)
    steps: int = 0
    synthetic: int = 0


@dataclass(frozen=True, slots=True)
class _Record:
    """A run as recorded: the main agent's history, the steps, and the index of each step's action.

    The index in the history is in `places`, None for an action that is not in it; `bounds` holds the index it
    would have.
    """

    history: list[dict[str, Any]]
    steps: list[dict[str, Any]]
    places: list[int | None]
    bounds: list[int]
    by_calls: bool
    model: str | None


def swe_agent_history_turns(history: Sequence[Any], trajectory: Sequence[Any], model: str | None) -> RunTurns:
    """Return the turns of a run, one for each step that is an answer of the agent.

    A run without a trajectory (a demonstration) has one for each action in its history.
    """
    run = RunTurns()
    history = _own(history, run.flags)
    steps = [step for step in trajectory if isinstance(step, dict)]
    run.steps = len(steps)
    if not steps:
        run.turns = _from_history(history, model)
        return run
    places = _places(history, steps)
    by_calls = any(item.get("tool_calls") for item in history if item.get("role") == "assistant")
    record = _Record(history, steps, places, _bounds(places, len(history)), by_calls, model)
    for index, step in enumerate(steps):
        if _is_exit(step):
            run.synthetic += 1
            run.flags[EXIT_STEP] += 1
        elif (turn := _turn(record, index, run.flags)) is not None:
            run.turns.append(turn)
    return run


def _bounds(places: Sequence[int | None], end: int) -> list[int]:
    """Return for each step the index of its action, or of the next one that has an index, or the end."""
    bounds = [end] * len(places)
    for index in range(len(places) - 1, -1, -1):
        place = places[index]
        end = bounds[index] = end if place is None else place
    return bounds


def _own(history: Sequence[Any], flags: Counter[str]) -> list[dict[str, Any]]:
    """Return the messages shown to the main agent: its own, and those that name no agent."""
    items = [item for item in history if isinstance(item, dict)]
    main = next((item["agent"] for item in items if item.get("agent") and not item.get("is_demo")), None)
    own = [item for item in items if item.get("agent") in (None, main)]
    if len(own) < len(items):
        flags[OTHER_AGENT] += len(items) - len(own)
    return own


def _is_action(item: Mapping[str, Any]) -> bool:
    return item.get("role") == "assistant" and not item.get("is_demo")


def _from_history(history: list[dict[str, Any]], model: str | None) -> list[Turn]:
    return [
        Turn(
            history[:place],
            item,
            _results(history, place),
            exact=False,
            metadata=StepMetadata(model, cwd=_cwd_before(history, place)),
        )
        for place, item in enumerate(history)
        if _is_action(item)
    ]


def _places(history: Sequence[Mapping[str, Any]], steps: Sequence[Mapping[str, Any]]) -> list[int | None]:
    """Return the index of each step's action in the history, None for a step that is not in it."""
    actions = [place for place, item in enumerate(history) if _is_action(item)]
    if len(actions) == len(steps):
        return list(actions)
    ahead = Counter(_signature(step, "response") for step in steps)
    places: list[int | None] = []
    waiting = iter(actions)
    place = next(waiting, None)
    for step in steps:
        signature = _signature(step, "response")
        while place is not None and not ahead[_signature(history[place], "content")]:
            place = next(waiting, None)
        if place is not None and _signature(history[place], "content") == signature:
            places.append(place)
            place = next(waiting, None)
        else:
            places.append(None)
        ahead[signature] -= 1
    return places


def _signature(item: Mapping[str, Any], key: str) -> tuple[str, str]:
    return openai_content_text(item.get(key)).strip(), openai_content_text(item.get("action")).strip()


def _is_exit(step: Mapping[str, Any]) -> bool:
    """Return whether a step is the harness's message on why it stopped."""
    thought, action = (
        openai_content_text(step.get("thought")),
        openai_content_text(step.get("action")).strip(),
    )
    if not _EXIT.match(thought):
        return False
    return not action or bool(_EXIT_ACTION.fullmatch(action))


def _turn(record: _Record, index: int, flags: Counter[str]) -> Turn | None:
    """Return the turn of a step; None, and flagged, where its answer is not recorded."""
    step, place = record.steps[index], record.places[index]
    prompt, exact = _prompt(record.steps, index)
    if prompt is None:
        prompt, exact = record.history[: record.bounds[index]], exact or index == 0
    metadata = StepMetadata(record.model, cwd=_cwd(record.steps, index, prompt))
    if place is not None:
        return Turn(prompt, record.history[place], _results(record.history, place), exact, metadata)
    action = _answer(step, record.by_calls, flags)
    if action is None:
        flags[NO_ANSWER] += 1
        return None
    return Turn(prompt, action, _observation(step, action), exact, metadata)


def _prompt(steps: Sequence[Mapping[str, Any]], index: int) -> tuple[list[Any] | None, bool]:
    """Return the recorded prompt of a step and whether it is exact; None if only the history has it.

    A step whose `messages` lack its own action was refused: they are its prompt. The step after it was also
    shown the refusal, which is not recorded.
    """
    query = _messages(steps[index], "query")
    if query is not None:
        return query, True
    messages = _messages(steps[index], "messages")
    if messages is None:
        return None, False
    before = _messages(steps[index - 1], "messages") if index else None
    after_refusal = before is not None and not _holds_action(before, steps[index - 1])
    if not _holds_action(messages, steps[index]):
        return messages, not after_refusal
    if before is None:
        return None, index == 0
    return before, not after_refusal


def _messages(step: Mapping[str, Any], key: str) -> list[Any] | None:
    """Return a recorded list of messages, None if there is none or the step called no model."""
    value = step.get(key)
    if not isinstance(value, list) or not value:
        return None
    return value if any(isinstance(item, dict) and item.get("role") for item in value) else None


def _holds_action(messages: Sequence[Any], step: Mapping[str, Any]) -> bool:
    """Return whether the last answer among the messages is the step's own."""
    for item in reversed(messages):
        if isinstance(item, dict) and item.get("role") == "assistant":
            return _signature(item, "content") == _signature(step, "response")
    return False


def _results(history: Sequence[Mapping[str, Any]], place: int) -> list[Any]:
    """Return the results of an action: the messages after it, up to the next action."""
    end = place + 1
    while end < len(history) and history[end].get("role") in ("user", "tool"):
        end += 1
    return list(history[place + 1 : end])


def _answer(step: Mapping[str, Any], by_calls: bool, flags: Counter[str]) -> dict[str, Any] | None:
    """Return the answer of a step that is not in the history, None if it is empty.

    If the run acts by calls, only the command is recorded then; the call is rebuilt from it.
    """
    text, command = openai_content_text(step.get("response")), openai_content_text(step.get("action")).strip()
    if not text.strip() and not command:
        return None
    answer: dict[str, Any] = {"role": "assistant", "content": text}
    if by_calls and command:
        call = parse_swe_agent_command(command)
        flags[REBUILT_CALL] += 1
        function = {"name": call.name, "arguments": call.arguments}
        answer["tool_calls"] = [{"id": "", "type": "function", "function": function}]
    return answer


def _observation(step: Mapping[str, Any], action: Mapping[str, Any]) -> list[Any]:
    """Return the observation of a step that is not in the history, without its template."""
    text = openai_content_text(step.get("observation"))
    role = "tool" if action.get("tool_calls") else "user"
    return [{"role": role, "content": text}] if text.strip() else []


def _cwd(steps: Sequence[Mapping[str, Any]], index: int, prompt: Sequence[Any]) -> str | None:
    """Return the folder a step ran in; 0.x records the state before a step, as text, 1.x that after it."""
    own = steps[index].get("state")
    if isinstance(own, str):
        return _folder(own)
    before = _folder(steps[index - 1].get("state")) if index else None
    return before or _cwd_before(prompt, len(prompt))


def _folder(state: Any) -> str | None:
    if isinstance(state, str):
        try:
            state = orjson.loads(state)
        except ValueError:
            return None
    folder = state.get("working_dir") if isinstance(state, dict) else None
    return folder if isinstance(folder, str) and folder and folder != "n/a" else None


def _cwd_before(messages: Sequence[Any], place: int) -> str | None:
    last = messages[place - 1] if place else None
    return find_chat_cwd(openai_content_text(last.get("content"))) if isinstance(last, dict) else None
