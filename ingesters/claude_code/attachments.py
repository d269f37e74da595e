"""Turn attachment records of Claude Code (2.1.91 and later) into the text the model was shown.

Later than 2.1.237 a record holds that text in `rendered`. Earlier records hold the facts of an attachment
without its wording, so the wording is a stand-in. Kinds shown to the user alone give no text; unknown kinds
give no text and are counted by the caller. A `queued_command` is the user's own text, not a reminder.
"""

from collections.abc import Callable
from typing import Any

import orjson

from tracemill.ingesters.claude_code.content_blocks import flatten_content_blocks
from tracemill.ingesters.claude_code.record_fields import field_objects, field_text

_CONTEXT_EVENTS = frozenset(("SessionStart", "UserPromptSubmit"))
_NOT_SHOWN_TEXT = """hook_system_message hook_cancelled hook_non_blocking_error
    hook_error_during_execution command_permissions structured_output prompt_snapshot
    deferred_tools_record thinking_drop credential_org remote_session_change
    bash_output_audience_note batching_reminder_sent"""
NOT_SHOWN = frozenset(_NOT_SHOWN_TEXT.split())
EXACT = frozenset(("queued_command",))
"""Kinds whose text is always recorded as the model was shown it."""


def is_known_attachment(kind: str) -> bool:
    """Return whether this module can render attachments of a kind."""
    return (
        kind in EXACT
        or kind in NOT_SHOWN
        or kind in _RENDER
        or kind.endswith(tuple(end for end, _ in _BY_END))
    )


def rendered_text(record: dict[str, Any], unread: list[str]) -> str | None:
    """Return the text of an attachment that was recorded as shown to the model.

    Returns "" if it was shown nothing, None if the record does not say. The names of parts that are not
    understood are added to `unread`.
    """
    rendered = record.get("rendered")
    if isinstance(rendered, str):
        return rendered
    if rendered is None:
        return None
    if not isinstance(rendered, list):
        unread.append("rendered")
        return ""
    texts = [_rendered_item(item, unread) for item in rendered]
    return "\n".join(filter(None, texts))


def _rendered_item(item: Any, unread: list[str]) -> str:
    if not isinstance(item, dict):
        return flatten_content_blocks(item, unread)
    if "content" not in item:
        unread.append("rendered.content")
    return flatten_content_blocks(item.get("content"), unread)


def attachment_reminder(attachment: dict[str, Any], unread: list[str]) -> str | None:
    """Return the stand-in text of an attachment.

    Returns "" for a kind the model is not shown, None for an unknown kind. The names of parts of a prompt
    that are not understood are added to `unread`.
    """
    kind = field_text(attachment, "type")
    if kind == "queued_command":
        if attachment.get("prompt") is None:
            unread.append("queued_command.prompt")
        return flatten_content_blocks(attachment.get("prompt"), unread)
    if kind in NOT_SHOWN:
        return ""
    render = _RENDER.get(kind) or next((r for end, r in _BY_END if kind.endswith(end)), None)
    if render is None:
        return None
    text = render(attachment)
    return f"<system-reminder>\n{text}\n</system-reminder>" if text else ""


def read_attachment_context(attachment: dict[str, Any]) -> str:
    """Return the context that a hook's JSON output adds, "" if it adds none.

    Only some events may add context. Later versions repeat it in a `hook_additional_context` attachment.
    """
    stdout = attachment.get("stdout")
    if field_text(attachment, "hookEvent") not in _CONTEXT_EVENTS:
        return ""
    if not isinstance(stdout, str) or '"additionalContext"' not in stdout:
        return ""
    try:
        value = orjson.loads(stdout)
    except orjson.JSONDecodeError:
        return ""
    specific = value.get("hookSpecificOutput") if isinstance(value, dict) else None
    text = specific.get("additionalContext") if isinstance(specific, dict) else None
    return text if isinstance(text, str) else ""


def attachment_hook_text(attachment: dict[str, Any], text: str) -> str:
    """Return context added by a hook, as a reminder."""
    name = field_text(attachment, "hookName")
    return f"<system-reminder>\n{name} hook additional context: {text}\n</system-reminder>"


def _hook_additional_context(a: dict[str, Any]) -> str:
    content = flatten_content_blocks(a.get("content"), [])
    return f"{field_text(a, 'hookName')} hook additional context: {content}" if content else ""


def _hook_success(a: dict[str, Any]) -> str:
    content = field_text(a, "content")
    if field_text(a, "hookEvent") not in _CONTEXT_EVENTS or not content:
        return ""
    return f"{field_text(a, 'hookName')} hook success: {content}"


