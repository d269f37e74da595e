"""Read the one tool call of a script, as Codex writes scripts that call its tools.

Source: https://developers.openai.com/codex/cli. A script awaits `tools.NAME(ARGUMENT)`; the argument is an
object of plain values, a text, or the name of a text that the script sets.
"""

import json
import re
from functools import lru_cache
from typing import Any

_CALL = re.compile(r"\btools\.(\w+)\s*\(\s*")
_LOOP = re.compile(r"\b(?:for|while)\s*\(|\.(?:map|forEach)\(")
_KEY = re.compile(r'("(?:[^"\\]|\\.)*")|([A-Za-z_$][\w$]*)(?=\s*:)', re.DOTALL)
_NAME = re.compile(r"([A-Za-z_$][\w$]*)\s*\)")
_MAX_CHARS = 200_000


@lru_cache(maxsize=512)
def find_script_call(script: str) -> tuple[str, str] | None:
    """Return tool and JSON arguments of the call that a script makes; None for none, several, or a loop.

    A text as argument becomes the argument `input`.
    """
    found = list(_CALL.finditer(script[:_MAX_CHARS]))
    if len(found) != 1 or _LOOP.search(script, 0, found[0].start()):
        return None
    value = _read_value(script, found[0].end())
    if isinstance(value, str):
        value = {"input": value}
    return (found[0][1], json.dumps(value, ensure_ascii=False)) if isinstance(value, dict) else None


def _read_value(script: str, start: int) -> Any:
    """Return the plain value that begins at `start`, None for any other expression."""
    if name := _NAME.match(script, start):
        text = re.search(rf"\b(?:const|let|var)\s+{re.escape(name[1])}\s*=\s*(?=\")", script)
        if text is None or text.end() > start:
            return None
        start = text.end()
    quoted = _KEY.sub(lambda match: match[1] or f'"{match[2]}"', script[start:])
    try:
        return json.JSONDecoder().raw_decode(quoted)[0]
    except (ValueError, RecursionError):
        return None
