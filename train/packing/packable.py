"""Tell models that cannot compute trees."""

# pyright: reportMissingImports=false

import inspect
from typing import Any

_ATTENTION = {"full_attention", "sliding_attention"}
_MASKED = ("eager", "sdpa", "flex_attention")
"""Implementations of attention that take a mask of their caller."""
_SCALED_LOGITS = (
    "final_logit_softcapping",
    "logit_scale",
    "output_multiplier",
    "lm_head_multiplier",
    "logits_scaling",
)


def packing_obstacle(model: Any, max_length: int) -> str | None:
    """Return why a causal language model cannot compute trees of rows of `max_length` tokens, or None.

    In a tree the order of nodes is not the order of any one row. So layers that mix neighbouring tokens
    other than by masked attention, and a sliding window shorter than a row, give other results.
    """
    config, backbone = model.config.get_text_config(), model.base_model
    kinds = set(getattr(config, "layer_types", None) or ["full_attention"])
    if other := sorted(kinds - _ATTENTION):
        return f"its layers have {other[0].replace('_', ' ')}"
    if not getattr(backbone, "_supports_attention_backend", False):
        return "its attention takes no mask of trees"
    if "position_ids" not in inspect.signature(type(backbone).forward).parameters:
        return "it takes no positions"
    window = getattr(config, "sliding_window", None)
    slides = "sliding_attention" in kinds or not getattr(config, "layer_types", None)
    if window is not None and slides and window < max_length:
        return f"its sliding window of {window} tokens is shorter than max_length = {max_length}"
    if (name := config._attn_implementation) not in _MASKED:
        return f"its attention is {name}, which takes no mask of trees"
    if any(getattr(config, name, None) is not None for name in _SCALED_LOGITS):
        return "it scales its logits"
    return None
