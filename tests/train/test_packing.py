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


@pytest.mark.parametrize("kind", ["llama", "qwen3", "mistral", "mixtral", "qwen3_moe"])
@pytest.mark.parametrize("method", ["sft", "dpo+nll"])
def test_other_models_and_the_router_loss_of_experts(
    method: str, kind: str, models: Callable[[str], Path], tmp_path: Path
) -> None:
    """A node of the tree counts for the router as often as there are rows that have it."""
    given = (models(kind), tmp_path, trace_rows(6))
    plain, packed = (trainer(method, each, *given) for each in (False, True))
    assert_equal_steps(plain, packed)
    if kind in ("mixtral", "qwen3_moe"):
        router = [each._metrics["train"]["aux_loss"][0] for each in (plain, packed)]
        assert router[0] == pytest.approx(router[1], abs=1e-5)
        assert router[0] > 0.5


@pytest.mark.parametrize("method", METHODS)
def test_what_trl_cuts_and_drops_is_cut_and_dropped(
    method: str, models: Callable[[str], Path], tmp_path: Path
) -> None:
    given = (models("qwen2"), tmp_path, trace_rows(16))
    plain, packed = (trainer(method, each, *given, max_length=700) for each in (False, True))
    lengths = [
        len(row.get("input_ids") or row.get("prompt_ids") or row["prompt_input_ids"])
        for row in plain.train_dataset
    ]
    assert len(packed.train_dataset) == len(plain.train_dataset)
    assert method in ("sft", "weighted", "simpo") or len(lengths) < 16
    rows = slice(2, 9)  # a prompt that fills all of `max_length` leaves SimPO 0 / 0, packed or not
    expected, expected_gradients = step(plain, rows)
    loss, gradients = step(packed, rows)
    assert loss == pytest.approx(expected, abs=1e-5)
    for name, each in gradients.items():
        assert torch.allclose(each, expected_gradients[name], atol=1e-5, rtol=0)


def test_rows_of_other_traces_and_a_small_limit_make_more_trees(
    models: Callable[[str], Path], tmp_path: Path
) -> None:
    rows = [row for seed in range(3) for row in trace_rows(4, seed)]
    given = (models("qwen2"), tmp_path, rows)
    plain = trainer("dpo+nll", False, *given)
    computed = []
    for tokens in (TOKENS, 300, 1):
        packed = trainer("dpo+nll", True, *given, packing_tokens=tokens)
        assert_equal_steps(plain, packed)
        plain.model.zero_grad()
        plain = trainer("dpo+nll", False, *given)
        computed.append(packed.packed[0].computed)
    assert computed[0] < computed[1] < computed[2] == packed.packed[0].tokens


def test_padding_on_either_side_has_no_effect(models: Callable[[str], Path], tmp_path: Path) -> None:
    packed = trainer("dpo", True, models("llama"), tmp_path, trace_rows(5))
    batch = packed.data_collator([packed.train_dataset[place] for place in range(5)])
    labels = batch["input_ids"].masked_fill(batch["completion_mask"] == 0, -100)
    given = {"input_ids": batch["input_ids"], "attention_mask": batch["attention_mask"], "labels": labels}
    fill = {"input_ids": 7, "attention_mask": 0, "labels": -100}

    def log_probs(**inputs: Any) -> Any:
        with torch.no_grad():
            return packed.model(**inputs, fused_lm_head=True).log_probs

    found = log_probs(**given)
    for sides in ((0, 9), (9, 0)):
        padded = {
            name: torch.nn.functional.pad(each, sides, value=fill[name]) for name, each in given.items()
        }
        begin = sides[0]
        assert torch.equal(log_probs(**padded)[:, begin : begin + found.shape[1]], found)
    assert packed.packed[0].active
    assert found.abs().sum() > 100


def test_no_logits_are_computed_of_a_prompt(models: Callable[[str], Path], tmp_path: Path) -> None:
    from tracemill.train.packing import answer_scores

    packed = trainer("dpo", True, models("qwen2"), tmp_path, trace_rows(16))
    seen: list[int] = []
    head = packed.model.get_output_embeddings()
    step(packed)
    head.register_forward_hook(lambda module, inputs, outputs: seen.append(len(outputs)))
    step(packed)
    batch = packed.data_collator([packed.train_dataset[place] for place in range(16)])
    answers = int(batch["completion_mask"].sum())
    assert max(seen) <= answer_scores.CHUNK < answers
    assert sum(seen) == 2 * answers  # forward, and again in the backward pass
    assert answers < batch["attention_mask"].sum() / 8


