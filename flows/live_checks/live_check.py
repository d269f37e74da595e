"""The outcome of one check against a real server."""

from dataclasses import dataclass
from typing import Literal

LiveState = Literal["ok", "failed", "not tried"]


@dataclass(frozen=True, slots=True)
class LiveCheck:
    """Result of one check, with its figure or the reason in one line."""

    name: str
    state: LiveState
    said: str
