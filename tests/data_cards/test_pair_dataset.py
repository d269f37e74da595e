"""Pairs in memory as a dataset: the rows of a release, and what TRL makes of them."""

from pathlib import Path

import pytest
from plain_pairs import plain_pair
from training_releases import kept, released, tiny_model

import tracemill as tm
from tracemill.records.message import Message, ToolCall


def test_the_rows_are_those_of_a_release(tmp_path: Path) -> None:
    from datasets import load_dataset

    release = released(tmp_path / "releases", rows=5)
    rows = load_dataset(str(release.path), "dpo", split="train", cache_dir=str(tmp_path / "cache"))
    made = tm.pairs_to_dataset(kept(number) for number in range(5))
    assert made.features == rows.features
    by_id = {row["pair_id"]: row for row in rows}
    assert len(by_id) == 5
    for row in made:
        there = by_id[row["pair_id"]]
        assert {key: row[key] for key in row} == {key: there[key] for key in row}
    call = made[3]["chosen"][0]["tool_calls"][0]["function"]
    assert call == {"name": "Bash", "arguments": {"cmd": "pytest test_3.py", "timeout": 3}}


def test_rows_one_by_one_make_the_same_dataset(tmp_path: Path) -> None:
    from datasets import Dataset

    pairs = [kept(number).pair for number in range(3)]
    whole = tm.pairs_to_dataset(pairs)
    assert list(tm.pair_rows(pairs)) == list(whole)
    empty = tm.pairs_to_dataset([])
    assert len(empty) == 0
    made = Dataset.from_generator(
        tm.pair_rows, gen_kwargs={"pairs": pairs}, features=empty.features, cache_dir=str(tmp_path)
    )
    assert list(made) == list(whole)


def test_what_only_a_recipe_knows_is_empty_and_broken_calls_stay_text() -> None:
    broken = Message("assistant", "", (ToolCall("a", "Bash", '{"cmd": '),))
    [row] = tm.pairs_to_dataset([plain_pair(7, chosen=(broken,), weight=0.5, project="secret-name")])
    assert (row["recipe"], row["n_tokens"], row["weight"]) == ("", None, 0.5)
    assert row["rejected_chars"] == len("Done with 7.")
    assert row["chosen"][0]["tool_calls"][0]["function"]["arguments"] == '{"cmd": '
    assert "secret-name" not in str(row)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::FutureWarning")  # of transformers, about names in TRL
def test_a_trainer_takes_the_dataset(tmp_path: Path) -> None:
    from transformers import AutoTokenizer
    from trl import DPOConfig, DPOTrainer

    folder = tiny_model(tmp_path)
    given = DPOConfig(
        str(tmp_path / "out"), max_steps=2, per_device_train_batch_size=2, report_to="none", use_cpu=True
    )
    trainer = DPOTrainer(
        model=str(folder),
        args=given,
        train_dataset=tm.pairs_to_dataset(kept(number) for number in range(4)),
        processing_class=AutoTokenizer.from_pretrained(folder),
    )
    assert trainer.train().global_step == 2
