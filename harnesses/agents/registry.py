"""Find the harness of a session by name and version, and the rule of a tool."""

import re
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache

from tracemill.harnesses.agents.claude_code import NEW as CLAUDE_CODE_NEW
from tracemill.harnesses.agents.claude_code import OLD as CLAUDE_CODE_OLD
from tracemill.harnesses.agents.cline import CLINE, CLINE_SDK
from tracemill.harnesses.agents.codex import CODEX
from tracemill.harnesses.agents.common_tools import common_tool_rule, widen_common_rule
from tracemill.harnesses.agents.cursor import CURSOR
from tracemill.harnesses.agents.gemini_cli import GEMINI_CLI
from tracemill.harnesses.agents.mini_swe_agent import MINI_SWE_AGENT
from tracemill.harnesses.agents.opencode import OPENCODE
from tracemill.harnesses.agents.openhands import V0 as OPENHANDS_V0
from tracemill.harnesses.agents.openhands import V1 as OPENHANDS_V1
from tracemill.harnesses.agents.pi import PI
from tracemill.harnesses.agents.swe_agent import SWE_AGENT
from tracemill.harnesses.agents.terminus_2 import TERMINUS_2
from tracemill.harnesses.core.vocabulary import Harness, Operation, ToolRule

_GENERIC_SYSTEM = """\
You are a coding agent. You get a task about a code base and carry it out step by step with the tools you \
are offered. When the task is done, or you need an answer from the user, reply with text and no tool call.

(This prompt is a stand-in: what the session was really given was not recorded.)"""

HARNESSES = (
    CLAUDE_CODE_NEW,
    CLAUDE_CODE_OLD,
    OPENHANDS_V0,
    OPENHANDS_V1,
    SWE_AGENT,
    MINI_SWE_AGENT,
    CODEX,
    GEMINI_CLI,
    PI,
    CLINE,
    OPENCODE,
    TERMINUS_2,
    CURSOR,
    CLINE_SDK,
)
GENERIC = Harness("generic", "any", _GENERIC_SYSTEM, {}, (), {}, persistent_shell=False)
"""Replaces a harness that the table does not know; its tools are inferred."""
GENERIC_ENDED = replace(GENERIC, name="generic_ended", text_ends_run=False)
"""The same with a tool that ends the work (`unknown_harness`), so that a text alone does not."""

_SQL = ToolRule(Operation.READ, ("command", "query", "sql", "statement"), "sql")
_SQL_TOOLS = ("execute_sql", "run_sql", "sql", "query", "execute_query", "read_query")
_OWN_RULES = {
    (each.name, each.versions): {tool: widen_common_rule(rule) for tool, rule in each.rules.items()}
    for each in HARNESSES
}
_ALL_RULES: dict[str, ToolRule] = dict.fromkeys(_SQL_TOOLS, _SQL)
for _harness in HARNESSES:
    for _name, _rule in _harness.rules.items():
        _wider = (
            _rule.default_target
            or _rule.reading in ("shell", "script")
            or _rule.operation == Operation.SEARCH
        )
        _common = common_tool_rule(_name) if _wider else None
        _ALL_RULES.setdefault(_name, _common or widen_common_rule(_rule))


@lru_cache(maxsize=1024)
def harness_for(name: str, version: str | None = None) -> Harness:
    """Return the harness of a name and version, `GENERIC` for an unknown name.

    Names are compared without case, `-` and `_` alike. Without a version, the oldest range counts.
    """
    key = re.sub(r"[-_\s]+", "_", name.strip().lower())
    number = _version_tuple(version)
    if key == GENERIC_ENDED.name:
        return GENERIC_ENDED
    fitting = [
        each
        for each in HARNESSES
        if f"{key}_".startswith(each.prefixes or each.name)
        and (number >= each.since or key.endswith(each.suffixes))
    ]
    return max(fitting, key=lambda each: each.since, default=GENERIC)


def unknown_harness(tools: Iterable[str]) -> Harness:
    """Return the replacement for an unknown harness, by the names of its tools."""
    rules = (rule_for(GENERIC, tool) for tool in tools)
    ends = any(rule is not None and rule.operation == Operation.FINISH for rule in rules)
    return GENERIC_ENDED if ends else GENERIC


def rule_for(harness: Harness, tool: str) -> ToolRule | None:
    """Return the rule of a tool: the harness's own, else any harness's, else that of a common name.

    Files and commands may be in any of the usual arguments.
    """
    own = _OWN_RULES.get((harness.name, harness.versions))
    return (own.get(tool) if own else None) or _ALL_RULES.get(tool) or common_tool_rule(tool)


@lru_cache(maxsize=2048)
def rule_of(harness: str, tool: str) -> ToolRule | None:
    """Return the rule of a tool in the harness of a name, of any version (`rule_for`)."""
    return rule_for(harness_for(harness), tool)


def _version_tuple(version: str | None) -> tuple[int, ...]:
    numbers = re.findall(r"\d+", version or "")[:3]
    return tuple(int(number) for number in numbers) + (0,) * (3 - len(numbers))
