"""The card on the Hub as a reader takes it: its head validates, and its three lines run as they are typed."""

import re
import runpy
from pathlib import Path
from typing import Any

import pytest
from hub_stub import TOKEN, Hub
from training_releases import released, tiny_model

from tracemill.flows.config.run_settings import load_settings
from tracemill.flows.publish.publish_run import PublishOptions, publish_release
from tracemill.records.storage.workspace import Workspace

REPO = "maker/pairs"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_three_lines_of_the_card_train_from_the_hub(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import DatasetCard

    monkeypatch.setenv("HF_TOKEN", TOKEN)
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    settings = load_settings(None, {"workspace": str(tmp_path / "w"), "release": {"hub": REPO}})
    Workspace.open(settings.workspace)
    released(settings.workspace / "releases")
    publish_release(settings, None, PublishOptions(REPO))
    card = DatasetCard.load(REPO)
    card.validate()
    assert card.data.to_dict()["configs"][0] == {
        "config_name": "dpo",
        "default": True,
        "data_files": [{"split": "train", "path": "data/dpo/train-00000-of-00001.parquet"}],
    }
    typed = re.search(r"```python\n(.*?)```", card.text, re.DOTALL)
    assert typed is not None
    lines = typed[1].strip().splitlines()
    assert len(lines) == 3
    assert f'load_dataset("{REPO}", "dpo", split="train")' in lines[1]
    model = tiny_model(tmp_path / "tiny")
    program = tmp_path / "typed.py"
    without_gpu = "DPOConfig(max_length=16384, use_cpu=True, bf16=False)"
    assert without_gpu in card.text
    code = typed[1].replace("DPOConfig(max_length=16384)", without_gpu)
    assert code != typed[1]
    program.write_text(code.replace("Qwen/Qwen3-0.6B", str(model)))
    monkeypatch.chdir(tmp_path)
    done: dict[str, Any] = runpy.run_path(str(program))
    assert len(done["train"]) == 8
    assert (tmp_path / "trainer_output").is_dir()
