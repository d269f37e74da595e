"""The card of a checkpoint says what it comes of, and names no place of the machine."""

from typing import Any

import yaml

from tracemill.train.training_settings import TrainingSettings
from tracemill.train.trl.model_card import model_card


def card(model: str, **given: Any) -> str:
    settings = TrainingSettings.model_validate(
        {"model": model, "output": "/home/ann/out", "method": "dpo", "environment": ["HF_TOKEN"]}
    )
    report = {
        "release": {"name": "views", "version": "2026.11.21", "digest": "abc123", "simulated": "none"},
        "settings": settings.model_dump(mode="json"),
        "rows": {"train": {"used": 8, "cut": 2, "dropped": {"longer than 12 tokens": 3}}},
        "steps": 5,
        "losses": [{"step": 1, "loss": 2.25944}, {"step": 5, "loss": 0.98122}],
        "validation": [{"step": 5, "loss": 1.5, "rewards/margins": 0.25}],
        "warnings": [],
        "versions": {"trl": "1.16.0"},
    }
    return model_card(report | given, model)


def test_it_has_release_digest_rows_results_and_settings() -> None:
    _, head, text = card("Qwen/Qwen2.5-0.5B").split("---\n", 2)
    assert yaml.safe_load(head) == {
        "library_name": "transformers",
        "tags": ["tracemill", "dpo"],
        "base_model": "Qwen/Qwen2.5-0.5B",
    }
    for line in (
        "| release | views@2026.11.21 |",
        "| digest | abc123 |",
        "| rows | 8 used, 2 cut, 3 dropped |",
        "| loss | 2.2594 at the first step, 0.9812 at the last |",
        "| validation | loss 1.5000, rewards/margins 0.2500 |",
        '  "packing": "off",',
        '    "trl": "1.16.0"',
    ):
        assert line in text.splitlines()


def test_it_has_what_the_terms_of_each_teacher_say() -> None:
    release = {"name": "views", "version": "2026.11.21", "digest": "abc123", "simulated": "none"}
    terms = {"z/last": "the licence of the model decides", "a/first": "terms that restrict training"}
    assert "Terms of the teachers" not in card("Qwen/Qwen2.5-0.5B", release=release)
    text = card("Qwen/Qwen2.5-0.5B", release=release | {"terms": terms})
    assert (
        "## Terms of the teachers\n\n- `a/first`: terms that restrict training.\n"
        "- `z/last`: the licence of the model decides.\n"
    ) in text


def test_places_of_the_machine_and_names_of_variables_are_left_out() -> None:
    text = card("/home/ann/models/tiny", warnings=["rows are not packed: it takes no positions"])
    assert "/home" not in text
    assert "HF_TOKEN" not in text
    assert "base_model" not in text
    assert "- rows are not packed: it takes no positions" in text.splitlines()
