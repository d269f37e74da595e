"""Votes, and the preference pairs made of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from tracemill.records.errors import TracemillError
from tracemill.records.message import Message, ToolSpec
from tracemill.records.printable import printable

if TYPE_CHECKING:
    from pydantic import TypeAdapter

T = TypeVar("T", "DPOPair", "NormalizedDPOPair")

Verified = Literal["none", "lookahead", "outcome", "execution"]


@dataclass(frozen=True, slots=True)
class Vote:
    """One teacher's reply as a vote.

    `counted` is False if it does not vote, and `reason` says why (failed call, the student's family, a tool
    that was not offered, ...). Votes for one action have the same `key`; it is `student` if the action is
    the student's own. `agrees` is True if the vote supports the action that enough teachers agreed on, the
    student's own included.
    """

    teacher: str
    family: str
    sample: int
    counted: bool
    reason: str
    key: str
    operation: str
    agrees: bool
    cost_usd: float
    request_key: str


@dataclass(frozen=True, slots=True)
class StepVotes:
    """All votes at a step and their result (`pair`, `no_agreement`, ...).

    `simulated` is True if any of the teachers is.
    """

    step_id: str
    verdict: str
    votes: tuple[Vote, ...]
    simulated: bool = False


@dataclass(frozen=True, slots=True)
class DPOPair:
    """One preference: in this state, `chosen` rather than `rejected`.

    `state_messages` is a view of the messages shown, stand-ins for unrecorded text included; only the
    release writer copies it. `chosen` and `rejected` are assistant messages. `label_source` names a source
    of `records.label_source`, or of a package that was removed since. `state_key` is equal for equal states
    of any session (`records.state_keys`); it is empty if it was not computed, and it is not stored.
    `weight` (0 to 1) is lower if the label may be wrong, 1 if nothing is known of its errors.
    """

    step_id: str
    label_source: str
    state_messages: Sequence[Message]
    tools: tuple[ToolSpec, ...]
    chosen: tuple[Message, ...]
    rejected: tuple[Message, ...]
    chosen_operation: str
    rejected_operation: str
    source: str
    harness: str
    presentation: str
    student_model: str | None
    student_family: str
    n_teachers_agreeing: int = 0
    votes: tuple[Vote, ...] = ()
    families: tuple[str, ...] = ()
    cost_usd: float = 0.0
    policy: str = ""
    verified: Verified = "none"
    simulated: bool = False
    evidence: str = ""
    project: str | None = None
    repository: str | None = None
    instance_id: str | None = None
    licence: str | None = None
    outcome: str = "unknown"
    weight: float = 1.0
    state_key: str = ""

    def __repr__(self) -> str:
        """Describe the pair in a line, without its text."""
        sides = f"{self.chosen_operation} over {self.rejected_operation}"
        agree = f", {self.n_teachers_agreeing} teachers agree" if self.n_teachers_agreeing else ""
        return f"DPOPair({printable(self.step_id, 40)}, {printable(self.label_source, 20)}: {sides}{agree})"

    def to_dict(self) -> dict[str, Any]:
        """Return the pair as values that JSON takes. Nothing is lost: `from_dict` reads it back."""
        whole = replace(self, state_messages=tuple(self.state_messages))
        return _adapter(DPOPair).dump_python(whole, mode="json")

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> "DPOPair":
        """Build a pair from a dict that `to_dict` returned. Raises TracemillError for any other dict."""
        pair = _read(cls, value)
        return replace(pair, state_messages=tuple(pair.state_messages))

    @property
    def pair_id(self) -> str:
        """Return step and label source: a step has at most one pair of each source."""
        return f"{self.step_id}:{self.label_source}"


@dataclass(frozen=True, slots=True)
class RowTokens:
    """Tokens of a row with its tools and its longer side.

    `tokens` counts the row as written, `whole` before its context was cut, `least` its shortest form. `cut`
    says what was cut: observations were shortened, or turns left out too.
    """

    tokens: int
    whole: int
    least: int
    cut: Literal["", "observations", "turns"]


@dataclass(frozen=True, slots=True)
class NormalizedDPOPair:
    """A pair that passed a recipe, with the flat strings the operators saw.

    `error` is the result of the rejected action where that failed; the release writer sets it with the state.
    `length` is None where tokens were not counted.
    """

    pair: DPOPair
    chosen_text: str
    rejected_text: str
    recipe: str
    error: str = ""
    length: RowTokens | None = None

    def __repr__(self) -> str:
        """Describe the pair in a line, without its text."""
        return f"Normalized{self.pair!r}"

    def to_dict(self) -> dict[str, Any]:
        """Return the pair as values that JSON takes. Nothing is lost: `from_dict` reads it back."""
        bare = replace(self, pair=replace(self.pair, state_messages=()))
        return {**_adapter(NormalizedDPOPair).dump_python(bare, mode="json"), "pair": self.pair.to_dict()}

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> "NormalizedDPOPair":
        """Build a pair from a dict that `to_dict` returned. Raises TracemillError for any other dict."""
        kept = _read(cls, value)
        pair = replace(kept.pair, state_messages=tuple(kept.pair.state_messages))
        return replace(kept, pair=pair)


@dataclass(frozen=True, slots=True)
class DroppedPair:
    """A pair that an operator dropped, with the reason.

    `value` is the value that failed. For an operator of a recipe it is the statistics as JSON, or the type of
    the error that the pair raised in it.
    """

    pair: DPOPair
    chosen_text: str
    rejected_text: str
    operator: str
    reason: str
    value: str


@cache
def _adapter(kind: type[T]) -> "TypeAdapter[T]":
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def _read(kind: type[T], value: Mapping[str, Any]) -> T:
    from pydantic import ValidationError

    expected = f"a dict as {kind.__name__}.to_dict gives it"
    if unknown := sorted(set(value) - {field.name for field in fields(kind)}):
        raise TracemillError(f"unknown key {unknown[0]!r}", expected)
    try:
        return _adapter(kind).validate_python(value)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, fault["loc"])) or "the value"
        raise TracemillError(f"{place}: {fault['msg']}", expected) from None
