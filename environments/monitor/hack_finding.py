"""Findings of a reward-hacking monitor: the rule, the place, and the severity."""

from dataclasses import dataclass
from typing import Literal

Severity = Literal["hack", "suspicious"]


@dataclass(frozen=True)
class HackFinding:
    """A trace of reward hacking. A `hack` sets the reward to 0; what is `suspicious` is reported alone."""

    rule: str
    where: str
    severity: Severity = "hack"
