"""The kinds of records and the keys that this reader knows: those of public sessions of 1.0 to 2.1.29x."""

from collections.abc import Iterator

from tracemill.ingesters.claude_code.attachments import is_known_attachment
from tracemill.ingesters.claude_code.record_fields import TREE, UNTREED, field_objects, field_text
from tracemill.ingesters.format import KindSeen, Record

_COMMON = frozenset(
    (
        *(
            "type",
            "uuid",
            "parentUuid",
            "sessionId",
            "session_id",
            "isSidechain",
            "agentId",
            "timestamp",
            "cwd",
        ),
        *("version", "userType", "entrypoint", "gitBranch", "slug", "isMeta", "teamName", "agentName"),
    )
)
_KEYS: dict[str, frozenset[str]] = {
    "user": _COMMON
    | {
        *(
            "message",
            "toolUseResult",
            "isCompactSummary",
            "isVisibleInTranscriptOnly",
            "origin",
            "permissionMode",
        ),
        *(
            "promptId",
            "promptSource",
            "turnOrigin",
            "turnPosition",
            "turnCompanion",
            "thinkingMetadata",
            "todos",
        ),
        *(
            "sourceToolUseID",
            "sourceToolAssistantUUID",
            "imagePasteIds",
            "interruptedMessageId",
            "planContent",
        ),
        *("toolDenialKind", "mcpMeta", "queueSkipAttachments", "queueTranscriptOnly"),
    },
    "assistant": _COMMON
    | {
        *(
            "message",
            "requestId",
            "costUSD",
            "durationMs",
            "error",
            "errorDetails",
            "isApiErrorMessage",
            "effort",
        ),
        *(
            "apiErrorStatus",
            "apiBlockIndex",
            "perTurnEffort",
            "advisorModel",
            "wireToolInputs",
            "wireIngestContext",
        ),
        *("thinkingDurationMs", "serverClassifierRequest", "quotaLimits", "isAbortedMidStream"),
        *("attributionPlugin", "attributionSkill", "attributionAgent", "attributionMcpServer"),
        *("attributionMcpTool", "sourceToolAssistantUUID"),
    },
    "system": _COMMON
    | {
        *("subtype", "content", "level", "toolUseID", "logicalParentUuid", "compactMetadata", "url"),
        *(
            "microcompactMetadata",
            "durationMs",
            "messageCount",
            "error",
            "cause",
            "retryInMs",
            "retryAttempt",
        ),
        *("maxRetries", "hookCount", "hookErrors", "hookInfos", "hasOutput", "hookAdditionalContext"),
        *("preventedContinuation", "stopReason", "pendingBackgroundAgentCount", "pendingWorkflowCount"),
        *("commandRun", "retractedMessageUuids", "neutralizedByFork", "originalModel", "fallbackModel"),
        *("apiRefusalCategory", "apiRefusalExplanation", "trigger", "taskId", "cron", "prompt", "taskKind"),
        *("cronKind", "noOpStreak", "streakStartedAt", "foldedUuids"),
    },
    "progress": _COMMON | {"data", "toolUseID", "parentToolUseID"},
    "attachment": _COMMON | {"attachment", "rendered", "renderedRole", "renderedInHumanTurn"},
    "queue-operation": _COMMON | {"operation", "content", "reason"},
    "last-prompt": _COMMON | {"lastPrompt", "leafUuid", "explicit", "rewound"},
    "content-replacement": _COMMON | {"replacements"},
}
"""Keys of the kinds that are read; of the others none is."""
_SUBTYPES = frozenset(
    (
        *("compact_boundary", "microcompact_boundary", "local_command", "api_error", "informational"),
        *("stop_hook_summary", "turn_duration", "away_summary", "bridge_status", "scheduled_task_fire"),
        *("model_refusal_fallback", "agents_killed", "init", "thinking"),
    )
)
_BLOCKS = frozenset(
    (
        *("text", "thinking", "redacted_thinking", "tool_use", "tool_result", "image", "document"),
        *("server_tool_use", "mcp_tool_use", "tool_reference", "search_result", "fallback"),
    )
)
_OPERATIONS = frozenset(("enqueue", "dequeue", "remove", "popAll"))


def kinds_of_record(record: Record) -> Iterator[KindSeen]:
    """Give what a record is, and what it holds: its attachment, its subtype, its content blocks."""
    kind = record.get("type")
    name = kind if isinstance(kind, str) else ""
    yield KindSeen(name, record.keys(), name in TREE or name in UNTREED, _KEYS.get(name))
    if name == "attachment":
        attachment = record.get("attachment")
        if isinstance(attachment, dict):
            given = field_text(attachment, "type")
            yield KindSeen(f"{name} {given}", attachment.keys(), is_known_attachment(given))
    elif name == "system":
        subtype = field_text(record, "subtype")
        yield KindSeen(f"{name} {subtype}", (), subtype in _SUBTYPES)
    elif name == "queue-operation":
        operation = field_text(record, "operation")
        yield KindSeen(f"{name} {operation}", (), operation in _OPERATIONS)
    elif name in ("user", "assistant"):
        message = record.get("message")
        for block in field_objects(message.get("content")) if isinstance(message, dict) else ():
            of = field_text(block, "type")
            yield KindSeen(f"block {of}", (), of in _BLOCKS or of.endswith("_tool_result"))
