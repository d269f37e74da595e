"""Single actions through a recipe: what reads the chosen side alone judges them, and nothing else does."""

import json
from pathlib import Path

import pytest

from tracemill.normalize.normalizer import DJNormalizer, OperatorCount
from tracemill.records.action_row import ActionRow
from tracemill.records.errors import NormalizeError
from tracemill.records.message import Message, ToolCall


def action(number: int, text: str, *calls: tuple[str, str]) -> ActionRow:
    made = tuple(ToolCall(f"c{at}", name, arguments) for at, (name, arguments) in enumerate(calls))
    return ActionRow(f"step-{number}", Message("assistant", text, made), "openhands", "openhands", "agreed")


LOOP = "again and again it loops. " * 30
ROWS = [
    action(0, "I read the file first."),
    action(1, "ok"),
    action(2, "", ("finish", "{}")),
    action(3, "I read the file first."),
    action(4, LOOP, ("execute_bash", '{"command": "ls"}')),
    action(5, "I look.\n\nHuman: go on\n", ("execute_bash", '{"command": "ls"}')),
    action(6, "!!! ### $$$ %%% ab"),
    action(7, "half \ud83d of a pair is no fault"),
]


def test_each_action_stays_or_goes_with_operator_reason_and_statistics() -> None:
    result = DJNormalizer().normalize_actions(ROWS)
    assert [row.row_id for row in result.kept] == ["step-0", "step-1", "step-2", "step-3", "step-7"]
    assert [(d.action, d.operator, d.reason, json.loads(d.value)) for d in result.dropped] == [
        (
            ROWS[4],
            "side_repetition_filter(chosen_said)",
            "word_rep_ratio above 0.5",
            {"chosen_said__word_rep_ratio": 1},
        ),
        (ROWS[5], "side_turns_filter(chosen_said)", "turns above 1", {"chosen_said__turns": 2}),
        (
            ROWS[6],
            "side_special_characters_filter(chosen)",
            "special_char_ratio above 0.8",
            {"chosen__special_char_ratio": 0.8889},
        ),
    ]
    assert result.counts == (
        OperatorCount("side_length_filter(chosen)", 8, 0, 0),
        OperatorCount("side_special_characters_filter(chosen)", 8, 1, 0),
        OperatorCount("side_repetition_filter(chosen_said)", 7, 1, 0),
        OperatorCount("side_turns_filter(chosen_said)", 6, 1, 0),
    )
    assert result.recipe == f"default-{result.fingerprint[:12]}"


def test_operators_of_the_user_judge_actions_too(tmp_path: Path) -> None:
    """A deduplicator of the chosen side compares them; what they do is a field; rows that raise are named."""
    (tmp_path / "mine.py").write_text(
        """
from data_juicer.ops.base_op import OPERATORS
from tracemill.normalize.operators.row_filters import RowFilter

@OPERATORS.register_module("mine_filter")
class MineFilter(RowFilter):
    figure = "mine"

    def measure(self, row):
        return 1 / (row["chosen"] != "ok")

    def keeps(self, value):
        return True
""",
        encoding="utf-8",
    )
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(
        """
custom_operator_paths: [mine.py]
process:
- mine_filter: {text_key: chosen}
- mine_filter: {text_key: rejected}
- specified_field_filter: {field_key: chosen_operation, target_value: [finish]}
- document_deduplicator: {text_key: chosen}
""",
        encoding="utf-8",
    )
    result = DJNormalizer(recipe).normalize_actions(ROWS[:5])
    assert [row.row_id for row in result.kept] == ["step-0", "step-2"]
    assert [(d.action.row_id, d.operator, d.reason, d.value) for d in result.dropped] == [
        ("step-1", "mine_filter(chosen)", "operator raised", "ZeroDivisionError"),
        ("step-3", "document_deduplicator(chosen)", "repeats an earlier row", '{"first": "step-0"}'),
        (
            "step-4",
            "specified_field_filter(chosen_operation)",
            "outside the bounds of the operator",
            "{}",
        ),
    ]
    assert [c.errors for c in result.counts] == [1, 0, 0]


def test_no_process_is_started_for_nothing(tmp_path: Path) -> None:
    assert DJNormalizer(timeout_s=0.0).normalize_actions([]).kept == []
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text("process: [{general_field_filter: {filter_condition: chosen != rejected}}]", "utf-8")
    result = DJNormalizer(recipe, timeout_s=0.0).normalize_actions(ROWS)
    assert (result.kept, result.dropped, result.counts) == (ROWS, [], ())


def test_faults_are_those_of_pairs(tmp_path: Path) -> None:
    with pytest.raises(NormalizeError, match=r"took longer than 0\.5 s"):
        DJNormalizer(timeout_s=0.5).normalize_actions(ROWS)
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text("process: [{side_lenght_filter: {text_key: chosen}}]", "utf-8")
    with pytest.raises(NormalizeError, match="did you mean: side_length_filter"):
        DJNormalizer(recipe).normalize_actions(ROWS)
