"""Warnings on the likelihood of chosen sides after DPO."""

from typing import Any

from tracemill.train.training_settings import TrainingSettings

_END_SHARE = 5
"""The last 1 / 5 of the steps is the end of a training."""


def likelihood_warnings(
    settings: TrainingSettings, losses: list[dict[str, Any]], validation: list[dict[str, Any]]
) -> list[str]:
    """Return a warning if chosen sides are less likely at the end of DPO than before it.

    DPO's loss falls even then, if the rejected sides fall further. `losses` has an entry for every step,
    `validation` for every evaluation.
    """
    if settings.nll_weight is None:
        return []
    last = losses[-max(len(losses) // _END_SHARE, 1) :]
    ends = {"training rows": [entry["rewards/chosen"] for entry in last if "rewards/chosen" in entry]}
    ends["rows of validation"] = [entry["rewards/chosen"] for entry in validation[-1:]]
    means = {name: round(sum(values) / len(values), 4) for name, values in ends.items() if values}
    where = " and ".join(f"{mean} on {name}" for name, mean in means.items() if mean < 0)
    problem = f"the chosen sides became less likely (rewards/chosen is {where} at the end)"
    return [f"{problem}; raise training.nll_weight, or lower training.learning_rate"] if where else []
