"""Attention masks in which a node of a tree sees itself and its ancestors."""

# pyright: reportMissingImports=false

from typing import Any

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask

BLOCK = 128
"""Tokens of a block of FlexAttention; a tree is padded to a multiple of it."""


def dense_mask(ends: Tensor, dtype: torch.dtype) -> Tensor:
    """Return the additive mask `[1, 1, T, T]` of a tree: 0 at ancestors, the minimum elsewhere."""
    place = torch.arange(len(ends), device=ends.device)
    seen = (place[None, :] <= place[:, None]) & (place[:, None] < ends[None, :])
    mask = torch.full(seen.shape, torch.finfo(dtype).min, dtype=dtype, device=ends.device)
    return mask.masked_fill_(seen, 0.0)[None, None]


def block_mask(ends: Tensor) -> BlockMask:
    """Return the mask of a tree for FlexAttention, which skips blocks without an ancestor.

    `ends` `[T]` has a multiple of `BLOCK` nodes. Each node of a block of keys before a block of queries sees
    whether its subtree reaches that block, so the blocks follow from the least and the largest end of each.
    """

    def is_ancestor(batch: Any, head: Any, query: Any, key: Any) -> Any:
        return (key <= query) & (query < ends[key])

    least, largest = ends.view(-1, BLOCK).aminmax(dim=1)
    first = torch.arange(0, len(ends), BLOCK, device=ends.device)
    before = first[None, :] < first[:, None]
    whole = before & (least[None, :] >= first[:, None] + BLOCK)
    some = before & ~whole & (largest[None, :] > first[:, None])
    some.fill_diagonal_(True)
    blocks = [part for seen in (some, whole) for part in _as_lists(seen)]
    return BlockMask.from_kv_blocks(
        *blocks, BLOCK_SIZE=BLOCK, mask_mod=is_ancestor, seq_lengths=(len(ends), len(ends))
    )


def _as_lists(seen: Tensor) -> tuple[Tensor, Tensor]:
    """Return the number of key blocks that each query block sees, and their indices, first."""
    numbers = seen.to(torch.int32).argsort(dim=1, descending=True, stable=True)
    return seen.sum(1, dtype=torch.int32)[None, None], numbers.to(torch.int32)[None, None]
