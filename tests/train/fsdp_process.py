"""One of two gloo processes: the gradient of packed rows under FSDP2. `RANK WORLD PORT ...`."""

import sys
from pathlib import Path
from typing import Any

import torch
from packing_rows import trace_rows
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl.trainer.utils import add_fused_lm_head

from tracemill.train.packing.packed_forward import PackedForward

LENGTH = 400


def batch_of(tokenizer: Any, rows: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
    """Return padded rows whose labels are the chosen answers."""
    ids, labels = [], []
    for row in rows:
        prompt = tokenizer(str(row["prompt"]), add_special_tokens=False)["input_ids"][-LENGTH:]
        said = tokenizer(str(row["chosen"]), add_special_tokens=False)["input_ids"]
        ids.append([*prompt, *said])
        labels.append([-100] * len(prompt) + said)
    width = max(map(len, ids))
    pad = tokenizer.pad_token_id
    return {
        "input_ids": torch.tensor([row + [pad] * (width - len(row)) for row in ids]),
        "attention_mask": torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in ids]),
        "labels": torch.tensor([row + [-100] * (width - len(row)) for row in labels]),
    }


def main() -> None:
    """Write loss and gradients of the mean over all rows; each process has its share of them."""
    rank, world, port, folder, out, packed = sys.argv[1:]
    torch.set_num_threads(1)
    torch.distributed.init_process_group(
        "gloo", init_method=f"tcp://127.0.0.1:{port}", rank=int(rank), world_size=int(world)
    )
    model: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    add_fused_lm_head(model)
    notes: list[str] = []
    if packed == "packed":
        forward = PackedForward(model, 4096, notes.append)
        forward.install()
    if int(world) > 1:
        mesh = init_device_mesh("cpu", (int(world),))
        for layer in model.base_model.layers:
            fully_shard(layer, mesh=mesh)
        fully_shard(model, mesh=mesh)
    rows = trace_rows(8)[int(rank) :: int(world)]
    found = model(**batch_of(tokenizer, rows), fused_lm_head=True, use_cache=False)
    loss = -(found.log_probs.sum(-1) / found.label_mask.sum(-1)).mean()
    loss.backward()
    gradients = {
        name: each.grad.full_tensor() if hasattr(each.grad, "full_tensor") else each.grad
        for name, each in model.named_parameters()
    }
    mean = loss.detach().clone()
    torch.distributed.all_reduce(mean)
    sharded = sum(hasattr(each, "full_tensor") for each in model.parameters())
    if rank == "0":
        made = {"loss": mean / int(world), "gradients": gradients, "notes": notes, "sharded": sharded}
        made["computed"] = forward.computed if packed == "packed" else 0
        torch.save(made, Path(out))
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
