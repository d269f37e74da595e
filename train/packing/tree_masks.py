"""Attention masks in which a node of a tree sees itself and its ancestors."""

# pyright: reportMissingImports=false

from typing import Any

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask, create_block_mask

BLOCK = 128
"""Tokens of a block of FlexAttention; a tree is padded to a multiple of it."""


def dense_mask(ends: Tensor, dtype: torch.dtype) -> Tensor:
    """Return the additive mask `[1, 1, T, T]` of a tree: 0 at ancestors, the lowest number elsewhere."""
    place = torch.arange(len(ends), device=ends.device)
    seen = (place[None, :] <= place[:, None]) & (place[:, None] < ends[None, :])
    mask = torch.full(seen.shape, torch.finfo(dtype).min, dtype=dtype, device=ends.device)
    return mask.masked_fill_(seen, 0.0)[None, None]


def block_mask(ends: Tensor) -> BlockMask:
    """Return the mask of a tree for FlexAttention, which skips blocks without an ancestor."""

    def is_ancestor(batch: Any, head: Any, query: Any, key: Any) -> Any:
        return (key <= query) & (query < ends[key])

    length = len(ends)
    return create_block_mask(is_ancestor, None, None, length, length, device=str(ends.device))
