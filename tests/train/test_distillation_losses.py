"""Divergences, TAID, entropy-aware losses and SDPO: limits worked out by hand, masks, parts, bad input."""

import math
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-all")

from torch import Tensor  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402
from torch.utils._pytree import tree_leaves  # noqa: E402

from tracemill.train.losses.entropy_aware import (  # noqa: E402
    entropy_aware_opd_loss,
    entropy_mix_loss,
    eopd_loss,
)
from tracemill.train.losses.generalized_jsd import generalized_jsd_loss  # noqa: E402
from tracemill.train.losses.self_distillation import sdpo_loss  # noqa: E402
from tracemill.train.losses.taid import TAIDScheduler, taid_loss  # noqa: E402
from tracemill.train.losses.token_log_probs import token_log_probs  # noqa: E402

pytestmark = pytest.mark.slow  # as all that needs PyTorch
INF = math.inf

# Teacher p = (1/2, 1/2) and student q = (3/4, 1/4), in nats.
TEACHER = torch.tensor([[[0.5, 0.5]]], dtype=torch.float64).log()
STUDENT = torch.tensor([[[0.75, 0.25]]], dtype=torch.float64).log()
FORWARD = 0.5 * math.log(0.5 / 0.75) + 0.5 * math.log(0.5 / 0.25)  # 0.143841
REVERSE = 0.75 * math.log(0.75 / 0.5) + 0.25 * math.log(0.25 / 0.5)  # 0.130812

LOSSES: dict[str, Callable[..., Tensor]] = {
    "jsd 0": lambda s, t, m, **k: generalized_jsd_loss(s, t, mask=m, beta=0, **k),
    "jsd 0.3": lambda s, t, m, **k: generalized_jsd_loss(s, t, mask=m, beta=0.3, temperature=1.7, **k),
    "jsd 1": lambda s, t, m, **k: generalized_jsd_loss(s, t, mask=m, beta=1, token_clip=0.05, **k),
    "jsd top 3": lambda s, t, m, **k: generalized_jsd_loss(s, t, mask=m, top_k=3, top_k_of="student", **k),
    "taid": lambda s, t, m, **k: taid_loss(s, t, 0.4, m, **k),
    "entropy_mix": entropy_mix_loss,
    "eopd": lambda s, t, m, **k: eopd_loss(s, t, m, tau=1.2, **k),
    "sdpo full": sdpo_loss,
    "sdpo tail": lambda s, t, m, **k: sdpo_loss(s, t, m, alpha=0.5, mode="topk_tail", top_k=3, **k),
    "sdpo renorm": lambda s, t, m, **k: sdpo_loss(s, t, m, mode="topk_renorm", top_k=3, **k),
    "sdpo rows": lambda s, t, m, **k: sdpo_loss(s, t, m, reduction="seq-mean-token-mean", **k),
}


