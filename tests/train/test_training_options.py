"""Settings of TRL's trainers that users of it expect: schedules, types, TensorBoard, a cached reference."""

import importlib.util
import json
import math
import shutil
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from training_releases import released, tiny_model, train_here

from tracemill.records.errors import TrainingError
from tracemill.train.start_child import check_packages, check_places
from tracemill.train.training_job import REFERENCE_CACHE, TENSORBOARD, TrainingJob, TrainingRelease
from tracemill.train.training_settings import TrainingSettings

ROWS = 10
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> TrainingRelease:
    made = released(tmp_path_factory.mktemp("releases"), rows=ROWS, validation=(2, 5))
    digest = made.content_fingerprint
    return TrainingRelease(name="views", version=made.version, digest=digest, path=made.path)


def trained(release: TrainingRelease, model: Path, out: Path, **given: Any) -> Any:
    base = {"batch": 4, "accumulate": 1, "device": "cpu", "gradient_checkpointing": False, "max_steps": 6}
    settings = TrainingSettings.model_validate(base | given | {"model": str(model), "output": out})
    job = TrainingJob(release=release, settings=settings, tracemill_version="0")
    return train_here(job)


def losses(made: Any) -> list[float]:
    return [entry["loss"] for entry in made.report["losses"]]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scheduler", "expected"),
    [
        ("linear", [0.0, 0.5, 1.0, 0.75, 0.5, 0.25]),
        ("constant", [0.0, 0.5, 1.0, 1.0, 1.0, 1.0]),
        ("cosine", [0.0, 0.5, *(0.5 + 0.5 * math.cos(math.pi * step / 4) for step in range(4))]),
    ],
)
def test_the_learning_rate_warms_up_and_goes_on_as_the_schedule_says(
    scheduler: str, expected: list[float], release: TrainingRelease, tiny: Path, tmp_path: Path
) -> None:
    made = trained(release, tiny, tmp_path, scheduler=scheduler, warmup=2, learning_rate=1e-3)
    rates = [entry["learning_rate"] for entry in made.report["losses"]]
    assert rates == pytest.approx([1e-3 * each for each in expected], abs=1e-9)


