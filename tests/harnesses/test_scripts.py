"""Scripts that call tools: one plain call counts as that call, any other script as a run."""

import json

import pytest

from tracemill.agreement.calls.canonical import canonical_key
from tracemill.harnesses.operations import find_call_operation
from tracemill.records.message import Action, ToolCall

PATCH = "*** Begin Patch\n*** Update File: src/rows.py\n@@\n-a = 1\n+a = 2\n*** End Patch"


def _script(text: str) -> ToolCall:
    return ToolCall("c1", "exec", json.dumps({"input": text}))


@pytest.mark.parametrize(
    ("text", "effect"),
    [
        (
            'const r = await tools.exec_command({cmd:"cat a.py",yield_time_ms:1000}); text(r.output);',
            ("read", "a.py"),
        ),
        ('text(await tools.exec_command({"cmd": "pytest -q tests"}));', ("run_test", "pytest tests")),
        (f"const p = {json.dumps(PATCH)};\ntext(await tools.apply_patch(p));", ("edit", "src/rows.py")),
        (f"text(await tools.apply_patch({json.dumps(PATCH)}));", ("edit", "src/rows.py")),
        ('await tools.update_plan({plan:[{step:"a: b",status:"pending"}]});', ("plan", None)),
    ],
)
def test_a_script_with_one_call_is_that_call(text: str, effect: tuple[str, str | None]) -> None:
    found = find_call_operation(_script(text), "codex")
    assert (found.operation, found.target) == effect


@pytest.mark.parametrize(
    "text",
    [
        'await Promise.all([tools.exec_command({cmd:"ls"}), tools.exec_command({cmd:"pwd"})]);',
        'for (const f of files) await tools.exec_command({cmd:"cat a.py"});',
        "await tools.exec_command({cmd: line});",
        "await tools.exec_command({cmd:`cat ${file}`});",
        "await tools.apply_patch(patch);",
        "text(1);",
    ],
)
def test_any_other_script_is_a_run(text: str) -> None:
    assert find_call_operation(_script(text), "codex").operation == "run"


def test_a_script_and_its_call_are_one_action() -> None:
    script = _script('const r = await tools.exec_command({cmd:"rg -n rows src"}); text(r.output);')
    call = ToolCall("c2", "exec_command", json.dumps({"cmd": "rg -n rows src"}))
    keys = {canonical_key(Action("", (each,)), (), "/repo", "codex") for each in (script, call)}
    assert len(keys) == 1


def test_the_tool_exec_of_another_harness_is_a_shell() -> None:
    found = find_call_operation(ToolCall("c1", "exec", json.dumps({"command": "cat a.py"})), "generic")
    assert (found.operation, found.target) == ("read", "a.py")