def pair(*shape: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    torch.manual_seed(seed)
    student, teacher = (2 * torch.randn(*shape, dtype=torch.float64) for _ in range(2))
    return student.requires_grad_(), teacher


def gradient(loss: Tensor, leaf: Tensor) -> Tensor:
    return torch.autograd.grad(loss, leaf)[0]


def test_beta_0_is_forward_kl_beta_1_reverse_kl_and_beta_weighs_the_teacher() -> None:
    found = {b: generalized_jsd_loss(STUDENT, TEACHER, beta=b).item() for b in (0, 0.25, 1)}
    assert found[0] == pytest.approx(0.143841, abs=1e-6)
    assert found[0] == pytest.approx(FORWARD, rel=1e-12)
    assert found[1] == pytest.approx(0.130812, abs=1e-6)
    assert found[1] == pytest.approx(REVERSE, rel=1e-12)
    # m = p / 4 + 3 q / 4 = (11/16, 5/16)
    to_teacher = 0.5 * math.log(0.5 / 0.6875) + 0.5 * math.log(0.5 / 0.3125)
    to_student = 0.75 * math.log(0.75 / 0.6875) + 0.25 * math.log(0.25 / 0.3125)
    assert found[0.25] == pytest.approx(0.25 * to_teacher + 0.75 * to_student, rel=1e-12)
    assert found[0.25] == pytest.approx(0.026048, abs=1e-6)


def test_reductions_divide_by_what_they_say() -> None:
    student, teacher = pair(2, 3, 5)
    labels = torch.tensor([[-100, 4, 4], [-100, -100, 4]])
    total = generalized_jsd_loss(student, teacher, labels, reduction="sum").item()

    def reduced(labels: Tensor | None, reduction: Any, **given: Any) -> Any:
        return generalized_jsd_loss(student, teacher, labels, reduction=reduction, **given)

    assert reduced(labels, "batchmean").item() == pytest.approx(total / 3)
    assert reduced(labels, "mean").item() == pytest.approx(total / 15)
    assert reduced(labels, "batchmean", num_items_in_batch=7).item() == pytest.approx(total / 7)
    assert reduced(labels, "none").shape == (3, 5)
    assert reduced(labels, "none").sum().item() == pytest.approx(total)
    assert reduced(labels, "none", top_k=2).shape == (3, 2)
    nothing = torch.full((2, 3), -100)
    assert reduced(nothing, "batchmean", num_items_in_batch=0).item() == 0
    every = reduced(None, "sum").item()
    assert reduced(None, "batchmean").item() == pytest.approx(every / 2)  # by rows, not by tokens
    assert reduced(None, "mean").item() == pytest.approx(every / 30)
    assert generalized_jsd_loss(student, teacher, mask=labels != -100).item() == pytest.approx(total / 3)


def test_a_clip_caps_every_entry_of_the_vocabulary_and_may_make_the_loss_negative() -> None:
    # KL(p || q) has the entries 1/2 ln(2/3) = -0.202733 and 1/2 ln 2 = 0.346574.
    clipped = generalized_jsd_loss(STUDENT, TEACHER, beta=0, token_clip=0.05)
    assert clipped.item() == pytest.approx(0.05 - 0.202733, abs=1e-6)


def test_top_k_keeps_the_likeliest_of_either_side_and_renormalises() -> None:
    student = torch.tensor([[[0.6, 0.3, 0.1]]], dtype=torch.float64).log()
    teacher = torch.tensor([[[0.1, 0.3, 0.6]]], dtype=torch.float64).log()
    # Of the teacher: entries 2 and 1, p = (2/3, 1/3), q = (1/4, 3/4).
    of_teacher = 2 / 3 * math.log(2 / 3 / 0.25) + 1 / 3 * math.log(1 / 3 / 0.75)
    # Of the student: entries 0 and 1, p = (1/4, 3/4), q = (2/3, 1/3).
    of_student = 0.25 * math.log(0.25 / (2 / 3)) + 0.75 * math.log(0.75 / (1 / 3))
    for side, wanted in (("teacher", of_teacher), ("student", of_student)):
        found = generalized_jsd_loss(student, teacher, beta=0, top_k=2, top_k_of=side)
        assert found.item() == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize("name", LOSSES)
def test_no_kept_token_gives_0_with_zero_gradients(name: str) -> None:
    student, teacher = pair(2, 3, 7)
    loss = LOSSES[name](student, teacher, torch.zeros(2, 3))
    assert loss.item() == 0
    assert gradient(loss, student).abs().max() == 0


@pytest.mark.parametrize("name", LOSSES)
def test_tokens_that_do_not_count_have_no_effect_be_they_nan(name: str) -> None:
    student, teacher = pair(2, 3, 7)
    mask = torch.tensor([[1, 0, 1], [0, 1, 1]])
    wanted = LOSSES[name](student, teacher, mask)
    broken = torch.where(mask[..., None] == 1, student.detach(), math.nan).requires_grad_()
    found = LOSSES[name](broken, torch.where(mask[..., None] == 1, teacher, math.nan), mask)
    assert found.item() == wanted.item()
    assert torch.equal(gradient(found, broken), gradient(wanted, student))
    assert gradient(LOSSES[name](student, teacher, mask), student)[mask == 0].abs().max() == 0


@pytest.mark.parametrize("side", ["student", "teacher"])
@pytest.mark.parametrize("name", LOSSES)
def test_a_nan_among_the_logits_of_a_kept_token_is_not_hidden(name: str, side: str) -> None:
    student, teacher = (each.detach().clone() for each in pair(1, 2, 7))
    (student if side == "student" else teacher)[0, 1, 3] = math.nan
    assert LOSSES[name](student, teacher, torch.ones(1, 2)).isnan()


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("chunk_size", [1, 4, 16, 100])
def test_parts_of_the_vocabulary_give_what_all_of_it_gives(name: str, chunk_size: int) -> None:
    student, teacher = pair(2, 5, 37)
    mask = torch.tensor([[1, 1, 0, 1, 0], [0, 1, 1, 1, 1]])
    whole = LOSSES[name](student, teacher, mask, chunk_size=None)
    parts = LOSSES[name](student, teacher, mask, chunk_size=chunk_size)
    assert parts.item() == pytest.approx(whole.item(), rel=1e-13)
    torch.testing.assert_close(gradient(parts, student), gradient(whole, student), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("name", sorted(LOSSES.keys() - {"taid"}))  # whose target moves with the student
def test_the_gradient_is_that_of_finite_differences_and_none_reaches_the_teacher(name: str) -> None:
    student, teacher = pair(1, 2, 5, seed=3)
    teacher.requires_grad_()
    mask = torch.ones(1, 2)
    assert torch.autograd.gradcheck(lambda s: LOSSES[name](s, teacher.detach(), mask, chunk_size=2), student)
    LOSSES[name](student, teacher, mask).backward()
    assert teacher.grad is None


class Largest(TorchDispatchMode):
    """Most entries of a tensor that an operation made anew."""

    entries = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        given = {each.untyped_storage().data_ptr() for each in tree_leaves(args) if isinstance(each, Tensor)}
        made = [each for each in tree_leaves(out) if isinstance(each, Tensor)]
        sizes = [each.numel() for each in made if each.untyped_storage().data_ptr() not in given]
        self.entries = max(self.entries, *sizes, 0)
        return out


@pytest.mark.parametrize(
    "name", ["jsd 0", "jsd 0.3", "jsd top 3", "taid", "entropy_mix", "eopd", "sdpo full"]
)
def test_the_forward_pass_makes_no_tensor_larger_than_a_part(name: str) -> None:
    student, teacher = pair(2, 4, 1000)
    mask = torch.ones(2, 4)
    mask[0, 0] = 0
    with Largest() as whole:
        LOSSES[name](student, teacher, mask, chunk_size=None)
    with Largest() as parts:
        LOSSES[name](student, teacher, mask, chunk_size=50)
    assert whole.entries >= 8 * 3 if name == "jsd top 3" else whole.entries >= 7 * 1000
    assert parts.entries <= 3 * 7 * 50  # three sums are stacked


def test_entries_of_minus_infinity_count_nothing_and_get_no_gradient() -> None:
    student, teacher = pair(1, 2, 5)
    closed = torch.cat([student.detach(), torch.full((1, 2, 3), -INF)], dim=-1).requires_grad_()
    taught = torch.cat([teacher, torch.full((1, 2, 3), -INF)], dim=-1)
    mask = torch.ones(1, 2)
    for t in (0.0, 0.4, 1.0):
        wanted = taid_loss(student, teacher, t, mask).item()
        assert taid_loss(closed, taught, t, mask, chunk_size=2).item() == pytest.approx(wanted, rel=1e-12)
    for name in ("jsd 0", "jsd 0.3", "jsd 1", "taid", "eopd", "sdpo full"):
        wanted = LOSSES[name](student, teacher, mask)
        wanted_slope = gradient(wanted, student)
        for chunk_size in (None, 2):
            found = LOSSES[name](closed, taught, mask, chunk_size=chunk_size)
            assert found.item() == pytest.approx(wanted.item(), rel=1e-12), name
            slope = gradient(found, closed)
            assert slope[..., 5:].abs().max() == 0
            torch.testing.assert_close(slope[..., :5], wanted_slope)


def test_short_floats_are_computed_in_float32() -> None:
    student, teacher = (each.detach().to(torch.bfloat16) for each in pair(1, 2, 5))
    for name, loss in LOSSES.items():
        found = loss(student, teacher, torch.ones(1, 2))
        assert found.dtype == torch.float32, name
        assert found.item() == loss(student.float(), teacher.float(), torch.ones(1, 2)).item()


@pytest.mark.parametrize("name", LOSSES)
def test_shapes_that_do_not_fit_are_one_sentence(name: str) -> None:
    student, teacher = (torch.zeros(2, 3, 7) for _ in range(2))
    wanted = "Shapes differ: student_logits [2, 3, 7], teacher_logits [2, 3, 6]; they must be equal."
    with pytest.raises(ValueError, match="Shapes differ") as caught:
        LOSSES[name](student, teacher[..., :6], torch.ones(2, 3))
    assert str(caught.value) == wanted
    with pytest.raises(ValueError, match=r"mask has shape \[2, 4\]; it must be \[2, 3\]\."):
        LOSSES[name](student, teacher, torch.ones(2, 4))
    with pytest.raises(ValueError, match="mask must hold 0 and 1 only"):
        LOSSES[name](student, teacher, torch.full((2, 3), 0.5))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"beta": 1.5}, "beta is 1.5; it must be between 0 and 1."),
        ({"temperature": 0.0}, "temperature is 0.0; it must be above 0 and finite."),
        ({"reduction": "median"}, "reduction is 'median'; it must be 'batchmean', 'mean', 'sum' or 'none'."),
        ({"top_k": 4}, "top_k is 4; it must be between 1 and the 2 entries."),
        ({"top_k": 1, "top_k_of": "both"}, "top_k_of is 'both'; it must be 'teacher' or 'student'."),
        ({"chunk_size": 0}, "chunk_size is 0; it must be 1 or more, or None."),
        ({"labels": torch.zeros(2, 1)}, "labels has shape [2, 1]; it must be [1, 1]."),
        (
            {"labels": torch.zeros(1, 1), "mask": torch.ones(1, 1)},
            "Both labels and mask are given; give one of them.",
        ),
    ],
)
def test_a_setting_of_the_divergence_that_cannot_be_is_one_sentence(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=r"\.$") as caught:
        generalized_jsd_loss(STUDENT, TEACHER, **given)
    assert str(caught.value) == said


