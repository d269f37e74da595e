"""Read the system prompt and the tools that Claude Code records since about 2.1.267.

A `prompt_snapshot` attachment holds the blocks of the system prompt and the tools. It is written at the start
of a session (twice, the second time with the tools), after a compaction and after `/clear`; a resumed session
usually has none. `deferred_tools_record` holds schemas of tools that are loaded by name.
"""

from dataclasses import dataclass
from typing import Any

from tracemill.ingesters.claude_code.record_fields import field_objects, field_strings, field_text
from tracemill.records.message import ToolSpec

_CACHE_MARK = "__SYSTEM_PROMPT_DYNAMIC_BOUNDARY__"
"""A block that marks the end of the client's cache; it is not sent."""


@dataclass(frozen=True, slots=True)
class PromptSnapshot:
    """A recorded system prompt and its tools, None if not recorded, and the version of the program."""

    system: str | None
    tools: tuple[ToolSpec, ...] | None
    version: str | None = None

    def follows(self, before: "PromptSnapshot | None") -> "PromptSnapshot":
        """Return this snapshot, completed by the one before it."""
        if before is None or before.version != self.version:
            return self
        system = before.system if self.system is None else self.system
        tools = before.tools if self.tools is None else self.tools
        return PromptSnapshot(system, tools, self.version)


def read_prompt_snapshot(attachment: dict[str, Any], version: str | None) -> PromptSnapshot:
    """Return the content of a `prompt_snapshot` attachment; blocks are joined by a blank line."""
    blocks = attachment.get("systemPrompt")
    texts = [blocks] if isinstance(blocks, str) else field_strings(blocks)
    texts = [text for text in texts if text.strip() and text.strip() != _CACHE_MARK]
    prefix = field_text(attachment, "cliPrefix")
    if texts and prefix.strip() and not texts[0].startswith(prefix):
        texts.insert(0, prefix)
    tools = attachment.get("tools")
    return PromptSnapshot(
        "\n\n".join(texts) if texts else None,
        read_tool_definitions(tools) if isinstance(tools, list) else None,
        version,
    )


def read_tool_definitions(tools: Any) -> tuple[ToolSpec, ...]:
    """Return the tools of a list that have a name; of equal names the last definition counts."""
    by_name: dict[str, ToolSpec] = {}
    for tool in field_objects(tools):
        name = field_text(tool, "name")
        schema = tool.get("schema", tool.get("input_schema"))
        if name:
            by_name[name] = ToolSpec(
                name, field_text(tool, "description"), schema if isinstance(schema, dict) else {}, "recorded"
            )
    return tuple(by_name.values())
