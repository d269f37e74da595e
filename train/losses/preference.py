"""Losses of a chosen and a rejected side: DPO and SimPO."""

# pyright: reportMissingImports=false

from typing import Literal

from torch import Tensor
from torch.nn.functional import logsigmoid

from tracemill.train.losses.tensor_checks import check_choice, check_same_shape, full_precision, mean_of_kept


def dpo_loss(
    policy_chosen_logps: Tensor,
    policy_rejected_logps: Tensor,
    reference_chosen_logps: Tensor,
    reference_rejected_logps: Tensor,
    beta: float = 0.1,
    *,
    label_smoothing: float = 0.0,
    reduction: Literal["mean", "sum", "none"] = "mean",
) -> Tensor:
    """Return DPO's loss -log sigmoid(z), z = beta ((c - c_ref) - (r - r_ref)).

    c, r: log probability of the chosen and the rejected side, *summed* over its tokens, in nats, `[B]`;
    c_ref, r_ref: the same of the reference model, constants. label_smoothing e: (1 - e) times that plus e
    times -log sigmoid(-z). reduction: the mean or sum over pairs, or `[B]`; no pair gives 0.

    Source: DPO (https://arxiv.org/abs/2305.18290), equation 7; label smoothing of conservative DPO.
    """
    tensors = {
        "policy_chosen_logps": policy_chosen_logps,
        "policy_rejected_logps": policy_rejected_logps,
        "reference_chosen_logps": reference_chosen_logps,
        "reference_rejected_logps": reference_rejected_logps,
    }
    check_same_shape(tensors)
    chosen = full_precision(policy_chosen_logps) - full_precision(reference_chosen_logps.detach())
    rejected = full_precision(policy_rejected_logps) - full_precision(reference_rejected_logps.detach())
    return _preference(beta * (chosen - rejected), beta, label_smoothing, reduction)


def simpo_loss(
    chosen_logps: Tensor,
    rejected_logps: Tensor,
    beta: float = 2.0,
    gamma: float = 1.0,
    *,
    alpha: float = 0.0,
    label_smoothing: float = 0.0,
    reduction: Literal["mean", "sum", "none"] = "mean",
) -> Tensor:
    """Return SimPO's loss -log sigmoid(z), z = beta (c - r) - gamma.

    c, r: log probability of the chosen and the rejected side, *averaged* over its tokens, in nats, `[B]`.
    gamma is the margin that beta (c - r) is to reach: it is not divided or multiplied by beta.
    label_smoothing e: (1 - e) times that plus e times -log sigmoid(-z). alpha other than 0 puts AlphaPO's
    reward (1 - exp(-alpha c)) / alpha in the place of c, and of r alike. reduction: the mean or sum over
    pairs, or `[B]`; no pair gives 0.

    Sources: SimPO (https://arxiv.org/abs/2405.14734), equation 6; AlphaPO (https://arxiv.org/abs/2501.03884).
    """
    check_same_shape({"chosen_logps": chosen_logps, "rejected_logps": rejected_logps})
    chosen, rejected = full_precision(chosen_logps), full_precision(rejected_logps)
    if alpha != 0:
        chosen, rejected = -(-alpha * chosen).expm1() / alpha, -(-alpha * rejected).expm1() / alpha
    return _preference(beta * (chosen - rejected) - gamma, beta, label_smoothing, reduction)


def _preference(margin: Tensor, beta: float, smoothing: float, reduction: str) -> Tensor:
    if not beta > 0:
        raise ValueError(f"beta is {beta}; it must be above 0.")
    if not 0 <= smoothing <= 0.5:
        raise ValueError(f"label_smoothing is {smoothing}; it must be between 0 and 0.5.")
    check_choice("reduction", reduction, ("mean", "sum", "none"))
    losses = -logsigmoid(margin)
    if smoothing:
        losses = (1 - smoothing) * losses - smoothing * logsigmoid(-margin)
    if reduction == "none":
        return losses
    return losses.sum() if reduction == "sum" else mean_of_kept(losses)
