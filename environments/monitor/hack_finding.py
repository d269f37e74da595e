"""What a monitor reports: a rule, where, and how grave it is."""

from dataclasses import dataclass
from typing import Literal

Gravity = Literal["hack", "suspicious"]


@dataclass(frozen=True)
class HackFinding:
    """A trace of reward hacking. A `hack` sets the reward to 0; what is `suspicious` is reported alone."""

    rule: str
    where: str
    gravity: Gravity = "hack"
