"""Stored numbers of other implementations of our losses, and ours for the same inputs.

`python tests/support/loss_vectors.py [FOLDER]` prints the table: for each set and each function in it the
cases, the largest relative error of value and gradient by type, and the case that has it. FOLDER is
TRACEMILL_GOLDEN where it is not given. A relative error is max |ours - theirs| / max |theirs| of an array.
Where theirs is itself what rounding left of larger numbers (a gradient that is 0, a sum that cancels), it
means nothing: a difference of less than ROUNDING counts as none, and the table says of how many.
"""

import json
import math
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from tracemill.train.losses.generalized_jsd import generalized_jsd_loss
from tracemill.train.losses.policy import dppo_loss, grpo_loss
from tracemill.train.losses.preference import dpo_loss, simpo_loss
from tracemill.train.losses.self_distillation import sdpo_loss
from tracemill.train.losses.taid import TAIDScheduler, taid_loss

FOLDER = "TRACEMILL_GOLDEN"
LIMITS = {"float32": 1e-5, "float64": 1e-9}
"""Relative errors."""
ROUNDING = {"float32": 1e-7, "float64": 1e-15}
"""Absolute differences, of numbers up to about 1."""


class Case(NamedTuple):
    """One stored case."""

    id: str
    fn: str
    params: dict[str, Any]
    inputs: dict[str, torch.Tensor | None]
    outputs: dict[str, np.ndarray]


class Compared(NamedTuple):
    """An output of one case: ours beside theirs."""

    vectors: str
    case: str
    fn: str
    output: str
    dtype: str
    ours: np.ndarray
    theirs: np.ndarray

    @property
    def difference(self) -> float:
        """Largest absolute difference; NaN counts as equal to NaN."""
        if self.ours.shape != self.theirs.shape or (np.isnan(self.ours) != np.isnan(self.theirs)).any():
            return math.inf
        apart = np.abs(self.ours.astype(np.float64) - self.theirs.astype(np.float64))
        return float(np.nan_to_num(apart).max(initial=0.0))

    @property
    def error(self) -> float:
        """Relative error; where theirs is 0 everywhere, the absolute one."""
        return self.difference / (float(np.abs(np.nan_to_num(self.theirs)).max(initial=0.0)) or 1.0)

    @property
    def within(self) -> bool:
        """Whether the relative error is within its limit."""
        return self.error <= LIMITS[self.dtype]

    @property
    def rounding(self) -> bool:
        """Whether it is not, and the difference is rounding."""
        return not self.within and self.difference <= ROUNDING[self.dtype]


Run = Callable[[Case], dict[str, torch.Tensor] | None]
"""Gives our outputs by the names of theirs, or None where the case is of another loss."""


def load(folder: Path) -> Iterator[Case]:
    """Give the cases of one set."""
    arrays = np.load(folder / "cases.npz")
    for case in json.loads((folder / "cases.json").read_text()):
        name = case["id"]
        inputs = {
            key: None if said is None else torch.from_numpy(np.array(arrays[f"{name}/inputs/{key}"]))
            for key, said in case["inputs"].items()
        }
        outputs = {key: arrays[f"{name}/outputs/{key}"] for key in case["outputs"]}
        yield Case(name, case["fn"], case["params"], inputs, outputs)


def no_token_kept(case: Case) -> bool:
    """Return whether the labels and masks of a case leave no token."""
    labels = case.inputs.get("labels")
    kept = None if labels is None else labels != -100
    for name in ("mask", "loss_mask", "response_mask", "self_distillation_mask"):
        if (mask := case.inputs.get(name)) is not None:
            mask = mask.bool() if mask.ndim == 2 or name == "loss_mask" else mask.bool()[:, None]
            kept = mask if kept is None else kept & mask
    return kept is not None and not kept.any()


def compare(folder: Path) -> Iterator[Compared]:
    """Give every output that our losses have, of every case of every set in `folder`."""
    for vectors, (run, single) in RUNS.items():
        for case in load(folder / vectors):
            ours = run(case)
            for output, value in (ours or {}).items():
                theirs = case.outputs[output]
                if no_token_kept(case):  # theirs may be 0 / 0
                    theirs = np.nan_to_num(theirs, nan=0.0)
                wide = any(each is not None and each.dtype == torch.float64 for each in case.inputs.values())
                dtype = "float64" if wide and not single else "float32"
                found = value.detach().numpy()
                yield Compared(vectors, case.id, case.fn, output, dtype, found, theirs)


