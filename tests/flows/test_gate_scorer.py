"""A step scorer as a feature of the gate: its word in decisions, its cache, and what is refused."""

import json
import math
import shutil
import statistics
from pathlib import Path
from typing import Any

import pytest
from training_releases import tiny_model

from tracemill.flows.config.run_settings import RunSettings, load_settings
from tracemill.flows.estimate.estimate_cost import estimate_cost
from tracemill.flows.ingest.ingest_order import IngestOptions
from tracemill.flows.ingest.ingest_run import ingest_everything
from tracemill.flows.labeling.action_scores import scorer_word, training_messages
from tracemill.flows.labeling.gate_run import gate_version
from tracemill.flows.labeling.gate_weights import gate_weights_folder
from tracemill.flows.labeling.label_shard import ShownTrace, load_traces
from tracemill.flows.sources.source_spec import order_of
from tracemill.flows.workspace_commands import replay_workspace
from tracemill.records.errors import TrainingError
from tracemill.records.reply import AskDecision
from tracemill.records.storage.table_rows import decisions_from_table
from tracemill.records.storage.workspace import Workspace

SESSIONS = Path(__file__).resolve().parents[2] / "examples" / "sessions" / "claude_code"


def settings_of(workspace: Path, scorer: Path | None, **gate: Any) -> RunSettings:
    given = {"share": 0.5, **({"step_scorer": str(scorer)} if scorer else {}), **gate}
    return load_settings(
        None,
        {"workspace": str(workspace), "preset": "simulated", "budget": {"max_total_usd": 5}, "gate": given},
    )


def report(folder: Path, method: str = "prm", **calibration: float) -> Path:
    folder.mkdir(exist_ok=True)
    written = {"settings": {"method": method, "max_length": 4096}, "calibration": calibration or None}
    (folder / "training.json").write_text(json.dumps(written))
    return folder


def decisions_of(workspace: Path) -> dict[tuple[str, str], AskDecision]:
    tables = Workspace.open(workspace, create=False).current("decisions")
    return {(d.step_id, d.teacher): d for table in tables for d in decisions_from_table(table)}


def test_a_word_is_the_tenth_of_a_probability() -> None:
    words = [scorer_word("1a2b", each) for each in (0.0, 0.099, 0.1, 0.55, 0.999, 1.0, None)]
    assert words == [f"scorer=1a2b*{each}" for each in (0, 0, 1, 5, 9, 9, "none")]


def test_what_is_no_scorer_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    folder = tmp_path / "w"
    ingest_everything(IngestOptions(order_of(paths=[str(SESSIONS)], min_age_minutes=0), folder))
    for place, said in (
        (tmp_path / "none", "none holds no step scorer; expected the checkpoint of a training with"),
        (report(tmp_path / "sft", "sft", slope=1.0, offset=0.0), "sft is no step scorer"),
        (report(tmp_path / "raw"), "raw is not calibrated"),
    ):
        with pytest.raises(TrainingError, match=said):
            replay_workspace(settings_of(folder, place), yes=True)
    assert decisions_of(folder) == {}


def test_a_missing_package_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "w"
    ingest_everything(IngestOptions(order_of(paths=[str(SESSIONS)], min_age_minutes=0), folder))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    scorer = report(tmp_path / "prm", slope=1.0, offset=0.0)
    with pytest.raises(
        TrainingError, match="is not installed, which a step scorer needs; expected the extra"
    ):
        replay_workspace(settings_of(folder, scorer), yes=True)


def test_another_scorer_decides_anew_and_none_is_the_gate_as_it_was(tmp_path: Path) -> None:
    plain = gate_version(settings_of(tmp_path, None))
    first, second = (report(tmp_path / str(slope), slope=slope, offset=0.0) for slope in (1.0, 2.0))
    moved = shutil.copytree(first, tmp_path / "moved")
    versions = [gate_version(settings_of(tmp_path, each)) for each in (first, second, moved)]
    assert len({plain, *versions}) == 3
    assert versions[0] == versions[2]  # what it is counts, not where it lies


@pytest.fixture
def scorer(tmp_path: Path) -> Path:
    """A step scorer with weights drawn at random."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tiny, folder = tiny_model(tmp_path / "tiny"), tmp_path / "prm"
    tokenizer: Any = AutoTokenizer.from_pretrained(tiny)
    model: Any = AutoModelForSequenceClassification.from_pretrained(tiny, num_labels=1)
    torch.manual_seed(0)
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.5)
    model.config.pad_token_id = tokenizer.pad_token_id
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return report(folder, slope=1.0, offset=0.0)


def rows_of(work: Workspace) -> dict[str, dict[str, Any]]:
    """What a training would read of each step."""
    tables = work.current("traces")
    ids = sorted({each for table in tables for each in table.column("trace_id").to_pylist()})
    found: dict[str, dict[str, Any]] = {}
    for shown in map(ShownTrace.of, load_traces(work, ids)):
        done = {str(state.step_id): state.student_action.to_message() for state in shown.trace.states()}
        for asked in shown.questions():
            found[asked.step_id] = {
                "prompt": training_messages(asked.messages),
                "completion": training_messages([done[asked.step_id]]),
                "tools": asked.wire_tools(),
            }
    return found


@pytest.mark.slow
def test_the_gate_learns_from_scores_that_are_computed_once(tmp_path: Path, scorer: Path) -> None:
    import tracemill as tm

    folder = tmp_path / "w"
    ingest_everything(IngestOptions(order_of(paths=[str(SESSIONS)], min_age_minutes=0), folder))
    work = Workspace.open(folder, create=False)
    rows = rows_of(work)
    raw = [math.log(p / (1 - p)) for p in tm.StepScorer(scorer, batch=1).score(list(rows.values()))]
    scale = 2 / statistics.stdev(raw)  # so that probabilities are apart
    report(scorer, slope=scale, offset=-scale * statistics.fmean(raw))
    settings = settings_of(folder, scorer)
    estimate_cost(settings)
    assert not gate_weights_folder(work).exists()  # an estimate writes nothing
    replay_workspace(settings, yes=True)
    made = decisions_of(folder)

    [cache] = gate_weights_folder(work).glob("scores-*.jsonl")
    digest = cache.stem.removeprefix("scores-")
    odds = [math.exp(scale * (each - statistics.fmean(raw))) for each in raw]
    expected = {step: [scorer_word(digest, each / (1 + each))] for step, each in zip(rows, odds, strict=True)}
    words = {d.step_id: [word for word in d.features if word.startswith("scorer=")] for d in made.values()}
    assert words == expected
    assert len({word for [word] in words.values()}) > 2
    current = json.loads((gate_weights_folder(work) / "current.json").read_text())["version"]
    weights = json.loads((gate_weights_folder(work) / f"{current}.json").read_text())["weights"]
    assert any(word.startswith(f"scorer={digest}*") for word in weights)

    (scorer / "model.safetensors").unlink()
    lines = cache.read_text()
    raised = settings_of(folder, scorer, share=0.6)  # another version, decided anew
    replay_workspace(raised, yes=True)
    assert {d.step_id: d.features for d in decisions_of(folder).values()} == {
        d.step_id: d.features for d in made.values()
    }
    assert cache.read_text() == lines
