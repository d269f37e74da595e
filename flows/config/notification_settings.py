"""The table `[notifications]` of a configuration."""

import re
from typing import Literal, get_args

from pydantic import field_validator

from tracemill.records.frozen_model import FrozenModel

Occasion = Literal["failure", "cap", "release", "published", "drift"]
OCCASIONS: tuple[Occasion, ...] = get_args(Occasion)
_BLOCK = re.compile(r"[a-z0-9-]+/[a-z0-9-]+")


class NotificationSettings(FrozenModel):
    """Settings of the messages that Prefect sends, and of the blocks that it sends them through."""

    blocks: tuple[str, ...] = ()
    """Notification blocks of the Prefect server, `TYPE/NAME`; none given: no messages."""
    on: tuple[Occasion, ...] = ("failure", "cap", "release", "drift")
    """What a message is sent on."""

    @field_validator("blocks")
    @classmethod
    def _named(cls, blocks: tuple[str, ...]) -> tuple[str, ...]:
        if not all(_BLOCK.fullmatch(block) for block in blocks):
            raise ValueError("blocks are TYPE/NAME, such as slack-webhook/team")
        return blocks