def _hook_blocking_error(a: dict[str, Any]) -> str:
    error = a.get("blockingError")
    text = field_text(error, "blockingError") if isinstance(error, dict) else field_text(a, "content")
    return f"{field_text(a, 'hookName')} hook blocking error: {text}"


def _hook_stopped(a: dict[str, Any]) -> str:
    return f"{field_text(a, 'hookName')} hook stopped the work: {field_text(a, 'message')}"


def _async_hook_response(a: dict[str, Any]) -> str:
    response = a.get("response")
    if not isinstance(response, dict):
        return ""
    specific = response.get("hookSpecificOutput")
    parts = [field_text(response, "systemMessage")]
    if isinstance(specific, dict):
        parts.append(field_text(specific, "additionalContext"))
    return "\n".join(filter(None, parts))


def _task_reminder(a: dict[str, Any]) -> str:
    content = a.get("content")
    items = content if isinstance(content, list) else []
    lines = ["The task list has not been used for a while; use it where it helps the work at hand."]
    for item in items:
        if isinstance(item, dict):
            subject = field_text(item, "subject") or field_text(item, "content")
            lines.append(f"- [{field_text(item, 'status')}] {subject}")
    return "\n".join(lines)


def _edited_text_file(a: dict[str, Any]) -> str:
    head = f"{field_text(a, 'filename')} was changed since it was last read. Around the change:"
    return f"{head}\n{field_text(a, 'snippet')}"


def _file(a: dict[str, Any]) -> str:
    content = a.get("content")
    inner = content.get("file") if isinstance(content, dict) else None
    text = field_text(inner, "content") if isinstance(inner, dict) else flatten_content_blocks(content, [])
    return f"Content of {field_text(a, 'filename') or field_text(a, 'displayPath')}:\n{text}"


def _directory(a: dict[str, Any]) -> str:
    path = field_text(a, "path") or field_text(a, "displayPath")
    return f"Content of the directory {path}:\n{field_text(a, 'content')}"


def _diagnostics(a: dict[str, Any]) -> str:
    lines = ["New diagnostics:"]
    for file in field_objects(a.get("files")):
        lines.append(f"{field_text(file, 'uri')}:")
        for item in field_objects(file.get("diagnostics")):
            lines.append(f"  {_place(item)}{field_text(item, 'severity')}: {field_text(item, 'message')}")
    return "\n".join(lines)


def _place(item: dict[str, Any]) -> str:
    start = item.get("range")
    start = start.get("start") if isinstance(start, dict) else None
    if not isinstance(start, dict):
        return ""
    line, character = start.get("line"), start.get("character")
    if not isinstance(line, int) or not isinstance(character, int):
        return ""
    return f"[Line {line + 1}:{character + 1}] "


def _named(head: str, *keys: str) -> Callable[[dict[str, Any]], str]:
    """Return a renderer of a head line and the values of the keys, one per line."""

    def render(a: dict[str, Any]) -> str:
        values = [flatten_content_blocks(a[key], []) for key in keys if isinstance(a.get(key), (str, list))]
        body = "\n".join(filter(None, values))
        return f"{head}\n{body}" if body else ""

    return render


def _delta(head: str, added: str, removed: str = "removedNames") -> Callable[[dict[str, Any]], str]:
    """Return a renderer of what was added, under the head, and of the names of what was removed."""
    render_added, render_removed = _named(head, added), _named("No longer there:", removed)
    return lambda a: "\n".join(filter(None, (render_added(a), render_removed(a))))


def _fixed(text: str) -> Callable[[dict[str, Any]], str]:
    def render(a: dict[str, Any]) -> str:
        return text

    return render


def _plan_mode(a: dict[str, Any]) -> str:
    path = field_text(a, "planFilePath")
    where = f" The plan is kept in {path}." if path else ""
    return f"Plan mode is on: change nothing until the user accepts the plan.{where}"


def _tokens(a: dict[str, Any]) -> str:
    if text := field_text(a, "text"):
        return text
    numbers = [f"{key} {value}" for key, value in a.items() if isinstance(value, int)]
    return f"Tokens: {', '.join(numbers)}" if numbers else ""


def _budget_usd(a: dict[str, Any]) -> str:
    return f"Budget: {a.get('used')} of {a.get('total')} US dollars used, {a.get('remaining')} left."


