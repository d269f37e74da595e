"""Score actions by a model that `method = "prm"` trained."""

# pyright: reportMissingImports=false

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from tracemill.train.prm.calibration import Calibration
from tracemill.train.prm.trained_scorer import TrainedScorer


def score_ids(model: Any, rows: Sequence[Sequence[int]], pad_id: int, batch: int) -> list[float]:
    """Return the score of each row of token ids; rows of like length are computed together."""
    order = sorted(range(len(rows)), key=lambda number: len(rows[number]))
    scores = [0.0] * len(rows)
    training, device = model.training, next(model.parameters()).device
    model.eval()
    with torch.no_grad():
        for begin in range(0, len(rows), batch):
            numbers = order[begin : begin + batch]
            width = max(len(rows[number]) for number in numbers)
            ids = torch.full((len(numbers), width), pad_id)
            mask = torch.zeros_like(ids)
            for place, number in enumerate(numbers):
                ids[place, : len(rows[number])] = torch.tensor(rows[number])
                mask[place, : len(rows[number])] = 1
            logits = model(input_ids=ids.to(device), attention_mask=mask.to(device)).logits
            for number, score in zip(numbers, logits[:, 0].float().tolist(), strict=True):
                scores[number] = score
    model.train(training)
    return scores


class StepScorer:
    """The probability that teachers prefer an action in a state, by a model that `method = "prm"` trained.

    Args:
        folder: The checkpoint, with its `training.json`.
        device: Where the model is, as PyTorch names it; by default the GPU if there is one.
        batch: Rows that are computed at a time.

    Raises:
        TrainingError: The folder holds no such model, or one whose scores are not calibrated.
    """

    def __init__(self, folder: str | Path, device: str | None = None, batch: int = 8) -> None:
        place = Path(folder)
        trained = TrainedScorer.read(place)
        self.calibration = Calibration(trained.slope, trained.offset)
        self._max_length, self._batch = trained.max_length, batch
        self._tokenizer: Any = AutoTokenizer.from_pretrained(place)
        where = device or ("cuda" if torch.cuda.is_available() else "cpu")
        base: Any = AutoModelForSequenceClassification.from_pretrained(place, num_labels=1)
        self._model = base.to(where).eval()

    def score(self, rows: Sequence[Mapping[str, Any]]) -> list[float]:
        """Return the probability of each row's action.

        Args:
            rows: `prompt`, the messages of the state, `completion`, those of the action, and maybe `tools`. A
                row of more than the training's `max_length` tokens loses its first ones.
        """
        return self._probabilities([self._ids(row) for row in rows])

    def score_what_renders(self, rows: Sequence[Mapping[str, Any]]) -> list[float | None]:
        """Return the probability of each row's action, None if the chat template refuses the row."""
        ids: list[list[int] | None] = []
        for row in rows:
            try:
                ids.append(self._ids(row))
            except Exception:  # templates may raise anything
                ids.append(None)
        found = iter(self._probabilities([each for each in ids if each is not None]))
        return [None if each is None else next(found) for each in ids]

    def _ids(self, row: Mapping[str, Any]) -> list[int]:
        text = self._tokenizer.apply_chat_template(
            [*row["prompt"], *row["completion"]], tools=row.get("tools") or None, tokenize=False
        )
        return self._tokenizer(text, add_special_tokens=False)["input_ids"][-self._max_length :]

    def _probabilities(self, ids: Sequence[Sequence[int]]) -> list[float]:
        scores = score_ids(self._model, ids, self._tokenizer.pad_token_id, self._batch)
        return [self.calibration.probability(score) for score in scores]
