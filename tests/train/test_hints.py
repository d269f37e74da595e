"""Hints at failed actions: which actions, what a hint says, and the rows made of them."""

from pathlib import Path

import pytest

from tracemill.ingesters.ingester_classes import ClaudeCodeIngester
from tracemill.records.message import Action, ErrorKind, Message, ToolCall
from tracemill.records.trace import Context, Step, Trace
from tracemill.train.hints.error_sites import error_sites
from tracemill.train.hints.hint_question import hint_message, read_hint
from tracemill.train.hints.hint_rows import build_hint_rows
from tracemill.train.hints.hint_text import MOST_CHARACTERS, write_hint
from tracemill.train.hints.writers import count_writers, origin_lines

CALLS = tuple(ToolCall(f"c{n}", "Bash", f'{{"command":"run {n}"}}') for n in range(4))
AGREED = Message("assistant", "Look first.", (ToolCall("t", "Read", '{"file_path":"a.py"}'),))


def result(call: ToolCall, kind: ErrorKind | None = None, text: str = "no such file") -> Message:
    return Message("tool", text, (), call.id, call.name, kind is not None, kind)


@pytest.fixture
def trace() -> Trace:
    """A command that fails, one that works, one that the user refuses, and two calls of which one fails."""
    messages = (
        Message("user", "Fix it."),
        Message("assistant", "", CALLS[:1]),
        result(CALLS[0], ErrorKind.EXIT_CODE, "Exit code 2\nno such file"),
        Message("assistant", "", CALLS[1:2]),
        result(CALLS[1]),
        Message("assistant", "", CALLS[2:3]),
        result(CALLS[2], ErrorKind.USER_REJECTION),
        Message("assistant", "Both.", CALLS[:2]),
        result(CALLS[0]),
        result(CALLS[1], ErrorKind.TOOL_ERROR, "bad path"),
    )
    steps = tuple(Step(number, cut) for number, cut in enumerate((1, 3, 5, 7)))
    return Trace("t-1", "claude_code", "v2", "claude_code", (Context(0, messages, steps),))


def test_sites_are_actions_that_may_have_caused_the_error(trace: Trace) -> None:
    found = [(str(site.state.step_id), site.error_kind, site.error_text) for site in error_sites(trace)]
    assert found == [
        ("t-1:0:0", "exit_code", "Exit code 2\nno such file"),
        ("t-1:0:3", "tool_error", "bad path"),
    ]


def test_a_row_has_the_same_action_after_its_context_and_after_the_hint(trace: Trace) -> None:
    first, second = build_hint_rows([trace], {"t-1:0:3": AGREED})
    hint = "The command you are about to run fails:\nExit code 2\nno such file"
    assert first["hint"] == hint
    assert first["prompt"][-1] == {"role": "user", "content": "Fix it."}
    assert first["hinted_prompt"] == [
        *first["prompt"][:-1],
        {"role": "user", "content": f"Fix it.\n\n{hint}"},
    ]
    [said] = first["completion"]
    assert said["tool_calls"][0]["function"] == {"name": "Bash", "arguments": {"command": "run 0"}}
    assert "Bash" in {tool["function"]["name"] for tool in first["tools"]}

    assert second["prompt"][-1]["role"] == "tool"
    assert second["hinted_prompt"][:-1] == second["prompt"]
    assert second["hinted_prompt"][-1] == {
        "role": "user",
        "content": "The tool refuses the call you are about to make:\nbad path\n\n"
        'A better next action is:\nLook first.\nRead {"file_path":"a.py"}',
    }


def test_a_site_without_a_hint_gives_no_row(trace: Trace) -> None:
    rows = list(build_hint_rows([trace], write=lambda site, agreed: None))
    assert rows == []


def test_other_kinds_of_errors_have_a_template_and_long_errors_are_cut() -> None:
    assert write_hint("new_kind", "x") == "The call you are about to make fails:\nx"
    long = write_hint("timeout", "a" * 700 + "b" * 700)
    assert f"{'a' * 500}\n[400 characters left out]\n{'b' * 500}" in long
    assert len(long) < MOST_CHARACTERS + 100


def test_sessions_of_the_repository_have_sites() -> None:
    folder = Path(__file__).parents[2] / "examples" / "sessions" / "claude_code"
    traces = [
        trace for path in sorted(folder.rglob("*.jsonl")) for trace in ClaudeCodeIngester().ingest(path)
    ]
    rows = list(build_hint_rows(traces))
    assert len(rows) >= 3
    assert all(row["hint"] and row["hinted_prompt"] != row["prompt"] for row in rows)


def test_a_model_is_asked_about_the_action_and_its_error(trace: Trace) -> None:
    first, second = error_sites(trace)
    text = hint_message(first).content
    assert '\n\nThe action:\nBash {"command":"run 0"}\n\n' in text
    assert "\n\nThe error:\nExit code 2\nno such file\n\n" in text
    assert "\n\nThe error:\nbad path\n\n" in hint_message(second).content
    assert hint_message(first) != hint_message(second)


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        (Action("  Look first. "), ("Look first.", "")),
        (Action(""), ("", "no hint")),
        (Action("None."), ("", "no hint")),
        (Action("'NONE'"), ("", "no hint")),
        (Action("None of the files is there."), ("None of the files is there.", "")),
        (Action("Look first.", CALLS[:1]), ("", "called a tool")),
        (Action("a" * 1000), ("a" * 1000, "")),
        (Action("a" * 1001), ("", "too long")),
    ],
)
def test_an_answer_is_a_hint_or_says_why_it_is_none(answer: Action, found: tuple[str, str]) -> None:
    assert read_hint(answer) == found


def test_writers_are_counted_over_the_rows_that_are_used() -> None:
    rows = [
        {"step_id": "a", "writer": "m", "fallback": "", "simulated": True},
        {"step_id": "b", "writer": "m", "fallback": "", "simulated": False},
        {"step_id": "c", "writer": "template", "fallback": "refused", "simulated": False},
        {"step_id": "d", "writer": "template", "fallback": "", "simulated": False},
        {"step_id": "e", "writer": "m", "fallback": "", "simulated": False},
    ]
    found = count_writers(rows, {"a", "b", "c", "d"})
    assert found == {
        "writers": {"m": 2, "template": 2},
        "fallbacks": {"refused": 1},
        "simulated_hints": {"m": 1},
    }
    assert origin_lines(found) == [
        "2 written by m, 1 of them simulated",
        "2 written by template",
        "1 of a template, as the writer's answer is missing: refused",
    ]
    assert count_writers([{"step_id": "a"}], {"a"}) == {}
    assert origin_lines({"weight": 0.1}) == []
