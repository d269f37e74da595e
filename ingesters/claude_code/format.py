"""Claude Code sessions as a format of the registry."""

from collections.abc import Iterator
from pathlib import Path

from tracemill.ingesters.claude_code.record_fields import is_native
from tracemill.ingesters.format import FormatInfo, Record, SessionFormat, lazy_function

_OF_RUNS = frozenset(("instance_id", "traj_id", "trajectory_id", "history", "trajectory", "attempts"))
"""Keys of runs and dataset rows, which may hold records of any kind."""


def _detect(record: Record) -> str | None:
    """Detect records with `type` and `uuid` or `sessionId`, but not Gemini CLI's list of prompts."""
    is_prompt_log = isinstance(record.get("messageId"), int)
    return "claude_code" if is_native(record) and _OF_RUNS.isdisjoint(record) and not is_prompt_log else None


def _beside(path: Path) -> Iterator[str]:
    """Yield the session that called a subagent, and the file that holds the subagent's depth."""
    from tracemill.ingesters.claude_code.subagent_parents import subagent_session_folder

    if (above := subagent_session_folder(path)) is not None:
        yield from (f"{above}{suffix}" for suffix in (".jsonl", ".jsonl.gz"))
        yield f"{path.parent}/{path.name.partition('.')[0]}.meta.json"


FORMAT = SessionFormat(
    name="claude_code",
    version=7,
    dialects=("claude_code",),
    detect=_detect,
    read=lazy_function("tracemill.ingesters.claude_code.ingest_session:iter_traces"),
    beside=_beside,
    kinds=lazy_function("tracemill.ingesters.claude_code.vocabulary:kinds_of_record"),
    growing=frozenset({"claude_code"}),
    origin_names_session=True,
    facts=FormatInfo(
        of="Claude Code 1.0 to 2.1.29x, with subagents",
        recognised="lines with type and uuid or sessionId",
        prompt="messages; system prompt and tools since about 2.1.267",
        page="docs/formats/claude_code.md",
        keys=frozenset(
            (
                "type",
                "uuid",
                "parentUuid",
                "sessionId",
                "message",
                "timestamp",
                "cwd",
                "gitBranch",
                "isSidechain",
            )
        ),
    ),
)
