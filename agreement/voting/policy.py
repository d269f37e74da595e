"""Define when votes make a pair: the policies, by name."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from tracemill.agreement.equivalence.ladder import Level
from tracemill.records.errors import ConfigError

PolicyName = Literal["default", "strict"]


@dataclass(frozen=True, slots=True)
class VotePolicy:
    """The rule by which votes make a pair.

    At least `threshold` valid votes for one action other than the student's are needed, from at least
    `min_families` vendor families. Votes of the student's own family count only if `exclude_student_family`
    is False.

    `unanimous`: all valid votes must agree. `bare_needs_all`: all must agree if one side of the pair alone
    is a text without a call. `level`: the level on which two actions count as equal. `far`: agreement on
    intent is enough if the student's action is of another class (at level `effect` alone). `dead_zone`: an
    action of the student's own intent, one that is a part of the other, or one that changes something but
    does, by intent, only some of what the student does, makes no pair. `proven`: one vote more is needed if
    both sides write files and an outcome is unknown. `grounded`: one vote more is needed for a guess (an
    action with names that no message so far contains), unless the student guesses too and its action is of
    the same class.
    """

    name: str = "default"
    threshold: int = 2
    min_families: int = 2
    exclude_student_family: bool = True
    level: Level = "effect"
    far: bool = True
    unanimous: bool = False
    bare_needs_all: bool = True
    dead_zone: bool = True
    grounded: bool = True
    proven: bool = True


DEFAULT = VotePolicy()
STRICT = VotePolicy("strict", level="canonical", far=False, unanimous=True)
POLICIES: Mapping[str, VotePolicy] = {policy.name: policy for policy in (DEFAULT, STRICT)}


def policy_named(name: str, **changes: object) -> VotePolicy:
    """Return the policy of that name with these fields changed; None leaves a field alone.

    Raises ConfigError for an unknown name.
    """
    found = POLICIES.get(name)
    if found is None:
        raise ConfigError(f"policy {name!r} is not known", f"one of {', '.join(POLICIES)}")
    return replace(found, **{key: value for key, value in changes.items() if value is not None})  # type: ignore[arg-type]
