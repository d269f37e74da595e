"""What one Claude Code file holds: its entries, and the links of its whole uuid tree."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tracemill.ingesters.claude_code.prompt_snapshots import PromptSnapshot
from tracemill.records.message import Message, ToolCall, ToolSpec
from tracemill.records.trace import Usage

Kind = Literal["assistant", "user", "reminder", "queued", "compact", "microcompact", "snapshot"]

SYNTHETIC = "<synthetic>"


@dataclass(slots=True)
class Entry:
    """One record as far as contexts need it. `order` is its line.

    `queued` is a prompt that only the queue holds: nothing hangs on it. `meta` is set on text that the
    user did not write; `stopped` where the response says why it ended; `cut_off` where it says that it
    was broken off; `stood_in` where the wording of the text is ours. `snapshot` is the recorded system
    prompt and tools that such a record holds.
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
    stood_in: bool = False
    snapshot: PromptSnapshot | None = None


@dataclass(slots=True)
class Session:
    """What one file holds: entries in file order and the links of its whole uuid tree.

    `agent_calls` gives the call that started an agent; `told_agents` are those of which progress records
    repeat messages; `leaf` the uuid the session ended at, where a
    record says so; `definitions` the recorded schemas of tools that are loaded by name.
    """

    entries: list[Entry] = field(default_factory=list)
    parents: dict[str, str | None] = field(default_factory=dict)
    side_uuids: set[str] = field(default_factory=set)
    names: dict[str, str] = field(default_factory=dict)
    agent_calls: dict[str, str] = field(default_factory=dict)
    told_agents: dict[str, None] = field(default_factory=dict)
    seen_tools: dict[str, None] = field(default_factory=dict)
    definitions: dict[str, ToolSpec] = field(default_factory=dict)
    native: bool = False
    session_id: str = ""
    first_uuid: str | None = None
    leaf: str | None = None
    version: str | None = None
    started_at: str | None = None
    cwd: str | None = None
