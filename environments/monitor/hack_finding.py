"""Findings of a reward-hacking monitor: the rule, the place, and the severity."""

from dataclasses import dataclass
from typing import Literal

Severity = Literal["hack", "suspicious"]


@dataclass(frozen=True)
class HackFinding:
    """A sign of reward hacking. A `hack` sets the reward to 0; a `suspicious` finding is only reported."""

    rule: str
    where: str
    severity: Severity = "hack"
