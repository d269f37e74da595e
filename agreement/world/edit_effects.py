"""Describe writes, edits and removals of files by the text they leave, where it is known."""

import shlex
from collections.abc import Iterable
from dataclasses import replace

from tracemill.agreement.calls.effect import ActionEffect, create_intent, is_scratch
from tracemill.agreement.files.edits import TextChange
from tracemill.agreement.files.file_text import FilePiece, FileText
from tracemill.agreement.shell_effects.command_effects import build_command_effects
from tracemill.agreement.world.world_state import EnvironmentState
from tracemill.harnesses.core.vocabulary import Operation
from tracemill.harnesses.shell.operations import join_path
from tracemill.harnesses.shell.patches import FilePatch, read_patch
from tracemill.records.identity import digest

Done = tuple[ActionEffect, bool]
"""An effect, and whether its call changes anything."""


def write_effect(path: str, body: str, world: EnvironmentState) -> ActionEffect:
    """Return the effect of writing a whole file.

    Writing a file whose text was shown is an edit of it, unless it is a scratch file.
    """
    lines = tuple(body.split("\n"))
    after = FileText((FilePiece(1, lines),), len(lines))
    overwrites = world.text_of(path) is not None and not is_scratch(path)
    if overwrites:
        return _edited(path, after)
    key, intent = ("create", path, _digest(path, after)), create_intent(path)
    return ActionEffect(Operation.CREATE, key, intent, True, proven=True, wrote=path, after=after)


def build_edit_effect(
    path: str, changes: tuple[TextChange, ...] | None, world: EnvironmentState
) -> ActionEffect | None:
    """Build the effect of an edit from the known text of its file; None if too little is known."""
    known = world.text_of(path)
    after = known.changed(changes) if known is not None and changes else None
    if after is None:
        return None
    return _edited(path, after)


def _edited(path: str, after: FileText) -> ActionEffect:
    return ActionEffect(
        Operation.EDIT,
        ("edit", path, _digest(path, after)),
        ("edit", path),
        True,
        proven=True,
        wrote=path,
        after=after,
    )


def _digest(path: str, text: FileText) -> str:
    return digest("\n".join(text.lines).strip("\n"))


def build_removal_edit_effects(path: str, world: EnvironmentState) -> tuple[ActionEffect, ...]:
    """Return the effects of removing a file, the same as `rm`."""
    return build_command_effects(f"rm {shlex.quote(path)}", world.cwd)


def build_patch_edit_effects(patch: str, world: EnvironmentState) -> tuple[ActionEffect, ...]:
    """Return the effects of a patch on each file it names, in order; none if it names no file."""
    effects: list[ActionEffect] = []
    for each in read_patch(patch):
        of_file = _patched(each, patch, world)
        effects += of_file
        world = apply_edit_effects(world, of_file)
    return tuple(effects)


def apply_edit_effects(world: EnvironmentState, effects: Iterable[ActionEffect]) -> EnvironmentState:
    """Return the environment after effects, as far as they write files."""
    written = {effect.wrote: effect.after for effect in effects if effect.wrote}
    return replace(world, after={**world.after, **written}) if written else world


def _patched(each: FilePatch, patch: str, world: EnvironmentState) -> tuple[ActionEffect, ...]:
    path = join_path(world.cwd or "", each.path)
    if not each.readable:
        key = ("patch", path, digest(patch.strip()))
        return (ActionEffect(Operation.EDIT, key, ("edit", path), True, wrote=path),)
    if each.kind == "Add":
        return (write_effect(path, "\n".join(each.hunks[0].new), world),)
    if each.kind == "Delete":
        return tuple(replace(effect, wrote=path) for effect in build_removal_edit_effects(each.path, world))
    hunks = tuple((hunk.anchors, hunk.old, hunk.new, hunk.at_end) for hunk in each.hunks)
    moved = () if each.moved_to is None else ("moved", join_path(world.cwd or "", each.moved_to))
    key, intent = ("patch", path, hunks, *moved), ("edit", path, *moved[:1])
    return (ActionEffect(Operation.EDIT, key, intent, True, wrote=path),)