@pytest.mark.parametrize("checkpointing", [False, True])
@pytest.mark.parametrize("method", ["dpo+nll", "simpo", "sft"])
def test_adapters_and_gradient_checkpointing(
    method: str, checkpointing: bool, models: Callable[[str], Path], tmp_path: Path
) -> None:
    from peft import LoraConfig

    def made(packed: bool) -> Any:
        lora = LoraConfig(r=4, target_modules="all-linear", task_type="CAUSAL_LM")
        given = {"peft_config": lora, "gradient_checkpointing": checkpointing}
        return trainer(method, packed, models("qwen2"), tmp_path, trace_rows(5), **given)

    assert_equal_steps(made(False), made(True))


def logged(made: Any) -> list[dict[str, float]]:
    made.train()
    names = ("loss", "grad_norm", "rewards/margins", "rewards/chosen", "entropy", "mean_token_accuracy")
    return [
        {key: float(entry[key]) for key in names if key in entry}
        for entry in made.state.log_history
        if "loss" in entry
    ]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.long
def test_a_training_has_trl_s_losses_and_figures(
    method: str, models: Callable[[str], Path], tmp_path: Path
) -> None:
    """All rows are in each batch, so that both take the same ones."""
    given = {"max_steps": 4, "learning_rate": 1e-3, "seed": 3}
    plain, packed = (
        logged(trainer(method, each, models("qwen2"), tmp_path, trace_rows(7), **given))
        for each in (False, True)
    )
    assert len(plain) == len(packed) == 4
    for one, other in zip(plain, packed, strict=True):
        assert other == pytest.approx(one, abs=2e-4, rel=1e-4)
    assert plain[0]["loss"] != pytest.approx(plain[-1]["loss"], abs=1e-3)


