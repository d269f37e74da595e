"""Check whether the edits of a call could be made, as far as the file is known."""

from collections.abc import Mapping, Sequence
from typing import Any

from tracemill.agreement.calls.arguments import patch_from_arguments
from tracemill.agreement.files.edits import TextChange, edits_from_hunks, parse_edit_changes
from tracemill.agreement.files.file_text import FileText
from tracemill.agreement.world.world_state import EnvironmentState
from tracemill.harnesses.agents.registry import harness_for, rule_for
from tracemill.harnesses.core.vocabulary import Operation
from tracemill.harnesses.shell.operations import join_path
from tracemill.harnesses.shell.patches import read_patch
from tracemill.records.message import ToolCall

_NOTHING = "edit changes nothing"


def is_noop_edit(call: ToolCall, harness: str) -> bool:
    """Return whether an edit replaces text by the same text, whatever the file."""
    changes = (
        parse_edit_changes(call.parsed() or {}) if _edits(call, harness) else _patch_updates(call, harness)
    )
    if not changes:
        return False
    same = [change.first is None and change.old == change.new for change in changes]
    refused = any(unchanged and change.times for unchanged, change in zip(same, changes, strict=True))
    return all(same) or refused


def why_edit_check_fails(
    call: ToolCall, world: EnvironmentState, known: dict[str, FileText | None]
) -> str | None:
    """Return why the edits of a call could not be made, as a short fixed phrase.

    Return None where they could, or too little is known. `known` has the files that earlier calls changed,
    and is updated.
    """
    asked = call.parsed() or {}
    changes = parse_edit_changes(asked) if _edits(call, world.harness) else None
    path = _path(call, asked, world)
    if not changes or path is None:
        return None
    before = state = known[path] if path in known else world.text_of(path)
    why = None
    for change in changes:
        why = why or (_why_change_fails(change, state) if state is not None else None)
        state = state.changed((change,)) if state is not None else None
    known[path] = state
    if why is None and before is not None and state is not None and state.pieces == before.pieces:
        return _NOTHING
    return why


def _why_change_fails(change: TextChange, state: FileText) -> str | None:
    if change.first is not None:
        return "lines beyond the file" if _is_beyond(change, change.first, state.total) else None
    count = state.count(change.old)
    if change.times and (count > change.times or (state.whole and 0 < count < change.times)):
        return "edit text not unique" if change.times == 1 else "edit text not as often as said"
    return None


def _is_beyond(change: TextChange, first: int, total: int | None) -> bool:
    """Return whether an edit begins after the line that may follow the last one.

    An insertion may stand after the empty line that tools count there.
    """
    inserts = change.last is not None and change.last < first
    return total is not None and first > total + 1 + inserts


def _edits(call: ToolCall, harness: str) -> bool:
    rule = rule_for(harness_for(harness), call.name)
    return rule is not None and rule.operation == Operation.EDIT and rule.reading in ("plain", "editor")


def _path(call: ToolCall, asked: Mapping[str, Any], world: EnvironmentState) -> str | None:
    rule = rule_for(harness_for(world.harness), call.name)
    if rule is None:
        return None
    for name in rule.target:
        if name in rule.paths and isinstance(asked.get(name), str) and asked[name].strip():
            return join_path(world.cwd or "", asked[name].strip())
    return world.open_file if rule.default_target else None


def _patch_updates(call: ToolCall, harness: str) -> Sequence[TextChange]:
    """Return the changes of a patch that only updates texts of files, else none."""
    rule = rule_for(harness_for(harness), call.name)
    files = (
        read_patch(patch_from_arguments(call, rule)) if rule is not None and rule.reading == "patch" else ()
    )
    if any(each.kind != "Update" or each.moved_to is not None or not each.readable for each in files):
        return ()
    return [change for each in files for change in edits_from_hunks(each.hunks)]
