"""Stop a training on SIGTERM."""

import os
import signal


def is_main_process() -> bool:
    """Return whether this is the only process of the training, or the first of several."""
    return os.environ.get("RANK", "0") == "0"


class StopSignal:
    """A flag that SIGTERM sets; before training begins, SIGTERM ends the process at once."""

    def __init__(self) -> None:
        self.requested = False
        self.in_training = False
        signal.signal(signal.SIGTERM, self._handle)

    def _handle(self, *_: object) -> None:
        self.requested = True
        if not self.in_training:
            os._exit(128 + signal.SIGTERM)
