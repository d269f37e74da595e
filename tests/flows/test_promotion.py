"""After a training: the new model against the last one on held-out pairs, the decision, the tags."""

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from held_out_margins import held_out_margins
from hub_stub import TOKEN, Hub
from training_releases import released, tiny_model

from tracemill.flows.config.run_settings import RunSettings
from tracemill.flows.training.promotion_run import decision_table_rows
from tracemill.flows.training.training_run import train_and_decide, training_table_rows
from tracemill.train.preferences import PreferenceSummary
from tracemill.train.promotion import decide

NOTHING = 'echo weights > "$TRACEMILL_OUTPUT/model.bin"'


@pytest.mark.parametrize(
    ("new", "last", "promoted", "reason"),
    [
        ((8, 0.5, -1.0), None, True, "no model was promoted before"),
        ((8, 0.75, 0.1), (8, 0.5, 0.9), True, "it ranks more pairs right"),
        ((8, 0.5, 0.9), (8, 0.75, 0.1), False, "it ranks fewer pairs right"),
        ((8, 0.5, 0.2), (8, 0.5, 0.1), True, "it ranks as many pairs right, with at least the same margin"),
        ((8, 0.5, 0.1), (8, 0.5, 0.1), True, "it ranks as many pairs right, with at least the same margin"),
        ((8, 0.5, 0.1), (8, 0.5, 0.2), False, "it ranks as many pairs right, with a smaller margin"),
    ],
)
def test_accuracy_decides_and_then_the_margin(new: Any, last: Any, promoted: bool, reason: str) -> None:
    decision = decide(PreferenceSummary(*new), PreferenceSummary(*last) if last else None)
    assert (decision.promoted, decision.reason) == (promoted, reason)
    assert decision.to_json()["decision"] == ("promote" if promoted else "keep")
    assert decision.to_json()["new"] == {"rows": new[0], "accuracy": new[1], "margin": new[2]}


def settings_of(folder: Path, command: str | None, output: str, **training: Any) -> RunSettings:
    given: dict[str, Any] = {"model": "a/b", "device": "cpu", "output": str(folder / output)}
    if command is not None:
        given |= {"launcher": "command", "launch": {"command": command}}
    return RunSettings.model_validate({"workspace": folder / "w", "training": given | training})