# ---------------------------------------------------------------- TAID


def test_taid_at_0_knows_no_teacher_and_at_1_is_the_cross_entropy_to_it() -> None:
    student, teacher = pair(2, 3, 7)
    entropy = -(student.softmax(-1) * student.log_softmax(-1)).sum(-1).mean().item()
    losses = [taid_loss(student, each, 0.0) for each in (teacher, 5 - 3 * teacher)]
    assert losses[0].item() == losses[1].item() == pytest.approx(entropy, rel=1e-12)
    assert gradient(losses[0], student).abs().max() < 1e-16
    at_1 = taid_loss(student, teacher, 1.0)
    wanted = -(teacher.softmax(-1) * student.log_softmax(-1)).sum(-1).mean()
    assert at_1.item() == pytest.approx(wanted.item(), rel=1e-12)
    torch.testing.assert_close(gradient(at_1, student), gradient(wanted, student))
    # Worked out: -1/2 ln 3/4 - 1/2 ln 1/4, and between them p_t = (sqrt 3, 1) / (1 + sqrt 3) at t = 1/2.
    assert taid_loss(STUDENT, TEACHER, 1.0).item() == pytest.approx(0.836988, abs=1e-6)
    assert taid_loss(STUDENT, TEACHER, 0.0).item() == pytest.approx(0.562335, abs=1e-6)
    first = math.sqrt(3) / (1 + math.sqrt(3))
    half = -first * math.log(0.75) - (1 - first) * math.log(0.25)
    assert taid_loss(STUDENT, TEACHER, 0.5).item() == pytest.approx(half, rel=1e-12)
    with pytest.raises(ValueError, match=r"t is 1\.5; it must be between 0 and 1\."):
        taid_loss(student, teacher, 1.5)


