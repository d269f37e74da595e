"""The ladder of equivalence: exact < canonical < same effect < same intent < same class < different.

Two actions are compared by keys, one a rung; equal keys on a rung imply equal keys on all rungs above it.
Keys are short texts, so that a vote is a count of keys and every decision can be made
again from what is stored.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from tracemill.agreement.calls.canonical import (
    EMPTY_KEY,
    canonicalize_action,
    end_of,
    exact_key,
    order_canonical_keys,
)
from tracemill.agreement.calls.effect import Deed
from tracemill.agreement.world.action_effects import list_action_effects
from tracemill.agreement.world.world_state import World
from tracemill.harnesses.core.vocabulary import Operation
from tracemill.records.fast_dataclass import quick_init
from tracemill.records.identity import digest
from tracemill.records.message import Action

Rung = Literal["exact", "canonical", "effect", "intent"]
RUNGS: tuple[Rung, ...] = ("exact", "canonical", "effect", "intent")
_HOME = re.compile(r"""/(?<![\w.~/-]/)(?:(?:home|Users)/[\w.-]+|root)(?=[/'"\s])""")
"""The home of a user, which `~` may stand for: whose it is decides nothing."""
_ENDS = frozenset({Operation.FINISH, Operation.ASK})


@quick_init
@dataclass(frozen=True, slots=True)
class Keys:
    """An action on the ladder: its key on each rung, and the deeds behind them.

    `reads` are the effects of its deeds where it only reads, else empty. `decisive` is False where the
    intent says little of what is decided. `guess` is True where it refers to names that nothing shown so
    far holds. `broken` is True of a student's action that could not be carried out (`student_action`).
    """

    exact: str
    canonical: str
    effect: str
    intent: str
    cls: str
    deeds: tuple[Deed, ...] = ()
    reads: frozenset[str] = frozenset()
    decisive: bool = True
    guess: bool = False
    broken: bool = False

    def at(self, rung: Rung) -> str:
        """The key on a rung."""
        return str(getattr(self, rung))


def ladder_keys(action: Action, world: World) -> Keys:
    """The action on the ladder, in the world it is done in. Never raises on what a model may emit.

    Finishing is one class and asking another, equal on every rung from canonical on; with an answer handed in
    from the intent on. Notes on a plan beside other calls are left out, neighbouring read-only calls are a
    set, mutating ones a sequence.
    """
    exact = exact_key(action)
    form = canonicalize_action(action, world.tools, world.cwd, world.harness)
    counting = form.counting
    if not counting or (form.operation in _ENDS and len(counting) == 1):
        cls = str(form.operation) if form.operation in _ENDS else EMPTY_KEY
        end = form.key if form.operation in _ENDS else EMPTY_KEY
        return Keys(exact, form.key, end, end_of(end), cls, decisive=end == end_of(end))
    done = list_action_effects(counting, world)
    if len(done) == 1:
        return _of_one(exact, form.key, *done[0], world)
    deeds, flags = tuple([deed for deed, _ in done]), [flag for _, flag in done]
    work = [each for each in done if not each[0].setup] or done
    work = _each_once(work) if len(work) > 1 else work
    effects = [repr(deed.effect) for deed in deeds]
    intents = [_HOME.sub("~", repr(deed.intent)) for deed, _ in work]
    cls = _class_of(work)
    return Keys(
        exact,
        form.key,
        f"{cls}:{digest(*order_canonical_keys(effects, flags))}",
        f"{cls}:{digest(*order_canonical_keys(intents, [flag for _, flag in work]))}",
        cls,
        deeds,
        frozenset() if True in flags else frozenset(effects),
        False not in [deed.decisive for deed, _ in work],
        True in [not world.knows(deed.names) for deed in deeds if deed.names],
    )


def _of_one(exact: str, canonical: str, deed: Deed, changes: bool, world: World) -> Keys:
    """An action that does one thing."""
    cls, effect = str(deed.operation), repr(deed.effect)
    return Keys(
        exact,
        canonical,
        f"{cls}:{digest(effect)}",
        f"{cls}:{digest(_HOME.sub('~', repr(deed.intent)))}",
        cls,
        (deed,),
        frozenset() if changes else frozenset((effect,)),
        deed.decisive,
        bool(deed.names) and not world.knows(deed.names),
    )


def _each_once(work: Sequence[tuple[Deed, bool]]) -> list[tuple[Deed, bool]]:
    """The deeds, neighbouring edits of one file as one: how many they are is no other intent."""
    return [
        each
        for place, each in enumerate(work)
        if not place or each[0].intent[:1] != ("edit",) or each[0].intent != work[place - 1][0].intent
    ]


def _class_of(work: Sequence[tuple[Deed, bool]]) -> str:
    """The operation of the first deed that changes something, else of the one that says most."""
    for deed, flag in work:
        if flag or deed.mutating:
            return str(deed.operation)
    return min([str(deed.operation) for deed, _ in work])


def in_ladder_dead_zone(one: Keys, other: Keys) -> bool:
    """Neither the same nor different: the same intent, or one reads a part of what the other reads."""
    if one.reads and other.reads and (one.reads < other.reads or other.reads < one.reads):
        return True
    return one.intent == other.intent


def paths_needed_by_ladder(known: Keys) -> Iterable[str]:
    """The files an action needs to be there."""
    return (path for deed in known.deeds for path in deed.paths)