def _selected_lines(a: dict[str, Any]) -> str:
    where = f"lines {a.get('lineStart')} to {a.get('lineEnd')} of {field_text(a, 'filename')}"
    return f"The user selected {where}:\n{field_text(a, 'content')}"


def _invoked_skills(a: dict[str, Any]) -> str:
    skills = [f"{field_text(s, 'name')}:\n{field_text(s, 'content')}" for s in field_objects(a.get("skills"))]
    return "Skills in use in this session:\n" + "\n".join(skills) if skills else ""


def _environment(a: dict[str, Any]) -> str:
    snapshot = a.get("snapshot")
    facts = snapshot if isinstance(snapshot, dict) else {}
    lines = [
        f"- {key}: {value}" for key, value in facts.items() if isinstance(value, str | bool) and value != ""
    ]
    return "\n".join(["The environment:", *lines]) if lines else ""


def _instructions(a: dict[str, Any]) -> str:
    files = [
        f"Content of {field_text(f, 'path')}:\n{field_text(f, 'content')}"
        for f in field_objects(a.get("files"))
    ]
    return "\n\n".join(["Instructions of the user and the project:", *files]) if files else ""


def _session_context(a: dict[str, Any]) -> str:
    context = a.get("context")
    facts = context if isinstance(context, dict) else {}
    lines = [f"{key}: {value}" for key, value in facts.items() if isinstance(value, str) and value]
    return "\n".join(["About this session:", *lines]) if lines else ""


def _output_style(a: dict[str, Any]) -> str:
    style = a.get("style")
    return field_text(style, "prompt") if isinstance(style, dict) else field_text(a, "turnReminder")


_RENDER: dict[str, Callable[[dict[str, Any]], str]] = {
    "hook_additional_context": _hook_additional_context,
    "hook_success": _hook_success,
    "hook_blocking_error": _hook_blocking_error,
    "hook_stopped_continuation": _hook_stopped,
    "async_hook_response": _async_hook_response,
    "task_reminder": _task_reminder,
    "todo_reminder": _task_reminder,
    "edited_text_file": _edited_text_file,
    "file": _file,
    "already_read_file": _file,
    "nested_memory": _file,
    "compact_file_reference": _named(
        "Read before the conversation was compacted:", "filename", "displayPath"
    ),
    "directory": _directory,
    "diagnostics": _diagnostics,
    "skill_listing": _named("Skills that can be used:", "content"),
    "invoked_skills": _invoked_skills,
    "deferred_tools_delta": _delta("Tools that can be loaded by name:", "addedLines"),
    "agent_listing_delta": _delta("Agent types that can be started:", "addedLines", "removedTypes"),
    "mcp_instructions_delta": _delta("Instructions of MCP servers:", "addedBlocks"),
    "date_change": _named("The date has changed. Today is:", "newDate"),
    "opened_file_in_ide": _named("The user has opened in the editor:", "filename"),
    "selected_lines_in_ide": _selected_lines,
    "plan_mode": _plan_mode,
    "plan_mode_reentry": _plan_mode,
    "plan_mode_exit": _fixed("Plan mode is off."),
    "plan_file_reference": _named("The plan so far:", "planFilePath", "planContent"),
    "auto_mode": _fixed("Auto mode is on: carry on without asking where no decision of the user is needed."),
    "auto_mode_exit": _fixed("Auto mode is off."),
    "total_tokens_reminder": _tokens,
    "goal_status": _named("The goal of this session:", "condition"),
    "ultra_effort_enter": _fixed("The user asks for the greatest effort."),
    "ultra_effort_exit": _fixed("The user no longer asks for the greatest effort."),
    "workflow_keyword_request": _fixed("The user asks for this to be done by a workflow."),
    "budget_usd": _budget_usd,
    "environment": _environment,
    "instructions": _instructions,
    "session_context": _session_context,
    "output_style": _output_style,
    "output_style_instructions": _output_style,
    "model": _named("The model:", "text"),
    "date": _named("Today is:", "date"),
    "fork_briefing": _named("", "text"),
    "task_status": _named(
        "A task in the background:", "description", "status", "deltaSummary", "outputFilePath"
    ),
    "silent_turn_reminder": _named("", "text"),
    "critical_system_reminder": _named("", "content"),
    "read_truncation_notice": _named("Of the file that was read, only a part was shown:", "banner"),
}
_BY_END: tuple[tuple[str, Callable[[dict[str, Any]], str]], ...] = (
    ("_delta", _named("News:", "addedLines", "addedBlocks", "addedNames")),
)
