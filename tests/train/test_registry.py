"""Training methods and launchers of installed packages, next to ours."""

import json
import sys
from pathlib import Path
from subprocess import run
from typing import Any

import pytest
from installed_packages import called_with, install_module, refusal_with
from training_releases import released, tiny_model

from tracemill.flows.config.run_settings import load_settings
from tracemill.records.errors import ConfigError
from tracemill.train.registry import TRAINING_METHODS
from tracemill.train.training_settings import TrainingSettings

METHODS, LAUNCHERS = "tracemill.training_methods", "tracemill.launchers"
IPO = """
from tracemill.train.method import TrainingMethod

METHOD = TrainingMethod(
    "ipo",
    make_trainer="ipo_method:make_trainer",
    defaults={"beta": 0.2},
    options={"label_smoothing": 0.0},
    packages=("torch", "transformers", "trl", "json"),
)


def make_trainer(settings, arguments, tokenizer, data, callbacks):
    from trl.trainer.dpo_config import DPOConfig
    from trl.trainer.dpo_trainer import DPOTrainer

    from tracemill.train.trl.load_release import load_release_as_messages
    from tracemill.train.trl.trainers import lora_of

    rows = {split: load_release_as_messages(*one) for split, one in data.items()}
    return DPOTrainer(
        model=settings.model,
        args=DPOConfig(
            loss_type=["ipo"],
            beta=settings.beta,
            max_length=settings.max_length,
            label_smoothing=settings.options["label_smoothing"],
            **arguments,
        ),
        train_dataset=rows["train"],
        eval_dataset=rows.get("validation"),
        processing_class=tokenizer,
        callbacks=callbacks,
        peft_config=lora_of(settings),
    )
"""
QUEUE = """
import json

from pydantic import BaseModel

from tracemill.records.errors import TrainingError
from tracemill.train.launch.launcher import JobState, JobStatus
from tracemill.train.training_job import REPORT


class Options(BaseModel):
    place: int = 1


class Queue:
    options = Options
    attached = remote = False
    poll_s = 0.01

    def check(self, settings):
        if settings.device == "cuda":
            raise TrainingError("the queue has no GPU")

    def describe(self, launch):
        return {"place": launch.options(Options).place}

    def submit(self, launch):
        job = launch.job
        report = {
            "fingerprint": job.fingerprint(),
            "release": job.release.model_dump(mode="json"),
            "steps": 2,
            "losses": [{"step": 1, "loss": 0.7}, {"step": 2, "loss": 0.5}],
            "rows": {"train": {"used": 8, "cut": 0, "dropped": {}, "parted": 0}},
            "validation": [],
            "warnings": ["the queue is long"],
            "seconds": 1.0,
            "device": "queue",
        }
        job.target.mkdir(parents=True)
        (job.target / REPORT).write_text(json.dumps(report))
        return "place-" + str(launch.options(Options).place)

    def poll(self, launch, job_id):
        return JobStatus(JobState.SUCCEEDED)

    def logs(self, launch, job_id):
        yield f"{job_id} is ready"

    def cancel(self, launch, job_id):
        pass


QUEUE = Queue()
"""
SETTINGS = """
import json, sys
from tracemill.flows.config.run_settings import load_settings
training = load_settings(None, {"training": json.loads(sys.argv[1])}).training
print(json.dumps([training.model_dump(mode="json"), training.fingerprint(), "torch" in sys.modules]))
"""


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = install_module(
        tmp_path_factory.mktemp("packages") / "site",
        "ipo_method",
        IPO,
        {METHODS: {"ipo": "ipo_method:METHOD"}},
    )
    return install_module(folder, "queue_launcher", QUEUE, {LAUNCHERS: {"queue": "queue_launcher:QUEUE"}})


def _read(packages: Path, **training: Any) -> tuple[dict[str, Any], str]:
    command = [sys.executable, "-c", SETTINGS, json.dumps({"model": "a/b", **training})]
    done = run(command, capture_output=True, text=True, env={"PYTHONPATH": str(packages)}, check=True)
    settings, fingerprint, with_torch = json.loads(done.stdout)
    assert not with_torch
    return settings, fingerprint


def _config(folder: Path, training: str) -> Path:
    path = folder / "run.toml"
    path.write_text(f"workspace = 'w'\n[training]\nmodel = 'a/b'\n{training}\n")
    return path


def test_a_method_has_its_own_defaults_and_options(packages: Path) -> None:
    settings, one = _read(packages, method="ipo")
    assert (settings["beta"], settings["options"]) == (0.2, {"label_smoothing": 0.0})
    settings, other = _read(packages, method="ipo", beta=0.3, options={"label_smoothing": 0.1})
    assert (settings["beta"], settings["options"]) == (0.3, {"label_smoothing": 0.1})
    assert one != other


def test_what_a_method_cannot_have_is_one_line(packages: Path, tmp_path: Path) -> None:
    config = _config(tmp_path, "method = 'ipo'\ngamma = 1.0")
    assert 'gamma is a setting of method = "simpo" alone' in refusal_with(packages, "train", config)
    config = _config(tmp_path, "method = 'ipo'\noptions = { tau = 1 }")
    said = refusal_with(packages, "train", config)
    assert "training: options.tau is no option of 'ipo'; it has label_smoothing" in said
    config = _config(tmp_path, "options = { tau = 1 }")
    assert "options.tau is no option of 'sft'; it has none" in refusal_with(packages, "train", config)


