"""Agents that act by what they write, from their files to pairs: shown, asked, counted, paired."""

import json
from pathlib import Path
from typing import Any

import pytest

import tracemill as tm
from tracemill.harnesses.text_calls import tool_or_text_calls
from tracemill.ingesters.discover import discover
from tracemill.ingesters.read_source import ingest_source
from tracemill.records.message import Action
from tracemill.records.trace import Trace
from tracemill.teachers.core.presets import PRESETS

SIMULATED = PRESETS["simulated"].teachers
SHELL = "\n(Open file: n/a)\n(Current directory: /repo)\nbash-$"
COMMANDS = (
    ("open src/glow.py", "1:def glow():\n2:    raise KeyError"),
    ("python reproduce.py", "Traceback (most recent call last):\nKeyError: 'x'"),
    ("edit 2:2\n    return 1\nend_of_edit", "Your proposed edit has introduced new syntax error(s)."),
    ("search_dir glow src", "Found 3 matches in src/glow.py"),
    ("cat missing.py", "cat: missing.py: No such file or directory"),
)


def _swe_agent() -> dict[str, Any]:
    history = [
        {"role": "system", "content": "Give one command between ``` lines.", "agent": "primary"},
        {"role": "user", "content": "Fix src/glow.py." + SHELL, "agent": "primary"},
    ]
    steps = []
    for command, output in (*COMMANDS, ("submit", "")):
        answer = f"I go on.\n```\n{command}\n```"
        history.append({"role": "assistant", "content": answer, "action": command, "agent": "primary"})
        history.append({"role": "user", "content": output + SHELL, "agent": "primary"})
        steps.append({"action": command, "observation": output, "response": answer, "state": "{}"})
    return {"environment": "swe_main", "trajectory": steps, "history": history, "info": {}}


def _mini() -> dict[str, Any]:
    messages = [
        {"role": "system", "content": "Answer with\n```mswea_bash_command\nyour_command\n```"},
        {"role": "user", "content": "Fix src/glow.py."},
    ]
    hand_in = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
    for command, output in (
        ("cat src/glow.py", "def glow(): ..."),
        *COMMANDS[1:2],
        *COMMANDS[4:],
        (hand_in, ""),
    ):
        messages.append({"role": "assistant", "content": f"So.\n\n```mswea_bash_command\n{command}\n```"})
        messages.append(
            {"role": "user", "content": f"<returncode>1</returncode>\n<output>\n{output}</output>"}
        )
    return {"info": {"exit_status": "Submitted"}, "messages": messages}


def _trace(tmp_path: Path, name: str, value: Any) -> Trace:
    (tmp_path / name).write_text(json.dumps(value))
    (source,) = discover([tmp_path / name])
    (trace,), report = ingest_source(source)
    assert (report.error, dict(report.skipped)) == (None, {})
    return trace


@pytest.mark.parametrize(
    ("name", "value", "opening", "label"),
    [
        ("a.traj", _swe_agent(), "```\n", "system=recorded,tools=none,context=approximate"),
        ("a.traj.json", _mini(), "```mswea_bash_command\n", "system=recorded,tools=none"),
    ],
    ids=["swe_agent", "mini_swe_agent"],
)
def test_text_agents_are_asked_in_their_own_way_and_paired(
    tmp_path: Path, name: str, value: Any, opening: str, label: str
) -> None:
    trace = _trace(tmp_path, name, value)
    states = list(trace.states())
    asked_of_all = tm.ReplaySettings(stop="off")
    replies = tm.replay_trace_sync(states, teachers=SIMULATED, max_total_usd=1.0, settings=asked_of_all)
    assert len(replies) == 4 * len(states)
    for reply in replies:
        assert reply.action is not None
        assert not reply.action.tool_calls
        assert opening in reply.action.text
        assert len(tool_or_text_calls(reply.action, trace.harness)) == 1
    pairs = tm.extract_dpo_pairs(states, replies, agreement_threshold=2)
    assert pairs
    by_step = {str(state.step_id): state for state in states}
    for pair in pairs:
        chosen, rejected = Action.of(pair.chosen[0]), Action.of(pair.rejected[0])
        assert rejected == by_step[pair.step_id].student_action
        assert tool_or_text_calls(chosen, trace.harness) != tool_or_text_calls(rejected, trace.harness)
        assert pair.presentation.endswith(label)
        assert "other" not in (pair.chosen_operation, pair.rejected_operation)
    rejected_operations = {pair.rejected_operation for pair in pairs}
    assert rejected_operations <= {"read", "run", "edit", "search", "finish"}
