"""How a training is told to stop, and tells of its progress."""

import os
import signal
from collections.abc import Callable
from typing import Any

Tell = Callable[[dict[str, Any]], None]


class Stopping:
    """Whether SIGTERM came: until training begins it ends the process, from then on it is asked for."""

    def __init__(self) -> None:
        self.asked = False
        self.in_training = False
        signal.signal(signal.SIGTERM, self._told)

    def _told(self, *_: object) -> None:
        self.asked = True
        if not self.in_training:
            os._exit(128 + signal.SIGTERM)
