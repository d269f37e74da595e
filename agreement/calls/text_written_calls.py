"""Detect calls of an offered tool that a text spells out instead of making them.

Models that fail to use the tool-call format write `[get_weather(city="Oslo")]`, or a JSON object with `name`
and `arguments`. Nothing is executed then, and nothing is finished.
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from tracemill.harnesses.core.schema_builders import clean_schema_name
from tracemill.records.message import ToolSpec

_ARGUMENTS = re.compile(r"""['"](?:arguments|parameters|params|input)['"]\s*:""")


def has_text_written_call(text: str, tools: Sequence[ToolSpec]) -> bool:
    r"""Return whether a text spells out a call of one of these tools.

    That is its name and a bracket with one of its arguments by name, or an object with that name and
    arguments. Names match in any provider's spelling (`a.b`, `a_b`, `a\_b`). A mention such as
    `get_weather()` is no call.
    """
    if "(" not in text and "{" not in text:
        return False
    known = {clean_schema_name(tool.name): _properties(tool) for tool in tools}
    called, named = _patterns(tuple(known))
    plain = text.replace("\\_", "_")
    for found in called.finditer(plain):
        properties = known[clean_schema_name(found["name"])]
        if not properties or found["argument"] in properties:
            return True
    return _ARGUMENTS.search(plain) is not None and named.search(plain) is not None


def _properties(tool: ToolSpec) -> frozenset[str]:
    properties = tool.parameters.get("properties")
    return frozenset(properties) if isinstance(properties, Mapping) else frozenset()


@lru_cache(maxsize=256)
def _patterns(names: tuple[str, ...]) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return regexes of a call with its first argument by name, and of an object naming a tool."""
    spelled = "|".join(re.escape(name).replace("_", "[^a-zA-Z0-9\\s-]") for name in names) or r"(?!)"
    return (
        re.compile(
            rf"""(?<![\w.])(?P<name>{spelled})\(\s*\{{?\s*['"]?(?P<argument>\w+)['"]?\s*(?:=(?!=)|:)""",
        ),
        re.compile(rf"""['"]name['"]\s*:\s*['"](?:{spelled})['"]"""),
    )
