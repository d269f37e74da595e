"""Show what is attached to a message of llama.app (`extra`) as its program sends it: behind the text.

Source: `ChatService.convertDbMessageToApiChatMessageData` in tools/ui of https://github.com/ggml-org/llama.cpp.
Texts stand under a line that names them, images as their placeholder. Sound and films are not read.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from tracemill.ingesters.common.openai_messages import first_text, openai_content_text
from tracemill.records.ingest_report import record_type

_LABELS: Mapping[str, str] = {
    "TEXT": "File",
    "context": "File",
    "PDF": "PDF File",
    "MCP_PROMPT": "MCP Prompt",
    "MCP_RESOURCE": "MCP Resource",
}
"""Attachments whose text is in the file, in the order in which they are sent, with their labels."""
_SENDERS = ("user", "assistant", "system")


def text_with_attachments(message: Mapping[str, Any], text: str) -> str:
    """Return the text of a message with what is attached to it behind it, joined by newlines."""
    attached = _attached(message)
    images = [
        _image_part(url) for each in attached if each.get("type") == "IMAGE" for url in _image_urls(each)
    ]
    shown = [
        part for kind in _LABELS for each in attached if each.get("type") == kind for part in _parts(each)
    ]
    return openai_content_text([text, *images, *shown])


def unread_attachments(message: Mapping[str, Any]) -> list[str]:
    """Return the names of the attachments whose content is not in the file or of an unknown kind."""
    extra = message.get("extra")
    if not extra:
        return []
    if not isinstance(extra, list) or message.get("role") not in _SENDERS:
        return ["extra"]
    return [f"extra.{record_type(_kind(each))}" for each in extra if not _is_read(each)]


def _attached(message: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    extra = message.get("extra")
    listed = extra if isinstance(extra, list) and message.get("role") in _SENDERS else []
    return [each for each in listed if _is_read(each)]


def _kind(attachment: Any) -> Any:
    return attachment.get("type") if isinstance(attachment, dict) else None


def _is_read(attachment: Any) -> bool:
    kind = _kind(attachment)
    if kind == "IMAGE" or (kind == "PDF" and attachment.get("processedAsImages")):
        return bool(_image_urls(attachment))
    named = isinstance(kind, str) and kind in _LABELS and first_text(attachment.get("name"))
    return bool(named) and isinstance(attachment.get("content"), str)


def _parts(attachment: Mapping[str, Any]) -> list[Any]:
    """Return the content parts of a text, or of the pages of a PDF that is sent as images."""
    kind = attachment["type"]
    if kind == "PDF" and attachment.get("processedAsImages"):
        return [_image_part(url) for url in _image_urls(attachment)]
    server = first_text(attachment.get("serverName")) if kind.startswith("MCP_") else None
    name = f"{attachment['name']} ({server})" if server else attachment["name"]
    return [f"\n\n--- {_LABELS[kind]}: {name} ---\n{attachment['content']}"]


def _image_part(url: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}}


def _image_urls(attachment: Mapping[str, Any]) -> list[str]:
    """Return the addresses of an image, or of all pages of a PDF; none where one is missing."""
    pages = attachment.get("images") if attachment["type"] == "PDF" else [attachment.get("base64Url")]
    listed = pages if isinstance(pages, list) else []
    named = [url for url in map(first_text, listed) if url]
    return named if len(named) == len(listed) else []
