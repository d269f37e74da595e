"""`tracemill train` on the command line, and a run that ends with a trained checkpoint."""

import errno
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from training_releases import released, tiny_model

from tracemill.flows.config.run_settings import RunSettings, load_settings
from tracemill.flows.run_state.run_summary import ReleaseOutcome
from tracemill.flows.training.resolve_release import resolve_training_release
from tracemill.flows.training.training_run import (
    figures,
    train_after_release,
    train_on,
    training_table_rows,
)
from tracemill.records.errors import ConfigError
from tracemill.train.training_job import TrainingResult
from tracemill.train.trl.worker import worker_error_text

ROOT = Path(__file__).resolve().parents[2]
Call = Callable[..., CompletedProcess[str]]


def refused(done: CompletedProcess[str]) -> str:
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


def test_a_release_is_found_by_name_version_and_folder(tmp_path: Path) -> None:
    made = released(tmp_path / "releases")
    for asked in ("views", f"views@{made.version}", str(made.path), f"{made.path.parent}@{made.version}"):
        found = resolve_training_release(asked, tmp_path / "releases")
        assert (found.name, found.version, found.path) == ("views", made.version, made.path), asked
        assert (found.digest, found.simulated) == (made.content_fingerprint, "none")


def test_what_is_not_there_is_one_line_and_writes_nothing(console: Call, tmp_path: Path) -> None:
    work = tmp_path / "w"
    made = released(work / "releases")
    flags = ("train", "-w", work, "--model", tmp_path / "none")
    (tmp_path / "none").mkdir()
    assert "holds no model" in refused(console(*flags, "--release", "views"))
    said = refused(console(*flags[:3], "--model", "./nowhere", "--release", "views"))
    assert "/nowhere holds no model; expected a folder with config.json, or an id of the Hub" in said
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text("{}")
    flags = ("train", "-w", work, "--model", model)
    assert "holds no release 'other', and no folder" in refused(console(*flags, "--release", "other"))
    said = refused(console(*flags, "--release", "views@2020.01.01"))
    assert f"has no version '2020.01.01'; expected `latest` or one such as {made.version}" in said
    assert f"holds no release '{tmp_path}/none', and no folder" in refused(
        console(*flags, "--release", f"{tmp_path}/none")
    )
    assert "no model is given; expected training.model" in refused(console("train", "-w", work))
    assert not (work / "checkpoints").exists()


@pytest.mark.slow
def test_sigterm_ends_a_training_with_one_line(tmp_path: Path) -> None:
    """The process that trains is still loading: nothing is saved, and nothing stays."""
    released(tmp_path / "w" / "releases")
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}")
    command = [
        sys.executable,
        "-c",
        "from tracemill.cli.main import main; main()",
        "train",
        "-w",
        tmp_path / "w",
    ]
    more = ["--release", "views", "--model", tmp_path / "model", "--output", tmp_path / "out"]
    with subprocess.Popen([*map(str, [*command, *more])], stderr=subprocess.PIPE, text=True) as running:
        while not (begun := list((tmp_path / "out").rglob("job.json"))) and running.poll() is None:
            time.sleep(0.01)
        assert begun
        running.terminate()
        _, said = running.communicate(timeout=60)
    lines = [line for line in said.splitlines() if not line.startswith("train: ")]
    assert lines == ["tracemill: interrupted; the same command resumes and pays nothing twice"]
    assert running.returncode == 130
    assert list(tmp_path.glob("out/*")) == []


def test_want_of_memory_is_told_by_what_helps() -> None:
    less = "a smaller training.max_length, LoRA or batch = 1 takes less"
    refused_by_torch = "[enforce fail at alloc_cpu.cpp:121] data. DefaultCPUAllocator: can't allocate memory"
    assert (
        worker_error_text(RuntimeError(refused_by_torch))
        == worker_error_text(MemoryError())
        == f"out of memory; {less}"
    )
    gpu = type("OutOfMemoryError", (RuntimeError,), {})("CUDA out of memory. Tried to allocate 2 GiB")
    assert worker_error_text(gpu) == f"out of memory on the GPU; {less}"
    assert worker_error_text(ValueError("one\ntwo")) == "ValueError: one"


