"""The method on recorded sessions and an environment: a student that was taught calls, all three channels."""

from pathlib import Path
from typing import Any

import orchard
import pytest

import tracemill as tm
from benchmarks.composer import arithmetic_tasks
from tracemill.data_cards.writing.pair_dataset import pair_rows
from tracemill.teachers.core.presets import PRESETS
from tracemill.train.hints.hint_rows import build_hint_rows
from tracemill.train.training_settings import TrainingSettings

SESSIONS = Path(__file__).resolve().parents[2] / "examples" / "sessions" / "claude_code"
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


def test_three_channels_learn_from_sessions_and_tasks(tmp_path: Path) -> None:
    import json

    import torch
    from datasets import Dataset
    from transformers import AutoTokenizer
    from trl.chat_template_utils import qwen3_template

    from benchmarks.composer.tool_calling_model import warm_start
    from tracemill.train.composer.method_trainer import composer_trainer
    from tracemill.train.trl.fit_rows import FittedRows

    torch.set_num_threads(1)
    arithmetic_tasks.make(tmp_path, orchard.sandbox())
    warm_start(tmp_path / "student", arithmetic_tasks.episodes(400, errors=0.3), steps=200)
    tokenizer: Any = AutoTokenizer.from_pretrained(tmp_path / "student")
    tokenizer.response_template = qwen3_template

    traces = list(tm.ClaudeCodeIngester().ingest(SESSIONS))
    states = [state for trace in traces for state in trace.states()]
    replies = tm.replay_trace_sync(states, PRESETS["simulated"].teachers, max_total_usd=1.0)
    fitted = FittedRows()
    fitted.rows = list(pair_rows(tm.extract_dpo_pairs(states, replies)))
    hints = list(build_hint_rows(traces))
    assert len(fitted.rows) >= 3
    assert len(hints) == 9
    (tmp_path / "hints.jsonl").write_text("".join(json.dumps(row) + "\n" for row in hints), encoding="utf-8")

    composer = {"tasks": tmp_path / "tasks", "level": "terse", "hints": tmp_path / "hints.jsonl"}
    composer |= {"generations": 4, "max_completion_length": 96, "max_tool_rounds": 2, "channel_batch": 1}
    given = {"model": str(tmp_path / "student"), "method": "composer", "composer": composer}
    settings = TrainingSettings.model_validate(given | {"batch": 4, "accumulate": 1, "max_length": 8192})
    common = {"output_dir": str(tmp_path / "run" / "checkpoints"), "max_steps": 4, "learning_rate": 1e-3}
    common |= {"per_device_train_batch_size": 4, "logging_steps": 1, "report_to": "none", "use_cpu": True}
    common |= {"bf16": False, "save_strategy": "no", "gradient_checkpointing": False, "seed": 1}
    data = {"train": (Dataset.from_list([]), fitted)}
    trainer: Any = composer_trainer(settings, common, tokenizer, data, [])
    counts = {name: each["examples"] for name, each in trainer.channel_counts.items()}
    assert counts == {"grpo": 6, "sdpo": len(hints), "replay": len(fitted.rows)}
    trainer.train()
    logs = [each for each in trainer.state.log_history if "loss/total" in each]
    assert len(logs) == 4
    assert all(each["loss/sdpo_kl"] > 1e-6 for each in logs)
    assert logs[0]["loss/trace_replay_dpo"] == pytest.approx(0.6931, abs=1e-3)
    assert any(abs(each["loss/trace_replay_dpo"] - 0.6931) > 1e-3 for each in logs[1:])
    assert any(abs(each["loss/grpo"]) > 1e-6 and each["frac_reward_zero_std"] < 1 for each in logs)
    assert all(each["tools/call_frequency"] > 0.5 for each in logs)
    for each in logs:
        total = each["loss/grpo"] + 0.1 * each["loss/sdpo_kl"] + 0.05 * each["loss/trace_replay_dpo"]
        assert each["loss/total"] == pytest.approx(total, rel=1e-4)