def test_the_scheduler_moves_t_by_its_formula() -> None:
    scheduler = TAIDScheduler(10)
    assert (scheduler.t, scheduler.t_end, scheduler.alpha, scheduler.beta) == (0.4, 1.0, 5e-4, 0.99)
    assert scheduler.update_t(2.0, 0) == 0.4  # the first loss is only stored
    assert scheduler.update_t(1.0, 1) == pytest.approx(0.46)  # 0.4 + 0.6 / 10 is more than 0.4 + 0.00015
    assert scheduler.momentum == pytest.approx(0.01 * 0.5)
    fast = TAIDScheduler(1000, alpha=1.0, beta=0.0)
    fast.update_t(2.0, 0)
    step = 1 / (1 + math.exp(-0.5)) * 0.6  # the loss fell by half
    assert fast.update_t(torch.tensor(1.0), 1) == pytest.approx(0.4 + step)
    linear = TAIDScheduler(10, alpha=1.0, disable_adaptive=True)
    assert [round(linear.update_t(1.0, step), 6) for step in (0, 5, 10, 20)] == [0.4, 0.7, 1.0, 1.0]


def test_a_scheduler_goes_on_where_it_was_and_takes_no_loss_that_is_nan() -> None:
    losses = [2.0, 1.5, 1.7, 0.9, 0.8, 0.85]
    whole, first, second = (TAIDScheduler(50, alpha=0.1) for _ in range(3))
    wanted = [whole.update_t(loss, step) for step, loss in enumerate(losses)]
    found = [first.update_t(loss, step) for step, loss in enumerate(losses[:3])]
    second.load_state_dict(first.state_dict())
    found += [second.update_t(loss, step + 3) for step, loss in enumerate(losses[3:])]
    assert found == wanted
    before = whole.state_dict()
    with pytest.raises(ValueError, match="The loss of step 6 is nan; it must be finite"):
        whole.update_t(math.nan, 6)
    assert whole.state_dict() == before
    for given in ({"num_train_steps": 0}, {"t_start": 0.9, "t_end": 0.5}, {"alpha": -1.0}, {"beta": 1.5}):
        with pytest.raises(ValueError, match=r"\.$"):
            TAIDScheduler(**{"num_train_steps": 5, **given})


