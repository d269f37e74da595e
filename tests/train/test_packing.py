"""Packed rows against TRL's own trainers over padded ones: losses, gradients, and what is not packed."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-all")

from packing_rows import small_model, trace_rows  # noqa: E402
from training_releases import tiny_model  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
METHODS = ["sft", "weighted", "dpo", "dpo+nll", "simpo"]
MAX_LENGTH = 2048
TOKENS = 2048


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A folder of a model of each kind."""
    folder = tmp_path_factory.mktemp("models")
    tokenizer = tiny_model(folder / "tiny")

    def of(kind: str) -> Path:
        place = folder / kind
        return place if place.exists() else small_model(place, tokenizer, kind)

    return of


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def trainer(
    method: str, packed: bool, model: Path, out: Path, rows: list[dict[str, Any]], **given: Any
) -> Any:
    """A trainer of TRL, or ours with packed rows."""
    from datasets import Dataset
    from transformers import AutoTokenizer
    from trl.experimental.cpo import CPOConfig, CPOTrainer
    from trl.trainer.dpo_config import DPOConfig
    from trl.trainer.dpo_trainer import DPOTrainer
    from trl.trainer.sft_config import SFTConfig
    from trl.trainer.sft_trainer import SFTTrainer

    from tracemill.train.trl import packed_trainers as ours
    from tracemill.train.trl.weighted_sft import WeightedSFTTrainer

    tokens = given.pop("packing_tokens", TOKENS)
    peft = given.pop("peft_config", None)
    pair, said = ("prompt", "chosen", "rejected"), ("prompt", "completion")
    nll = {"loss_type": ["sigmoid", "sft"], "loss_weights": [1.0, 0.5]}
    float32 = {"model_init_kwargs": {"dtype": "float32", "device_map": None}, "remove_unused_columns": False}
    simpo = {"loss_type": "simpo", "cpo_alpha": 0.0, "simpo_gamma": 0.7, "beta": 2.0, **float32}
    made: dict[str, tuple[Any, ...]] = {
        "sft": (SFTTrainer, ours.PackedSFTTrainer, SFTConfig, said, {"completion_only_loss": True}),
        "weighted": (
            WeightedSFTTrainer,
            ours.PackedWeightedSFTTrainer,
            SFTConfig,
            (*said, "weight"),
            {"completion_only_loss": True},
        ),
        "dpo": (DPOTrainer, ours.PackedDPOTrainer, DPOConfig, pair, {}),
        "dpo+nll": (DPOTrainer, ours.PackedDPOTrainer, DPOConfig, pair, nll),
        "simpo": (CPOTrainer, ours.PackedCPOTrainer, CPOConfig, pair, simpo),
    }
    plain, packing, config, columns, options = made[method]
    base = {
        "output_dir": str(out),
        "max_length": MAX_LENGTH,
        "per_device_train_batch_size": 16,
        "gradient_checkpointing": False,
        "logging_steps": 1,
        "save_strategy": "no",
        "use_cpu": True,
        "bf16": False,
        "report_to": "none",
        "disable_tqdm": True,
    }
    return (packing if packed else plain)(
        model=str(model),
        args=config(**base | options | given),
        train_dataset=Dataset.from_list([{name: row[name] for name in columns} for row in rows]),
        processing_class=AutoTokenizer.from_pretrained(model),
        peft_config=peft,
        **({"packing_tokens": tokens} if packed else {}),
    )


def moved(made: Any) -> None:
    """Move the weights off the reference's, so that DPO's rewards are not 0."""
    torch.manual_seed(1)
    with torch.no_grad():
        for weights in made.model.parameters():
            if weights.requires_grad:
                weights.add_(torch.randn_like(weights) * 0.02)


def step(made: Any, rows: slice = slice(None)) -> tuple[float, dict[str, Any]]:
    """Loss and gradients of one batch."""
    moved(made)
    made.model.train()
    batch = made.data_collator([made.train_dataset[place] for place in range(len(made.train_dataset))[rows]])
    loss = made.compute_loss(made.model, batch)
    loss.backward()
    return loss.item(), {
        name: each.grad for name, each in made.model.named_parameters() if each.grad is not None
    }


def assert_equal_steps(plain: Any, packed: Any) -> None:
    expected, expected_gradients = step(plain)
    loss, gradients = step(packed)
    assert packed.packing_notes == []
    assert all(each.active and each.checked and each.computed for each in packed.packed)
    assert loss == pytest.approx(expected, abs=1e-5, rel=0)
    assert gradients.keys() == expected_gradients.keys()
    apart = {name: (each - expected_gradients[name]).abs().max().item() for name, each in gradients.items()}
    assert {name: each for name, each in apart.items() if each > 1e-5} == {}
    assert max(each.abs().max() for each in gradients.values()) > 1e-3


@pytest.mark.parametrize("rows", [1, 2, 5, 16])
@pytest.mark.parametrize("method", METHODS)
def test_loss_and_gradients_are_those_of_trl(
    method: str, rows: int, models: Callable[[str], Path], tmp_path: Path
) -> None:
    given = (models("qwen2"), tmp_path, trace_rows(rows))
    plain, packed = (trainer(method, each, *given) for each in (False, True))
    assert_equal_steps(plain, packed)
    if rows == 16:
        for each in packed.packed:
            assert each.tokens > 5 * each.computed
