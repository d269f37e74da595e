"""A reward of `composer`: what teachers' answers in a state say of the action that a model takes there."""

from collections.abc import Mapping, Sequence
from typing import Any

from tracemill.agreement.voting.consensus_reward import ConsensusShape
from tracemill.train.consensus.state_rows import message_of, read_state

STATE = "state"
"""Column of the rows that GRPO plays with a row of `state_row`, as JSON."""


class ConsensusReward:
    """The reward of an action by teachers' answers in its state, for TRL's `reward_funcs`.

    It is None if no answer, or score, counts: TRL leaves such an action out.
    """

    __name__ = "consensus"

    def __init__(self, shape: ConsensusShape, teacher_weights: Mapping[str, float] | None = None) -> None:
        self._shape: ConsensusShape = shape
        self._weights = dict(teacher_weights or {})

    def __call__(
        self, completions: Sequence[Sequence[Mapping[str, Any]]], state: Sequence[str], **_: Any
    ) -> list[float | None]:
        """Return a reward for each completion, whose first message is the action."""
        return [
            read_state(row).reward(message_of(messages[0]), self._shape, self._weights)
            for messages, row in zip(completions, state, strict=True)
        ]
