"""`method = "composer"`: a training from its settings to its checkpoint, cut off, refused."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from training_releases import released, tiny_model, train_here

from tracemill.flows.config.run_settings import load_settings
from tracemill.flows.training.training_run import figures, train_on, training_table_rows
from tracemill.records.errors import ConfigError, TrainingError
from tracemill.train.hints.hint_rows import add_hint
from tracemill.train.start_child import run_training
from tracemill.train.training_job import REPORT, TrainingJob, TrainingRelease
from tracemill.train.training_settings import LoraSettings, TrainingSettings

REWARD = """
def length(completions, **row):
    return [float(len(each[0]["content"]) % 5) for each in completions]
"""
PLACE = "prompts.jsonl"
WRITERS = (
    "4 written by a/model, 1 of them simulated",
    "1 written by template",
    "1 of a template, as the writer's answer is missing: refused",
)
LORA = {"r": 4, "alpha": 8}
REWARD_HERE = f"{__name__}:length"
SHAPED = {"tasks": "t", "composition": "advantage"}
WRITTEN = {"tasks": "t", "hint_writer": "m", "hint_max_usd": 1}


def write_rows(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def prompt_rows(count: int) -> list[dict[str, Any]]:
    return [{"prompt": [{"role": "user", "content": f"Fix bug {number}."}]} for number in range(count)]


def pair_rows(count: int) -> list[dict[str, Any]]:
    rows = []
    for number, row in enumerate(prompt_rows(count)):
        sides = {"chosen": f"I test {number}.", "rejected": f"Done with {number}."}
        told = {side: [{"role": "assistant", "content": text}] for side, text in sides.items()}
        rows.append({"pair_id": f"p{number}", **row, **told, "tools": []})
    return rows


def length(completions: list[Any], **_: Any) -> list[float]:
    """A reward that can be named as a function of this module."""
    return [float(len(each[0]["content"]) % 5) for each in completions]


def hint_rows(count: int) -> list[dict[str, Any]]:
    """Rows by a model, but for the first: it was refused, and a template stands in."""
    said = [{"role": "assistant", "content": "I test."}]
    more = {"completion": said, "tools": []}
    return [
        {
            "step_id": f"s{number}",
            **row,
            "hinted_prompt": add_hint(row["prompt"], "Say: I test."),
            "writer": "a/model" if number else "template",
            "fallback": "" if number else "refused",
            "simulated": number == 1,
            **more,
        }
        for number, row in enumerate(prompt_rows(count))
    ]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("tiny"))


@pytest.fixture
def job(tmp_path: Path, tiny: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A job on a release of 8 pairs, with 6 prompts and 5 hint rows."""
    made = released(tmp_path / "releases")
    release = TrainingRelease(
        name="views", version=made.version, digest=made.content_fingerprint, path=made.path
    )
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "lengths.py").write_text(REWARD)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "package"), prepend=os.pathsep)
    monkeypatch.syspath_prepend(tmp_path / "package")
    monkeypatch.delitem(sys.modules, "lengths", raising=False)
    write_rows(tmp_path / PLACE, prompt_rows(6))
    write_rows(tmp_path / "hints.jsonl", hint_rows(5))

    def make(**composer: Any) -> TrainingJob:
        base = {"prompts": tmp_path / PLACE, "reward": "lengths:length", "hints": tmp_path / "hints.jsonl"}
        base |= {"generations": 2, "max_completion_length": 6, "channel_batch": 1, "alpha_sdpo": 0.5}
        settings = TrainingSettings.model_validate(
            {
                "model": str(tiny),
                "output": tmp_path / "out",
                "method": "composer",
                "composer": base | composer,
                "device": "cpu",
                "gradient_checkpointing": False,
                "batch": 2,
                "accumulate": 2,
                "max_steps": 3,
                "save_steps": 1,
                "learning_rate": 1e-3,
            }
        )
        return TrainingJob(release=release, settings=settings, tracemill_version="0")

    return make