def test_batches_of_one_row_are_those_of_trl_and_others_are_neighbours(
    models: Callable[[str], Path], tmp_path: Path
) -> None:
    """With `batch = 1` and accumulation a step has the rows that it has without packing."""
    given = {
        "max_steps": 3,
        "learning_rate": 1e-3,
        "per_device_train_batch_size": 1,
        "gradient_accumulation_steps": 4,
    }
    rows = [row for seed in range(3) for row in trace_rows(4, seed)]
    plain, packed = (
        logged(trainer("dpo+nll", each, models("qwen2"), tmp_path, rows, **given)) for each in (False, True)
    )
    for one, other in zip(plain, packed, strict=True):
        assert other == pytest.approx(one, abs=2e-4, rel=1e-4)
    made = trainer("sft", True, models("qwen2"), tmp_path, rows, per_device_train_batch_size=4)
    sampler = made._get_train_sampler()
    drawn = []
    for epoch in range(3):
        sampler.set_epoch(epoch)
        drawn.append(list(sampler))
        assert sorted(drawn[-1]) == list(range(12))
        assert list(sampler) == drawn[-1]
        batches = [[number // 4 for number in drawn[-1][at : at + 4]] for at in (0, 4, 8)]
        assert sum(len(set(batch)) for batch in batches) <= 6  # of 3 traces, cut at any row
    assert len({tuple(each) for each in drawn}) == 3


@pytest.mark.parametrize("broken", ["mask", "error", "flex"])
def test_a_first_batch_that_differs_takes_the_plain_path_and_says_so(
    broken: str, models: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mask of a plain causal sequence lets branches see each other."""
    from transformers.integrations import flex_attention as integration

    from tracemill.train.packing import packed_forward
    from tracemill.train.packing.tree_attention import TREE_ATTENTION
    from tracemill.train.trl import packed_trainers

    whole = packed_forward.dense_mask

    def mask(ends: Any, dtype: Any) -> Any:
        if broken == "error":
            raise RuntimeError("no such kernel")
        return whole(torch.full_like(ends, len(ends)), dtype)

    def fails(*_: Any, **__: Any) -> Any:
        raise RuntimeError("no such kernel")

    given = (models("qwen2"), tmp_path, trace_rows(5))
    plain = step(trainer("dpo+nll", False, *given))
    if broken == "flex":  # as on a GPU whose compiler cannot make it
        monkeypatch.setattr(integration, "compile_friendly_flex_attention", fails)
        monkeypatch.setattr(
            packed_trainers,
            "_choose_attention",
            lambda model: model.set_attn_implementation(TREE_ATTENTION),
        )
    monkeypatch.setattr(packed_forward, "dense_mask", mask)
    packed = trainer("dpo+nll", True, *given)
    loss, gradients = step(packed)
    assert loss == plain[0]
    assert all(torch.equal(each, plain[1][name]) for name, each in gradients.items())
    assert [each.active for each in packed.packed] == [False, False]
    said = {
        "mask": "the first batch's log probabilities differ by ",
        "error": "it failed on the first batch (RuntimeError)",
        "flex": "it failed on the first batch (RuntimeError)",
    }
    assert all(line.startswith(f"rows are not packed: {said[broken]}") for line in packed.packing_notes)
    assert packed.packing_notes
    assert {each.model.config._attn_implementation for each in packed.packed} == {"sdpa"}
    simpo = trainer("simpo", True, *given)
    assert step(simpo)[0] == pytest.approx(step(trainer("simpo", False, *given))[0], abs=1e-5)
    assert not simpo.packed[0].active


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("sliding", "its sliding window of 64 tokens is shorter than max_length = 2048"),
        ("hybrid", "its layers have linear attention"),
    ],
)
def test_a_model_that_cannot_compute_trees_takes_the_plain_path_and_says_so(
    kind: str, said: str, models: Callable[[str], Path], tmp_path: Path
) -> None:
    given = (models(kind), tmp_path, trace_rows(3))
    packed = trainer("sft", True, *given)
    assert packed.packing_notes == [f"rows are not packed: the model cannot compute trees ({said})"]
    assert packed.packed == []
    assert step(packed)[0] == step(trainer("sft", False, *given))[0]


def test_a_sliding_window_that_holds_every_row_is_packed(
    models: Callable[[str], Path], tmp_path: Path
) -> None:
    given = (models("sliding"), tmp_path, [dict(row, prompt=row["prompt"][-40:]) for row in trace_rows(3)])
    packed = trainer("sft", True, *given, max_length=64)
    assert packed.packing_notes == []
    assert step(packed)[0] == pytest.approx(step(trainer("sft", False, *given, max_length=64))[0], abs=1e-5)


def test_flex_attention_computes_what_the_dense_mask_does() -> None:
    """Not compiled, and without a backward pass, which it has on no processor."""
    import numpy as np
    from torch.nn.attention.flex_attention import flex_attention

    from tracemill.train.packing.token_tree import build_trees
    from tracemill.train.packing.tree_masks import BLOCK, block_mask, dense_mask

    drawn = np.random.default_rng(0)
    trunk = drawn.integers(0, 9, 500)
    rows = [np.concatenate([trunk[:end], drawn.integers(0, 9, 40)]) for end in (300, 300, 420, 500, 500, 500)]
    [tree] = build_trees(rows, 2000)
    ends = torch.from_numpy(
        np.concatenate([tree.ends, np.arange(len(tree), -(-len(tree) // BLOCK) * BLOCK) + 1])
    )
    torch.manual_seed(0)
    query, key, value = torch.randn(3, 1, 2, len(ends), 16)
    flexed = flex_attention(query, key, value, block_mask=block_mask(ends))
    mask = dense_mask(ends, torch.float32)
    dense = torch.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
    assert torch.allclose(dense, flexed, atol=1e-5)
    skipped = block_mask(ends).sparsity()
    assert skipped > 30  # percent


def test_blocks_of_a_tree_are_those_that_the_mask_itself_gives() -> None:
    """Many small branches, a branch over several blocks, nodes of padding, and one block alone."""
    import numpy as np
    from torch.nn.attention.flex_attention import create_block_mask

    from tracemill.train.packing.token_tree import build_trees
    from tracemill.train.packing.tree_masks import BLOCK, block_mask

    drawn = np.random.default_rng(1)
    trunk = drawn.integers(0, 9, 900)
    kinds = {"partial": 0, "full": 0}
    for ends_of_rows, answer in (((300, 300, 420, 500), 40), ((900,) * 12, 7), ((400, 800), 300), ((50,), 9)):
        rows = [np.concatenate([trunk[:end], drawn.integers(0, 9, answer)]) for end in ends_of_rows]
        [tree] = build_trees(rows, 10_000)
        more = np.arange(len(tree), -(-len(tree) // BLOCK) * BLOCK) + 1
        ends = torch.from_numpy(np.concatenate([tree.ends, more]))
        made = block_mask(ends)
        whole = create_block_mask(made.mask_mod, None, None, len(ends), len(ends), device="cpu")
        for name in ("kv_num_blocks", "full_kv_num_blocks", "q_num_blocks", "full_q_num_blocks"):
            assert torch.equal(getattr(made, name), getattr(whole, name)), name
        for name in ("kv", "full_kv", "q", "full_q"):
            counts = getattr(made, f"{name}_num_blocks")[0, 0]
            pairs = zip(
                getattr(made, f"{name}_indices")[0, 0], getattr(whole, f"{name}_indices")[0, 0], strict=False
            )
            for count, (one, other) in zip(counts.tolist(), pairs, strict=True):
                assert one[:count].tolist() == other[:count].tolist(), name
        kinds["partial"] += int(made.kv_num_blocks.sum())
        kinds["full"] += int(made.full_kv_num_blocks.sum())
    assert kinds["partial"] > 20
    assert kinds["full"] > 20


def test_tree_attention_computes_in_the_type_of_autocast(models: Callable[[str], Path]) -> None:
    """The rotary embedding gives float32 there, and FlexAttention casts nothing."""
    from transformers import AutoModelForCausalLM
    from transformers.integrations import flex_attention as integration

    from tracemill.train.packing.tree_attention import TREE_ATTENTION
    from tracemill.train.packing.tree_masks import block_mask

    seen = []
    with pytest.MonkeyPatch.context() as patch:

        def look(query: Any, key: Any, value: Any, **_: Any) -> Any:
            seen.append({query.dtype, key.dtype, value.dtype})
            return query

        patch.setattr(integration, "compile_friendly_flex_attention", look)
        model: Any = AutoModelForCausalLM.from_pretrained(models("qwen2"), dtype=torch.float32)
        model.set_attn_implementation(TREE_ATTENTION)
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
            mask = block_mask(torch.full((128,), 128))
            model.base_model(torch.arange(128)[None], attention_mask=mask, use_cache=False)
    assert seen
    assert all(types == {torch.bfloat16} for types in seen)


def test_a_model_with_flex_attention_gives_the_same_loss(
    models: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from torch.nn.attention.flex_attention import flex_attention
    from transformers.integrations import flex_attention as integration

    from tracemill.train.packing.tree_attention import TREE_ATTENTION

    def eager(query: Any, key: Any, value: Any, training: bool = False, **given: Any) -> Any:
        return flex_attention(query, key, value, **given)

    monkeypatch.setattr(integration, "compile_friendly_flex_attention", eager)
    losses = []
    for packed in (False, True):
        made = trainer("sft", packed, models("qwen2"), tmp_path, trace_rows(6))
        batch = made.data_collator([made.train_dataset[place] for place in range(6)])
        if packed:
            made.model.set_attn_implementation(TREE_ATTENTION)
            made.packed[0].checked = True
        with torch.no_grad():
            losses.append(made.compute_loss(made.model, batch).item())
    assert made.packed[0].computed > 0
    assert losses[1] == pytest.approx(losses[0], abs=1e-5)


@pytest.mark.skipif(not os.environ.get("TRACEMILL_GOLDEN"), reason="TRACEMILL_GOLDEN names no folder")
def test_the_loss_of_simpo_is_that_of_the_stored_vectors() -> None:
    from types import SimpleNamespace

    from loss_vectors import load

    from tracemill.train.trl.packed_trainers import PackedCPOTrainer

    compared = 0
    for case in load(Path(os.environ["TRACEMILL_GOLDEN"]) / "trl_cpo_simpo"):
        if case.params["loss_type"] != "simpo":
            continue
        accelerator = SimpleNamespace(device=torch.device("cpu"))
        made: Any = SimpleNamespace(accelerator=accelerator, **case.params)
        sides = [case.inputs[name].requires_grad_() for name in ("chosen_logps", "rejected_logps")]
        losses, *_ = PackedCPOTrainer.cpo_loss(made, *sides)
        gradients = torch.autograd.grad(losses.mean(), sides)
        expected = ("losses", "grad_of_mean_wrt_chosen", "grad_of_mean_wrt_rejected")
        for name, found in zip(expected, (losses, *gradients), strict=True):
            theirs = torch.from_numpy(case.outputs[name])
            assert torch.allclose(found.detach(), theirs, rtol=1e-4, atol=1e-6), (case.name, name)
        compared += 1
    assert compared > 50
