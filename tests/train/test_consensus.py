"""What teachers answered in a state as the reward of an action there: numbers, refusals, a training."""

import json
from pathlib import Path
from typing import Any

import pytest

from tracemill.agreement.voting.consensus_reward import ConsensusShape
from tracemill.records.errors import TrainingError
from tracemill.train.composer_settings import ComposerSettings
from tracemill.train.consensus.consensus_rewards import ConsensusReward
from tracemill.train.consensus.state_rows import AnsweredState
from tracemill.train.start_child import check_places
from tracemill.train.training_settings import TrainingSettings

FILES = ("alpha.py", "beta.py", "gamma.py")
BASH = {
    "type": "function",
    "function": {
        "name": "Bash",
        "description": "Runs a command.",
        "parameters": {"type": "object", "properties": {"command": {"type": "string"}}},
    },
}


def call(command: str) -> dict[str, Any]:
    """An action: one call."""
    function = {"name": "Bash", "arguments": {"command": command}}
    return {"role": "assistant", "content": "", "tool_calls": [{"type": "function", "function": function}]}


def state(number: int, answers: dict[str, str], **more: Any) -> dict[str, Any]:
    """A state in which these teachers run these commands."""
    return {
        "step_id": f"s{number}",
        "harness": "claude_code",
        "cwd": "/repo",
        "prompt": [{"role": "user", "content": f"Read file {number}."}],
        "failed": [],
        "tools": [BASH],
        "answers": [{"teacher": name, "action": call(command)} for name, command in answers.items()],
        "scored": [],
        **more,
    }


THREE = state(0, {"t0": "cat alpha.py", "t1": "cat  alpha.py", "t2": "cat beta.py"})
"""Two teachers read one file, one of them with another blank, and the third another file."""
SCORED = state(
    1,
    {},
    scored=[
        {"action": call("cat alpha.py"), "scores": {"t0": 1.0, "t1": 0.0}},
        {"action": call("cat beta.py"), "scores": {"t0": 0.5}},
    ],
)


def write(path: Path, *rows: Any) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("shape", "weights", "wanted"),
    [
        ("plurality", {}, [1.0, 0.0, 0.0]),
        ("weighted", {}, [2 / 3, 1 / 3, 0.0]),
        ("weighted", {"t2": 2.0}, [1 / 2, 1 / 2, 0.0]),
        ("variance_weighted", {}, [2 / 3 * (1 - 4 / 9), 1 / 3 * (1 - 4 / 9), 0.0]),  # v = 2/9 + 2/9
        ("score_regression", {}, [None, None, None]),
    ],
)
def test_rewards_of_three_actions_by_hand(
    shape: ConsensusShape, weights: dict[str, float], wanted: list[float | None]
) -> None:
    """An answer's place in the share is its action, not its text: a blank more is the same command."""
    said = [[call("cat alpha.py")], [call("cat beta.py")], [call("rm -r /repo/src")]]
    found = ConsensusReward(shape, weights)(said, [json.dumps(THREE)] * 3)
    assert found == [pytest.approx(each) if each is not None else None for each in wanted]


def test_scores_are_of_the_action_that_they_were_given_to() -> None:
    said = [[call(f"cat {name}")] for name in FILES]
    reward = ConsensusReward("score_regression", {"t1": 3.0})
    assert reward(said, [json.dumps(SCORED)] * 3) == [0.25, 0.5, None]


def test_calls_may_come_with_arguments_as_text_and_results_as_failed() -> None:
    told = [
        *({"role": "user", "content": "Go."}, {**call("cat alpha.py")}),
        {"role": "tool", "content": "No such file", "tool_call_id": "a"},
    ]
    told[1]["tool_calls"][0]["id"] = "a"
    row = state(2, {"t0": "cat beta.py"}, prompt=told, failed=[2])
    taught = AnsweredState.of_row(row)
    assert [message.is_error for message in taught.world.record.messages] == [None, None, True]
    text = call("")
    text["tool_calls"][0]["function"]["arguments"] = '{"command": "cat beta.py"}'
    assert ConsensusReward("weighted")([[text]], [json.dumps(row)]) == [1.0]


