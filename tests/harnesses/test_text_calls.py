"""Commands written in answers become the calls they are where tools are called."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracemill.agreement.calls.canonical import canonical_key
from tracemill.agreement.equivalence.validity import why_reply_invalid
from tracemill.harnesses.agents.registry import harness_for
from tracemill.harnesses.agents.swe_agent_commands import locate_swe_agent_command, parse_swe_agent_command
from tracemill.harnesses.operations import find_action_operation, find_action_target
from tracemill.harnesses.text_calls import calls_in_text
from tracemill.records.message import Action, ToolCall
from tracemill.records.reply import TeacherReply


@pytest.mark.parametrize(
    ("command", "name", "arguments", "operation", "target"),
    [
        ("open src/a.py 12", "open", {"path": "src/a.py", "line_number": 12}, "read", "src/a.py"),
        ('open "a b.py"\n', "open", {"path": "a b.py"}, "read", "a b.py"),
        ("goto 9", "goto", {"line_number": 9}, "read", "(the open file)"),
        ("scroll_down", "scroll_down", {}, "read", "(the open file)"),
        ("create x.py", "create", {"filename": "x.py"}, "create", "x.py"),
        ("search_dir 'def f' src", "search_dir", {"search_term": "def f", "dir": "src"}, "search", "def f"),
        ("find_file b.py", "find_file", {"file_name": "b.py"}, "search", "b.py"),
        (
            "edit 3:4\n    x = 1\n\nend_of_edit\n",
            "edit",
            {"start_line": 3, "end_line": 4, "replacement_text": "    x = 1\n"},
            "edit",
            "(the open file)",
        ),
        (
            "edit 6:7\nend_of_edit",
            "edit",
            {"start_line": 6, "end_line": 7, "replacement_text": ""},
            "edit",
            "(the open file)",
        ),
        ("edit\nx\nend_of_edit", "edit", {"text": "x"}, "edit", "(the open file)"),
        (
            "edit 'a b' \"c\" True",
            "edit",
            {"search": "a b", "replace": "c", "replace-all": True},
            "edit",
            "(the open file)",
        ),
        (
            "str_replace_editor view /r/a.py --view_range 1 9",
            "str_replace_editor",
            {"command": "view", "path": "/r/a.py", "view_range": [1, 9]},
            "read",
            "/r/a.py",
        ),
        (
            "str_replace_editor str_replace /r/a.py --old_str 'x = 1' --new_str 'x = 2'",
            "str_replace_editor",
            {"command": "str_replace", "path": "/r/a.py", "old_str": "x = 1", "new_str": "x = 2"},
            "edit",
            "/r/a.py",
        ),
        ("submit", "submit", {}, "finish", None),
        ("submit 'flag{x}'", "submit", {"value": "flag{x}"}, "finish", None),
        ("ls -F", "bash", {"command": "ls -F"}, "list", "."),
        ("open a.py && ls", "bash", {"command": "open a.py && ls"}, "read", "a.py"),
        ("search_dir foo | head", "bash", {"command": "search_dir foo | head"}, "search", "foo"),
        ("open 'a.py", "bash", {"command": "open 'a.py"}, "read", None),
        ("", "bash", {"command": ""}, "run", None),
    ],
)
def test_a_command_is_the_call_it_stands_for(
    command: str, name: str, arguments: dict[str, Any], operation: str, target: str | None
) -> None:
    call = parse_swe_agent_command(command)
    assert (call.id, call.name, call.parsed()) == ("", name, arguments)
    action = Action(f"So.\n```\n{command}\n```")
    assert find_action_operation(action, "swe_agent") == operation
    assert find_action_target(action, "swe_agent") == target


def test_text_and_call_for_the_same_thing_have_one_key() -> None:
    written = Action("Look.\n```\nopen src/a.py 12\n```")
    called = Action("", (ToolCall("c", "open", '{"path": "src/a.py", "line_number": 12}'),))
    assert canonical_key(written, (), "/r", "swe_agent") == canonical_key(called, (), "/r", "swe_agent")


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("I look.\n```\nls\n```\nNo:\n```\npwd\n```", "pwd\n"),
        ("For example\n```python\nx = 1\n```\nthen\n```\nls\n```", "ls\n"),
        ("```\nedit 1:1\n```python\nx\n```\nend_of_edit\n```", "edit 1:1\n```python\nx\n```\nend_of_edit\n"),
        ("So.\n<command>\nls\n</command> or\n<command>\npwd\n</command>", "\npwd\n"),
        ("No command.", None),
        ("```\nnever closed", None),
    ],
)
def test_swe_agent_takes_the_last_block_that_stands_alone(text: str, command: str | None) -> None:
    found = [text[place] for place in locate_swe_agent_command(text)]
    assert found == ([] if command is None else [command])


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("THOUGHT: x\n\n```bash\nls -la\n```", "ls -la"),
        ("```mswea_bash_command\ncat a <<'E'\nx\nE\n```\n", "cat a <<'E'\nx\nE"),
        ("so <mswea_bash_command>ls</mswea_bash_command>", "ls"),
        ("```bash\nls\n```\n```bash\npwd\n```", None),
        ("```python\nls\n```", None),
        ("done", None),
    ],
)
def test_mini_swe_agent_takes_exactly_one_block(text: str, command: str | None) -> None:
    calls = calls_in_text(text, "mini_swe_agent")
    assert [call.parsed() for call in calls] == ([{"command": command}] if command else [])


def test_the_first_function_counts_in_swe_agent_and_all_in_openhands() -> None:
    text = "<function=bash>\n<parameter=command>ls</parameter>\n</function>\n<function=submit>\n</function>"
    assert [call.name for call in calls_in_text(text, "swe_agent")] == ["bash"]
    assert [call.name for call in calls_in_text(text, "openhands")] == ["bash", "submit"]


@pytest.mark.parametrize(
    ("line", "operation"),
    [
        ("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT", "finish"),
        ('echo "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT" && git add -A && git diff --cached', "finish"),
        ("echo MINI_SWE_AGENT_FINAL_OUTPUT", "finish"),
        ("git add -A && echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT", "vcs"),
    ],
)
def test_handing_in_finishes_a_run_of_mini_swe_agent(line: str, operation: str) -> None:
    assert find_action_operation(Action(f"```bash\n{line}\n```"), "mini_swe_agent") == operation


@pytest.mark.parametrize("harness", ["swe_agent", "mini_swe_agent"])
def test_a_text_alone_is_refused_by_these_harnesses_and_has_no_vote(harness: str) -> None:
    assert find_action_operation(Action("All done."), harness) == "other"
    assert find_action_operation(Action("Shall I?"), harness) == "other"

    def reason(action: Action, tools: Any) -> str | None:
        return why_reply_invalid(TeacherReply("t:0:0", "k", "a", "b", 0, 0, action=action), tools, harness)

    tools = tuple(harness_for(harness).tools.values())
    block = Action("So.\n```bash\nls\n```")
    assert reason(Action("All done."), ()) == "no command"
    assert reason(block, ()) is None
    assert reason(block, tools) == "no command"
    assert reason(Action("", (ToolCall("c", "bash", '{"command": "ls"}'),)), tools) is None


@given(
    st.text(alphabet="abc '\"`\n<>|&;:1=/.-", max_size=60),
    st.sampled_from(["", "edit ", "open ", "str_replace_editor "]),
)
def test_no_text_breaks_the_reading(text: str, start: str) -> None:
    call = parse_swe_agent_command(start + text)
    assert call.parsed() is not None
    for harness in ("swe_agent", "mini_swe_agent", "openhands"):
        for found in calls_in_text(f"```bash\n{start}{text}\n```", harness):
            assert found.parsed() is not None


@pytest.mark.parametrize(
    ("text", "name", "arguments", "operation", "target"),
    [
        (
            "I look.\n<read_file>\n<path>src/a.py</path>\n</read_file>",
            *("read_file", {"path": "src/a.py"}, "read", "src/a.py"),
        ),
        (
            "<read_file>\n<args>\n<file>\n<path>src/a.py</path>\n</file>\n</args>\n</read_file>",
            "read_file",
            {"args": "<file>\n<path>src/a.py</path>\n</file>", "path": "src/a.py"},
            *("read", "src/a.py"),
        ),
        (
            "<write_to_file>\n<path>a.html</path>\n<content>\n<p><read_file><path>x</path></read_file></p>\n"
            "</content>\n</write_to_file>",
            "write_to_file",
            {"path": "a.html", "content": "<p><read_file><path>x</path></read_file></p>"},
            *("create", "a.html"),
        ),
        (
            "<attempt_completion>\n<result>\nDone.\n</result>\n</attempt_completion>",
            *("attempt_completion", {"result": "Done."}, "finish", None),
        ),
    ],
)
def test_a_call_in_tags_of_cline_is_the_call_it_makes(
    text: str, name: str, arguments: dict[str, Any], operation: str, target: str | None
) -> None:
    for harness in ("cline", "roo_code"):
        (call,) = calls_in_text(text, harness)
        assert (call.name, call.parsed()) == (name, arguments)
        assert find_action_operation(Action(text), harness) == operation
        assert find_action_target(Action(text), harness) == target
    assert len(calls_in_text(f"{text}\n{text}", "cline")) == 0