# ---------------------------------------------------------------- the teacher's entropy


def test_the_mix_is_forward_kl_to_a_uniform_teacher_and_reverse_kl_to_a_sure_one() -> None:
    # H(p) is log 2 = log V, so that the weight is 1.
    assert entropy_mix_loss(STUDENT, TEACHER).item() == pytest.approx(FORWARD, rel=1e-12)
    # A teacher of almost one entry: H(p) is 0, and so is the weight.
    sure = torch.tensor([[[0.0, -100.0]]], dtype=torch.float64)
    wanted = 0.75 * math.log(0.75) + 0.25 * (math.log(0.25) + 100)
    assert entropy_mix_loss(STUDENT, sure).item() == pytest.approx(wanted, rel=1e-12)
    # With h_max = 2 log 2 the weight is 1/2, and with one of less than H(p) it is 1.
    half = entropy_mix_loss(STUDENT, TEACHER, h_max=2 * math.log(2)).item()
    assert half == pytest.approx((FORWARD + REVERSE) / 2, rel=1e-12)
    assert entropy_mix_loss(STUDENT, TEACHER, h_max=0.1).item() == pytest.approx(FORWARD, rel=1e-12)
    with pytest.raises(ValueError, match=r"h_max is 0\.0; it must be above 0 nats\."):
        entropy_mix_loss(torch.zeros(1, 1, 1), torch.zeros(1, 1, 1))


def test_eopd_adds_forward_kl_above_its_threshold() -> None:
    found = {tau: eopd_loss(STUDENT, TEACHER, tau=tau).item() for tau in (INF, -INF, 0.69, 0.70)}
    assert found[INF] == found[0.70] == pytest.approx(REVERSE, rel=1e-12)  # H(p) = 0.693147
    assert found[-INF] == found[0.69] == pytest.approx(FORWARD + REVERSE, rel=1e-12)
    sure = torch.tensor([[[0.0, -100.0]]], dtype=torch.float64)  # H(p) is almost 0
    assert eopd_loss(STUDENT, sure, tau=0.1).item() == eopd_loss(STUDENT, sure, tau=INF).item()
    student, _ = pair(2, 3, 7)
    same = eopd_loss(student, student.detach(), tau=-INF)
    assert same.item() == pytest.approx(0, abs=1e-15)
    assert gradient(same, student).abs().max() < 1e-15


def test_the_public_name_takes_either_form_and_no_setting_of_the_other() -> None:
    student, teacher = pair(2, 3, 7)
    mask = torch.tensor([[1, 0, 1], [1, 1, 0]])
    mixed = entropy_aware_opd_loss(student, teacher, mask, h_max=1.5)
    assert mixed.item() == entropy_mix_loss(student, teacher, mask, h_max=1.5).item()
    thresholded = entropy_aware_opd_loss(student, teacher, mask, form="eopd", tau=1.0)
    assert thresholded.item() == eopd_loss(student, teacher, mask, tau=1.0).item()
    for given in ({"form": "eopd"}, {"tau": 1.0}, {"form": "eopd", "tau": 1.0, "h_max": 2.0}, {"form": "x"}):
        with pytest.raises(ValueError, match=r"\.$"):
            entropy_aware_opd_loss(student, teacher, mask, **given)
    with pytest.raises(ValueError, match="tau is NaN"):
        eopd_loss(student, teacher, mask, tau=math.nan)


