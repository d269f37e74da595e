"""Check the tensors of a loss, and take means over the tokens that count."""

# pyright: reportMissingImports=false

from collections.abc import Collection, Mapping

import torch
from torch import Tensor


def check_choice(name: str, value: str, choices: Collection[str]) -> None:
    """Raise ValueError unless `value` is one of the choices."""
    if value not in choices:
        *others, last = map(repr, choices)
        raise ValueError(f"{name} is {value!r}; it must be {', '.join(others)} or {last}.")


def check_same_shape(tensors: Mapping[str, Tensor | None]) -> None:
    """Raise ValueError unless all tensors have one shape; those that are None are skipped."""
    shape_of = {name: tuple(tensor.shape) for name, tensor in tensors.items() if tensor is not None}
    if len(set(shape_of.values())) > 1:
        shapes = ", ".join(f"{name} {list(shape)}" for name, shape in shape_of.items())
        raise ValueError(f"Shapes differ: {shapes}; they must be equal.")


def check_shape(name: str, tensor: Tensor, shape: torch.Size) -> None:
    """Raise ValueError unless a tensor has this shape."""
    if tensor.shape != shape:
        raise ValueError(f"{name} has shape {list(tensor.shape)}; it must be {list(shape)}.")


def check_logits(student_logits: Tensor, teacher_logits: Tensor) -> None:
    """Raise ValueError unless both are floating-point logits `[..., V]` of one shape."""
    check_same_shape({"student_logits": student_logits, "teacher_logits": teacher_logits})
    if student_logits.ndim < 2 or not student_logits.shape[-1]:
        raise ValueError(f"Logits have shape {list(student_logits.shape)}; they must be [..., tokens, V].")
    if not (student_logits.is_floating_point() and teacher_logits.is_floating_point()):
        raise ValueError("Logits must be floating-point numbers.")


def as_keep(mask: Tensor | None, shape: torch.Size, name: str = "mask") -> Tensor | None:
    """Return `mask` (0 or 1, `shape`) as booleans. Raises ValueError for another shape or another value."""
    if mask is None:
        return None
    check_shape(name, mask, shape)
    keep = mask.bool()
    if mask.dtype != torch.bool and not torch.equal(keep.to(mask.dtype), mask):
        raise ValueError(f"{name} must hold 0 and 1 only.")
    return keep


def as_keep_or_all(mask: Tensor | None, values: Tensor, name: str = "mask") -> Tensor:
    """Return `as_keep` of a mask of the shape of `values`; all True for None."""
    keep = as_keep(mask, values.shape, name)
    return torch.ones_like(values, dtype=torch.bool) if keep is None else keep


def kept_rows(keep: Tensor | None) -> Tensor | None:
    """Return the indices of kept tokens in the flattened batch, `[n]`; None if all of them are kept."""
    return None if keep is None else keep.flatten().nonzero().squeeze(1)


def full_precision(values: Tensor) -> Tensor:
    """Return float16 and bfloat16 as float32, and other types as they are."""
    return values.float() if values.dtype in (torch.float16, torch.bfloat16) else values


def mean_of_kept(values: Tensor) -> Tensor:
    """Return the mean of the values of kept tokens, `[n]`; 0, with zero gradients, where there is none."""
    return values.sum() / max(values.numel(), 1)