@pytest.mark.slow
def test_weights_are_of_the_type_that_is_set_and_metrics_go_to_tensorboard(
    release: TrainingRelease, tiny: Path, tmp_path: Path
) -> None:
    from safetensors.torch import load_file
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    given = {"dtype": "bfloat16", "tensorboard": True, "method": "dpo", "max_steps": 2}
    made = trained(release, tiny, tmp_path, **given)
    weights = load_file(made.path / "model.safetensors")
    assert {str(each.dtype) for each in weights.values()} == {"torch.bfloat16"}
    assert all(map(math.isfinite, losses(made)))
    [events] = (made.path / TENSORBOARD).iterdir()
    read = EventAccumulator(str(events))
    read.Reload()
    written = [each.value for each in read.Scalars("train/loss")]
    assert written == pytest.approx(losses(made), rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("packing", ["off", "prefix"])
def test_a_cached_reference_gives_the_same_losses_and_is_computed_once(
    packing: str, release: TrainingRelease, tiny: Path, tmp_path: Path
) -> None:
    given = {"method": "dpo", "learning_rate": 1e-3, "packing": packing, "eval_steps": 3}
    plain = trained(release, tiny, tmp_path / "model", **given)
    cached = trained(release, tiny, tmp_path / "cached", reference="cached", **given)
    assert losses(cached) == pytest.approx(losses(plain), abs=1e-6)
    evaluated = [[row["loss"] for row in each.report["validation"]] for each in (plain, cached)]
    assert len(evaluated[0]) > 1
    assert evaluated[1] == pytest.approx(evaluated[0], abs=1e-6)
    assert (plain.report["reference_rows"], cached.report["reference_rows"]) == (None, ROWS)
    [cache] = (tmp_path / "cached").rglob(REFERENCE_CACHE)
    known = json.loads(cache.read_text())
    assert len(known) == ROWS
    # What the file says is what is used: a rejected side that the reference finds likelier.
    cache.write_text(json.dumps({key: [chosen, rejected + 50] for key, (chosen, rejected) in known.items()}))
    shutil.rmtree(cached.path)
    wrong = trained(release, tiny, tmp_path / "cached", reference="cached", seed=1, **given)
    assert wrong.report["reference_rows"] == 0
    assert losses(wrong)[0] != pytest.approx(losses(plain)[0], abs=0.5)


def test_bad_options_are_refused_before_anything_is_loaded(tmp_path: Path) -> None:
    def settings(**given: Any) -> TrainingSettings:
        return TrainingSettings.model_validate({"model": "a/b", **given})

    for given, said in (
        ({"scheduler": "cosin"}, "'linear', 'cosine', 'polynomial', 'inverse_sqrt' or 'constant'"),
        ({"dtype": "float16"}, "'float32' or 'bfloat16'"),
        ({"reference": "cached"}, 'reference is a setting of method = "dpo" alone'),
        ({"accelerate": "f.yaml"}, "accelerate is a file for several processes, and processes is 1"),
        ({"lora": {"quantize": "8bit"}}, "'none' or '4bit'"),
    ):
        with pytest.raises(ValidationError, match=said):
            settings(**given)
    missing = settings(accelerate=tmp_path / "none.yaml", processes=2)
    with pytest.raises(TrainingError, match=r"none\.yaml does not exist"):
        check_places(missing)
    if importlib.util.find_spec("bitsandbytes") is None and importlib.util.find_spec("peft") is not None:
        with pytest.raises(TrainingError, match="bitsandbytes is not installed"):
            check_packages(settings(lora={"quantize": "4bit"}))


def test_options_at_their_defaults_make_no_other_checkpoint() -> None:
    def print_of(**given: Any) -> str:
        return TrainingSettings.model_validate({"model": "a/b", "method": "dpo", **given}).fingerprint()

    assert print_of(tensorboard=True) == print_of()
    changed = (
        {"scheduler": "cosine"},
        {"warmup": 0.1},
        {"weight_decay": 0.1},
        {"max_grad_norm": 0.5},
        {"dtype": "bfloat16"},
        {"reference": "cached"},
        {"lora": {}},
        {"lora": {"quantize": "4bit"}},
    )
    assert len({print_of(), *(print_of(**given) for given in changed)}) == 1 + len(changed)


def test_what_the_files_of_composer_hold_is_part_of_what_a_training_is(tmp_path: Path) -> None:
    prompts, tasks = tmp_path / "prompts.jsonl", tmp_path / "tasks"
    tasks.mkdir()

    def print_of(**composer: Any) -> str:
        given = {"model": "a/b", "method": "composer", "composer": {"alpha_sdpo": 0, **composer}}
        return TrainingSettings.model_validate(given).fingerprint()

    asked = {"prompts": prompts, "reward": "a:b"}
    assert print_of(**asked) == print_of(**asked, composition="additive", importance="off", importance_cap=3)
    assert print_of(**asked) != print_of(**asked, composition="mix")
    assert print_of(**asked) != print_of(**asked, importance="token_mask")
    prompts.write_text("one")
    seen = [print_of(**asked)]
    assert print_of(**asked) == seen[0]
    prompts.write_text("two")
    seen.append(print_of(**asked))
    (tasks / "task.toml").write_text("x = 1")
    seen.append(print_of(tasks=tasks))
    (tasks / "task.toml").rename(tasks / "other.toml")
    seen.append(print_of(tasks=tasks))
    assert len(set(seen)) == 4


@pytest.mark.slow
@pytest.mark.parametrize("name", ["FSDP", "DEEPSPEED"])
def test_a_model_is_not_split_on_processors(
    name: str, release: TrainingRelease, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """accelerate would leave it whole in every process, without a word."""
    from tracemill.train.trl.run_trainer import run_trainer
    from tracemill.train.trl.stopping import StopSignal

    monkeypatch.setenv(f"ACCELERATE_USE_{name}", "true")  # as `accelerate launch` does
    given = {"model": "./none", "device": "cpu", "processes": 2, "accelerate": tmp_path / "split.yaml"}
    settings = TrainingSettings.model_validate(given)
    job = TrainingJob(release=release, settings=settings, tracemill_version="0")
    with pytest.raises(TrainingError, match=r"split\.yaml splits the model, .* on GPUs alone"):
        run_trainer(job, tmp_path, lambda said: None, StopSignal())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ddp", "fsdp2", "deepspeed_zero3"])
def test_accelerate_reads_its_configurations(name: str) -> None:
    from accelerate.commands.config.config_args import load_config_from_file

    config = load_config_from_file(str(ROOT / "configs" / "train" / f"{name}.yaml"))
    assert str(config.distributed_type).rpartition(".")[2] in ("MULTI_GPU", "FSDP", "DEEPSPEED")
    if name == "fsdp2":
        assert config.fsdp_config["fsdp_version"] == 2
    if name == "deepspeed_zero3":
        assert config.deepspeed_config["zero_stage"] == 3