def _with_gradient(case: Case, name: str, loss: Callable[[torch.Tensor], torch.Tensor]) -> tuple[Any, Any]:
    """Return the loss and the gradient of its sum with respect to one input."""
    given = case.inputs[name]
    assert given is not None
    leaf = given.clone().requires_grad_()
    value = loss(leaf)
    (gradient,) = torch.autograd.grad(value.sum(), leaf)
    return value, gradient


def _jsd(case: Case) -> dict[str, torch.Tensor]:
    params = {key: value for key, value in case.params.items() if key != "mask_kind"}
    value, gradient = _with_gradient(
        case,
        "student_logits",
        lambda logits: generalized_jsd_loss(
            logits, case.inputs["teacher_logits"], case.inputs["labels"], **params
        ),
    )
    return {"loss": value, "grad_student_logits": gradient}


def _taid(case: Case) -> dict[str, torch.Tensor]:
    value, gradient = _with_gradient(
        case,
        "student_logits",
        lambda logits: taid_loss(
            logits, case.inputs["teacher_logits"], case.params["t"], case.inputs["mask"]
        ),
    )
    return {"loss": value, "grad_student_logits": gradient}


def _divergence(case: Case) -> dict[str, torch.Tensor] | None:
    name, _, weight = case.fn.partition(":w=")
    if name.startswith("skew"):
        return None
    betas = {"reverse_kl": 1.0, "js": float(weight or 0)}
    teacher, mask = case.inputs["teacher_logits"], case.inputs["mask"]

    def loss(logits: torch.Tensor) -> torch.Tensor:
        if name == "forward_kl":  # theirs is a cross-entropy
            return taid_loss(logits, teacher, 1.0, mask)
        return generalized_jsd_loss(logits, teacher, beta=betas[name], mask=mask)

    value, gradient = _with_gradient(case, "student_logits", loss)
    return {"loss": value, "grad_student_logits": gradient}


def _update_t(case: Case) -> dict[str, torch.Tensor]:
    scheduler = TAIDScheduler(**case.params)
    losses = case.inputs["losses"]
    assert losses is not None
    found = []
    for step, loss in enumerate(losses):
        scheduler.update_t(loss, step)
        found.append((scheduler.t, scheduler.momentum))
    t, momentum = torch.tensor(found, dtype=torch.float64).unbind(1)
    return {"t_after": t, "momentum_after": momentum}


def _sdpo(case: Case) -> dict[str, torch.Tensor]:
    params, inputs = case.params, case.inputs
    value, gradient = _with_gradient(
        case,
        "student_logits",
        lambda logits: sdpo_loss(
            logits,
            inputs["teacher_logits"],
            inputs["response_mask"],
            alpha=params["alpha"],
            mode=params["mode"],
            top_k=params["topk"],
            token_ids=inputs["token_ids"],
            old_log_probs=inputs["old_log_probs"],
            is_clip=params["is_clip"],
            sample_mask=inputs["self_distillation_mask"],
            rollout_weights=inputs["rollout_is_weights"],
            reduction=params["loss_agg_mode"],
        ),
    )
    return {"loss": value, "grad_student_logits": gradient}


def _sdpo_tokens(case: Case) -> dict[str, torch.Tensor]:
    params, inputs = case.params, case.inputs
    value, gradient = _with_gradient(
        case,
        "student_logits",
        lambda logits: sdpo_loss(
            logits,
            inputs["teacher_logits"],
            reduction="none",
            alpha=params["alpha"],
            mode="full" if case.fn == "is_clip" else case.fn,
            top_k=params["topk"],
            token_ids=inputs["token_ids"],
            old_log_probs=inputs["old_log_probs"],
            is_clip=params["is_clip"],
        ),
    )
    return {"per_token_loss": value, "grad_student_logits_of_sum": gradient}


