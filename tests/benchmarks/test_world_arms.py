"""The arms of the three-channel trainer in worlds: what GRPO plays, and the rows of the other channels."""

import itertools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks.teaching.policies import weak_session
from benchmarks.teaching.worlds.registry import WORLDS
from benchmarks.teaching.worlds.world import act

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def student(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A student of `repair` that has practised a little, hints among its sessions."""
    from benchmarks.teaching.student import SMALL, practise

    folder = tmp_path_factory.mktemp("student")
    return practise(WORLDS["repair"], folder / "student", SMALL, 0, steps=150, hinted=0.3)


def test_a_played_session_is_what_the_world_says_to_the_models_words(student: Path) -> None:
    """The ids that the model wrote, read as actions, give the other ids and the reward again."""
    from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

    from benchmarks.composer.world_arms import Rollouts
    from benchmarks.teaching.student import parse_action

    tokenizer: Any = PreTrainedTokenizerFast.from_pretrained(student, padding_side="left")
    model = AutoModelForCausalLM.from_pretrained(student)
    accelerator = SimpleNamespace(unwrap_model=lambda each: each)
    trainer = SimpleNamespace(processing_class=tokenizer, model=model, accelerator=accelerator)
    tasks = range(7_000_000, 7_000_016)
    played = Rollouts(WORLDS["repair"])([[{"role": "user", "content": str(task)}] for task in tasks], trainer)
    rows = zip(
        tasks, *(played[key] for key in ("prompt_ids", "completion_ids", "env_mask", "solved")), strict=True
    )
    turns = 0
    for task, prompt, said, mask, solved in rows:
        env = WORLDS["repair"].environment()
        text = env.reset(task=task)
        assert prompt == tokenizer(f"<user> {text} <end> <agent>")["input_ids"]
        assert len(said) == len(mask) > 0
        assert mask[-1] == 1
        parts = [
            (key, [i for i, _ in part])
            for key, part in itertools.groupby(zip(said, mask, strict=True), lambda x: x[1])
        ]
        for (_, ids), following in zip(parts[::2], [*(ids for _, ids in parts[1::2]), None], strict=True):
            turns += 1
            if ids[-1] != tokenizer.eos_token_id:
                continue
            result = act(env, parse_action(tokenizer.convert_ids_to_tokens(ids[:-1])))
            if following is not None:
                assert tokenizer(f"<result> {result.text} <end> <agent>")["input_ids"] == following
        assert solved == env.get_reward()
    assert turns > len(tasks)
    assert 0 < sum(played["solved"]) < len(tasks)


def test_a_hinted_practice_session_holds_the_hint_before_its_own_action() -> None:
    from benchmarks.teaching.student import action_text, session_text

    session = weak_session(WORLDS["repair"], 3)
    plain, hinted = session_text(session), session_text(session, hinted=[0, 1])
    first, second = (action_text(turn.action).removesuffix(" <end>") for turn in session.turns[:2])
    assert (
        plain.replace(f"{session.text} <end>", f"{session.text} <hint> {first} <end>", 1).replace(
            f"<agent> {second}", f"<user> <hint> {second} <end> <agent> {second}", 1
        )
        == hinted
    )