def lines_of(folder: Path) -> list[dict[str, Any]]:
    text = (folder / "w" / "trainings" / "views" / "decisions.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def test_without_held_out_pairs_nothing_is_promoted(tmp_path: Path) -> None:
    made = released(tmp_path / "w" / "releases")
    found = train_and_decide(settings_of(tmp_path, NOTHING, "out"), "views")
    record = found["decision"]
    assert lines_of(tmp_path) == [record]
    assert (record["decision"], record["reason"]) == ("keep", "not compared: the release holds out no pair")
    assert (record["digest"], record["hub"], record["new"]) == (made.content_fingerprint, None, None)
    assert training_table_rows(found)[-1] == (
        "decision",
        "kept the last model\nnot compared: the release holds out no pair",
    )
    assert train_and_decide(settings_of(tmp_path, NOTHING, "out"), "views")["decision"] == record
    assert lines_of(tmp_path) == [record]
    off = settings_of(tmp_path, NOTHING, "off", compare=False)
    assert train_and_decide(off, "views")["decision"] is None


def test_without_torch_a_training_elsewhere_is_kept_and_not_compared(tmp_path: Path) -> None:
    released(tmp_path / "w" / "releases", validation=(0, 1))
    settings = settings_of(tmp_path, NOTHING, "out").model_dump_json(exclude_unset=True)
    code = (
        "import json, sys\n"
        "for name in ('torch', 'trl', 'transformers'): sys.modules[name] = None\n"
        "from tracemill.flows.config.run_settings import RunSettings\n"
        "from tracemill.flows.training.training_run import train_and_decide\n"
        "settings = RunSettings.model_validate(json.loads(sys.argv[1]))\n"
        "print(train_and_decide(settings, 'views')['decision']['reason'])\n"
    )
    command = [sys.executable, "-c", code, settings]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    said = done.stdout.splitlines()[-1]
    assert said.startswith("not compared: torch is not installed; expected the extra `train`; pip install")
    assert [line["decision"] for line in lines_of(tmp_path)] == ["keep"]


@pytest.mark.slow  # it needs PyTorch
def test_what_is_no_model_is_not_promoted(tmp_path: Path) -> None:
    released(tmp_path / "w" / "releases", validation=(0, 1))
    record = train_and_decide(settings_of(tmp_path, NOTHING, "out"), "views")["decision"]
    assert record["decision"] == "keep"
    assert record["reason"].startswith(f"not compared: model {tmp_path}/out/views/")


def ranked(model: Path, release: Path) -> tuple[float, float]:
    margins = held_out_margins(model, release)
    return sum(margin > 0 for margin in margins) / len(margins), sum(margins) / len(margins)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.filterwarnings("ignore")  # of libraries
def test_a_better_model_becomes_the_latest_and_a_worse_one_does_not(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    made = released(tmp_path / "w" / "releases", rows=10, validation=(0, 1, 2))
    tiny = tiny_model(tmp_path / "tiny")
    copy = f'cp {shlex.quote(str(tiny))}/* "$TRACEMILL_OUTPUT"'
    given = {"hub": "maker/student"}
    small = {"method": "dpo", "max_steps": 6, "batch": 4, "accumulate": 1, "learning_rate": 5e-2}
    small |= {"gradient_checkpointing": False, "model": str(tiny)}

    first = train_and_decide(settings_of(tmp_path, copy, "one", **given), "views")["decision"]
    lora = {"lora": {"r": 4}}  # an adapter is compared like a whole model
    second = train_and_decide(settings_of(tmp_path, None, "two", **given, **small, **lora), "views")[
        "decision"
    ]
    third = train_and_decide(settings_of(tmp_path, copy, "three", **given), "views")["decision"]
    again = train_and_decide(settings_of(tmp_path, copy, "three", **given), "views")["decision"]

    assert lines_of(tmp_path) == [first, second, third]
    assert again == third
    assert [record["decision"] for record in (first, second, third)] == ["promote", "promote", "keep"]
    accuracy, margin = ranked(tiny, made.path)
    assert first["new"] == {"rows": 3, "accuracy": accuracy, "margin": pytest.approx(margin, abs=1e-4)}
    assert (Path(second["checkpoint"]) / "adapter_config.json").exists()
    accuracy, margin = ranked(Path(second["checkpoint"]), made.path)
    assert second["new"] == {"rows": 3, "accuracy": accuracy, "margin": pytest.approx(margin, abs=1e-4)}
    assert (second["last"], second["last_checkpoint"]) == (first["new"], first["checkpoint"])
    assert (third["new"], third["last"]) == (first["new"], second["new"])
    assert third["last_checkpoint"] == second["checkpoint"]
    assert second["new"]["margin"] > first["new"]["margin"]

    repo = hub.repos["models/maker/student"]
    assert repo.private
    assert repo.tags == {"candidate", "latest"}
    assert repo.refs["latest"] == second["hub"]["commit"]
    assert repo.refs["candidate"] == third["hub"]["commit"]
    assert second["hub"]["tags"] == ["candidate", "latest"]
    assert third["hub"]["tags"] == ["candidate"]
    weights = (Path(second["checkpoint"]) / "adapter_model.safetensors").read_bytes()
    assert repo.commits[repo.refs["latest"]]["adapter_model.safetensors"] == weights
    [(_, said)] = decision_table_rows(second)
    assert said.splitlines()[0] == "promoted"
    assert said.splitlines()[-1] == "maker/student: candidate, latest"
