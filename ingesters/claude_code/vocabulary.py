"""Known kinds of records and their keys, from public sessions of Claude Code 1.0 to 2.1.29x."""

from collections.abc import Iterator
from typing import Any

from tracemill.ingesters.claude_code.attachments import is_known_attachment
from tracemill.ingesters.claude_code.content_blocks import parse_assistant_blocks, parse_user_blocks
from tracemill.ingesters.claude_code.record_fields import (
    OTHER_TYPES,
    QUEUE_OPERATIONS,
    SYSTEM_SUBTYPES,
    TREE_TYPES,
    field_objects,
    field_text,
)
from tracemill.ingesters.format import Record, RecordKind

_COMMON_KEYS = """type uuid parentUuid sessionId session_id isSidechain agentId timestamp cwd version userType
    entrypoint gitBranch slug isMeta teamName agentName sessionKind"""
_OWN_KEYS = {
    "user": """message toolUseResult isCompactSummary isVisibleInTranscriptOnly origin permissionMode
        promptId promptSource turnOrigin turnPosition turnCompanion thinkingMetadata todos
        sourceToolUseID sourceToolAssistantUUID imagePasteIds interruptedMessageId planContent
        toolDenialKind mcpMeta queueSkipAttachments queueTranscriptOnly queuePriority
        classifierMetaLines toolEndsTurn userFeedback interruptedByShutdown""",
    "assistant": """message requestId costUSD durationMs error errorDetails isApiErrorMessage effort
        apiErrorIsTransient apiErrorStatus apiBlockIndex perTurnEffort advisorModel wireToolInputs
        wireIngestContext
        thinkingDurationMs serverClassifierRequest quotaLimits isAbortedMidStream attributionPlugin
        attributionSkill attributionAgent attributionMcpServer attributionMcpTool
        sourceToolAssistantUUID""",
    "system": """subtype content level toolUseID logicalParentUuid compactMetadata url microcompactMetadata
        durationMs messageCount error cause retryInMs retryAttempt maxRetries hookCount hookErrors
        hookInfos hasOutput hookAdditionalContext preventedContinuation stopReason
        pendingBackgroundAgentCount pendingWorkflowCount commandRun retractedMessageUuids
        neutralizedByFork originalModel fallbackModel apiRefusalCategory apiRefusalExplanation
        trigger taskId cron prompt taskKind cronKind noOpStreak streakStartedAt foldedUuids""",
    "progress": "data toolUseID parentToolUseID",
    "attachment": "attachment rendered renderedRole renderedInHumanTurn",
    "queue-operation": "operation content reason",
    "last-prompt": "lastPrompt leafUuid explicit rewound",
    "content-replacement": "replacements",
}
_ATTACHMENT_KEYS_TEXT = """type addedBlocks addedLines addedNames addedTypes allowedTools
    autoModeConsentFlow banner bashFirst blockingError bypass cliPrefix command commandMode condition
    content context contextRendering data date deltaSummary description displayPath durationMs
    echoWireToolInputs entries exitCode filename files hookEvent hookName ideName imagePasteIds
    isInitial isMeta isNew isSubAgent itemCount lineEnd lineStart message met model names
    needsAuthMcpServers newDate origin outputFilePath path pendingMcpServers planContent planExists
    planFilePath processId prompt readdedNames remaining reminderFold reminderType removedNames
    removedTypes response sentinel showConcurrencyNote skillCount skills snapshot snippet source_uuid
    status stderr stdout steerOnly style systemPrompt text timestamp toolInputCopies toolUseID tools
    total turnReminder used"""
_ATTACHMENT_KEYS = frozenset(_ATTACHMENT_KEYS_TEXT.split())
"""Keys of attachments of all kinds."""
_MESSAGE_KEYS_TEXT = """role content model id type stop_reason stop_sequence stop_details usage
    diagnostics container context_management error"""
_MESSAGE_KEYS = frozenset(_MESSAGE_KEYS_TEXT.split())
_BLOCK_KEYS_TEXT = """type id name input caller server_name tool_use_id content is_error text thinking
    signature data source title context citations cache_control"""
_BLOCK_KEYS = frozenset(_BLOCK_KEYS_TEXT.split())
"""Keys of blocks of all kinds."""
_COMMON = frozenset(_COMMON_KEYS.split())
_KEYS = {kind: _COMMON | set(keys.split()) for kind, keys in _OWN_KEYS.items()}
"""Keys of the kinds that are read."""


def kinds_of_record(record: Record) -> Iterator[RecordKind]:
    """Yield the kind of a record, and of its attachment, subtype or content blocks."""
    kind = record.get("type")
    name = kind if isinstance(kind, str) else ""
    yield RecordKind(name, record.keys(), name in TREE_TYPES or name in OTHER_TYPES, _KEYS.get(name))
    if name == "attachment":
        attachment = record.get("attachment")
        if isinstance(attachment, dict):
            attachment_kind = field_text(attachment, "type")
            yield RecordKind(
                f"{name} {attachment_kind}",
                attachment.keys(),
                is_known_attachment(attachment_kind),
                _ATTACHMENT_KEYS,
            )
    elif name == "system":
        subtype = field_text(record, "subtype")
        yield RecordKind(f"{name} {subtype}", (), subtype in SYSTEM_SUBTYPES)
    elif name == "queue-operation":
        operation = field_text(record, "operation")
        yield RecordKind(f"{name} {operation}", (), operation in QUEUE_OPERATIONS)
    elif name in ("user", "assistant"):
        yield from _blocks(name, record.get("message"))


def _blocks(name: str, message: Any) -> Iterator[RecordKind]:
    """Yield the kinds of a message and its blocks, and of parts that the reader does not understand."""
    if isinstance(message, dict):
        yield RecordKind("message", message.keys(), True, _MESSAGE_KEYS)
    content = message.get("content") if isinstance(message, dict) else message
    parsed = (
        parse_assistant_blocks(content) if name == "assistant" else parse_user_blocks(content, {}, "", None)
    )
    unread = parsed.unread.names
    for block in field_objects(content):
        kind = field_text(block, "type")
        if kind not in unread:
            yield RecordKind(f"block {kind}", block.keys(), True, _BLOCK_KEYS)
    for name in unread:
        yield RecordKind(f"block {name}", (), False)