@pytest.mark.slow
def test_every_channel_learns_and_the_results_say_of_what(job: Any) -> None:
    made = run_training(job(beta_replay=0.2), lambda said: None)
    report = json.loads((made.path / REPORT).read_text())
    assert report["channels"] == {
        "grpo": {"weight": 1.0, "examples": 6, "dropped": {}, "off": None},
        "sdpo": {
            "weight": 0.5,
            "examples": 5,
            "dropped": {},
            "off": None,
            "writers": {"a/model": 4, "template": 1},
            "fallbacks": {"refused": 1},
            "simulated_hints": {"a/model": 1},
        },
        "replay": {"weight": 0.2, "examples": 8, "dropped": {}, "off": None},
    }
    assert [entry["step"] for entry in report["losses"]] == [1, 2, 3]
    for entry in report["losses"]:
        whole = entry["loss/grpo"] + 0.5 * entry["loss/sdpo_kl"] + 0.2 * entry["loss/trace_replay_dpo"]
        assert entry["loss/total"] == pytest.approx(whole, rel=1e-5)
        assert entry["loss/sdpo_kl"] > 0
    assert report["losses"][0]["loss/trace_replay_dpo"] == pytest.approx(0.6931, abs=1e-3)
    card = (made.path / "README.md").read_text()
    assert f"| channel sdpo | weight 0.5, 5 examples, 0 dropped; {'; '.join(WRITERS)} |" in card.splitlines()
    assert PLACE not in card
    rows = dict(training_table_rows(figures(made)))
    assert rows["channel replay"] == "weight 0.2, 8 pairs"
    assert rows["channel sdpo"].splitlines() == ["weight 0.5, 5 hint rows", *WRITERS]
    assert "validation" not in rows


@pytest.mark.slow
def test_a_channel_that_is_off_says_so_and_wants_no_input(job: Any, tmp_path: Path) -> None:
    given = job(alpha_sdpo=0.0, beta_replay=0.0, hints=None)
    (tmp_path / "releases" / "views" / given.release.version / "data" / "dpo").rename(tmp_path / "moved")
    made = run_training(given, lambda said: None)
    report = json.loads((made.path / REPORT).read_text())
    assert report["channels"]["sdpo"]["off"] == "alpha_sdpo is 0"
    assert report["channels"]["replay"]["off"] == "beta_replay is 0"
    assert "loss/sdpo_kl" not in report["losses"][0]
    assert report["losses"][0]["loss/grpo"] == report["losses"][0]["loss/total"]
    log = (made.path / "train.log").read_text()
    assert "channel sdpo is off: alpha_sdpo is 0" in log
    assert "channel replay is off: beta_replay is 0" in log
    rows = dict(training_table_rows(figures(made)))
    assert rows["channel sdpo"] == "off: alpha_sdpo is 0"
    assert "| channel replay | off: beta_replay is 0 |" in (made.path / "README.md").read_text().splitlines()


@pytest.mark.slow
def test_shaped_advantages_and_a_correction_from_settings_to_results(job: Any, tmp_path: Path) -> None:
    rows = [{**row, **({"hint": "Say: I test."} if n % 2 else {})} for n, row in enumerate(prompt_rows(6))]
    write_rows(tmp_path / PLACE, rows)
    composer = {"composition": "advantage", "alpha_sdpo": 0.25, "beta_replay": 0.0, "hints": None}
    made = train_here(job(**composer, importance="token_truncate"))
    report = json.loads((made.path / REPORT).read_text())
    assert report["settings"]["composer"]["composition"] == "advantage"
    counts = {name: (each["weight"], each["examples"]) for name, each in report["channels"].items()}
    assert counts == {"grpo": (0.75, 6), "sdpo": (0.25, 3), "replay": (0.0, 0)}
    assert report["channels"]["sdpo"]["off"] is None
    assert 0 < sum(each["advantage/hinted"] for each in report["losses"]) / 3 < 1
    assert all(each["loss/total"] == each["loss/grpo"] for each in report["losses"])
    assert all(each["importance/mean"] == pytest.approx(1, abs=1e-3) for each in report["losses"])