def _dppo(case: Case) -> dict[str, torch.Tensor] | None:
    if case.fn != "default_loss_fn":
        return None
    params = {key: value for key, value in case.params.items() if key != "mask_kind"}
    inputs = case.inputs
    value, gradient = _with_gradient(
        case,
        "trainer_logprobs",
        lambda logps: dppo_loss(
            logps,
            inputs["inference_logprobs"],
            inputs["advantages"],
            inputs["loss_mask"],
            inputs["loss_weights"],
            **params,
        ),
    )
    return {"loss": value, "grad_trainer_logprobs": gradient}


def _preference(case: Case) -> dict[str, torch.Tensor] | None:
    params = case.params
    if params["loss_type"] not in ("simpo", "sigmoid"):
        return None
    given = (case.inputs["chosen_logps"], case.inputs["rejected_logps"])
    sides = [side.clone().requires_grad_() for side in given if side is not None]
    shared = {"label_smoothing": params["label_smoothing"], "reduction": "none"}
    if params["loss_type"] == "simpo":
        gamma, alpha = params["simpo_gamma"], params["alpha"]
        losses = simpo_loss(*sides, beta=params["beta"], gamma=gamma, alpha=alpha, **shared)
    elif params["alpha"] == 0:  # without a reference, as with one that finds all sides equally likely
        zeros = torch.zeros_like(sides[0])
        losses = dpo_loss(*sides, zeros, zeros, params["beta"], **shared)
    else:
        return None
    chosen, rejected = torch.autograd.grad(losses.mean(), sides)
    return {"losses": losses, "grad_of_mean_wrt_chosen": chosen, "grad_of_mean_wrt_rejected": rejected}


def _grpo(case: Case) -> dict[str, torch.Tensor]:
    params, inputs = case.params, case.inputs
    mask, tools = inputs["completion_mask"], inputs["tool_mask"]
    assert mask is not None
    value, gradient = _with_gradient(
        case,
        "per_token_logps",
        lambda logps: grpo_loss(
            logps,
            inputs["old_per_token_logps"],
            inputs["advantages"],
            mask if tools is None else mask * tools,
            epsilon_low=params["epsilon_low"],
            epsilon_high=params["epsilon_high"],
            delta=params["delta"],
            loss_type=params["loss_type"],
            importance_level=params["importance_sampling_level"],
            num_items_in_batch=inputs["num_items_in_batch"],
            max_completion_length=params["max_completion_length"],
            ref_log_probs=inputs["ref_per_token_logps"],
            kl_beta=params["beta"],
        ),
    )
    return {"loss": value, "grad_per_token_logps": gradient}


RUNS: dict[str, tuple[Run, bool]] = {
    "opsd_generalized_jsd": (_jsd, False),
    "opsd_generalized_jsd_token_clip": (_jsd, False),
    "trl_gkd_generalized_jsd": (_jsd, False),
    "taid_compute_loss": (_taid, True),
    "taid_divergences": (_divergence, True),
    "taid_update_t": (_update_t, True),
    "sdpo_self_distillation_loss": (_sdpo, False),
    "trl_sdpo_divergence": (_sdpo_tokens, False),
    "prime_rl_losses": (_dppo, False),
    "trl_cpo_simpo": (_preference, False),
    "trl_grpo_compute_loss": (_grpo, False),
}
"""What runs each set, and whether theirs computes in float32 whatever the type of the inputs."""


def main(folder: Path) -> None:
    """Print the table."""
    rows: dict[tuple[str, str, str, str], list[Compared]] = {}
    for found in compare(folder):
        kind = "gradient" if "grad" in found.output else found.output
        rows.setdefault((found.vectors, found.fn, kind, found.dtype), []).append(found)
    head = "vectors | function | output | type | arrays | largest error | of case | ours | theirs"
    sys.stdout.write(f"{head} | rounding | off\n")
    for key, compared in rows.items():
        worst = max((each for each in compared if not each.rounding), key=lambda each: each.error)
        pair = (worst.ours, worst.theirs)
        at = int(np.nan_to_num(np.abs(worst.ours - worst.theirs)).argmax()) if worst.ours.size else 0
        said = " | ".join(f"{each.flat[at]:.9g}" if each.size else "-" for each in pair)
        off = sum(not each.within and not each.rounding for each in compared)
        counts = f"{sum(each.rounding for each in compared)} | {off}"
        row = f"{' | '.join(key)} | {len(compared)} | {worst.error:.1e} | {worst.case} | {said} | {counts}"
        sys.stdout.write(row + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else os.environ[FOLDER]))
