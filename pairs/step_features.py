"""Features of states and actions for the outcome regression of `pairs/label_weights.py`.

A state has a *kind*: the last two operations and whether they failed, whether files changed since the tests
ran, and the result of the tests. An action has its operation, whether its target was seen before, and its
words. No feature depends on a language, a framework or a task.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from tracemill.harnesses.core.vocabulary import WRITES, Operation
from tracemill.harnesses.operations import find_operation_and_target
from tracemill.records.message import Action, Message
from tracemill.records.trace import Context

_WORD = re.compile(r"[A-Za-z_./-]+|\d+|[^\sA-Za-z\d]")
_DIGITS = re.compile(r"\d+")
_TEXT_WORDS, _ACTION_WORDS, _RESULT_WORDS = 60, 40, 30
_WORD_CHARS = 40
_MOST_NEW = 2
_CHANGES = WRITES | {Operation.VCS}

Kind = tuple[str, ...]
_ActionKey = tuple[str, tuple[tuple[str, str], ...]]


@dataclass(frozen=True, slots=True)
class StateFeatures:
    """The features of the state before an action; `place` is the index of the action's message."""

    kind: Kind
    task: frozenset[str]
    result: tuple[str, ...]
    place: int


@dataclass(slots=True)
class ContextFeatures:
    """The features of the state at every step of a context, built in one pass: O(messages).

    `_seen` and `_actions` hold the index of the message that first had a word or an action.
    """

    harness: str
    steps: dict[int, StateFeatures] = field(default_factory=dict)
    _seen: dict[str, int] = field(default_factory=dict)
    _actions: dict[_ActionKey, int] = field(default_factory=dict)

    @classmethod
    def of(cls, context: Context, harness: str) -> "ContextFeatures":
        """Build the features of a context."""
        facts, state = cls(harness), _RunningState()
        cuts = {step.cut: step.index for step in context.steps}
        for place, message in enumerate(context.messages):
            if place in cuts:
                facts.steps[cuts[place]] = state.facts(place)
            if message.role == "assistant":
                operation = find_operation_and_target(Action.of(message), harness)[0]
                state.apply_action(operation)
                facts._actions.setdefault(_action_key(message), place)
                facts._add_words(_action_words(message), place)
            elif message.role in ("user", "tool"):
                words = _words(message.content)
                state.apply_message(message, words)
                facts._add_words(words, place)
        return facts

    def state_features(self, step: int) -> list[str]:
        """Return the features of the state of a step."""
        facts = self.steps[step]
        return [
            f"kind|{'|'.join(facts.kind)}",
            f"last|{'|'.join(facts.kind[2:])}",
            *(f"task|{word}" for word in sorted(facts.task)),
            *(f"result|{word}" for word in facts.result[:_RESULT_WORDS]),
        ]

    def action_features(self, step: int, message: Message) -> list[str]:
        """Return the features of an action at a step, the agent's own or another one."""
        facts = self.steps[step]
        operation, target = find_operation_and_target(Action.of(message), self.harness)
        words = _action_words(message)
        new = sum(word.isdigit() and not self._is_seen(word, facts.place) for word in words)
        repeated = self._actions.get(_action_key(message), facts.place) < facts.place
        features = [
            f"operation|{operation}",
            f"target|{operation}|{self._target_origin(target, facts)}",
            f"new numbers|{operation}|{min(_MOST_NEW, new)}",
            f"repeated|{operation}|{repeated}",
        ]
        kind, last = "|".join(facts.kind), "|".join(facts.kind[2:])
        crossed = [f"{where}|{each}" for where in (kind, last) for each in features]
        return [*features, *crossed, *sorted({_word_feature(word) for word in words})]

    def seen_word_features(self, step: int, message: Message) -> set[str]:
        """Return the word features of an action whose words were seen before it.

        They say nothing on whether other sessions had such an action.
        """
        place = self.steps[step].place
        return {_word_feature(word) for word in _action_words(message) if self._is_seen(word, place)}

    def _add_words(self, words: Iterable[str], place: int) -> None:
        for word in words:
            self._seen.setdefault(word, place)

    def _is_seen(self, word: str, place: int) -> bool:
        return self._seen.get(word, place) < place

    def _target_origin(self, target: str | None, facts: StateFeatures) -> str:
        """Return where the target of an action was seen before: result, task, elsewhere or nowhere."""
        words = frozenset(_words(target or ""))
        if not words:
            return "none"
        if words <= frozenset(facts.result):
            return "result"
        if words <= facts.task:
            return "task"
        return "seen" if all(self._is_seen(word, facts.place) for word in words) else "new"


@dataclass(slots=True)
class _RunningState:
    """The state between two messages, updated message by message."""

    before: tuple[str, str] = ("", "False")
    last: str = "start"
    failed: bool = False
    changed: bool = False
    tests: str = "none"
    task: frozenset[str] = frozenset()
    result: list[str] = field(default_factory=list)

    def facts(self, place: int) -> StateFeatures:
        kind = (*self.before, self.last, str(self.failed), str(self.changed), self.tests)
        return StateFeatures(kind, self.task, tuple(self.result[:_TEXT_WORDS]), place)

    def apply_action(self, operation: Operation) -> None:
        self.before = (self.last, str(self.failed))
        self.last, self.failed, self.result = str(operation), False, []
        if operation == Operation.RUN_TEST:
            self.changed = False
        elif operation in _CHANGES:
            self.changed = True

    def apply_message(self, message: Message, words: list[str]) -> None:
        if message.role == "user":
            self.task = frozenset(words)
            return
        self.failed = self.failed or bool(message.is_error)
        self.result += words
        if self.last == Operation.RUN_TEST:
            self.tests = "failed" if self.failed else "passed"


def _words(text: str, most: int = _TEXT_WORDS) -> list[str]:
    return list(dict.fromkeys(_WORD.findall(text[: most * _WORD_CHARS])))[:most]


def _action_words(message: Message) -> list[str]:
    calls = " ".join(f"{call.name} {call.arguments}" for call in message.tool_calls)
    return _words(f"{message.content} {calls}", _ACTION_WORDS)


def _word_feature(word: str) -> str:
    return f"word|{_DIGITS.sub('0', word)}"


def _action_key(message: Message) -> _ActionKey:
    return message.content, tuple((call.name, call.arguments) for call in message.tool_calls)
