"""mini-swe-agent runs of every version and model class, and what was really sent."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from file_readers import file_reader
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tracemill.harnesses.operations import find_action_operation
from tracemill.ingesters.detect_format import detect
from tracemill.ingesters.mini_swe_agent.ingest_trajectory import iter_traces
from tracemill.records.ingest_report import IngestReport
from tracemill.records.trace import Trace

ingest_file = file_reader("mini_swe_agent", iter_traces)

HAND_IN = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && git diff --cached"
START = [{"role": "system", "content": "You work in a shell."}, {"role": "user", "content": "Fix it."}]
CONFIG = {
    "model": {"model_name": "anthropic/claude-sonnet-4-5"},
    "environment": {"cwd": "/testbed"},
}


def _says(command: str, fence: str = "mswea_bash_command", **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": f"THOUGHT: so.\n\n```{fence}\n{command}\n```", **more}


def _output(text: str, code: int = 0, **more: Any) -> dict[str, Any]:
    return {
        "role": "user",
        "content": f"<returncode>{code}</returncode>\n<output>\n{text}</output>",
        **more,
    }


def _one(messages: list[dict[str, Any]], **info: Any) -> dict[str, Any]:
    """A file of version 1.x."""
    body = {"exit_status": "Submitted", "submission": "diff", "config": CONFIG, "mini_version": "1.17.4"}
    return {"info": body | info, "messages": messages, "trajectory_format": "mini-swe-agent-1"}


def _two(messages: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """A file of version 2.x."""
    info = {"exit_status": "Submitted", "submission": "diff", "config": CONFIG, "mini_version": "2.4.0"}
    return {"info": info, "messages": messages, "trajectory_format": "mini-swe-agent-1.1"} | more


def _read(
    tmp_path: Path, value: Any, name: str = "orchard__seedbank-3.traj.json"
) -> tuple[Trace, IngestReport]:
    path = tmp_path / name
    path.write_text(json.dumps(value, indent=2))
    assert detect(path) == "mini_swe_agent"
    (trace,), report = ingest_file(path)
    return trace, report


TEXT_RUN = [
    *START,
    _says("ls", timestamp=1_700_000_000.5),
    _output("a.py\n"),
    _says("cat b.py"),
    _output("cat: b.py: No such file or directory\n", 1),
    _says(HAND_IN),
    {"role": "user", "content": "diff"},
]


def test_a_run_of_1_x_is_its_messages_without_the_exit(tmp_path: Path) -> None:
    trace, report = _read(tmp_path, _one(TEXT_RUN))
    (context,) = trace.contexts
    assert [step.cut for step in context.steps] == [2, 4, 6]
    assert [m.content for m in context.messages] == [m["content"] for m in TEXT_RUN[:-1]]
    assert report.flags == {"exit message, shown to no model": 1}
    assert dict(report.records) == {"system": 1, "user": 4, "assistant": 3}
    assert [(m.is_error, m.error_kind) for m in context.messages if m.role == "user"] == [
        (None, None), (False, None), (True, "exit_code"),
    ]  # fmt: skip
    assert [str(find_action_operation(s.student_action, trace.harness)) for s in trace.states()] == [
        "list", "read", "finish",
    ]  # fmt: skip
    assert (context.fidelity.context, context.fidelity.system, context.fidelity.tools) == (
        "complete", "recorded", "absent",
    )  # fmt: skip
    assert {(s.model, s.family, s.cwd) for s in context.steps} == {
        ("anthropic/claude-sonnet-4-5", "anthropic", "/testbed")
    }
    assert context.steps[0].timestamp == trace.started_at == "2023-11-14T22:13:20.500000Z"
    assert (trace.instance_id, trace.repository, trace.harness_version) == (
        "orchard__seedbank-3", "orchard/seedbank", "1.17.4",
    )  # fmt: skip


def test_a_bare_list_of_messages_is_a_run(tmp_path: Path) -> None:
    trace, report = _read(tmp_path, TEXT_RUN)
    assert (trace.step_count, report.flags["exit message, shown to no model"]) == (3, 1)
    assert [m.content for m in trace.contexts[0].messages] == [m["content"] for m in TEXT_RUN[:-1]]
    unfinished, report = _read(tmp_path, TEXT_RUN[:6])
    assert len(unfinished.contexts[0].messages) == 6
    assert not report.flags


def test_an_answer_without_exactly_one_command_was_refused(tmp_path: Path) -> None:
    two = {"role": "assistant", "content": "```bash\nls\n```\nor\n```bash\npwd\n```"}
    complaint = {"role": "user", "content": "One command, please; found 2."}
    trace, report = _read(tmp_path, _one([*START, two, complaint, _says("ls", "bash"), _output("a\n")]))
    refused, better = trace.states()
    assert find_action_operation(refused.student_action, trace.harness) == "other"
    assert find_action_operation(better.student_action, trace.harness) == "list"
    assert [m.content for m in better.messages][-2:] == [two["content"], complaint["content"]]
    assert (better.messages[-1].is_error, better.messages[-1].error_kind) == (True, "tool_error")
    assert report.tool_errors == 1


def _call(call_id: str, command: str) -> dict[str, Any]:
    function = {"name": "bash", "arguments": json.dumps({"command": command})}
    return {"id": call_id, "type": "function", "function": function}


def _response(model: str, number: int) -> dict[str, Any]:
    usage = {
        "prompt_tokens": 90 + number,
        "completion_tokens": 7,
        "prompt_tokens_details": {"cached_tokens": 50},
    }
    return {"id": f"r{number}", "model": model, "usage": usage}


CALL_RUN = [
    *START,
    {
        "role": "assistant",
        "content": None,
        "reasoning_content": "first look",
        "tool_calls": [_call("c1", "ls"), _call("c2", "cat b.py")],
        "extra": {"response": _response("claude-sonnet-4-5", 0), "timestamp": 1_700_000_000, "actions": []},
    },
    {"role": "tool", "tool_call_id": "c1", "content": "a.py", "extra": {"returncode": 0}},
    {"role": "tool", "tool_call_id": "c2", "content": "no such file", "extra": {"returncode": 1}},
    {
        "role": "user",
        "content": "No tool call was found.",
        "extra": {"interrupt_type": "FormatError", "response": _response("gpt-5", 1)},
    },
    {
        "role": "assistant",
        "content": "slow",
        "tool_calls": [_call("c3", "sleep 99")],
        "extra": {"response": _response("gpt-5", 2)},
    },
    {
        "role": "tool",
        "tool_call_id": "c3",
        "content": "",
        "extra": {
            "returncode": -1,
            "exception_info": "timed out after 60 s",
            "exception_type": "TimeoutExpired",
        },
    },
    {"role": "assistant", "content": "", "tool_calls": [_call("c4", HAND_IN)], "extra": {}},
    {"role": "exit", "content": "diff", "extra": {"exit_status": "Submitted", "submission": "diff"}},
]


def test_a_run_of_2_x_acts_by_calls(tmp_path: Path) -> None:
    trace, report = _read(tmp_path, _two(CALL_RUN, instance_id="orchard__seedbank-9"), "any.traj.json")
    (context,) = trace.contexts
    first, slow, last = trace.states()
    assert [step.cut for step in context.steps] == [2, 6, 8]
    assert [len(s.student_action.tool_calls) for s in (first, slow, last)] == [2, 1, 1]
    assert [(r.tool_call_id, r.is_error, r.error_kind) for r in first.results] == [
        ("c1", False, None), ("c2", True, "exit_code"),
    ]  # fmt: skip
    assert [(r.is_error, r.error_kind) for r in slow.results] == [(True, "timeout")]
    assert find_action_operation(last.student_action, trace.harness) == "finish"
    assert [(s.model, s.family, s.native_id) for s in context.steps] == [
        ("claude-sonnet-4-5", "anthropic", "r0"),
        ("gpt-5", "openai", "r2"),
        ("anthropic/claude-sonnet-4-5", "anthropic", None),
    ]
    usage = context.steps[0].usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens) == (90, 7, 50)
    assert context.messages[2].reasoning == "first look"
    assert trace.instance_id == "orchard__seedbank-9"
    assert dict(report.flags) == {
        "exit message, shown to no model": 1,
        "answer that could not be parsed, in no later prompt": 1,
    }
    assert (report.steps_main, report.tool_calls, report.tool_errors) == (3, 4, 2)


def test_a_run_over_the_responses_api(tmp_path: Path) -> None:
    answer = {
        "object": "response",
        "id": "resp_1",
        "model": "gpt-5",
        "usage": {"input_tokens": 10, "output_tokens": 2},
        "output": [
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
            {"type": "function_call", "call_id": "c1", "name": "bash", "arguments": '{"command": "ls"}'},
        ],
        "extra": {"timestamp": 1_700_000_000},
    }
    result = {"type": "function_call_output", "call_id": "c1", "output": "a.py", "extra": {"returncode": 0}}
    second = {**answer, "id": "resp_2", "output": [{**answer["output"][2], "call_id": "c2"}]}
    trace, report = _read(tmp_path, _two([*START, answer, result, second]))
    first, _ = trace.states()
    assert (first.student_action.text, first.student_action.tool_calls[0].arguments) == (
        "I look.", '{"command": "ls"}',
    )  # fmt: skip
    assert trace.contexts[0].messages[2].reasoning == "hm"
    assert [(r.tool_call_id, r.is_error) for r in first.results] == [("c1", False)]
    assert (first.step.model, first.step.usage.prompt_tokens, report.tool_calls) == ("gpt-5", 10, 2)
    assert dict(report.records) == {"system": 1, "user": 1, "assistant": 2, "tool": 1}


def test_the_outcome_is_what_an_evaluation_left_beside(tmp_path: Path) -> None:
    (tmp_path / "report.json").write_text(json.dumps({"orchard__seedbank-3": {"resolved": False}}))
    assert _read(tmp_path, _one(TEXT_RUN))[0].outcome == "not_resolved"


@pytest.mark.parametrize(
    ("value", "skipped"),
    [
        (_one([]), {"messages are not a list of messages": 1}),
        ({"info": {"exit_status": None}, "messages": None}, {"messages are not a list of messages": 1}),
        (_one(START), {"run without a step": 1}),
        (_one([3, {"role": "ghost"}]), {"run with content that is not understood": 1}),
    ],
)
def test_what_is_no_run_is_counted_by_reason(tmp_path: Path, value: Any, skipped: dict[str, int]) -> None:
    path = tmp_path / "x.traj.json"
    path.write_text(json.dumps(value))
    traces, report = ingest_file(path)
    assert (traces, dict(report.skipped)) == ([], skipped)


@pytest.mark.parametrize("value", [_one(TEXT_RUN), _two(CALL_RUN)], ids=["1.x", "2.x"])
def test_no_part_of_another_type_is_fatal(tmp_path: Path, value: dict[str, Any]) -> None:
    copies = list(_broken_copies(value))
    assert len(copies) > 200
    path = tmp_path / "x.jsonl"
    path.write_text("".join(json.dumps(copy) + "\n" for copy in copies))
    traces, report = ingest_file(path)
    reasons = (
        "not an object",
        "messages are not a list of messages",
        "run without a step",
        "the same session twice",
        "run with content that is not understood",
    )
    assert len(traces) + sum(report.skipped[reason] for reason in reasons) == len(copies)


def _broken_copies(value: Any) -> Any:
    """The value with each of its parts, in turn, replaced by values of other types."""
    if isinstance(value, dict | list):
        for key in range(len(value)) if isinstance(value, list) else value:
            for broken in _broken_copies(value[key]):
                copy = value.copy()
                copy[key] = broken
                yield copy
    yield from (None, True, -1, "x", [], [[]], {}, {"x": [1]})


MOVES = st.lists(st.tuples(st.sampled_from(["one", "two", "none"]), st.integers(0, 2)), max_size=8)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(moves=MOVES, by_calls=st.booleans(), ended=st.booleans())
def test_laws_of_generated_runs(
    tmp_path: Path, moves: list[tuple[str, int]], by_calls: bool, ended: bool
) -> None:
    messages: list[dict[str, Any]] = list(START)
    sent: list[list[Any]] = []
    for number, (kind, code) in enumerate([("one", 0), *moves]):
        sent.append([(m["role"], m["content"]) for m in messages])
        commands = [f"cat {number}-{place}.py" for place in range({"one": 1, "two": 2, "none": 0}[kind])]
        if by_calls and commands:
            calls = [_call(f"c{number}-{place}", command) for place, command in enumerate(commands)]
            messages.append({"role": "assistant", "content": f"t{number}", "tool_calls": calls})
            messages += [
                {
                    "role": "tool",
                    "tool_call_id": call["id"],
                    "content": f"o{number}",
                    "extra": {"returncode": code},
                }
                for call in calls
            ]
        else:
            blocks = "\n".join(f"```bash\n{command}\n```" for command in commands)
            messages += [
                {"role": "assistant", "content": f"t{number}\n{blocks}"},
                _output(f"o{number}", code),
            ]
    if ended:
        messages.append({"role": "exit", "content": "", "extra": {"exit_status": "LimitsExceeded"}})
    trace, report = _read(tmp_path, _two(messages))
    states = list(trace.states())
    assert [[(m.role, m.content) for m in state.messages] for state in states] == sent
    for state in states:
        own = {call.id for call in state.student_action.tool_calls}
        answered = [m.tool_call_id for m in state.messages if m.role == "tool"]
        assert not own & set(answered)
        assert len(answered) == len(set(answered))
    assert report.flags["exit message, shown to no model"] == ended
    assert _read(tmp_path, _two(messages))[0] == trace


REAL = os.environ.get("TRACEMILL_REAL_TRACES")

if REAL:
    TRUTH = [
        t
        for t in json.loads((Path(REAL) / "ground_truth.json").read_text())
        if t["format"] == "mini_swe_agent"
    ]

    @pytest.mark.parametrize("truth", TRUTH, ids=lambda truth: truth["file"])
    def test_real_counts_are_the_ground_truth(truth: dict[str, Any]) -> None:
        path = Path(REAL or "") / "mini_swe_agent" / truth["file"]
        assert detect(path) == "mini_swe_agent"
        (trace,), report = ingest_file(path)
        assert (report.steps_main, report.states) == (truth["steps_main"], truth["steps_main"])
        assert report.records.total() == truth["records"]
        assert dict(report.records) == truth["roles"]
        recorded = json.loads(path.read_text())
        for state in trace.states():
            cut = state.step.cut
            assert [(m.role, m.content) for m in state.messages] == [
                (m["role"], m["content"]) for m in recorded[:cut]
            ]
        assert find_action_operation(list(trace.states())[-1].student_action, trace.harness) == "finish"