def test_a_method_that_nobody_gives_names_those_there_are(packages: Path, tmp_path: Path) -> None:
    said = refusal_with(packages, "train", _config(tmp_path, "method = 'orpo'"))
    assert (
        "training.method: there is no training method 'orpo'; "
        "expected sft, dpo, simpo, kto, prm, composer, ipo "
        "(found 'orpo')" in said
    )
    said = refusal_with(packages, "train", _config(tmp_path, "launcher = 'cluster'"))
    assert (
        "training: there is no launcher 'cluster'; expected local, command, prefect, slurm, hf-jobs, modal,"
        " queue" in said
    )


def test_a_launcher_is_what_trains(packages: Path, tmp_path: Path) -> None:
    made = released(tmp_path / "w" / "releases")
    config = _config(tmp_path, "launcher = 'queue'")
    call = ("train", config, "--release", "views", "--json")
    done = called_with(packages, *call)
    assert done.returncode == 0, done.stderr[-2000:]
    figures = json.loads(done.stdout)
    assert (figures["device"], figures["last_loss"], figures["created"]) == ("queue", 0.5, True)
    assert figures["path"] == str(tmp_path / "w" / "checkpoints" / "views" / made.version)
    assert done.stderr.splitlines()[-1] == "tracemill: the queue is long"
    assert json.loads(called_with(packages, *call).stdout)["created"] is False
    assert called_with(packages, *call[:-1], "--logs").stdout == "place-1 is ready\n"
    config = _config(tmp_path, "launcher = 'queue'\nmax_steps = 3\nlaunch = { place = 7 }")
    described = json.loads(called_with(packages, *call[:1], config, *call[2:], "--dry-run").stdout)
    assert (described["launcher"], described["job"]) == ("queue", {"place": 7})
    config = _config(tmp_path, "launcher = 'queue'\ndevice = 'cuda'")
    assert "the queue has no GPU" in refusal_with(packages, "train", config, "--release", "views")


def test_two_of_one_name_and_what_cannot_be_used_are_one_line(tmp_path: Path) -> None:
    config = _config(tmp_path, "method = 'ipo'\nlauncher = 'queue'")
    taken = install_module(tmp_path / "a", "mine", IPO, {METHODS: {"simpo": "mine:METHOD"}})
    assert "mine and tracemill both give a training method 'simpo'" in refusal_with(taken, "train", config)
    broken = install_module(tmp_path / "b", "broken", "import nowhere", {METHODS: {"ipo": "broken:METHOD"}})
    said = refusal_with(broken, "train", config)
    assert "the training method 'ipo' of broken cannot be imported (ModuleNotFoundError)" in said
    other = install_module(tmp_path / "c", "other", IPO, {METHODS: {"ipo": "json:dumps"}})
    said = refusal_with(other, "train", config)
    assert (
        "the training method 'ipo' of a package is not valid; expected a TrainingMethod of that name" in said
    )
    config = _config(tmp_path, "launcher = 'queue'")
    both = install_module(tmp_path / "d", "one", QUEUE, {LAUNCHERS: {"queue": "one:QUEUE"}})
    install_module(both, "two", QUEUE, {LAUNCHERS: {"queue": "two:QUEUE"}})
    assert "two and one both give a launcher 'queue'" in refusal_with(both, "train", config)
    broken = install_module(
        tmp_path / "e", "broken", "import nowhere", {LAUNCHERS: {"queue": "broken:QUEUE"}}
    )
    assert "the launcher 'queue' of broken cannot be imported" in refusal_with(broken, "train", config)
    other = install_module(tmp_path / "f", "other", "", {LAUNCHERS: {"queue": "json:dumps"}})
    assert "expected a value with `options` and the methods check, describe" in refusal_with(
        other, "train", config
    )


def test_neither_launcher_nor_empty_options_make_another_checkpoint() -> None:
    """Checkpoints of plain DPO and of SimPO are what they were before methods had settings of their own."""
    plain = TrainingSettings(model="a/b", use_weights=True)
    assert TrainingSettings(model="a/b", method="dpo", nll_weight=0).fingerprint() == "84d94b39"
    assert TrainingSettings(model="a/b", launcher="queue").fingerprint() == plain.fingerprint()
    assert load_settings(None, {"training": {"model": "a/b"}}).training == plain
    assert TrainingSettings(model="a/b", method="simpo").fingerprint() == "b915bab3"
    with pytest.raises(ConfigError, match="there is no launcher 'queue'; expected local"):
        load_settings(None, {"training": {"model": "a/b", "launcher": "queue"}})


def test_every_method_has_its_own_name() -> None:
    assert [TRAINING_METHODS.get(name).name for name in TRAINING_METHODS.names()] == [
        "sft",
        "dpo",
        "simpo",
        "kto",
        "prm",
        "composer",
    ]


@pytest.mark.slow
def test_a_method_trains(packages: Path, tmp_path: Path) -> None:
    released(tmp_path / "w" / "releases")
    model = tiny_model(tmp_path / "tiny")
    config = _config(tmp_path, "method = 'ipo'\nmax_steps = 3\ndevice = 'cpu'\nlearning_rate = 1e-2")
    config.write_text(config.read_text().replace("'a/b'", f"'{model}'"))
    done = called_with(packages, "train", config, "--release", "views", "--json")
    assert done.returncode == 0, done.stderr[-2000:]
    figures = json.loads(done.stdout)
    assert (figures["steps"], figures["rows"]["train"]["used"]) == (3, 8)
    # (0 - 1 / (2 x 0.2)) squared, at the first step: https://arxiv.org/abs/2310.12036, equation 17
    assert figures["first_loss"] == pytest.approx(6.25, abs=1e-2)