def test_a_full_disk_is_told_whatever_was_made_of_it() -> None:
    said = "the disk is full; make room where training.output is"
    assert worker_error_text(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))) == said
    assert worker_error_text(RuntimeError("I/O error: No space left on device (os error 28)")) == said
    wrapped = ValueError("An error occurred while generating the dataset")
    wrapped.__cause__ = OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))
    assert worker_error_text(wrapped) == said
    wrapped.__cause__ = OSError(errno.ENOENT, os.strerror(errno.ENOENT))
    assert worker_error_text(wrapped) == "ValueError: An error occurred while generating the dataset"


@pytest.mark.parametrize(
    ("key", "value"),
    [("learning_rate", "inf"), ("beta", "inf"), ("epochs", "inf"), ("seed", "-1"), ("seed", "4294967296")],
)
def test_a_number_that_no_training_takes_is_refused_beforehand(tmp_path: Path, key: str, value: str) -> None:
    config = tmp_path / "run.toml"
    config.write_text(f'[training]\nmodel = "m"\n{key} = {value}\n')
    with pytest.raises(ConfigError, match=rf"run\.toml: training\.{key}: Input should be "):
        load_settings(config, {})


def test_a_release_without_the_rows_of_a_method_names_what_it_can_train(
    console: Call, tmp_path: Path
) -> None:
    work, model = tmp_path / "w", tmp_path / "model"
    made = released(work / "releases")
    manifest = json.loads((made.path / "manifest.json").read_text())
    model.mkdir()
    (model / "config.json").write_text("{}")
    flags = ("train", "-w", work, "--model", model, "--release", "views")
    for method, left, said in (
        (
            "dpo",
            ("sft", "kto"),
            "`dpo`, which method 'dpo' reads; expected a method that it has rows for (sft, kto)",
        ),
        (
            "sft",
            ("dpo", "hints"),
            "`sft`, which method 'sft' reads; expected a method that it has rows for "
            "(dpo, simpo, prm, composer)",
        ),
        ("kto", ("hints",), "`kto`, which method 'kto' reads; expected a release with rows to train on"),
    ):
        tables = {name: manifest["tables"][name] for name in left}
        (made.path / "manifest.json").write_text(json.dumps(manifest | {"rows": 0, "tables": tables}))
        line = refused(console(*flags, "--method", method))
        assert f"release {made.path} has no rows in the config {said}; name one as training.method" in line
    assert "there is no training method 'ppo'; expected sft, dpo" in refused(
        console(*flags, "--method", "ppo")
    )
    assert not (work / "checkpoints").exists()


