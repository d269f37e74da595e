"""FlexAttention over trees, as an attention function of transformers."""

# pyright: reportMissingImports=false

from typing import Any

from torch import Tensor
from transformers.integrations.flex_attention import flex_attention_forward
from transformers.masking_utils import AttentionMaskInterface, flex_attention_mask
from transformers.modeling_utils import AttentionInterface

TREE_ATTENTION = "tracemill_tree"
"""Its name, for `set_attn_implementation`."""


def tree_attention(
    module: Any, query: Tensor, key: Tensor, value: Tensor, attention_mask: Any, **given: Any
) -> tuple[Tensor, Tensor | None]:
    """Return FlexAttention in the type of `value`; all tensors are `[B, H, T, D]`.

    Under autocast, queries and keys come out of the rotary embedding in float32. Other kernels cast them by
    themselves, FlexAttention would compute in float32.
    """
    query, key = query.to(value.dtype), key.to(value.dtype)
    return flex_attention_forward(module, query, key, value, attention_mask, **given)


AttentionInterface.register(TREE_ATTENTION, tree_attention)
AttentionMaskInterface.register(TREE_ATTENTION, flex_attention_mask)
