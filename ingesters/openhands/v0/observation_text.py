"""Render V0 observations as the model is shown them, and find out whether they failed.

Follows `openhands/memory/conversation_memory.py` and the observation classes of OpenHands 0.20 to 0.62.
Recalled context is rendered from templates that are not recorded: its wording is a stand-in.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from tracemill.ingesters.common.openai_messages import as_mapping, first_text
from tracemill.ingesters.openhands.v0.events import V0Event
from tracemill.ingesters.reading.result_text import error_kind_of
from tracemill.records.message import ErrorKind

MAX_MESSAGE_CHARS = 30_000
"""`max_message_chars` of OpenHands where the record does not say."""

_CUT = "\n[... Observation truncated due to length ...]\n"
_USER_RUN = "\nObserved result of command executed by user:\n"
_IMAGE = "![image](data:image/png;base64,"
_IMAGE_SHOWN = "![image](data:image/png;base64, ...)"
_STILL_RUNNING = -1
_UNCUT = frozenset({"read", "browse", "browse_interactive"})  # their tools cut them themselves
_NEVER_FAILS = frozenset({"think"})
_SAYS_ERROR = frozenset({"edit", "read"})  # failures start with ERROR, else they went well

SILENT_OBSERVATIONS = frozenset({"agent_state_changed", "null", "loop_detection", "success", "server_ready"})
"""Observations that never reach the model."""
_BY_CONTENT = frozenset({"mcp", "write", "task_tracking", "download", "message"})
KNOWN_OBSERVATIONS = (
    SILENT_OBSERVATIONS
    | _UNCUT
    | _NEVER_FAILS
    | _SAYS_ERROR
    | _BY_CONTENT
    | {"run", "run_ipython", "delegate", "recall", "error", "user_rejected"}
)
"""Observations that this reader handles."""


def v0_observation_text(event: V0Event, limit: int, by_user: bool = False) -> str:
    """Return the text of an observation as a model is shown it, cut in the middle above `limit` characters.

    `by_user` is True for an observation that answers no call of the agent.
    """
    if event.name == "run":
        text = command_observation_text(event.content, _metadata(event))
        return cut_middle(_USER_RUN + text if by_user else text, limit)
    if event.name in _UNCUT:
        return event.content
    text = cut_middle(_content(event), limit)
    if event.name == "error":
        return f"{text}\n[Error occurred in processing last action]"
    if event.name == "user_rejected":
        return f"OBSERVATION:\n{text}\n[Last action has been rejected by the user]"
    return text


def command_observation_text(content: str, metadata: Mapping[str, Any]) -> str:
    """Return a command's output with prefix and suffix, then where it ran and its exit code."""
    get = metadata.get
    text = f"{get('prefix') or ''}{content}{get('suffix') or ''}"
    if folder := get("working_dir"):
        text += f"\n[Current working directory: {folder}]"
    if interpreter := get("py_interpreter_path"):
        text += f"\n[Python interpreter: {interpreter}]"
    code = get("exit_code")
    if code not in (None, _STILL_RUNNING):
        text += f"\n[Command finished with exit code {code}]"
    return text


def v0_observation_error(event: V0Event, text: str) -> tuple[bool | None, ErrorKind | None]:
    """Return whether an observation shown as `text` failed (None: unknown), and the kind of failure.

    Recorded fields decide, else the text.
    """
    name = event.name
    if name == "run":
        by_code = observation_exit_error(observation_exit_code(event))
        return by_code if by_code[0] is not None else _error_by_text(text, None)
    if name in _NEVER_FAILS:
        return False, None
    if name in _SAYS_ERROR:
        failed = event.content.startswith("ERROR")
        return (True, observation_failure_kind(text)) if failed else (False, None)
    flag = _mcp_failed(event.content) if name == "mcp" else None
    return _error_by_text(text, True if name in ("error", "user_rejected") else flag)


def observation_failure_kind(text: str) -> ErrorKind:
    """Return the kind of a failure that a tool flags, TOOL_ERROR where the text says nothing more."""
    kind = error_kind_of(text, True)
    return ErrorKind.TOOL_ERROR if kind in (None, ErrorKind.UNKNOWN) else kind


def _error_by_text(text: str, flag: bool | None) -> tuple[bool | None, ErrorKind | None]:
    """Return the failure by flag and text together."""
    if flag:
        return True, observation_failure_kind(text)
    kind = error_kind_of(text, flag)
    return (True, kind) if kind else (flag, None)


