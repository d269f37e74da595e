"""tracemill turns recorded coding-agent sessions into preference datasets.

The public names, loaded when first used, so that importing this costs nothing:

    import tracemill as tm

    states = [s for trace in tm.ClaudeCodeIngester().ingest(path) for s in trace.states()]
    pairs = tm.extract_session_pairs(states)  # without teachers
    replies = await tm.replay_trace(states, teachers=tm.DEFAULT_TEACHERS, max_total_usd=10.0)
    pairs = tm.extract_dpo_pairs(states, replies, agreement_threshold=2)
    dataset = tm.pairs_to_dataset(pairs)
"""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if not (Path(__file__).parent / "records" / "__init__.py").is_file():
    raise ImportError(
        "tracemill/ holds links to the folders beside it, and this checkout has none: install the wheel, or "
        "check out with `git config core.symlinks true`"
    )

if TYPE_CHECKING:
    from tracemill.data_cards.writing.pair_dataset import pair_rows, pairs_to_dataset
    from tracemill.flows.library import (
        build_consensus_rows,
        compute_teacher_consensus_prm,
        extract_dpo_pairs,
        extract_session_pairs,
        replay_and_normalize_trace,
        replay_and_normalize_trace_sync,
        replay_trace,
        replay_trace_sync,
    )
    from tracemill.ingesters.ingester_classes import (
        ATIFIngester,
        ClaudeCodeIngester,
        ClineIngester,
        CodexIngester,
        CursorIngester,
        GeminiCLIIngester,
        InspectIngester,
        MiniSWEAgentIngester,
        OpencodeIngester,
        OpenHandsIngester,
        OTelIngester,
        PiIngester,
        SessionIngester,
        STSIngester,
        SWEAgentIngester,
        SWEGymIngester,
    )
    from tracemill.normalize.normalizer import DJNormalizer
    from tracemill.records.errors import TracemillError
    from tracemill.records.message import Action, Message, ToolCall, ToolSpec
    from tracemill.records.pair import DPOPair, NormalizedDPOPair
    from tracemill.records.reply import TeacherReply
    from tracemill.records.trace import Trace, TraceState
    from tracemill.teachers.core.presets import DEFAULT_TEACHERS
    from tracemill.teachers.core.teacher_settings import ReplaySettings
    from tracemill.train.compose import compose_loss
    from tracemill.train.composer.composer_trainer import ComposerReplicationTrainer
    from tracemill.train.losses.entropy_aware import entropy_aware_opd_loss
    from tracemill.train.losses.generalized_jsd import generalized_jsd_loss
    from tracemill.train.losses.preference import simpo_loss
    from tracemill.train.losses.taid import TAIDScheduler, taid_loss
    from tracemill.train.prm.step_scorer import StepScorer

_HOMES = {
    "ATIFIngester": "tracemill.ingesters.ingester_classes",
    "Action": "tracemill.records.message",
    "ClaudeCodeIngester": "tracemill.ingesters.ingester_classes",
    "ClineIngester": "tracemill.ingesters.ingester_classes",
    "CodexIngester": "tracemill.ingesters.ingester_classes",
    "ComposerReplicationTrainer": "tracemill.train.composer.composer_trainer",
    "CursorIngester": "tracemill.ingesters.ingester_classes",
    "DEFAULT_TEACHERS": "tracemill.teachers.core.presets",
    "DJNormalizer": "tracemill.normalize.normalizer",
    "DPOPair": "tracemill.records.pair",
    "GeminiCLIIngester": "tracemill.ingesters.ingester_classes",
    "InspectIngester": "tracemill.ingesters.ingester_classes",
    "Message": "tracemill.records.message",
    "MiniSWEAgentIngester": "tracemill.ingesters.ingester_classes",
    "NormalizedDPOPair": "tracemill.records.pair",
    "OTelIngester": "tracemill.ingesters.ingester_classes",
    "OpenHandsIngester": "tracemill.ingesters.ingester_classes",
    "OpencodeIngester": "tracemill.ingesters.ingester_classes",
    "PiIngester": "tracemill.ingesters.ingester_classes",
    "ReplaySettings": "tracemill.teachers.core.teacher_settings",
    "STSIngester": "tracemill.ingesters.ingester_classes",
    "SWEAgentIngester": "tracemill.ingesters.ingester_classes",
    "SWEGymIngester": "tracemill.ingesters.ingester_classes",
    "SessionIngester": "tracemill.ingesters.ingester_classes",
    "StepScorer": "tracemill.train.prm.step_scorer",
    "TAIDScheduler": "tracemill.train.losses.taid",
    "TeacherReply": "tracemill.records.reply",
    "ToolCall": "tracemill.records.message",
    "ToolSpec": "tracemill.records.message",
    "Trace": "tracemill.records.trace",
    "TraceState": "tracemill.records.trace",
    "TracemillError": "tracemill.records.errors",
    "build_consensus_rows": "tracemill.flows.library",
    "compose_loss": "tracemill.train.compose",
    "compute_teacher_consensus_prm": "tracemill.flows.library",
    "entropy_aware_opd_loss": "tracemill.train.losses.entropy_aware",
    "extract_dpo_pairs": "tracemill.flows.library",
    "extract_session_pairs": "tracemill.flows.library",
    "generalized_jsd_loss": "tracemill.train.losses.generalized_jsd",
    "pair_rows": "tracemill.data_cards.writing.pair_dataset",
    "pairs_to_dataset": "tracemill.data_cards.writing.pair_dataset",
    "replay_and_normalize_trace": "tracemill.flows.library",
    "replay_and_normalize_trace_sync": "tracemill.flows.library",
    "replay_trace": "tracemill.flows.library",
    "replay_trace_sync": "tracemill.flows.library",
    "simpo_loss": "tracemill.train.losses.preference",
    "taid_loss": "tracemill.train.losses.taid",
}

__all__ = [
    "DEFAULT_TEACHERS",
    "ATIFIngester",
    "Action",
    "ClaudeCodeIngester",
    "ClineIngester",
    "CodexIngester",
    "ComposerReplicationTrainer",
    "CursorIngester",
    "DJNormalizer",
    "DPOPair",
    "GeminiCLIIngester",
    "InspectIngester",
    "Message",
    "MiniSWEAgentIngester",
    "NormalizedDPOPair",
    "OTelIngester",
    "OpenHandsIngester",
    "OpencodeIngester",
    "PiIngester",
    "ReplaySettings",
    "STSIngester",
    "SWEAgentIngester",
    "SWEGymIngester",
    "SessionIngester",
    "StepScorer",
    "TAIDScheduler",
    "TeacherReply",
    "ToolCall",
    "ToolSpec",
    "Trace",
    "TraceState",
    "TracemillError",
    "build_consensus_rows",
    "compose_loss",
    "compute_teacher_consensus_prm",
    "entropy_aware_opd_loss",
    "extract_dpo_pairs",
    "extract_session_pairs",
    "generalized_jsd_loss",
    "pair_rows",
    "pairs_to_dataset",
    "replay_and_normalize_trace",
    "replay_and_normalize_trace_sync",
    "replay_trace",
    "replay_trace_sync",
    "simpo_loss",
    "taid_loss",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'tracemill' has no attribute {name!r}")
    try:
        value = getattr(import_module(_HOMES[name]), name)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ImportError(
            f"tracemill.{name} needs PyTorch: pip install torch==2.13.0, then pip install 'tracemill[train]'"
        ) from None
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
