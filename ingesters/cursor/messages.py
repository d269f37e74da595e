"""Parse messages of Cursor: texts, thoughts, calls with their results, times and usage."""

import re
from collections.abc import Mapping
from typing import Any

import orjson

from tracemill.ingesters.common.openai_messages import as_mapping, first_text, openai_argument_text
from tracemill.ingesters.common.times import iso_time, milliseconds
from tracemill.records.message import ErrorKind, Message, ToolCall
from tracemill.records.trace import Usage

Record = Mapping[str, Any]

WAITING = frozenset(("loading", "pending", "streaming", "running", "generating"))
"""States of a call that has no result yet."""
ENDED = frozenset(("completed", "error", "cancelled", "rejected", "success"))
_ATTACHED_TEXT = """attachedCodeChunks attachedFileCodeChunksUris attachedFolders attachedFoldersNew images
    documentationSelections externalLinks notepads gitDiffs commits pullRequests codebaseContextChunks
    consoleLogs uiElementPicked attachedFileCodeChunksMetadataOnly cursorRules contextPieces"""
_ATTACHED = tuple(_ATTACHED_TEXT.split())
_CONTEXT_TEXT = """selections fileSelections folderSelections selectedDocs selectedImages selectedCommits
    selectedPullRequests terminalSelections terminalFiles quotes externalLinks notepads"""
_CONTEXT = tuple(_CONTEXT_TEXT.split())
_OF_ONE_ANSWER = re.compile(r"\d+_(tool_.+)")
_YEAR_2000 = 946_684_800_000
_PLAIN_RESULTS = ("output", "contents")
_BUILT_IN_MODELS = ("default", "auto", "")


def role_of(message: Record) -> str:
    """Return the role of a message."""
    kind = message.get("type")
    return "user" if kind == 1 else "assistant" if kind == 2 else "other"


def text_of(message: Record) -> str:
    """Return the text of a message."""
    return first_text(message.get("text")) or ""


def thought_of(message: Record) -> str:
    """Return the thinking of a message."""
    whole = first_text(as_mapping(message.get("thinking")).get("text"))
    listed = message.get("allThinkingBlocks")
    blocks = [as_mapping(each).get("text") for each in listed] if isinstance(listed, list) else []
    return whole or "\n".join(text for text in blocks if isinstance(text, str))


def tool_of(message: Record) -> Record:
    """Return the call of a message, an empty object where it holds none."""
    tool = as_mapping(message.get("toolFormerData"))
    return tool if first_text(tool.get("name"), tool.get("toolCallId")) or tool.get("tool") else {}


def unread_parts(message: Record) -> list[str]:
    """Return the names of the unread parts of a message."""
    unread = []
    if message.get("type") not in (1, 2):
        unread.append("type")
    if not isinstance(message.get("text", ""), str | None):
        unread.append("text")
    tool = tool_of(message)
    if tool and not first_text(tool.get("name")):
        unread.append("call without a name")
    if tool and tool.get("status") not in (*WAITING, *ENDED, None, ""):
        unread.append("status of a call")
    return unread


def has_attachments(message: Record) -> bool:
    """Return whether a prompt showed more of a user message than its text."""
    context = as_mapping(message.get("context"))
    return any(message.get(key) for key in _ATTACHED) or any(context.get(key) for key in _CONTEXT)


def answer_key(tool: Record) -> str:
    """Return the value that the calls of one answer share, "" if it is not recorded."""
    same = _OF_ONE_ANSWER.fullmatch(first_text(tool.get("toolCallId")) or "")
    return first_text(tool.get("modelCallId"), same[1] if same else None) or ""


def make_call(tool: Record, call_id: str) -> ToolCall:
    """Return a call as the model wrote it, else with the arguments that Cursor made of it."""
    given = next((tool[key] for key in ("rawArgs", "params") if tool.get(key)), "{}")
    return ToolCall(call_id, first_text(tool.get("name")) or "", openai_argument_text(given))


def make_result(tool: Record, call_id: str) -> Message | None:
    """Return the result of a call, None if it has none."""
    status = tool.get("status")
    recorded = _parsed(tool.get("result"))
    if status in WAITING and recorded is None:
        return None
    failure = _parsed(tool.get("error"))
    text, kind = _text(recorded), None
    if failure is not None and not text:
        said = as_mapping(failure)
        shown = first_text(said.get("modelVisibleErrorMessage"), said.get("clientVisibleErrorMessage"))
        text = shown or _text(failure)
    facts = as_mapping(recorded)
    if tool.get("userDecision") == "rejected" or facts.get("rejected") is True or status == "rejected":
        kind = ErrorKind.USER_REJECTION
    elif status == "cancelled":
        kind = ErrorKind.CANCELLED
    elif status == "error" or failure is not None:
        kind = ErrorKind.TOOL_ERROR
    elif facts.get("notInterrupted") is False:
        kind = ErrorKind.USER_REJECTION
    elif next((facts[key] for key in ("exitCodeV2", "exitCode") if isinstance(facts.get(key), int)), 0):
        kind = ErrorKind.EXIT_CODE
    return Message("tool", text, (), call_id, first_text(tool.get("name")), kind is not None, kind)


def _parsed(value: Any) -> Any:
    """Return the parsed value of a JSON text; other text stays as it is, an empty one is None."""
    if not isinstance(value, str):
        return value
    if not value:
        return None
    try:
        return orjson.loads(value) if value.lstrip()[:1] in ("{", "[") else value
    except orjson.JSONDecodeError:
        return value


def _text(value: Any) -> str:
    """Return a result as text: a command's output, a file's text, else the recorded value."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    plain = next((text for key in _PLAIN_RESULTS if (text := as_mapping(value).get(key)) is not None), None)
    return plain if isinstance(plain, str) else openai_argument_text(value)


def model_of(message: Record) -> str | None:
    """Return the model that a message names, None where Cursor chose it."""
    named = first_text(as_mapping(message.get("modelInfo")).get("modelName"), message.get("modelName"))
    return None if named in _BUILT_IN_MODELS else named


def usage_of(message: Record) -> Usage | None:
    """Return the tokens that a message reports, None if it reports none."""
    counted = as_mapping(message.get("tokenCount"))
    prompt, answer = (counted.get(key) for key in ("inputTokens", "outputTokens"))
    known = all(isinstance(each, int) and not isinstance(each, bool) for each in (prompt, answer))
    return Usage(prompt, answer) if known and (prompt or answer) else None


def time_of(message: Record) -> str | None:
    """Return when a message was made, as ISO 8601; None if it is a window's clock time."""
    created = message.get("createdAt")
    if isinstance(created, str) and created:
        return created
    timing = as_mapping(message.get("timingInfo"))
    stamps = (created, *(timing.get(key) for key in ("clientRpcSendTime", "clientStartTime")))
    since = (stamp for stamp in stamps if (milliseconds(stamp) or 0) > _YEAR_2000)
    return next((time for stamp in since if (time := iso_time(stamp))), None)
