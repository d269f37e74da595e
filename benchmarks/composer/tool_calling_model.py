"""A tiny language model that calls tools: made from scratch, and taught by episodes before it explores.

A model with random weights never calls a tool, so that on-policy training has nothing to learn from. Needs
the extra `train`.
"""

import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

END, PAD = "<|im_end|>", "<|pad|>"
TEMPLATE = (
    "{%- for m in messages -%}"
    "{{- '<|im_start|>' + m.role + '\\n' + (m.content or '') -}}"
    "{%- for c in m.tool_calls or [] -%}"
    '{{- \'<tool_call>\\n{"name": "\' + c.function.name + \'", "arguments": \' -}}'
    "{{- c.function.arguments if c.function.arguments is string else c.function.arguments | tojson -}}"
    "{{- '}\\n</tool_call>' -}}"
    "{%- endfor -%}"
    "{{- '<|im_end|>\\n' -}}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}"
)
"""Tools are not listed: a prompt of a few dozen tokens, which a model from scratch reads in no time."""
Messages = Sequence[Mapping[str, Any]]


def make_tokenizer(episodes: Sequence[Messages], vocabulary: int = 500) -> PreTrainedTokenizerFast:
    """Return a tokenizer of bytes, with the frequent words of episodes as tokens."""
    inner = Tokenizer(models.BPE(unk_token=None))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    special = [PAD, END, "<|im_start|>", "<tool_call>", "</tool_call>"]
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    inner.train_from_iterator([json.dumps(message) for rows in episodes for message in rows], trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=inner,
        pad_token=PAD,
        eos_token=END,
        chat_template=TEMPLATE,
        additional_special_tokens=[],
        model_max_length=512,
    )


def warm_start(
    folder: Path,
    episodes: Sequence[Messages],
    *,
    steps: int = 300,
    seed: int = 0,
    texts: Sequence[Messages] = (),
    vocabulary: int = 500,
) -> float:
    """Teach a model of about 100,000 weights what the agent says; save it and return the last loss.

    The tokenizer knows the frequent words of `texts` too.
    """
    tokenizer: Any = make_tokenizer([*episodes, *texts], vocabulary)
    torch.manual_seed(seed)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=64,
            intermediate_size=128,
            num_hidden_layers=2,
            num_attention_heads=2,
            max_position_embeddings=512,
            tie_word_embeddings=True,
            initializer_range=0.1,
            pad_token_id=tokenizer.pad_token_id,
            eos_token_id=tokenizer.eos_token_id,
            bos_token_id=None,
        )
    )
    rows = [_row(tokenizer, messages) for messages in episodes]
    optimiser = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=0.01)
    rng, loss = random.Random(seed), torch.tensor(0.0)
    for step in range(steps):
        optimiser.param_groups[0]["lr"] = 4e-3 * min(1.0, (step + 1) / 30) * (1 - 0.9 * step / steps)
        ids, labels = _padded(rng.sample(rows, 16), tokenizer.pad_token_id)
        loss = model(input_ids=ids, attention_mask=ids != tokenizer.pad_token_id, labels=labels).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return loss.item()


def _row(tokenizer: Any, messages: Messages) -> tuple[list[int], list[bool]]:
    """Return the tokens of an episode, and which of them the agent wrote."""
    ids, said, done = list[int](), list[bool](), ""
    for place, message in enumerate(messages):
        if message["role"] != "assistant":
            continue
        before = tokenizer.apply_chat_template(messages[:place], tokenize=False, add_generation_prompt=True)
        whole = tokenizer.apply_chat_template(messages[: place + 1], tokenize=False)
        for text, mine in ((before[len(done) :], False), (whole[len(before) :], True)):
            found = tokenizer(text, add_special_tokens=False)["input_ids"]
            ids += found
            said += [mine] * len(found)
        done = whole
    return ids, said


def _padded(rows: Sequence[tuple[list[int], list[bool]]], pad: int) -> tuple[torch.Tensor, torch.Tensor]:
    longest = max(len(ids) for ids, _ in rows)
    ids, labels = (torch.full((len(rows), longest), value) for value in (pad, -100))
    for place, (row, said) in enumerate(rows):
        ids[place, : len(row)] = torch.tensor(row)
        labels[place, : len(row)] = torch.tensor(
            [token if mine else -100 for token, mine in zip(row, said, strict=True)]
        )
    return ids, labels