def observation_exit_error(code: int | None) -> tuple[bool | None, ErrorKind | None]:
    """Return the failure of an exit code; -1 is a command that still runs, which counts as a timeout."""
    if code is None:
        return None, None
    if code == _STILL_RUNNING:
        return True, ErrorKind.TIMEOUT
    return (True, ErrorKind.EXIT_CODE) if code else (False, None)


def observation_exit_code(event: V0Event) -> int | None:
    """Return the exit code of a command, None if there is none."""
    nested = event.fields.get("metadata")
    code = (nested if isinstance(nested, dict) else event.fields).get("exit_code")
    return code if isinstance(code, int) and not isinstance(code, bool) else None


def observation_working_dir(event: V0Event) -> str | None:
    """Return the working directory after a command."""
    metadata = as_mapping(event.fields.get("metadata")) if event.name == "run" else {}
    return first_text(metadata.get("working_dir"))


def cut_middle(text: str, limit: int) -> str:
    """Return the text without its middle where it is longer than `limit` characters."""
    if len(text) <= limit or limit <= 0:
        return text
    return text[: limit // 2] + _CUT + text[-(limit // 2) :]


def recall_observation_text(event: V0Event, seen: set[str]) -> str:
    """Return a stand-in text of recalled context, "" if there is none.

    `seen` holds the names of knowledge already shown in this context and is extended.
    """
    parts = _workspace_parts(event) if event.fields.get("recall_type") == "workspace_context" else []
    for item in _knowledge(event.fields.get("microagent_knowledge")):
        name, trigger, content = item
        if name not in seen or event.fields.get("recall_type") == "workspace_context":
            parts.append(f'[Knowledge "{name}", for the keyword "{trigger}"]\n{content}')
        seen.add(name)
    return "\n\n".join(parts)


def _workspace_parts(event: V0Event) -> list[str]:
    """Return repository, instructions, hosts, date and secrets of a workspace as one part, or none."""
    fields = event.fields
    repository = " ".join(filter(None, (event.field("repo_name"), event.field("repo_branch"))))
    named = (
        ("Repository", repository),
        ("Repository directory", event.field("repo_directory")),
        ("Repository instructions", event.field("repo_instructions")),
        ("Hosts", _pairs(fields.get("runtime_hosts"))),
        ("Instructions", event.field("additional_agent_instructions")),
        ("Conversation instructions", event.field("conversation_instructions")),
        ("Secrets in the environment", _pairs(fields.get("custom_secrets_descriptions"))),
        ("Working directory", event.field("working_dir")),
        ("Date", event.field("date")),
    )
    lines = [f"{name}: {value}" for name, value in named if value.strip()]
    return ["[Workspace]\n" + "\n".join(lines)] if lines else []


def _pairs(value: Any) -> str:
    return ", ".join(f"{key} ({item})" for key, item in value.items()) if isinstance(value, dict) else ""


def _knowledge(value: Any) -> Iterable[tuple[str, str, str]]:
    for item in value if isinstance(value, list) else ():
        if isinstance(item, dict) and item.get("content"):
            yield str(item.get("name") or ""), str(item.get("trigger") or ""), str(item["content"])


def _content(event: V0Event) -> str:
    """Return the content that an observation of this kind shows."""
    if event.name == "delegate":
        outputs = event.fields.get("outputs")
        inner = outputs.get("content") if isinstance(outputs, dict) else None
        return inner if isinstance(inner, str) else event.content
    if event.name == "run_ipython" and _IMAGE in event.content:
        lines = event.content.split("\n")
        return "\n".join(_IMAGE_SHOWN if _IMAGE in line else line for line in lines)
    return event.content


def _metadata(event: V0Event) -> Mapping[str, Any]:
    """Return the metadata of a command; before 0.17 the exit code was beside the output."""
    nested = event.fields.get("metadata")
    return nested if isinstance(nested, dict) else {"exit_code": event.fields.get("exit_code")}


def _mcp_failed(content: str) -> bool | None:
    """Return the `isError` of an MCP result given as JSON text."""
    try:
        value = json.loads(content)
    except ValueError:
        return None
    flag = value.get("isError") if isinstance(value, dict) else None
    return flag if isinstance(flag, bool) else None
