"""Small models of several kinds, and rows of one trace, for trainings with packed rows."""

import random
import shutil
from pathlib import Path
from typing import Any

SHARED: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "initializer_range": 0.2,  # or attention would hardly matter
    "max_position_embeddings": 4096,
}
EXPERTS: dict[str, Any] = {
    "num_experts_per_tok": 2,
    "output_router_logits": True,
    "router_aux_loss_coef": 0.1,
}
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("LlamaConfig", {}),
    "qwen2": ("Qwen2Config", {"tie_word_embeddings": True}),
    "qwen3": ("Qwen3Config", {"head_dim": 8}),
    "mistral": ("MistralConfig", {"sliding_window": None, "head_dim": 8}),
    "sliding": ("MistralConfig", {"sliding_window": 64, "head_dim": 8}),
    "mixtral": ("MixtralConfig", {"num_local_experts": 4, "sliding_window": None, **EXPERTS}),
    "qwen3_moe": (
        "Qwen3MoeConfig",
        {"num_experts": 4, "moe_intermediate_size": 24, "head_dim": 8, **EXPERTS},
    ),
    "hybrid": (
        "Qwen3NextConfig",
        {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 24, "head_dim": 8},
    ),
}


def small_model(folder: Path, tokenizer: Path, kind: str) -> Path:
    """Write a model of this kind, drawn at random, with the tokenizer of another folder."""
    import torch
    import transformers

    shutil.copytree(tokenizer, folder)
    words = transformers.AutoTokenizer.from_pretrained(tokenizer)
    name, given = KINDS[kind]
    ends = {"eos_token_id": words.eos_token_id, "pad_token_id": words.pad_token_id}
    config = getattr(transformers, name)(vocab_size=len(words), **SHARED, **given, **ends)
    torch.manual_seed(0)
    transformers.AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    return folder


def trace_rows(rows: int, seed: int = 0) -> list[dict[str, Any]]:
    """Rows of one trace, as every method wants them; each begins with the prompt of the one before."""
    drawn = random.Random(seed)
    prompt, made = f"<|user|>Fix the bug {seed}<|end|>", []
    for number in range(rows):
        words = " ".join(drawn.choice("test bug Done fix") for _ in range(drawn.randint(1, 24)))
        chosen, rejected = f"I test {number}. {words}<|end|>", f"Done {words[:9]}<|end|>"
        made.append(
            {
                "prompt": prompt + "<|assistant|>",
                "chosen": chosen,
                "rejected": rejected,
                "completion": chosen,
                "weight": drawn.choice([1.0, 0.5, 0.25]),
            }
        )
        prompt += f"<|assistant|>{chosen}<|tool|>{words}{number}<|end|>"
    return made
