"""Define the rules that `tracemill evaluate` compares: every policy, and every level alone."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

from tracemill.agreement.equivalence.ladder import Level
from tracemill.agreement.voting.policy import DEFAULT, STRICT, VotePolicy
from tracemill.records.errors import ConfigError

Voters = Literal["two families", "any family"]
VOTERS: tuple[Voters, ...] = ("two families", "any family")
"""Who may vote: two families besides the student's, as in a run, or all."""
PRODUCT = "default k=2"
"""Name of the default rule."""
_PLAIN: dict[str, Any] = {
    "far": False,
    "dead_zone": False,
    "grounded": False,
    "proven": False,
    "bare_needs_all": False,
}
_LEVELS: tuple[Level, ...] = ("exact", "canonical", "effect")


@dataclass(frozen=True)
class VoteRule:
    """A named vote policy.

    `folded`: actions are compared as normalised text, and all of them vote.
    """

    name: str
    voters: Voters
    policy: VotePolicy
    folded: bool = False

    @property
    def key(self) -> str:
        """Return its name among all rules."""
        return f"{self.name}, {self.voters}"

    @cached_property
    def bare(self) -> VotePolicy:
        """Return the policy without its family conditions, which many rules share."""
        return replace(self.policy, name="", min_families=1, exclude_student_family=False)

    @cached_property
    def group(self) -> str:
        """Return a text that is equal for rules of the same `bare` policy."""
        return repr(self.bare)


def list_label_rules() -> tuple[VoteRule, ...]:
    """Return a rule for each level with k = 1, 2 and 3 of three votes, and the named policies."""
    return tuple(_open(rule) if voters == "any family" else rule for voters in VOTERS for rule in _rules())


def product_label_rule(voters: Voters) -> VoteRule:
    """Return the default vote rule of the product for this kind of voters."""
    return next(rule for rule in list_label_rules() if (rule.name, rule.voters) == (PRODUCT, voters))


def label_rules_named(names: Sequence[str]) -> tuple[VoteRule, ...]:
    """Return the rules of these names for both kinds of voters; all rules for an empty list.

    Raises ConfigError for an unknown name.
    """
    known = list_label_rules()
    wrong = sorted(set(names) - {rule.name for rule in known})
    if wrong:
        raise ConfigError(
            f"rule {wrong[0]!r} is not known", ", ".join(dict.fromkeys(rule.name for rule in known))
        )
    return tuple(rule for rule in known if not names or rule.name in names)


def _rules() -> Sequence[VoteRule]:
    found: list[VoteRule] = []
    for k in (1, 2, 3):
        plain = replace(DEFAULT, threshold=k, min_families=min(k, 2), **_PLAIN)
        found.append(VoteRule(f"folded k={k}", "two families", replace(plain, level="exact"), folded=True))
        found += [
            VoteRule(f"{level} k={k}", "two families", replace(plain, level=level)) for level in _LEVELS
        ]
        found.append(
            VoteRule(f"default k={k}", "two families", replace(DEFAULT, threshold=k, min_families=min(k, 2)))
        )
    return (*found, VoteRule(STRICT.name, "two families", STRICT))


def _open(rule: VoteRule) -> VoteRule:
    policy = replace(rule.policy, min_families=1, exclude_student_family=False)
    return replace(rule, voters="any family", policy=policy)