@pytest.mark.parametrize(
    ("composer", "message"),
    [
        ({"states": "s"}, "states without consensus; expected both"),
        ({"tasks": "t", "consensus": "weighted"}, "consensus with tasks; it rewards actions in states"),
        ({"consensus": "score_regression"}, "without states; expected a file, as a workspace has no scores"),
        ({"tasks": "t", "teacher_weights": {"a": 1}}, "teacher_weights without consensus"),
        ({"states": "s", "tasks": "t", "consensus": "weighted"}, "tasks and states of tasks, prompts and st"),
        (
            {"states": "s", "consensus": "votes"},
            "Input should be 'plurality', 'weighted', 'var",
        ),
        (
            {"states": "s", "consensus": "weighted", "teacher_weights": {"a": -1}},
            r"the weight of a is -1\.0; expected 0 or more",
        ),
    ],
)
def test_settings_of_states_that_cannot_be(composer: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ComposerSettings.model_validate(composer)


def test_a_file_of_states_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    composer = {"states": tmp_path / "none.jsonl", "consensus": "weighted"}
    settings = TrainingSettings.model_validate({"model": "a/b", "method": "composer", "composer": composer})
    with pytest.raises(TrainingError, match=r"none\.jsonl does not exist.* as training\.composer\.states"):
        check_places(settings)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("row", "shape", "message"),
    [
        ({"step_id": "s"}, "weighted", "lacks harness, prompt, tools, answers"),
        (state(0, {}) | {"prompt": []}, "weighted", "has no conversation as its prompt"),
        (state(0, {"t": "ls"}, tools=[{"name": "Bash"}]), "weighted", "is no state .KeyError: 'function'"),
        (state(0, {}), "plurality", "no row of .* has answers, which consensus = 'plurality' rewards by"),
        (THREE, "score_regression", "no row of .* has scored, which consensus = 'score_regression'"),
    ],
)
def test_a_file_of_states_that_cannot_be_is_one_line(
    row: Any, shape: str, message: str, tmp_path: Path
) -> None:
    from tracemill.train.composer.row_files import read_state_rows

    with pytest.raises(TrainingError, match=message) as refused:
        read_state_rows(write(tmp_path / "states.jsonl", row), shape)
    assert "\n" not in str(refused.value)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_training_earns_what_teachers_agree_on(tmp_path: Path) -> None:
    """A student that reads any of three files learns to read the one that most teachers read."""
    import torch
    from datasets import Dataset
    from transformers import AutoTokenizer
    from trl.chat_template_utils import qwen3_template

    from benchmarks.composer.tool_calling_model import warm_start
    from tracemill.train.composer.method_trainer import composer_trainer
    from tracemill.train.trl.fit_rows import FittedRows

    torch.set_num_threads(1)
    episodes = [
        [{"role": "user", "content": f"Read file {number}."}, call(f"cat {name}")]
        for number in range(4)
        for name in FILES
    ]
    warm_start(tmp_path / "student", episodes * 4, steps=200)
    tokenizer: Any = AutoTokenizer.from_pretrained(tmp_path / "student")
    tokenizer.response_template = qwen3_template
    answers = {"t0": "cat alpha.py", "t1": "cat alpha.py", "t2": "cat beta.py"}
    states = write(tmp_path / "states.jsonl", *(state(number, answers) for number in range(4)))
    composer = {"states": states, "consensus": "weighted", "alpha_sdpo": 0, "beta_replay": 0}
    composer |= {"generations": 8, "max_completion_length": 32}
    given = {"model": str(tmp_path / "student"), "method": "composer", "composer": composer}
    settings = TrainingSettings.model_validate(given | {"batch": 8, "accumulate": 1})
    settings = TrainingSettings.model_validate(settings.model_dump(mode="json"))  # as the job of a child
    common = {"output_dir": str(tmp_path / "run"), "max_steps": 12, "learning_rate": 2e-3}
    common |= {"per_device_train_batch_size": 8, "logging_steps": 1, "report_to": "none", "use_cpu": True}
    common |= {"bf16": False, "save_strategy": "no", "gradient_checkpointing": False, "seed": 0}
    data = {"train": (Dataset.from_list([]), FittedRows())}
    trainer: Any = composer_trainer(settings, common, tokenizer, data, [])
    assert trainer.channel_counts["grpo"]["examples"] == 4
    trainer.train()
    logs = [each for each in trainer.state.log_history if "reward" in each]
    rewards = [each["reward"] for each in logs]
    assert all(0 <= each <= 2 / 3 + 1e-6 for each in rewards)
    assert sum(each["frac_reward_zero_std"] < 1 for each in logs) >= 3  # it varies within a group
    assert logs[0]["rewards/consensus/mean"] == rewards[0]
    assert sum(rewards[-4:]) > sum(rewards[:4]) + 0.2
