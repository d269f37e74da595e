"""When votes make a pair: the policies, by name."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from tracemill.agreement.equivalence.ladder import Rung
from tracemill.records.errors import ConfigError

PolicyName = Literal["default", "strict", "lenient", "weighted"]


@dataclass(frozen=True, slots=True)
class Policy:
    """When votes make a pair.

    At least `threshold` valid votes for one action other than the student's, from at least `min_families`
    vendor families; those of the student's own family do not count unless `exclude_student_family` is
    False. `unanimous`: all valid votes. `level`: the rung on which actions count as one. `far`: where the
    student does something of another class, teachers that agree on the intent are a decision too (on the
    rung of effects alone).
    `lenient`: so they are for reads, searches and lists wherever the student is. `dead_zone`: an action of
    the student's own intent makes no pair, for which of the two is better is not known.
    One vote more is wanted in two cases. `proven`: where both write files and the outcome of one is not
    known. `grounded`: for a guess, an action that refers to names nothing shown so far holds, unless the
    student guesses too and is near.

    With `min_chance` above 0 the votes are weighed: an action behind which no more than `threshold` teachers
    stand is chosen where the chance that a further one would do the same reaches it. `chances` are steps of
    that chance by the trust in those behind it (`voting.calibration`), which rests on `reliability`: for
    each teacher how often it agreed with the others, and how often that could be said.
    """

    name: str = "default"
    threshold: int = 2
    min_families: int = 2
    exclude_student_family: bool = True
    level: Rung = "effect"
    far: bool = True
    lenient: bool = False
    unanimous: bool = False
    dead_zone: bool = True
    grounded: bool = True
    proven: bool = True
    min_chance: float = 0.0
    reliability: Mapping[str, tuple[int, int]] = field(default_factory=dict, hash=False)
    chances: tuple[tuple[float, float], ...] = ()


DEFAULT = Policy()
STRICT = Policy("strict", level="canonical", far=False, unanimous=True)
LENIENT = Policy("lenient", lenient=True)
WEIGHTED = Policy("weighted", min_chance=0.5)
POLICIES: Mapping[str, Policy] = {policy.name: policy for policy in (DEFAULT, STRICT, LENIENT, WEIGHTED)}


def policy_named(name: str, **changes: object) -> Policy:
    """The policy of that name with some of its fields changed; None leaves a field alone. Raises
    ConfigError for another name."""
    found = POLICIES.get(name)
    if found is None:
        raise ConfigError(f"policy {name!r} is not known", f"one of {', '.join(POLICIES)}")
    return replace(found, **{key: value for key, value in changes.items() if value is not None})  # type: ignore[arg-type]
