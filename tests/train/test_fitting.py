"""Rows are measured and cut before TRL sees them."""

from typing import Any

import pytest

from tracemill.train.trl.fit_rows import fit_rows

Messages = list[dict[str, Any]]


def words(prompt: Messages, row: Any) -> int:
    """A tokenizer of words; the sides of a row come to ten."""
    return sum(len(m["content"].split()) + len(m.get("tool_calls") or []) for m in prompt) + 10


def turn(number: int, size: int = 10) -> Messages:
    call = {"function": {"name": "Bash", "arguments": {"n": number}}}
    return [
        {"role": "assistant", "content": f"step{number}", "tool_calls": [call]},
        {"role": "tool", "content": " ".join([f"out{number}"] * size)},
    ]


HEAD: Messages = [{"role": "system", "content": "sys"}, {"role": "user", "content": "the task"}]


def row(prompt: Messages) -> dict[str, Any]:
    return {"prompt": prompt, "chosen": ["c"], "rejected": ["r"], "tools": ["t"], "other": 1}


def long_row(turns: int) -> dict[str, Any]:
    return row([*HEAD, *(message for number in range(turns) for message in turn(number))])


def test_a_row_that_fits_is_as_it_was() -> None:
    fitted = fit_rows([long_row(2)], words, 37, cut=True)
    assert fitted.rows == [long_row(2)]
    assert (fitted.cut, fitted.dropped, fitted.lengths) == (0, {}, [37])


def test_rows_that_fit_whole_are_counted_for_each_window() -> None:
    rows = [row([{"role": "user", "content": " ".join(["w"] * size)}]) for size in (9, 4086, 8000, 40_000)]
    fitted = fit_rows(rows, words, 100, cut=True)
    assert fitted.lengths == [19, 4096, 8010, 40_010]
    assert fitted.whole_at() == {4096: 2, 8192: 3, 16384: 3, 32768: 3}


def test_a_longer_one_keeps_system_prompt_task_and_last_turns() -> None:
    # 12 for the head and the sides, 12 a turn, 6 for the marker
    [kept] = fit_rows([long_row(9)], words, 3 + 10 + 6 + 3 * 12, cut=True).rows
    assert kept["prompt"][0] == HEAD[0]
    assert kept["prompt"][1]["content"] == "the task\n\n[12 earlier messages are left out]"
    assert kept["prompt"][2:] == [*turn(6), *turn(7), *turn(8)]


@pytest.mark.parametrize("limit", range(13, 130))
def test_no_cut_row_is_longer_than_the_window_and_none_parts_a_call_from_its_result(limit: int) -> None:
    fitted = fit_rows([long_row(10)], words, limit, cut=True)
    assert len(fitted.rows) + fitted.dropped.total() == 1
    for kept in fitted.rows:
        assert words(kept["prompt"], kept) <= limit
        roles = [message["role"] for message in kept["prompt"]]
        assert roles == ["system", "user", *["assistant", "tool"] * (len(roles) // 2 - 1)]
        assert kept["prompt"][-2:] == turn(9)
        turns = (len(roles) - 2) // 2
        assert turns == 10 or 19 + 12 * (turns + 1) > limit or turns == 9
    assert bool(fitted.rows) == (limit >= 31)


def test_a_row_with_one_completion_keeps_it_and_its_label() -> None:
    beside = {"completion": ["c"], "label": False}
    given = {"prompt": long_row(9)["prompt"], "tools": [], "other": 1, **beside}
    fitted = fit_rows([given], words, 3 + 10 + 6 + 3 * 12, cut=True)
    [kept] = fitted.rows
    assert {name: kept[name] for name in kept if name != "prompt"} == beside | {"other": 1, "tools": None}
    assert (fitted.cut, fitted.measured, len(kept["prompt"])) == (1, 1, 8)


def test_without_cutting_the_longer_rows_are_dropped_and_counted() -> None:
    fitted = fit_rows([long_row(2), long_row(3)], words, 40, cut=False)
    assert len(fitted.rows) == 1
    assert fitted.dropped == {"longer than 40 tokens": 1}


def test_a_row_that_the_template_refuses_is_counted_and_stops_no_other() -> None:
    def refusing(prompt: Messages, row: Any) -> int:
        if len(prompt) == 6:
            raise ValueError("roles must alternate")
        return words(prompt, row)

    fitted = fit_rows([long_row(2), long_row(1)], refusing, 100, cut=True)
    assert len(fitted.rows) == 1
    assert fitted.dropped == {"the chat template refuses it": 1}


def test_a_large_turn_far_back_is_left_out_with_what_is_before_it_alone() -> None:
    prompt = [*HEAD, *turn(0), *turn(1, 500), *turn(2), *turn(3)]
    [kept] = fit_rows([row(prompt)], words, 60, cut=True).rows
    assert kept["prompt"][2:] == [*turn(2), *turn(3)]
