"""Replies of teachers at a step, and the decisions made before asking."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from tracemill.records.message import Action, call_names
from tracemill.records.printable import printable


class FailureKind(StrEnum):
    """The reason why a call gave no usable answer. A failed call is a row, never an exception."""

    RATE_LIMITED = "rate_limited"  # 429 to the last attempt
    PROVIDER_ERROR = "provider_error"  # 5xx, an error body, finish_reason "error"
    TIMEOUT = "timeout"
    NETWORK = "network"  # refused, reset, name not found
    EMPTY = "empty"  # no choices, or neither text nor call
    MALFORMED = "malformed"  # a body that is not JSON, or not a completion
    TRUNCATED = "truncated"  # finish_reason "length"
    REFUSED = "refused"  # content filter or policy
    CONTEXT_TOO_LONG = "context_too_long"
    REDIRECTED = "redirected"  # 3xx: the server sends us elsewhere, which is not followed
    BAD_REQUEST = "bad_request"  # any other 4xx
    NOT_RECORDED = "not_recorded"  # a recorded teacher has no answer at this state
    NO_CREDIT = "no_credit"  # 402 or 403: nothing more can be bought


FINAL_FAILURES = frozenset({"truncated", "refused", "context_too_long"})
"""Failures that the same request would meet again: stored like answers, so that they are paid for once."""


@dataclass(frozen=True, slots=True)
class TeacherUsage:
    """Tokens as the provider counted them. `prompt_tokens` includes cached ones."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0


@dataclass(frozen=True, slots=True)
class TeacherReply:
    """One answer of one teacher at one step, or the failure in its place.

    Exactly one of `action` and `failure` is set. `cost_usd` is what the provider charged, also for an answer
    that cannot be used. `order` is the index of the question among those of the step. `raw` is the answer's
    JSON, redacted. `simulated` is True if no model answered.
    """

    step_id: str
    request_key: str
    teacher: str
    family: str
    sample: int
    order: int
    model: str | None = None
    provider: str | None = None
    generation_id: str | None = None
    action: Action | None = None
    failure: str | None = None
    finish_reason: str | None = None
    usage: TeacherUsage = TeacherUsage()
    cost_usd: float = 0.0
    latency_s: float = 0.0
    presentation: str = ""
    prompt_id: str = ""
    simulated: bool = False
    raw: str = ""

    def __repr__(self) -> str:
        """Describe the reply in a line, without its text."""
        if self.action is None:
            did = f"failed: {self.failure}"
        else:
            calls = self.action.tool_calls
            did = f"calls {call_names(calls)}" if calls else "calls nothing"
        place, teacher = printable(self.step_id, 40), printable(self.teacher, 24)
        return f"TeacherReply({place}, {teacher}, {did}, ${self.cost_usd:.4f})"


@dataclass(frozen=True, slots=True)
class AskDecision:
    """The decision to ask a teacher at a step, stored before money is spent and reused on a rerun.

    `coin` in [0, 1) is a hash of seed and step; the teacher is asked if `coin < probability`. `outcome` is
    set after the replay: `asked`, or why not (the label was certain without it, a cap or the deadline was
    reached); such an answer is censored, not missing. A gate that selects steps records its inputs: the
    step's `features`, its `belief` (probability of a pair), the expected cost, and `explore`, the
    probability of asking regardless of the belief.
    """

    step_id: str
    teacher: str
    verdict: Literal["ask", "skip"]
    reason: str
    gate: str
    probability: float
    coin: float
    outcome: str = ""
    features: tuple[str, ...] = ()
    belief: float | None = None
    expected_usd: float | None = None
    explore: float | None = None
