"""The content of one Claude Code file: its entries, and the links of its uuid tree."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tracemill.ingesters.claude_code.prompt_snapshots import PromptSnapshot
from tracemill.records.message import Message, Role, ToolCall, ToolSpec
from tracemill.records.trace import Usage

Kind = Literal["assistant", "user", "reminder", "queued", "compact", "microcompact", "snapshot"]

SYNTHETIC = "<synthetic>"


@dataclass(slots=True)
class SessionEntry:
    """One record with the fields that contexts need; `order` is its line.

    A `queued` entry is a prompt that only the queue holds: no record has it as parent, it was typed at the
    line `typed`, and `doubt` says why the agent may not have seen it there. `meta` is set on text that the
    user did not write, `stopped` if the response has a stop reason, `cut_off` if it was interrupted. `role`
    is that of the text; `is_stand_in` is True if wording or role is a stand-in for unrecorded text.
    `snapshot` is the recorded system prompt and tools. `unread` is True if part of text or calls is not
    understood, `unread_results` names the calls with such results.
    """

    order: int
    uuid: str
    parent: str | None
    kind: Kind
    side: bool = False
    agent: str | None = None
    cwd: str | None = None
    timestamp: str | None = None
    text: str = ""
    role: Role = "user"
    results: tuple[Message, ...] = ()
    meta: bool = False
    summary: bool = False
    message_id: str = ""
    calls: tuple[ToolCall, ...] = ()
    reasoning: str = ""
    model: str | None = None
    usage: Usage | None = None
    stopped: bool = False
    cut_off: bool = False
    detail: Mapping[str, Any] | None = None
    version: str | None = None
    is_stand_in: bool = False
    typed: int = 0
    doubt: str = ""
    snapshot: PromptSnapshot | None = None
    unread: bool = False
    unread_results: frozenset[str] = frozenset()


@dataclass(slots=True)
class SessionFile:
    """The content of one file: entries in file order, and the links of the whole uuid tree.

    `agent_calls` maps agents to the calls that started them; `progress_agents` are those whose messages
    progress records repeat; `leaf` is the uuid the session ended at, where recorded; `definitions` are the
    recorded schemas of tools that are loaded by name.
    """

    entries: list[SessionEntry] = field(default_factory=list)
    parents: dict[str, str | None] = field(default_factory=dict)
    side_uuids: set[str] = field(default_factory=set)
    names: dict[str, str] = field(default_factory=dict)
    agent_calls: dict[str, str] = field(default_factory=dict)
    progress_agents: dict[str, None] = field(default_factory=dict)
    seen_tools: dict[str, None] = field(default_factory=dict)
    definitions: dict[str, ToolSpec] = field(default_factory=dict)
    native: bool = False
    session_id: str = ""
    first_uuid: str | None = None
    leaf: str | None = None
    version: str | None = None
    started_at: str | None = None
    cwd: str | None = None