# ---------------------------------------------------------------- SDPO


def test_sdpo_over_the_vocabulary_is_the_generalized_divergence() -> None:
    student, teacher = pair(2, 3, 7)
    mask = torch.tensor([[1, 0, 1], [0, 1, 1]])
    for alpha in (0.0, 0.3, 1.0):
        wanted = generalized_jsd_loss(student, teacher, mask=mask, beta=alpha)
        assert sdpo_loss(student, teacher, mask, alpha=alpha).item() == pytest.approx(wanted.item())
    tokens = sdpo_loss(student, teacher, mask, alpha=0.3, reduction="none")
    assert tokens.shape == (2, 3)
    assert tokens[mask == 0].abs().max() == 0


def test_sdpo_means_of_rows_leave_out_rows_without_a_token() -> None:
    student, teacher = pair(3, 2, 5)
    mask, samples = torch.tensor([[1, 1], [1, 0], [1, 1]]), torch.tensor([1, 1, 0])
    tokens = sdpo_loss(student, teacher, reduction="none")
    sums = [(tokens[0, 0] + tokens[0, 1]).item(), tokens[1, 0].item()]

    def reduced(reduction: Any) -> float:
        return sdpo_loss(student, teacher, mask, sample_mask=samples, reduction=reduction).item()

    assert reduced("token-mean") == pytest.approx(sum(sums) / 3)
    assert reduced("seq-mean-token-sum") == pytest.approx(sum(sums) / 2)
    assert reduced("seq-mean-token-mean") == pytest.approx((sums[0] / 2 + sums[1]) / 2, rel=1e-7)
    twice = sdpo_loss(student, teacher, mask, rollout_weights=torch.full((3, 2), 2.0))
    assert twice.item() == pytest.approx(2 * sdpo_loss(student, teacher, mask).item())


def test_sdpo_with_the_tail_of_all_but_one_entry_and_the_importance_weight() -> None:
    # The student's likeliest entry and the rest: q = (0.75, 0.25), p = (0.5, 0.5).
    student = torch.tensor([[[0.75, 0.15, 0.1]]], dtype=torch.float64).log()
    teacher = torch.tensor([[[0.5, 0.2, 0.3]]], dtype=torch.float64).log()
    tail = sdpo_loss(student, teacher, mode="topk_tail", top_k=1)
    assert tail.item() == pytest.approx(FORWARD, rel=1e-9)
    ids, old = torch.tensor([[0]]), torch.tensor([[math.log(0.5)]], dtype=torch.float64)
    plain = sdpo_loss(student, teacher).item()
    weighted = [
        sdpo_loss(student, teacher, token_ids=ids, old_log_probs=old, is_clip=clip).item() / plain
        for clip in (2.0, 1.2)
    ]
    assert weighted == pytest.approx([1.5, 1.2])
    for given, said in (
        ({"mode": "sampled"}, "alpha is 0.0; mode 'sampled' estimates KL"),
        ({"mode": "sampled", "alpha": 1.0}, "token_ids is missing"),
        ({"mode": "topk_tail"}, "top_k is None"),
        ({"is_clip": 2.0, "token_ids": ids}, "old_log_probs is missing"),
        ({"mode": "half"}, "mode is 'half'"),
    ):
        with pytest.raises(ValueError, match=said):
            sdpo_loss(student, teacher, **given)


def test_log_probabilities_of_tokens_are_those_of_the_softmax() -> None:
    logits, _ = pair(2, 3, 37)
    ids = torch.tensor([[0, 36, 5], [-100, 7, 7]])
    mask = torch.tensor([[1, 1, 0], [0, 1, 1]])
    for chunk_size in (None, 8):
        wanted = logits.log_softmax(-1).gather(-1, ids.clamp(min=0)[..., None]).squeeze(-1) * mask
        found = token_log_probs(logits, ids, mask, chunk_size=chunk_size)
        torch.testing.assert_close(found, wanted)
        torch.testing.assert_close(gradient(found.sum(), logits), gradient(wanted.sum(), logits))
