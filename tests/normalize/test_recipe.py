"""Recipes are read and checked before any process is started."""

import sys
from pathlib import Path

import pytest

from tracemill.normalize.datajuicer.recipe import check_available, default_recipe, load_recipe
from tracemill.records.errors import NormalizeError


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "recipe.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_default_recipe_has_each_side_operator_on_both_sides() -> None:
    recipe = load_recipe()
    assert recipe.path == default_recipe()
    assert recipe.labels == (
        "side_length_filter(chosen)",
        "side_length_filter(rejected)",
        "side_special_characters_filter(chosen)",
        "side_special_characters_filter(rejected)",
        "side_repetition_filter(chosen_said)",
        "side_repetition_filter(rejected_said)",
        "side_turns_filter(chosen_said)",
        "side_turns_filter(rejected_said)",
        "general_field_filter(chosen != rejected)",
        "sides_similar_filter(chosen, rejected)",
        "sides_ratio_filter(chosen, rejected)",
        "document_deduplicator(preference)",
    )
    assert dict(recipe.process)["side_length_filter"] == {
        "text_key": "rejected",
        "min_len": 1,
        "max_len": 32000,
        "unless": "rejected_calls > 0",
    }
    assert recipe.name == f"default-{recipe.fingerprint[:12]}"


def test_single_actions_are_judged_by_what_reads_the_chosen_side_alone(tmp_path: Path) -> None:
    whole = load_recipe()
    actions = whole.of_actions()
    assert actions.labels == (
        "side_length_filter(chosen)",
        "side_special_characters_filter(chosen)",
        "side_repetition_filter(chosen_said)",
        "side_turns_filter(chosen_said)",
    )
    assert (actions.name, len(actions.process)) == (whole.name, 4)
    text = """
process:
- side_length_filter: {text_key: chosen, unless: rejected_calls > 0}
- side_length_filter: {text_key: chosen, min_len: 3}
- general_field_filter: {filter_condition: chosen_calls < 3 and harness != 'x'}
- general_field_filter: {filter_condition: harness != 'x'}
- specified_field_filter: {field_key: chosen_operation, target_value: [edit]}
- document_deduplicator: {text_key: chosen}
- document_deduplicator: {text_key: preference}
- sides_similar_filter
"""
    assert load_recipe(write(tmp_path, text)).of_actions().labels == (
        "side_length_filter(chosen)#2",
        "general_field_filter(chosen_calls < 3 and harness != 'x')",
        "specified_field_filter(chosen_operation)",
        "document_deduplicator(chosen)",
    )


def test_the_fingerprint_follows_arguments_and_code_but_not_comments(tmp_path: Path) -> None:
    first = load_recipe(write(tmp_path, "process: [{side_length_filter: {text_key: chosen, min_len: 8}}]"))
    comment = load_recipe(
        write(tmp_path, "# x\nprocess:\n- side_length_filter: {min_len: 8, text_key: chosen}\n")
    )
    other = load_recipe(write(tmp_path, "process: [{side_length_filter: {text_key: chosen, min_len: 9}}]"))
    assert first.fingerprint == comment.fingerprint
    assert first.fingerprint != other.fingerprint
    with_code = (
        "custom_operator_paths: [mine.py]\nprocess: [{side_length_filter: {text_key: chosen, min_len: 8}}]"
    )
    fingerprints = set()
    for code in ("a = 1\n", "a = 2\n"):
        (tmp_path / "mine.py").write_text(code, encoding="utf-8")
        fingerprints.add(load_recipe(write(tmp_path, with_code)).fingerprint)
    assert len(fingerprints) == 2


def test_the_same_operator_twice_on_one_field_keeps_two_labels(tmp_path: Path) -> None:
    entry = "- side_length_filter: {text_key: chosen}\n"
    assert load_recipe(write(tmp_path, f"process:\n{entry}{entry}")).labels == (
        "side_length_filter(chosen)",
        "side_length_filter(chosen)#2",
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [", "is not valid YAML"),
        (
            "process:\n- a: {min: 1\n  max: 2}",
            r"is not valid YAML \(line 3: expected ',' or '}', but got ':'\)",
        ),
        (
            "process:\n- a: {}\n\nprocess:\n- b: {}",
            r"is not valid YAML \(line 4: duplicate key 'process'\)",
        ),
        (
            "process:\n- a:\n    min: 1\n    min: 2",
            r"is not valid YAML \(line 4: duplicate key 'min'\)",
        ),
        ("process:\n- a: {min: 1, *b : 2}", r"is not valid YAML \(line 2: found undefined alias 'b'\)"),
        pytest.param("process: " + "[" * 5000 + "]" * 5000, "is not valid YAML", id="nested too deep"),
        pytest.param("process: [a]\n#" + "x" * 200_000, "more than 200,000 characters", id="too long"),
        ("process: [{a: {min: 2026-13-45}}]", "is not valid YAML"),
        ("- a", "has no operators"),
        ("process: []", "has no operators"),
        ("proces: [{a: {}}]", "has no operators"),
        ("process: [{a: {}, b: {}}]", "an entry that is not an operator"),
        ("process: [{a: 3}]", "an entry that is not an operator"),
        (
            "process: [{side_length_filter: {text_key: answer}}]",
            "side_length_filter .* reads the field 'answer'",
        ),
        ("process: [{sides_similar_filter: {text_keys: [chosen, other]}}]", "reads the field 'other'"),
        ("process: [{side_turns_filter: {text_key: chosen, messages_key: n}}]", "reads the field 'n'"),
        ("process: [{side_length_filter: {text_key: chosen, unless: calls > 0}}]", "reads the field 'calls'"),
        ("process: [{general_field_filter: {filter_condition: a and chosen}}]", "reads the field 'a'"),
        ("process: [{general_field_filter: {filter_condition: chosen !=}}]", "condition that cannot be read"),
    ],
)
def test_a_broken_recipe_is_one_line_that_says_what_is_wrong(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(NormalizeError, match=said) as caught:
        load_recipe(write(tmp_path, text))
    assert "\n" not in str(caught.value)


def test_a_recipe_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(NormalizeError, match=r"none\.yaml cannot be read \(No such file"):
        load_recipe(tmp_path / "none.yaml")


@pytest.mark.parametrize(("module", "package"), [("data_juicer", "py-data-juicer"), ("aiohttp", "aiohttp")])
def test_missing_data_juicer_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, module: str, package: str
) -> None:
    check_available()
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(NormalizeError, match=rf"^{package} is not installed; .*pip install"):
        check_available()
