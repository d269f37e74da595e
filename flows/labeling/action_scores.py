"""Score recorded actions by a trained step scorer, as a word that the gate learns from: `scorer=1a2b3c4d*3`.

The word has a digest of the scorer, since another scorer's tenths say something else, and the tenth of its
probability, or `none` where its chat template refuses the state. Scores are computed on this machine, once
for each state and action, and kept beside the weights of the gate, with which `tracemill privacy forget`
removes them. torch is loaded when there is something to score.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracemill.data_cards.writing.encode_rows import encode_message_row
from tracemill.flows.labeling.gate_weights import gate_weights_folder
from tracemill.records.identity import digest, message_digest
from tracemill.records.message import Action, Message
from tracemill.records.storage.workspace import Workspace
from tracemill.teachers.core.question import Question
from tracemill.train.prm.trained_scorer import TrainedScorer, check_scorer_packages

if TYPE_CHECKING:
    from tracemill.train.prm.step_scorer import StepScorer

_TENTHS = 10


def check_step_scorer(folder: Path) -> None:
    """Raise TrainingError if a folder has no step scorer, or a package that it needs is missing."""
    TrainedScorer.read(folder)
    check_scorer_packages()


def scorer_word(scorer: str, probability: float | None) -> str:
    """Return a gate feature (a word) for a probability, with the digest of its step scorer."""
    tenth = "none" if probability is None else min(int(probability * _TENTHS), _TENTHS - 1)
    return f"scorer={scorer}*{tenth}"


def training_messages(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Return messages in the form that a training reads from a release."""
    rows = [encode_message_row(message) for message in messages]
    return [
        {**row, "tool_calls": [json.loads(call) for call in row["tool_calls"] or []] or None} for row in rows
    ]


class ActionScores:
    """The probabilities that a step scorer gives to actions; `keep` stores the new ones."""

    def __init__(self, trained: TrainedScorer, cache: Path) -> None:
        self._trained, self._cache = trained, cache
        self._known = _read_cache(cache)
        self._new: dict[str, float | None] = {}
        self._scorer: StepScorer | None = None

    @classmethod
    def open(cls, folder: Path | None, work: Workspace) -> "ActionScores | None":
        """Open the scores of a workspace; None without a step scorer."""
        if folder is None:
            return None
        check_step_scorer(folder)
        trained = TrainedScorer.read(folder)
        return cls(trained, gate_weights_folder(work) / f"scores-{trained.digest}.jsonl")

    def words(self, steps: Sequence[tuple[Question, Action]]) -> dict[str, str]:
        """Return the gate feature of each step by its id."""
        keys = {
            question.step_id: digest("score", question.prompt_id, message_digest(action.to_message()))
            for question, action in steps
        }
        missing = {
            keys[question.step_id]: (question, action)
            for question, action in steps
            if keys[question.step_id] not in self._known
        }
        if missing:
            rows = [
                {
                    "prompt": training_messages(question.messages),
                    "completion": training_messages([action.to_message()]),
                    "tools": question.wire_tools(),
                }
                for question, action in missing.values()
            ]
            made = dict(zip(missing, self._load().score_what_renders(rows), strict=True))
            self._known |= made
            self._new |= made
        return {step: scorer_word(self._trained.digest, self._known[key]) for step, key in keys.items()}

    def keep(self) -> None:
        """Write the new scores into the workspace."""
        if not self._new:
            return
        self._cache.parent.mkdir(parents=True, exist_ok=True)
        with self._cache.open("a", encoding="utf-8") as file:
            file.writelines(f"{json.dumps([key, score])}\n" for key, score in self._new.items())
        self._new = {}

    def _load(self) -> "StepScorer":
        if self._scorer is None:
            from tracemill.train.prm.step_scorer import StepScorer

            self._scorer = StepScorer(self._trained.folder)
        return self._scorer


def _read_cache(path: Path) -> dict[str, float | None]:
    """Return the scores of a file; a truncated line is ignored and scored again."""
    if not path.exists():
        return {}
    found: dict[str, float | None] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            key, score = json.loads(line)
        except ValueError:
            continue
        found[key] = score
    return found
