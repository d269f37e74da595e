"""A reward of `composer`: what a step scorer makes of the actions of an episode."""

# pyright: reportMissingImports=false

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tracemill.train.prm.step_scorer import StepScorer

_Messages = Sequence[Mapping[str, Any]]


class PrmReward:
    """The mean probability of an episode's actions, for TRL's `reward_funcs`; 0 for one without an action.

    `tools` are what the chat template lists to the model that acts.
    """

    __name__ = "prm"

    def __init__(self, folder: Path) -> None:
        self._scorer = StepScorer(folder)
        self.tools: Sequence[Any] | None = None

    def __call__(
        self, prompts: Sequence[_Messages], completions: Sequence[_Messages], **_: Any
    ) -> list[float]:
        """Return a reward for each completion, a list of messages with the results of tools among them."""
        rewards = []
        for prompt, messages in zip(prompts, completions, strict=True):
            rows = [
                {"prompt": [*prompt, *messages[:at]], "completion": [message], "tools": self.tools}
                for at, message in enumerate(messages)
                if message["role"] == "assistant"
            ]
            rewards.append(statistics.fmean(self._scorer.score(rows)) if rows else 0.0)
        return rewards
