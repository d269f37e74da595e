"""Write docs/api.md: the public names of tracemill, their signatures and docstrings.

python scripts/api_page.py

Reads the source and imports none of it, so that names which need PyTorch are there too.
"""

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path

import griffe

import tracemill

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "api.md"
GROUPS = {
    "Read sessions": (
        *("SessionIngester", "ClaudeCodeIngester", "CodexIngester", "PiIngester", "GeminiCLIIngester"),
        *("ClineIngester", "CursorIngester", "OpencodeIngester", "OpenHandsIngester", "SWEAgentIngester"),
        *("MiniSWEAgentIngester", "InspectIngester", "ATIFIngester", "OTelIngester", "STSIngester"),
        "SWEGymIngester",
    ),
    "Ask teachers": (
        *("replay_trace", "replay_trace_sync", "replay_and_normalize_trace"),
        *("replay_and_normalize_trace_sync", "DEFAULT_TEACHERS", "ReplaySettings"),
    ),
    "Make pairs": (
        *("extract_session_pairs", "extract_dpo_pairs", "DJNormalizer", "pairs_to_dataset", "pair_rows"),
    ),
    "Reward steps": ("compute_teacher_consensus_prm", "build_consensus_rows"),
    "Records": (
        *("Trace", "TraceState", "Message", "ToolCall", "ToolSpec", "Action", "TeacherReply"),
        *("DPOPair", "NormalizedDPOPair"),
    ),
    "Train": ("ComposerReplicationTrainer", "StepScorer"),
    "Losses": (
        *("compose_loss", "simpo_loss", "generalized_jsd_loss", "entropy_aware_opd_loss", "taid_loss"),
        "TAIDScheduler",
    ),
    "Errors": ("TracemillError",),
}
HEAD = """# API

Every name below is an attribute of `tracemill` (`import tracemill as tm`), loaded when it is first used. The
package is typed (`py.typed`). `scripts/api_page.py` writes this page from the docstrings.

A record prints as one line without text of a session: `print(pair)` is safe in a log. Its attributes have the
text.
"""


def api_page() -> str:
    """Return the text of the page."""
    parts = [HEAD, *(_index(group, names) for group, names in GROUPS.items()), ""]
    for group, names in GROUPS.items():
        parts.append(f"## {group}\n")
        parts += [f"### `{name}`\n\n{_entry(name)}\n" for name in names]
    return "\n".join(parts)


def _index(group: str, names: tuple[str, ...]) -> str:
    return f"- {group}: {', '.join(f'[`{name}`](#{name.lower()})' for name in names)}"


def _entry(name: str) -> str:
    module = tracemill._HOMES[name]
    path = ROOT / f"{module.replace('.', '/')}.py"
    found = griffe.visit(module, path, path.read_text(encoding="utf-8"))[name]
    where = f"*{module}*"
    if found.is_function:
        return f"{_code(_signature(found))}\n\n{_said(found)}\n\n{where}"
    if not found.is_class:
        return f"{_said(found)}\n\n{where}"
    fields = [each for each in found.members.values() if each.is_attribute and _is_field(each)]
    lines = [f"class {name}", *(f"    {_field(each)}" for each in fields)]
    members = "\n".join(_members(found))
    return "\n\n".join(part for part in (_code("\n".join(lines)), _said(found), members, where) if part)


def _members(found: griffe.Object) -> Iterator[str]:
    for each in found.members.values():
        if each.name.startswith("_") or each.docstring is None or _is_field(each):
            continue
        call = _signature(each) if each.is_function else each.name
        yield f"- `{' '.join(call.split())}`: {' '.join(each.docstring.value.split())}"


def _is_field(each: griffe.Object) -> bool:
    private = each.name.startswith("_") or each.name == "model_config"
    return each.is_attribute and "property" not in each.labels and not private


def _field(each: griffe.Object) -> str:
    if each.value is None:
        return f"{each.name}: {each.annotation}"
    call = ast.parse(str(each.value), mode="eval").body
    if not isinstance(call, ast.Call) or ast.unparse(call.func) != "Field":
        return f"{each.name}: {each.annotation} = {each.value}"
    given = {word.arg: ast.unparse(word.value) for word in call.keywords}
    about = f"  # {ast.literal_eval(given['description'])}" if "description" in given else ""
    return f"{each.name}: {each.annotation} = {given['default']}{about}"


def _signature(found: griffe.Object) -> str:
    """Return a signature, a parameter a line where it is long."""
    text = found.signature()
    if len(text) <= 96:
        return text
    head, _, rest = text.partition("(")
    inside, _, result = rest.rpartition(")")
    return f"{head}(\n    {_broken(inside)},\n){result}"


def _broken(parameters: str) -> str:
    """Break a list of parameters at the commas that are in no bracket."""
    depth, out = 0, []
    for char in parameters:
        depth += (char in "[(") - (char in "])")
        out.append(",\n   " if char == "," and depth == 0 else char)
    return "".join(out)


def _said(found: griffe.Object) -> str:
    return inspect.cleandoc(found.docstring.value) if found.docstring else ""


def _code(text: str) -> str:
    return f"```python\n{text}\n```"


if __name__ == "__main__":
    PAGE.write_text(api_page(), encoding="utf-8")
