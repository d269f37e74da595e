"""Writing, changing and removing files as deeds: by the text a file has afterwards, where that is known."""

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import replace

from tracemill.agreement.calls.effect import Deed, Outcome, create_intent, is_scratch
from tracemill.agreement.files.edits import Change, edits_from_hunks, fold_edited_lines, is_code
from tracemill.agreement.files.file_text import FileText, Piece
from tracemill.agreement.shell_effects.command_effects import build_command_effects
from tracemill.agreement.world.world_state import World
from tracemill.harnesses.core.vocabulary import Operation
from tracemill.harnesses.shell.operations import join_path
from tracemill.harnesses.shell.patches import FilePatch, read_patch
from tracemill.records.identity import digest

Done = tuple[Deed, bool]
"""A deed, and whether the call it is part of changes anything."""


def write_deed(path: str, body: str, world: World) -> Deed:
    """Writing a whole file. One whose text was shown is edited by that, unless it is for trying something."""
    lines = tuple(body.split("\n"))
    after = FileText((Piece(1, lines),), len(lines))
    outcome = Outcome(path, body)
    over = world.text_of(path) is not None and not is_scratch(path)
    if over:
        return _edited(path, after, outcome)
    told, intent = ("create", path, _digest(path, after)), create_intent(path)
    return Deed(Operation.CREATE, told, intent, True, outcome=outcome, proven=True, wrote=path, after=after)


def build_edit_effect(path: str, changes: tuple[Change, ...] | None, world: World) -> Deed | None:
    """Changing a file: its text afterwards, where enough of it is known; else None, and only the same
    words are the same edit."""
    known = world.text_of(path)
    after = known.changed(changes) if known is not None and changes else None
    if after is None:
        return None
    return _edited(path, after, Outcome(path, after.text) if after.whole else None)


def _edited(path: str, after: FileText, outcome: Outcome | None) -> Deed:
    return Deed(
        Operation.EDIT,
        ("edit", path, _digest(path, after)),
        ("edit", path),
        True,
        (path,),
        outcome=outcome,
        proven=True,
        wrote=path,
        after=after,
    )


def _digest(path: str, text: FileText) -> str:
    return digest(fold_edited_lines(text.lines, is_code(path)))


def build_removal_edit_effects(path: str, world: World) -> tuple[Deed, ...]:
    """Removing a file, as `rm` does it."""
    return build_command_effects(f"rm {shlex.quote(path)}", world.cwd, world.total_of)


def build_patch_edit_effects(patch: str, world: World) -> tuple[Deed, ...]:
    """What a patch does to each file it names, in its order; none where it names no file."""
    deeds: list[Deed] = []
    for each in read_patch(patch):
        made = _patched(each, patch, world)
        deeds += made
        world = apply_edit_effects(world, made)
    return tuple(deeds)


def apply_edit_effects(world: World, deeds: Iterable[Deed]) -> World:
    """The world once deeds are done, as far as they write files."""
    written = {deed.wrote: deed.after for deed in deeds if deed.wrote}
    return replace(world, after={**world.after, **written}) if written else world


def join_edit_effects(done: Sequence[Done]) -> list[Done]:
    """Deeds with neighbouring writes of one file as one, of the text it has at the end; those of several
    files in the order of their names."""
    if all(deed.after is None for deed, _ in done):
        return list(done)
    found: list[Done] = []
    run: dict[str, Done] = {}
    for deed, flag in done:
        if deed.after is None:
            found += [run[path] for path in sorted(run)]
            run.clear()
            found.append((deed, flag))
        else:
            before = run.get(deed.wrote)
            run[deed.wrote] = (deed if before is None else _then(before[0], deed), flag)
    return [*found, *(run[path] for path in sorted(run))]


def _then(first: Deed, last: Deed) -> Deed:
    effect = (first.effect[0], *last.effect[1:])
    return replace(last, operation=first.operation, effect=effect, intent=first.intent, paths=first.paths)


def _patched(each: FilePatch, patch: str, world: World) -> tuple[Deed, ...]:
    path = join_path(world.cwd or "", each.path)
    if not each.readable:
        told = ("patch", path, digest(patch.strip()))
        return (Deed(Operation.EDIT, told, ("edit", path), True, (path,), wrote=path),)
    if each.kind == "Add":
        return (write_deed(path, "\n".join(each.hunks[0].new), world),)
    if each.kind == "Delete":
        return tuple(
            replace(deed, paths=(path,), wrote=path) for deed in build_removal_edit_effects(each.path, world)
        )
    proven = build_edit_effect(path, edits_from_hunks(each.hunks), world) if each.hunks else None
    if each.moved_to is not None:
        return (_moved(each, path, proven, world),)
    return (proven or Deed(Operation.EDIT, _told(each, path), ("edit", path), True, (path,), wrote=path),)


def _moved(each: FilePatch, path: str, proven: Deed | None, world: World) -> Deed:
    told = proven.effect if proven is not None else _told(each, path)
    effect = ("moved", path, join_path(world.cwd or "", each.moved_to or ""), told)
    sure = proven is not None
    return Deed(Operation.EDIT, effect, ("edit", path, "moved"), True, (path,), proven=sure, wrote=path)


def _told(each: FilePatch, path: str) -> tuple[object, ...]:
    hunks = tuple((hunk.anchors, hunk.old, hunk.new, hunk.at_end) for hunk in each.hunks)
    return ("patch", path, hunks)
