"""TAID: distillation from a teacher that moves from the student to the teacher."""

# pyright: reportMissingImports=false

import math

import torch
from torch import Tensor

from tracemill.train.losses.tensor_checks import as_keep, check_logits, kept_rows, mean_of_kept
from tracemill.train.losses.vocabulary_sums import CHUNK_SIZE, sum_over_vocabulary


def taid_loss(
    student_logits: Tensor,
    teacher_logits: Tensor,
    t: float,
    mask: Tensor | None = None,
    *,
    chunk_size: int | None = CHUNK_SIZE,
) -> Tensor:
    """Return the mean over kept tokens of the cross-entropy -sum_v p_t(v) log q(v), in nats.

    p_t = softmax((1 - t) sg(s) + t T) with student logits s, teacher logits T and sg for a constant; q =
    softmax(s). It is a cross-entropy, not a KL: the entropy of p_t is not taken off. t = 0 gives the entropy
    of q, whatever the teacher, with zero gradient; t = 1 the cross-entropy to the teacher. Gradients flow
    through log q alone.

    student_logits, teacher_logits: `[..., V]`; t: 0 to 1; mask: `[...]`, 0 for a token that does not count.
    An entry that is -inf in both, or in the student at t < 1, counts nothing: its p_t is 0. One that is -inf
    in the student alone makes the loss NaN at t = 1, and one in the teacher alone at t = 0. No kept token: 0
    with zero gradients.

    Source: TAID (https://arxiv.org/abs/2501.16937), section 3. float32 and float64 are computed as they are,
    shorter types in float32.
    """
    check_logits(student_logits, teacher_logits)
    if not 0 <= t <= 1:
        raise ValueError(f"t is {t}; it must be between 0 and 1.")
    rows = kept_rows(as_keep(mask, student_logits.shape[:-1]))

    def summand(log_q: Tensor, log_p: Tensor) -> tuple[Tensor]:
        return (log_p.exp() * -torch.where(log_q == -math.inf, 0, log_q),)

    def mixed(student: Tensor, teacher: Tensor) -> tuple[Tensor, Tensor]:
        absent = (student.detach() == -math.inf) & (teacher == -math.inf)  # 0 times -inf is NaN
        mix = (1 - t) * student.detach() + t * teacher
        return student, mix.masked_fill(absent, -math.inf)

    (losses,) = sum_over_vocabulary(
        summand, student_logits, teacher_logits, rows, chunk_size=chunk_size, prepare=mixed
    )
    return mean_of_kept(losses)


class TAIDScheduler:
    """A schedule that moves t of `taid_loss` from `t_start` to `t_end`, faster while the loss falls.

    With relative change r = (previous loss - loss) / (previous loss + 1e-15) and momentum m <- beta m +
    (1 - beta) r, at step n of N:

        t <- min(t_end, max(t_start + (t_end - t_start) n / N, t + alpha sigmoid(m) (1 - t)))

    The first update only stores the loss. With `disable_adaptive` t is t_start + (t_end - t_start) n / N, and
    never more than t_end.

    Source: TAID (https://arxiv.org/abs/2501.16937), algorithm 1.
    """

    def __init__(
        self,
        num_train_steps: int,
        *,
        t_start: float = 0.4,
        t_end: float = 1.0,
        alpha: float = 5e-4,
        beta: float = 0.99,
        disable_adaptive: bool = False,
    ) -> None:
        if num_train_steps < 1:
            raise ValueError(f"num_train_steps is {num_train_steps}; it must be 1 or more.")
        if not 0 <= t_start <= t_end <= 1:
            raise ValueError(f"t_start is {t_start} and t_end {t_end}; expected 0 <= t_start <= t_end <= 1.")
        if not (alpha >= 0 and 0 <= beta <= 1):
            raise ValueError(f"alpha is {alpha} and beta {beta}; expected alpha >= 0 and 0 <= beta <= 1.")
        self.num_train_steps = num_train_steps
        self.t_start, self.t_end = t_start, t_end
        self.alpha, self.beta = alpha, beta
        self.disable_adaptive = disable_adaptive
        self.t = t_start
        self.momentum = 0.0
        self.previous_loss: float | None = None

    def update_t(self, loss: float | Tensor, global_step: int) -> float:
        """Return t after `global_step` (0 for the first step), whose loss was `loss`.

        Raises ValueError for a loss that is not finite, and changes nothing then.
        """
        value = float(loss)
        if not math.isfinite(value):
            raise ValueError(f"The loss of step {global_step} is {value}; it must be finite.")
        t = self.t_start + (self.t_end - self.t_start) * global_step / self.num_train_steps
        if self.previous_loss is not None:
            change = (self.previous_loss - value) / (self.previous_loss + 1e-15)
            self.momentum = self.beta * self.momentum + (1 - self.beta) * change
            if not self.disable_adaptive:
                sigmoid = (1 + math.tanh(self.momentum / 2)) / 2
                t = max(t, self.t + self.alpha * sigmoid * (1 - self.t))
        if self.previous_loss is not None or self.disable_adaptive:
            self.t = min(self.t_end, t)
        self.previous_loss = value
        return self.t

    def state_dict(self) -> dict[str, float | None]:
        """Return the state for resuming an interrupted training: t, momentum and previous loss."""
        return {"t": self.t, "momentum": self.momentum, "previous_loss": self.previous_loss}

    def load_state_dict(self, state: dict[str, float | None]) -> None:
        """Restore the state that `state_dict` returned. Raises KeyError if a value is missing."""
        t, momentum, previous = state["t"], state["momentum"], state["previous_loss"]
        if t is None or momentum is None:
            raise ValueError("t or momentum of the stored scheduler is None; they must be numbers.")
        self.t, self.momentum, self.previous_loss = t, momentum, previous
