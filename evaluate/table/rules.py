"""The rules that `tracemill evaluate` compares: every policy, and every rung of the ladder by itself."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

from tracemill.agreement.equivalence.ladder import Rung
from tracemill.agreement.voting.policy import DEFAULT, LENIENT, STRICT, WEIGHTED, Policy
from tracemill.records.errors import ConfigError

Voters = Literal["two families", "any family"]
VOTERS: tuple[Voters, ...] = ("two families", "any family")
"""Who may vote: as the product has it, without the student's family and two families at least; or all."""
PRODUCT = "default k=2"
"""The rule that the product applies unless it is told otherwise."""
_PLAIN: dict[str, Any] = {"far": False, "dead_zone": False, "grounded": False, "proven": False}
_RUNGS: tuple[Rung, ...] = ("exact", "canonical", "effect")


@dataclass(frozen=True)
class Rule:
    """A policy under a name. `folded`: actions are compared as folded text, and all of them vote.
    `weighed`: the policy wants the teachers' reliability, counted on tasks of another fold."""

    name: str
    voters: Voters
    policy: Policy
    folded: bool = False
    weighed: bool = False

    @property
    def key(self) -> str:
        """Its name among all rules."""
        return f"{self.name}, {self.voters}"

    @cached_property
    def bare(self) -> Policy:
        """What it decides by before votes are weighed and families counted: the same of many rules."""
        return replace(self.policy, name="", min_families=1, exclude_student_family=False, min_chance=0.0)

    @cached_property
    def group(self) -> str:
        """The same text for rules of the same `bare` policy."""
        return repr(self.bare)


def list_label_rules() -> tuple[Rule, ...]:
    """Each rung with k = 1, 2 and 3 votes of three and nothing else asked for, and the policies."""
    return tuple(_open(rule) if voters == "any family" else rule for voters in VOTERS for rule in _rules())


def product_label_rule(voters: Voters) -> Rule:
    """The rule that the product applies, with these voters."""
    return next(rule for rule in list_label_rules() if (rule.name, rule.voters) == (PRODUCT, voters))


def label_rules_named(names: Sequence[str]) -> tuple[Rule, ...]:
    """The rules of these names with either kind of voters, all of them for no name. Raises ConfigError."""
    known = list_label_rules()
    wrong = sorted(set(names) - {rule.name for rule in known})
    if wrong:
        raise ConfigError(
            f"rule {wrong[0]!r} is not known", ", ".join(dict.fromkeys(rule.name for rule in known))
        )
    return tuple(rule for rule in known if not names or rule.name in names)


def _rules() -> Sequence[Rule]:
    found: list[Rule] = []
    for k in (1, 2, 3):
        plain = replace(DEFAULT, threshold=k, min_families=min(k, 2), **_PLAIN)
        found.append(Rule(f"folded k={k}", "two families", replace(plain, level="exact"), folded=True))
        found += [Rule(f"{rung} k={k}", "two families", replace(plain, level=rung)) for rung in _RUNGS]
        found.append(
            Rule(f"default k={k}", "two families", replace(DEFAULT, threshold=k, min_families=min(k, 2)))
        )
    found += [Rule(policy.name, "two families", policy) for policy in (STRICT, LENIENT)]
    return (*found, Rule(WEIGHTED.name, "two families", WEIGHTED, weighed=True))


def _open(rule: Rule) -> Rule:
    policy = replace(rule.policy, min_families=1, exclude_student_family=False)
    return replace(rule, voters="any family", policy=policy)
