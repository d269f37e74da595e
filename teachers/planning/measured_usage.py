"""Measure bytes per token, tokens per answer and seconds per call from past replies."""

from dataclasses import dataclass

from tracemill.records.storage.table_rows import replies_from_table
from tracemill.records.storage.workspace import Workspace

BYTES_A_TOKEN = 3.5
"""Assumed for prompts of code and JSON, where current tokenizers have 3 to 4 bytes a token."""

ANSWER_TOKENS = 600.0
"""Assumed for an answer with a call and a little reasoning."""

LATENCY_S = 10.0
"""Assumed for a call: the mean of a lognormal with a median of 8 s and a sigma of 0.7."""

_ENOUGH = 20


@dataclass(frozen=True, slots=True)
class MeasuredUsage:
    """The figures of one teacher, measured on `replies` replies; 0 if they are assumed."""

    replies: int = 0
    bytes_a_token: float = BYTES_A_TOKEN
    answer_tokens: float = ANSWER_TOKENS
    latency_s: float = LATENCY_S


@dataclass(slots=True)
class _Sums:
    replies: int = 0
    prompt_tokens: int = 0
    prompt_bytes: int = 0
    answer_tokens: int = 0
    seconds: float = 0.0


def measure_usage(work: Workspace, sizes: dict[str, int] | None = None) -> dict[str, MeasuredUsage]:
    """Return the figures of each teacher with enough replies, by name.

    `sizes` has the bytes of prompts by step; without it bytes a token are assumed.
    """
    sums: dict[str, _Sums] = {}
    for table in work.current("replies"):
        for reply in replies_from_table(table):
            if reply.failure is not None or not reply.usage.prompt_tokens:
                continue
            one = sums.setdefault(reply.teacher, _Sums())
            one.replies += 1
            one.answer_tokens += reply.usage.completion_tokens
            one.seconds += reply.latency_s
            if sizes is not None and reply.step_id in sizes:
                one.prompt_tokens += reply.usage.prompt_tokens
                one.prompt_bytes += sizes[reply.step_id]
    return {name: _measured(one) for name, one in sums.items() if one.replies >= _ENOUGH}


def _measured(one: _Sums) -> MeasuredUsage:
    return MeasuredUsage(
        replies=one.replies,
        bytes_a_token=one.prompt_bytes / one.prompt_tokens if one.prompt_tokens else BYTES_A_TOKEN,
        answer_tokens=one.answer_tokens / one.replies,
        latency_s=one.seconds / one.replies,
    )