@pytest.mark.slow
def test_a_training_that_was_cut_off_ends_as_one_that_was_not(job: Any, tmp_path: Path) -> None:
    import signal

    whole = run_training(job(), lambda said: None)
    losses = json.loads((whole.path / REPORT).read_text())["losses"]
    weights = (whole.path / "model.safetensors").read_bytes()
    whole.path.rename(tmp_path / "whole")

    def kill(said: dict[str, Any]) -> None:
        if said.get("step") == 2 and "loss" in said:
            for folder in Path("/proc").glob("[0-9]*"):
                try:
                    command = (folder / "cmdline").read_bytes().split(b"\0")
                except OSError:
                    continue
                if b"tracemill.train.trl.worker" in command and str(tmp_path).encode() in command[-2]:
                    os.kill(int(folder.name), signal.SIGKILL)

    with pytest.raises(TrainingError, match="ended by SIGKILL"):
        run_training(job(), kill)
    again = run_training(job(), lambda said: None)
    report = json.loads((again.path / REPORT).read_text())
    assert report["resumed_at_step"] in (1, 2)
    assert report["losses"] == losses
    assert (again.path / "model.safetensors").read_bytes() == weights


@pytest.mark.slow
@pytest.mark.parametrize(
    ("composer", "message"),
    [
        ({"reward": "lengths:none"}, r"composer\.reward = 'lengths:none' cannot be imported"),
        ({"hints": None}, r"composer\.alpha_sdpo is 0\.5 and there are no hint rows"),
        (
            {"hints": None, "composition": "advantage"},
            'composition = "advantage" and no row of .* has a hint',
        ),
    ],
)
def test_a_missing_input_is_one_line_before_the_first_step(
    job: Any, composer: dict[str, Any], message: str
) -> None:
    given = job(**composer)
    with pytest.raises(TrainingError, match=message) as refused:
        train_here(given)
    assert "\n" not in str(refused.value)
    assert not given.target.exists()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_lora_trains_adapters_alone_and_their_absence_is_the_reference(
    job: Any, tiny: Path, tmp_path: Path
) -> None:
    import torch
    from datasets import Dataset
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from tracemill.train.compose import pair_log_probs
    from tracemill.train.composer.encode_rows import collate_pairs
    from tracemill.train.composer.method_trainer import composer_trainer
    from tracemill.train.trl.fit_rows import FittedRows

    def log_probs(model: Any, pairs: Any) -> torch.Tensor:
        with torch.no_grad():
            chosen, rejected, _ = pair_log_probs(model, collate_pairs(pairs, pad_id), average=False)
        return torch.cat([chosen, rejected])

    composer = job(reward=REWARD_HERE, beta_replay=0.5).settings.model_copy(
        update={"lora": LoraSettings.model_validate(LORA)}
    )
    tokenizer: Any = AutoTokenizer.from_pretrained(tiny)
    pad_id = tokenizer.pad_token_id
    fitted = FittedRows()
    fitted.rows = pair_rows(4)
    common = {"output_dir": str(tmp_path / "run" / "checkpoints"), "max_steps": 2, "learning_rate": 1e-2}
    common |= {"per_device_train_batch_size": 2, "logging_steps": 1, "report_to": "none", "use_cpu": True}
    common |= {"bf16": False, "save_strategy": "no", "gradient_checkpointing": False}
    data = {"train": (Dataset.from_list([]), fitted)}
    trainer: Any = composer_trainer(composer, common, tokenizer, data, [])
    pairs, reference = trainer.channels.pairs, trainer.channels.reference
    assert reference is not None
    assert reference.computed == len(pairs) == 4
    learned = {name for name, value in trainer.model.named_parameters() if value.requires_grad}
    assert len(learned) == 14
    assert all(".lora_A." in name or ".lora_B." in name for name in learned)
    before = {name: value.detach().clone() for name, value in trainer.model.named_parameters()}
    trainer.train()
    moved = {n for n, value in trainer.model.named_parameters() if not torch.equal(value, before[n])}
    assert moved == learned

    model = trainer.model.eval()
    kept = torch.cat([each.cpu() for each in reference.of(pairs).values()])
    plain = log_probs(AutoModelForCausalLM.from_pretrained(tiny).eval(), pairs)
    with model.disable_adapter():
        torch.testing.assert_close(log_probs(model, pairs), plain)
    torch.testing.assert_close(kept, plain)
    assert (log_probs(model, pairs) - kept).abs().max() > 1e-3
    logged = [each["loss/trace_replay_dpo"] for each in trainer.state.log_history if "loss/grpo" in each]
    assert logged[0] == pytest.approx(0.693147, abs=1e-5)
    assert logged[1] != pytest.approx(0.693147, abs=1e-5)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_lora_on_two_processes_ends_with_an_adapter_that_learned(job: Any, tiny: Path) -> None:
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    given = job(beta_replay=0.5)
    more = {"lora": LoraSettings.model_validate(LORA), "processes": 2, "max_steps": 2}
    given = given.model_copy(update={"settings": given.settings.model_copy(update=more)})
    made = run_training(given, lambda said: None)
    assert (made.path / "adapter_model.safetensors").exists()
    assert not (made.path / "model.safetensors").exists()
    assert (made.report["processes"], made.report["steps"]) == (2, 2)
    for entry in made.report["losses"]:
        whole = entry["loss/grpo"] + 0.5 * entry["loss/sdpo_kl"] + 0.5 * entry["loss/trace_replay_dpo"]
        assert entry["loss/total"] == pytest.approx(whole, rel=1e-4)
    assert made.report["losses"][0]["loss/trace_replay_dpo"] == pytest.approx(0.6931, abs=1e-3)
    model = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(tiny), made.path)
    adapters = [value for name, value in model.named_parameters() if "lora_B" in name]
    assert len(adapters) == 7
    assert all(value.abs().max() > 0 for value in adapters)


