"""What a step is like, in features that outcomes of sessions can be counted by.

A state is described by its *kind* (the last two things the agent did and whether they failed, whether
something was changed since the tests ran, what the tests said), an action by its operation, by whether what
it is about was met before, and by its words. Nothing here knows a language, a framework or a task.
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
_Done = tuple[str, tuple[tuple[str, str], ...]]


@dataclass(frozen=True, slots=True)
class StateFacts:
    """What was so when an agent chose its action, `place` being that of the action among the messages."""

    kind: Kind
    task: frozenset[str]
    result: tuple[str, ...]
    place: int


@dataclass(slots=True)
class ContextFacts:
    """The facts of every step of a context, read once: O(messages) in time and memory."""

    harness: str
    steps: dict[int, StateFacts] = field(default_factory=dict)
    _seen: dict[str, int] = field(default_factory=dict)
    _done: dict[_Done, int] = field(default_factory=dict)

    @classmethod
    def of(cls, context: Context, harness: str) -> "ContextFacts":
        """Read a context."""
        made, running = cls(harness), _Running()
        cuts = {step.cut: step.index for step in context.steps}
        for place, message in enumerate(context.messages):
            if place in cuts:
                made.steps[cuts[place]] = running.facts(place)
            if message.role == "assistant":
                operation = find_operation_and_target(Action.of(message), harness)[0]
                running.act(operation)
                made._done.setdefault(_as_done(message), place)
                made._see(_action_words(message), place)
            elif message.role in ("user", "tool"):
                words = _words(message.content)
                running.hear(message, words)
                made._see(words, place)
        return made

    def state_features(self, step: int) -> list[str]:
        """Return the features of the state of a step, whatever is done there."""
        facts = self.steps[step]
        return [
            f"kind|{'|'.join(facts.kind)}",
            f"last|{'|'.join(facts.kind[2:])}",
            *(f"task|{word}" for word in sorted(facts.task)),
            *(f"result|{word}" for word in facts.result[:_RESULT_WORDS]),
        ]

    def action_features(self, step: int, message: Message) -> list[str]:
        """Return the features of an action at a step, the agent's own or another."""
        facts = self.steps[step]
        operation, target = find_operation_and_target(Action.of(message), self.harness)
        words = _action_words(message)
        new = sum(word.isdigit() and not self._was(self._seen, word, facts.place) for word in words)
        repeated = self._was(self._done, _as_done(message), facts.place)
        about = [
            f"operation|{operation}",
            f"target|{operation}|{self._known(target, facts)}",
            f"new numbers|{operation}|{min(_MOST_NEW, new)}",
            f"repeated|{operation}|{repeated}",
        ]
        kind, last = "|".join(facts.kind), "|".join(facts.kind[2:])
        said = {_DIGITS.sub("0", word) for word in words}
        crossed = [f"{where}|{each}" for where in (kind, last) for each in about]
        return [*about, *crossed, *(f"word|{word}" for word in sorted(said))]

    def met_words(self, step: int, message: Message) -> set[str]:
        """Return the features of the words of an action that were met before it: they say nothing of whether
        other sessions did such a thing."""
        place = self.steps[step].place
        words = (word for word in _action_words(message) if self._was(self._seen, word, place))
        return {f"word|{_DIGITS.sub('0', word)}" for word in words}

    def _see(self, words: Iterable[str], place: int) -> None:
        for word in words:
            self._seen.setdefault(word, place)

    @staticmethod
    def _was(first: dict, key: object, place: int) -> bool:
        return first.get(key, place) < place

    def _known(self, target: str | None, facts: StateFacts) -> str:
        """Where what an action is about was met before."""
        words = frozenset(_words(target or ""))
        if not words:
            return "none"
        if words <= frozenset(facts.result):
            return "result"
        if words <= facts.task:
            return "task"
        return "seen" if all(self._was(self._seen, word, facts.place) for word in words) else "new"


@dataclass(slots=True)
class _Running:
    """What holds between two messages."""

    before: tuple[str, str] = ("", "False")
    last: str = "start"
    failed: bool = False
    changed: bool = False
    tests: str = "none"
    task: frozenset[str] = frozenset()
    result: list[str] = field(default_factory=list)

    def facts(self, place: int) -> StateFacts:
        kind = (*self.before, self.last, str(self.failed), str(self.changed), self.tests)
        return StateFacts(kind, self.task, tuple(self.result[:_TEXT_WORDS]), place)

    def act(self, operation: Operation) -> None:
        self.before = (self.last, str(self.failed))
        self.last, self.failed, self.result = str(operation), False, []
        if operation == Operation.RUN_TEST:
            self.changed = False
        elif operation in _CHANGES:
            self.changed = True

    def hear(self, message: Message, words: list[str]) -> None:
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
    called = " ".join(f"{call.name} {call.arguments}" for call in message.tool_calls)
    return _words(f"{message.content} {called}", _ACTION_WORDS)


def _as_done(message: Message) -> _Done:
    return message.content, tuple((call.name, call.arguments) for call in message.tool_calls)
