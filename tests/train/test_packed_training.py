"""Trainings with packed rows, in their own processes: cut off, taken up, on two processes, refused."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from training_releases import released, tiny_model, train_here, weigh

from tracemill.train.start_child import has_unfinished_training, run_training
from tracemill.train.training_job import TrainingJob, TrainingRelease
from tracemill.train.training_settings import TrainingSettings

ROWS = 12


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> TrainingRelease:
    made = released(tmp_path_factory.mktemp("releases"), rows=ROWS)
    weigh(made.path, lambda step_id: 1 / (1 + int(step_id.partition(":")[0].rpartition("-")[2])))
    return TrainingRelease(
        name="views", version=made.version, digest=made.content_fingerprint, path=made.path
    )


def job(release: TrainingRelease, model: Path, out: Path, **given: Any) -> TrainingJob:
    base = {
        "batch": 4,
        "accumulate": 1,
        "device": "cpu",
        "gradient_checkpointing": False,
        "packing": "prefix",
    }
    settings = TrainingSettings.model_validate(
        base | {"learning_rate": 1e-3} | given | {"model": str(model), "output": out}
    )
    return TrainingJob(release=release, settings=settings, tracemill_version="0")


def figures(report: dict[str, Any]) -> list[tuple[float, ...]]:
    names = ("loss", "rewards/margins", "rewards/chosen", "mean_token_accuracy")
    return [tuple(entry[name] for name in names if name in entry) for entry in report["losses"]]


def trained(*given: Any, **settings: Any) -> dict[str, Any]:
    return train_here(job(*given, **settings)).report


LONGER = [pytest.param(each, marks=pytest.mark.long) for each in ("dpo", "simpo")]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["sft", *LONGER])
def test_losses_are_those_of_a_training_without_packing(
    method: str, release: TrainingRelease, tiny: Path, tmp_path: Path
) -> None:
    """Every step has all rows, with both settings."""
    given = {"method": method, "batch": ROWS, "max_steps": 4, "gradient_checkpointing": True}
    off, packed = (
        trained(release, tiny, tmp_path / each, packing=each, **given) for each in ("off", "prefix")
    )
    assert packed["settings"]["packing"] == "prefix"
    assert packed["warnings"] == []
    for one, other in zip(figures(off), figures(packed), strict=True):
        assert other == pytest.approx(one, abs=1e-4)
    assert figures(packed)[0][0] > figures(packed)[-1][0]


START = """
import sys
from tracemill.train.start_child import run_training
from tracemill.train.training_job import TrainingJob
run_training(TrainingJob.model_validate_json(sys.argv[1]), lambda said: print(said, flush=True))
"""


@pytest.mark.slow
@pytest.mark.parametrize("method", ["sft", *LONGER])
@pytest.mark.long
def test_a_training_that_was_killed_ends_with_the_same_bits(
    method: str, release: TrainingRelease, tiny: Path, tmp_path: Path
) -> None:
    """Twenty passes over three batches, so that it is taken up in the middle of a later pass."""
    import psutil
    from safetensors.numpy import load_file

    given = {"method": method, "max_steps": 60}
    whole = run_training(job(release, tiny, tmp_path / "whole", **given), lambda said: None)
    asked = job(release, tiny, tmp_path / "cut", save_steps=2, **given)
    command = [sys.executable, "-c", START, asked.model_dump_json()]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as first:
        deadline = time.monotonic() + 240
        while not (asked.partial / "checkpoints" / "checkpoint-8" / "saved.json").exists():
            assert time.monotonic() < deadline
            time.sleep(0.002)
        [worker] = psutil.Process(first.pid).children()
        worker.suspend()
        os.kill(first.pid, signal.SIGKILL)
        worker.resume()
    assert has_unfinished_training(asked)
    made = run_training(job(release, tiny, tmp_path / "cut", **given), lambda said: None)
    assert 8 <= made.report["resumed_at_step"] < 60
    assert figures(made.report) == figures(whole.report)
    weights, expected = (load_file(each.path / "model.safetensors") for each in (made, whole))
    assert all((weights[name] == each).all() for name, each in expected.items())
    assert len({loss for loss, *_ in figures(made.report)}) > 50


@pytest.mark.slow
@pytest.mark.parametrize("method", ["sft", *LONGER])
@pytest.mark.long
def test_two_processes_train_as_one_does(
    method: str, release: TrainingRelease, tiny: Path, tmp_path: Path
) -> None:
    """The batches of a step are the same, one for each process or one after the other."""
    given = {"method": method, "max_steps": 3, "batch": 3}
    one = trained(release, tiny, tmp_path / "one", accumulate=2, **given)
    both = job(release, tiny, tmp_path / "two", processes=2, **given)
    two = run_training(both, lambda said: None).report
    assert (one["processes"], two["processes"]) == (1, 2)
    assert two["warnings"] == []
    for alone, together in zip(figures(one), figures(two), strict=True):
        assert together == pytest.approx(alone, abs=1e-5)
    assert figures(one)[0][0] != pytest.approx(figures(one)[-1][0], abs=1e-3)


@pytest.mark.slow
@pytest.mark.long
def test_two_processes_of_fsdp_have_the_gradient_of_one(tmp_path: Path) -> None:
    """Every weight is split among them; packed and padded rows."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-all")
    from packing_rows import small_model

    model = small_model(tmp_path / "model", tiny_model(tmp_path / "tiny"), "qwen2")
    found = {}
    for world, path in ((1, "padded"), (1, "packed"), (2, "packed")):
        out = tmp_path / f"{world}-{path}.pt"
        run_processes(world, model, out, path)
        found[world, path] = torch.load(out)
    one = found[1, "padded"]
    for key in ((1, "packed"), (2, "packed")):
        assert found[key]["notes"] == []
        assert found[key]["computed"] > 0
        assert found[key]["loss"].item() == pytest.approx(one["loss"].item(), abs=1e-5)
        assert found[key]["gradients"].keys() == one["gradients"].keys()
        for name, gradient in found[key]["gradients"].items():
            assert torch.allclose(gradient, one["gradients"][name], atol=1e-6), name
    assert found[2, "packed"]["sharded"] == len(one["gradients"])
    assert max(each.abs().max() for each in one["gradients"].values()) > 1e-3


def run_processes(world: int, model: Path, out: Path, path: str) -> None:
    """Run `fsdp_process.py` in so many processes."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    script = Path(__file__).with_name("fsdp_process.py")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(each for each in sys.path if each)}
    command = [sys.executable, str(script)]
    started = [
        subprocess.Popen(
            [*command, str(rank), str(world), port, str(model), str(out), path],
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(world)
    ]
    for each in started:
        _, said = each.communicate(timeout=240)
        assert each.returncode == 0, said[-2000:]


def test_packing_is_for_methods_that_pack_and_changes_what_a_training_is() -> None:
    def settings(**given: Any) -> TrainingSettings:
        return TrainingSettings.model_validate({"model": "a/b", **given})

    assert (settings().packing, settings().packing_tokens) == ("off", 16384)
    with pytest.raises(ValidationError, match='packing = "prefix" is not for method = "kto"'):
        settings(method="kto", packing="prefix")
    with pytest.raises(ValidationError, match="Input should be 'off' or 'prefix'"):
        settings(packing="on")
    with pytest.raises(ValidationError, match="greater than or equal to 1"):
        settings(packing="prefix", packing_tokens=0)
    prints = [{}, {"packing_tokens": 99}, {"packing": "prefix"}, {"packing": "prefix", "packing_tokens": 99}]
    assert len({settings(**given).fingerprint() for given in prints}) == 3
