"""Compare actions on levels: exact < canonical < effect < intent < class.

Each level has a key; equal keys on one level imply equal keys on all levels after it. Keys are short texts,
so that votes can be counted again from stored rows.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tracemill.agreement.calls.canonical import (
    EMPTY_KEY,
    canonicalize_action,
    end_of,
    exact_key,
    order_canonical_keys,
)
from tracemill.agreement.calls.effect import ActionEffect
from tracemill.agreement.world.action_effects import list_action_effects
from tracemill.agreement.world.world_state import EnvironmentState
from tracemill.harnesses.core.vocabulary import Operation
from tracemill.records.identity import digest
from tracemill.records.message import Action

Level = Literal["exact", "canonical", "effect", "intent"]
LEVELS: tuple[Level, ...] = ("exact", "canonical", "effect", "intent")
_ENDS = frozenset({Operation.FINISH, Operation.ASK})
ENDING_CLASSES = frozenset(map(str, _ENDS))
"""Classes of actions that end the work or ask the user, which a text may be without a call."""


@dataclass(frozen=True, slots=True)
class ActionKeys:
    """The keys of an action on each level, and its effects.

    `parts` are the keys of its effects. `reading` is True if it only reads. `bare` is True for a text
    without a call. `decisive` is False if the intent says little about the decision. `guess` is True if it
    refers to names that no message so far contains. `broken` is True for a student's action that could not
    be carried out (`student_action`).
    """

    exact: str
    canonical: str
    effect: str
    intent: str
    action_class: str
    effects: tuple[ActionEffect, ...] = ()
    parts: frozenset[str] = frozenset()
    reading: bool = False
    bare: bool = False
    decisive: bool = True
    guess: bool = False
    broken: bool = False

    def at(self, level: Level) -> str:
        """Return the key on a level."""
        return str(getattr(self, level))


def ladder_keys(action: Action, world: EnvironmentState) -> ActionKeys:
    """Return the keys of an action in its environment. Never raise on what a model may emit.

    Finishing is one class and asking another, equal on every level from canonical on; with an answer that a
    call hands in, or a question that it asks, from intent on. Neighbouring calls that only read, or of
    tools that no harness knows, count in any order, and so do edits of different files; others are
    a sequence.
    """
    exact = exact_key(action)
    form = canonicalize_action(action, world.tools, world.cwd, world.harness)
    counting = form.counting
    if not counting or (form.operation in _ENDS and len(counting) == 1):
        action_class = str(form.operation) if form.operation in _ENDS else EMPTY_KEY
        end = form.key if form.operation in _ENDS else EMPTY_KEY
        is_decisive = end == end_of(end) or form.operation == Operation.ASK
        return ActionKeys(
            exact, form.key, end, end_of(end), action_class, bare=not counting, decisive=is_decisive
        )
    done = list_action_effects(counting, world)
    if len(done) == 1:
        return _single_effect_keys(exact, form.key, *done[0], world)
    effects, flags = tuple([effect for effect, _ in done]), [flag for _, flag in done]
    work = [each for each in done if not each[0].setup] or done
    apart = _edits_apart(work)
    effect_keys = [repr(effect.effect) for effect in effects]
    intent_keys = [repr(effect.intent) for effect, _ in work]
    action_class = _class_of(work, apart)
    return ActionKeys(
        exact,
        form.key,
        f"{action_class}:{digest(*_in_order(done, effect_keys, apart and len(work) == len(done)))}",
        f"{action_class}:{digest(*_in_order(work, intent_keys, apart))}",
        action_class,
        effects,
        frozenset(effect_keys),
        True not in flags,
        decisive=False not in [effect.decisive for effect, _ in work],
        guess=True in [not world.has_shown(effect.names) for effect in effects if effect.names],
    )


def _single_effect_keys(
    exact: str, canonical: str, effect: ActionEffect, changes: bool, world: EnvironmentState
) -> ActionKeys:
    """Return the keys of an action with a single effect."""
    action_class, effect_key = str(effect.operation), repr(effect.effect)
    return ActionKeys(
        exact,
        canonical,
        f"{action_class}:{digest(effect_key)}",
        f"{action_class}:{digest(repr(effect.intent))}",
        action_class,
        (effect,),
        frozenset((effect_key,)),
        not changes,
        decisive=effect.decisive,
        guess=bool(effect.names) and not world.has_shown(effect.names),
    )


def _in_order(done: Sequence[tuple[ActionEffect, bool]], keys: Sequence[str], apart: bool) -> Sequence[str]:
    """Return the keys of effects, sorted where their order makes no difference.

    It makes none between effects that only read or are of tools that no harness knows, nor where each effect
    edits a file of its own (`apart`).
    """
    if apart:
        return sorted(keys)
    return order_canonical_keys(
        keys, [changes and effect.operation != Operation.OTHER for effect, changes in done]
    )


def _edits_apart(done: Sequence[tuple[ActionEffect, bool]]) -> bool:
    """Return whether each effect edits a file of its own."""
    edited = [effect.edited_file for effect, _ in done]
    return all(edited) and len(set(edited)) == len(edited)


def _class_of(work: Sequence[tuple[ActionEffect, bool]], apart: bool) -> str:
    """Return the operation of the first effect that changes something, else the first by name.

    Of edits of different files it is to edit, if one of them edits.
    """
    if apart:
        return max([str(effect.operation) for effect, _ in work])
    for effect, flag in work:
        if flag or effect.mutating:
            return str(effect.operation)
    return min([str(effect.operation) for effect, _ in work])


def in_ladder_dead_zone(one: ActionKeys, other: ActionKeys) -> bool:
    """Return whether two actions share an intent, or one does part of what the other does."""
    return one.intent == other.intent or is_ladder_part_either_way(one, other)


def is_ladder_part_either_way(one: ActionKeys, other: ActionKeys) -> bool:
    """Return whether one of two actions does only some of what the other does."""
    return _is_part(one, other) or _is_part(other, one)


def _is_part(one: ActionKeys, other: ActionKeys) -> bool:
    """Return whether an action does only some of what another does.

    That is by effect, or by intent where it only reads, with tools that a harness knows: two edits of a file
    are not the same for being of that file, and the intent of an unknown tool is its name alone.
    """
    if not one.parts or not other.parts:
        return False
    if one.parts <= other.parts:
        return True
    if not one.reading or any(effect.operation == Operation.OTHER for effect in one.effects):
        return False
    done, more = (
        Counter(effect.intent for effect in keys.effects if not effect.setup) for keys in (one, other)
    )
    return done.total() > 0 and done < more
