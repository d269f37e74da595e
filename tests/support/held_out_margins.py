"""How a model ranks held-out pairs, worked out with transformers alone."""

from pathlib import Path
from typing import Any


def held_out_margins(model: Path, release: Path) -> list[float]:
    """The margin of each pair of split `validation`, in nats a token."""
    import torch
    from datasets import load_dataset
    from transformers import AutoModelForCausalLM, AutoTokenizer

    net, tokenizer = AutoModelForCausalLM.from_pretrained(model), AutoTokenizer.from_pretrained(model)
    rows: Any = load_dataset(str(release), "dpo", split="validation")

    def mean(row: Any, side: str) -> float:
        def text(messages: list[Any], **options: Any) -> str:
            return tokenizer.apply_chat_template(messages, tools=row["tools"], tokenize=False, **options)

        before = text(row["prompt"], add_generation_prompt=True)
        whole = text([*row["prompt"], *row[side]])
        assert whole.startswith(before)
        start = len(tokenizer(before)["input_ids"])
        ids = torch.tensor([tokenizer(before)["input_ids"] + tokenizer(whole[len(before) :])["input_ids"]])
        with torch.no_grad():
            logs = net(ids).logits.log_softmax(-1)
        places = range(start, ids.shape[1])
        return sum(logs[0, at - 1, ids[0, at]].item() for at in places) / len(places)

    return [mean(row, "chosen") - mean(row, "rejected") for row in rows]
