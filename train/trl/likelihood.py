"""Warnings about what a training did to the likelihood of its rows."""

from typing import Any

from tracemill.train.training_settings import TrainingSettings

_END = 5
"""The end of a training is the last of so many equal parts of its steps."""


def likelihood_warnings(
    settings: TrainingSettings, losses: list[dict[str, Any]], validation: list[dict[str, Any]]
) -> list[str]:
    """Return a line where DPO ends with chosen sides less likely than they began.

    Its loss falls all the same, as long as the rejected ones fall further. `losses` has the figures of every
    step, `validation` those of every measurement.
    """
    if settings.nll_weight is None:
        return []
    last = losses[-max(len(losses) // _END, 1) :]
    ends = {"training rows": [entry["rewards/chosen"] for entry in last if "rewards/chosen" in entry]}
    ends["rows of validation"] = [entry["rewards/chosen"] for entry in validation[-1:]]
    means = {name: round(sum(values) / len(values), 4) for name, values in ends.items() if values}
    where = " and ".join(f"{mean} on {name}" for name, mean in means.items() if mean < 0)
    said = f"the chosen sides became less likely (rewards/chosen is {where} at the end)"
    return [f"{said}; raise training.nll_weight, or lower training.learning_rate"] if where else []
