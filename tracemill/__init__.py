"""tracemill turns recorded coding-agent sessions into preference datasets.

The public names, loaded when first used, so that importing this costs nothing:

    import tracemill as tm

    states = [s for trace in tm.ClaudeCodeIngester().ingest(path) for s in trace.states()]
    replies = await tm.replay_trace(states, teachers=tm.DEFAULT_TEACHERS, max_total_usd=10.0)
    pairs = tm.extract_dpo_pairs(states, replies, agreement_threshold=2)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flows.library import (
        extract_dpo_pairs,
        replay_and_normalize_trace,
        replay_and_normalize_trace_sync,
        replay_trace,
        replay_trace_sync,
    )
    from ingesters.claude_code import ClaudeCodeIngester
    from ingesters.openhands import OpenHandsIngester
    from ingesters.swe_gym import SWEGymIngester
    from normalize.normalizer import DJNormalizer
    from records.errors import TracemillError
    from records.message import Action, Message, ToolCall, ToolSpec
    from records.pair import DPOPair, NormalizedDPOPair
    from records.reply import TeacherReply
    from records.state import Trace, TraceState
    from teachers.presets import DEFAULT_TEACHERS
    from teachers.settings import ReplaySettings

_HOMES = {
    "Action": "records.message",
    "ClaudeCodeIngester": "ingesters.claude_code",
    "DEFAULT_TEACHERS": "teachers.presets",
    "DJNormalizer": "normalize.normalizer",
    "DPOPair": "records.pair",
    "Message": "records.message",
    "NormalizedDPOPair": "records.pair",
    "OpenHandsIngester": "ingesters.openhands",
    "ReplaySettings": "teachers.settings",
    "SWEGymIngester": "ingesters.swe_gym",
    "TeacherReply": "records.reply",
    "ToolCall": "records.message",
    "ToolSpec": "records.message",
    "Trace": "records.state",
    "TraceState": "records.state",
    "TracemillError": "records.errors",
    "extract_dpo_pairs": "flows.library",
    "replay_and_normalize_trace": "flows.library",
    "replay_and_normalize_trace_sync": "flows.library",
    "replay_trace": "flows.library",
    "replay_trace_sync": "flows.library",
}

__all__ = [
    "DEFAULT_TEACHERS",
    "Action",
    "ClaudeCodeIngester",
    "DJNormalizer",
    "DPOPair",
    "Message",
    "NormalizedDPOPair",
    "OpenHandsIngester",
    "ReplaySettings",
    "SWEGymIngester",
    "TeacherReply",
    "ToolCall",
    "ToolSpec",
    "Trace",
    "TraceState",
    "TracemillError",
    "extract_dpo_pairs",
    "replay_and_normalize_trace",
    "replay_and_normalize_trace_sync",
    "replay_trace",
    "replay_trace_sync",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'tracemill' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