def test_a_tag_of_the_hub_stands_for_its_commit(hub: object, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = hub.put("ann/set", {"README.md": b"---\n---\n"}, tag="2026.11.21")  # type: ignore[attr-defined]
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    found = resolve_training_release("ann/set@2026.11.21", Path("none"))
    assert (found.name, found.version, found.digest) == ("ann--set", "2026.11.21", commit)
    assert (found.repository, found.path, found.terms) == ("ann/set", None, {})


def test_terms_of_the_teachers_come_with_a_release_here_and_at_the_hub(
    hub: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = released(tmp_path / "releases")
    manifest = json.loads((made.path / "manifest.json").read_text())
    manifest["teachers"] = [
        {"name": "a/one", "model": "a/one", "family": "a", "terms": "restrict training"},
        {"name": "b/two", "model": "b/two", "family": "b"},
    ]
    (made.path / "manifest.json").write_text(json.dumps(manifest))
    files = {str(path.relative_to(made.path)): path.read_bytes() for path in made.path.rglob("*.*")}
    hub.put("ann/set", files, tag="2026.11.21")  # type: ignore[attr-defined]
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    for asked in (str(made.path), "ann/set@2026.11.21"):
        found = resolve_training_release(asked, tmp_path / "releases")
        assert found.terms == {"a/one": "restrict training"}


@pytest.mark.slow
def test_a_release_at_the_hub_is_trained_on(
    hub: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = released(tmp_path / "releases")
    files = {str(path.relative_to(made.path)): path.read_bytes() for path in made.path.rglob("*.*")}
    commit = hub.put("ann/set", files, tag="2026.11.21")  # type: ignore[attr-defined]
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    model = str(tiny_model(tmp_path / "tiny"))
    training = {"model": model, "output": str(tmp_path / "out"), "max_steps": 1, "device": "cpu"}
    settings = RunSettings.model_validate({"workspace": tmp_path / "w", "training": training})
    trained = train_on(settings, "ann/set@2026.11.21")
    assert trained.path == tmp_path / "out" / "ann--set" / "2026.11.21"
    assert trained.report["release"]["digest"] == commit
    assert trained.report["rows"]["train"]["used"] == 8


def after(tmp_path: Path, created: bool, **training: object) -> dict | None:
    made = released(tmp_path / "releases")
    settings = RunSettings.model_validate(
        {"workspace": tmp_path, "training": {"model": str(tmp_path / "none"), **training}}
    )
    outcome = ReleaseOutcome(str(made.path), made.version, made.rows, created, {}, {})
    return train_after_release(settings, outcome)


def test_a_run_trains_only_where_it_is_told_to_and_wrote_a_version(tmp_path: Path) -> None:
    assert after(tmp_path, True) is None
    assert after(tmp_path, False, after_release=True) == {"note": "none: no new version"}


def test_a_training_that_fails_is_a_note_and_no_harm(tmp_path: Path) -> None:
    found = after(tmp_path, True, after_release=True)
    assert found is not None
    assert found["failed"].startswith(f"{tmp_path / 'none'} holds no model")
    assert training_table_rows(found) == [("training", f"failed: {found['failed']}")]


def test_paths_of_the_table_are_relative_to_its_file(tmp_path: Path) -> None:
    config = tmp_path / "run.toml"
    config.write_text("[training]\nmodel = './tiny'\noutput = 'out'\nchat_template = 't.jinja'\n")
    training = load_settings(config, {}).training
    assert training is not None
    assert training.model == str(tmp_path / "tiny")
    assert (training.output, training.chat_template) == (tmp_path / "out", tmp_path / "t.jinja")
    config.write_text("[training]\nmodel = 'Qwen/Qwen3-0.6B'\n")
    training = load_settings(config, {}).training
    assert training is not None
    assert training.model == "Qwen/Qwen3-0.6B"


def test_without_the_extra_it_is_one_line_with_what_to_install(tmp_path: Path) -> None:
    released(tmp_path / "w" / "releases")
    code = (
        "import sys\n"
        "for name in ('torch', 'trl', 'transformers'): sys.modules[name] = None\n"
        "from tracemill.cli.main import main\n"
        "sys.argv = ['tracemill', 'train', '-w', sys.argv[1], '--model', 'a/b', '--release', 'views']\n"
        "main()\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "w")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=dict(os.environ))
    assert "torch is not installed; expected the extra `train`; pip install torch==2.13.0" in refused(done)


def test_what_went_wrong_in_a_training_is_a_row_and_a_line(tmp_path: Path) -> None:
    """Also of a `training.json` that was written before there were weights and warnings."""
    rows = {"used": 8, "cut": 0, "dropped": {}, "parted": 0}
    report = {
        "release": {"name": "views", "version": "1", "simulated": "none"},
        "settings": {"method": "dpo"},
        "rows": {"train": rows, "validation": rows},
        "steps": 2,
        "losses": [{"step": 1, "loss": 0.7}],
        "validation": [{"step": 2, "loss": 0.5, "rewards/accuracies": 0.75, "mean_token_accuracy": 0.5}],
        "seconds": 3,
        "device": "cpu",
    }
    table = dict(training_table_rows(figures(TrainingResult(tmp_path, report, True))))
    assert table["training rows"] == "8 used, 0 of them cut to fit"
    assert table["validation"] == "loss 0.5000 to 0.5000 on 8 rows, 75% of pairs ranked right"
    assert table["training"].endswith("2 steps with dpo in 3 s on cpu")
    assert "training warning" not in table
    report["rows"] = {"train": rows | {"weight": 6.25, "dropped": {"of weight 0": 2}}, "validation": rows}
    report |= {"warnings": ["one line"], "validation": [{"step": 2, "loss": 0.5, "mean_token_accuracy": 0.5}]}
    table = dict(training_table_rows(figures(TrainingResult(tmp_path, report, True))))
    assert table["training rows"].splitlines()[1:] == [
        "sum of weights 6.2",
        "2 dropped: of weight 0",
    ]
    report["whole_at"] = {"4096": 6, "8192": 1_200}
    table = dict(training_table_rows(figures(TrainingResult(tmp_path, report, True))))
    assert table["training rows"].splitlines()[-1] == "fit whole in max_length: 6 at 4,096, 1,200 at 8,192"
    assert table["validation"].endswith("on 8 rows, 50% of tokens predicted")
    assert table["training warning"] == "one line"


def test_simulated_rows_are_not_trained_on_unasked(tmp_path: Path) -> None:
    made = released(tmp_path / "releases")
    manifest = json.loads((made.path / "manifest.json").read_text())
    (made.path / "manifest.json").write_text(json.dumps(manifest | {"simulated": "some"}))
    settings = RunSettings.model_validate(
        {"workspace": tmp_path, "training": {"model": str(tmp_path / "none"), "after_release": True}}
    )
    outcome = ReleaseOutcome(str(made.path), made.version, made.rows, True, {}, {})
    found = train_after_release(settings, outcome)
    assert found == {"note": "none: the release holds simulated rows, and training.simulated is not set"}


@pytest.mark.slow
@pytest.mark.long
def test_a_run_on_the_examples_ends_with_a_trained_checkpoint(tracemill: Call, tmp_path: Path) -> None:
    """First with a window that no row fits: the release stays, and the training is made up for."""
    tiny = tiny_model(tmp_path / "tiny")
    config = tmp_path / "demo.toml"
    text = (ROOT / "configs" / "demo.toml").read_text()
    text = text.replace("../examples", str(ROOT / "examples")).replace("../demo-workspace", "w")
    training = (
        f"\n[training]\nmodel = '{tiny}'\nmax_steps = 2\nbatch = 2\naccumulate = 1\n"
        "device = 'cpu'\nafter_release = true\nsimulated = true\n"
    )
    config.write_text(f"{text}{training}max_length = 12\n")
    failed = tracemill("run", config, "--json")
    assert failed.returncode == 1
    said = json.loads(failed.stdout)
    stays = f"tracemill: training failed, the release {said['release']['path']} stays: none of "
    assert failed.stderr.splitlines()[-1].startswith(stays)
    assert said["training"]["failed"] in failed.stderr
    assert (Path(said["release"]["path"]) / "manifest.json").exists()
    assert "failed: none of" in tracemill("status", "-w", tmp_path / "w").stdout
    assert not (tmp_path / "w" / "checkpoints").exists()
    config.write_text(f"{text}{training}max_length = 3000\n")
    trained = tracemill("train", config, "--json")
    assert trained.returncode == 0, trained.stderr[-2000:]
    found = json.loads(trained.stdout)
    assert (found["steps"], found["simulated"]) == (2, "some")
    assert found["rows"]["train"]["cut"] > 0
    report = json.loads((Path(found["path"]) / "training.json").read_text())
    assert [entry["step"] for entry in report["losses"]] == [1, 2]
    assert (Path(found["path"]) / "model.safetensors").stat().st_size > 10_000
    more = "method = 'simpo'\noutput = 'after'\n[pairs]\nper_trace = 3\nfloor = 5\n"
    config.write_text(f"{text}{training}max_length = 3000\n{more}")
    again = tracemill("run", config, "--rebuild", "--json")
    assert again.returncode == 0, again.stderr[-2000:]
    record = json.loads(again.stdout)
    assert record["training"]["path"] == str(tmp_path / "after" / "demo" / record["release"]["version"])
    shown = tracemill("status", "-w", tmp_path / "w", "-v").stdout
    assert "2 steps with simpo in" in shown
    assert "none: the release has no row in split `validation`" in shown