@pytest.mark.slow
def test_vocabularies_that_differ_are_an_error(tiny: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from tracemill.train.composer.method_trainer import check_vocabulary

    tokenizer, model = AutoTokenizer.from_pretrained(tiny), AutoModelForCausalLM.from_pretrained(tiny)
    check_vocabulary(tokenizer, model, "tiny")
    model.resize_token_embeddings(200)
    with pytest.raises(TrainingError, match=r"differ: its tokenizer has the token id 277, its model 200"):
        check_vocabulary(tokenizer, model, "tiny")


@pytest.mark.slow
@pytest.mark.parametrize("beta_replay", [0.0, 0.2])
def test_a_tokenizer_with_more_tokens_than_the_model_is_one_line_before_the_first_step(
    job: Any, tiny: Path, tmp_path: Path, beta_replay: float
) -> None:
    """With pairs, too, whose reference is asked before the trainer is made."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model: Any = AutoModelForCausalLM.from_pretrained(tiny)
    model.resize_token_embeddings(200)
    model.save_pretrained(tmp_path / "small")
    AutoTokenizer.from_pretrained(tiny).save_pretrained(tmp_path / "small")
    given = job(beta_replay=beta_replay, alpha_sdpo=0.0, hints=None)
    settings = given.settings.model_copy(update={"model": str(tmp_path / "small")})
    with pytest.raises(TrainingError, match=r"of .*small differ: .* id 277, its model 200") as said:
        run_training(given.model_copy(update={"settings": settings}), lambda said: None)
    assert "\n" not in str(said.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"composer": None}, r'method = "composer" without \[training\.composer\]'),
        ({"composer": {}}, "none of tasks, prompts and states given; expected one of them"),
        (
            {"composer": {"prompts": "p", "tasks": "t"}},
            "tasks and prompts of tasks, prompts and states given",
        ),
        (
            {"composer": {"tasks": "t", "composition": "sum"}},
            "Input should be 'additive', 'mix' or 'advantage'",
        ),
        (
            {"composer": {"tasks": "t", "composition": "mix", "alpha_sdpo": 1.5}},
            "alpha_sdpo is 1.5 with compos",
        ),
        (
            {"composer": SHAPED},
            "with tasks needs hint_level: a text of the tasks other than level = .detailed",
        ),
        ({"composer": SHAPED | {"hint_level": "detailed"}}, "with tasks needs hint_level"),
        (
            {"composer": SHAPED | {"hints": "h"}},
            "hints is given and composition = .advantage. uses hints",
        ),
        (
            {"composer": SHAPED | {"sdpo_wrapper": "taid", "hint_level": "terse"}},
            "sdpo_wrapper selects a loss",
        ),
        (
            {"composer": {"tasks": "t", "hint_level": "terse"}},
            'hint_level is only for composition = "advantage"',
        ),
        ({"composer": {"tasks": "t", "importance": "cap"}}, "Input should be 'off', 'token_truncate'"),
        ({"composer": {"tasks": "t", "importance_cap": 0}}, "Input should be greater than 0"),
        ({"composer": {"prompts": "p"}}, "prompts without reward"),
        ({"composer": {"tasks": "t", "hints": "h", "alpha_sdpo": 0}}, "hints are given and alpha_sdpo is 0"),
        ({"composer": {"tasks": "t", "hint_writer": "m"}}, "hint_writer without hint_max_usd; expected both"),
        ({"composer": {"tasks": "t", "hint_max_usd": 1}}, "hint_max_usd without hint_writer; expected both"),
        ({"composer": WRITTEN | {"hints": "h"}}, "hints and hint_writer are both given"),
        ({"composer": WRITTEN | {"alpha_sdpo": 0}}, "hint_writer is given and alpha_sdpo is 0"),
        ({"batch": 3, "accumulate": 1}, r"is 3; expected a multiple of composer\.generations = 4"),
        ({"launcher": "slurm"}, 'is for launcher = "local" alone'),
        ({"method": "dpo"}, 'composer is a table of method = "composer" alone'),
        ({"packing": "prefix"}, 'packing = "prefix" is not for method = "composer"'),
    ],
)
def test_settings_that_cannot_be_are_refused_without_torch(changes: dict[str, Any], message: str) -> None:
    base = {"model": "m", "method": "composer", "composer": {"tasks": "t"}}
    assert TrainingSettings.model_validate(base).batch == 4
    with pytest.raises(ValueError, match=message):
        TrainingSettings.model_validate(base | changes)


@pytest.mark.parametrize(
    ("line", "message"), [("[1]", "line 2 of .* is no JSON object"), ("{}", "line 2 of .* lacks prompt")]
)
def test_a_line_that_is_no_row_is_named(tmp_path: Path, line: str, message: str) -> None:
    from tracemill.train.composer.row_files import read_hint_rows, read_prompt_rows

    good = json.dumps(prompt_rows(1)[0])
    (tmp_path / "rows.jsonl").write_text(f"{good}\n{line}\n")
    with pytest.raises(TrainingError, match=message):
        read_prompt_rows(tmp_path / "rows.jsonl")
    with pytest.raises(TrainingError, match=r"line 1 .* lacks step_id, hinted_prompt, completion, tools"):
        read_hint_rows(tmp_path / "rows.jsonl")


def test_places_are_relative_to_the_configuration_and_must_be_there(tmp_path: Path) -> None:
    released(tmp_path / "w" / "releases")
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}")
    (tmp_path / "run.toml").write_text("""
workspace = "w"
[training]
model = "./model"
method = "composer"
[training.composer]
tasks = "tasks"
""")
    settings = load_settings(tmp_path / "run.toml", {})
    assert settings.training is not None
    assert settings.training.composer is not None
    assert settings.training.composer.tasks == tmp_path / "tasks"
    with pytest.raises(TrainingError, match=f"{tmp_path}/tasks holds no task; expected folders that"):
        train_on(settings, "views")
    with pytest.raises(ConfigError, match=r"training\.composer\.alpha_sdpo: .* greater than or equal to 0"):
        load_settings(tmp_path / "run.toml", {"training": {"composer": {"alpha_sdpo": -1}}})
