"""One check against a real server, and what came of it."""

from dataclasses import dataclass
from typing import Literal

LiveState = Literal["ok", "failed", "not tried"]


@dataclass(frozen=True, slots=True)
class LiveCheck:
    """What was checked, what came of it, and the figure or the reason in one line."""

    name: str
    state: LiveState
    said: str
