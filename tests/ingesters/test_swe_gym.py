"""SWE-Gym and its relatives: rows of every shape, from files of every kind."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from file_readers import file_reader
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tracemill.harnesses.operations import find_action_operation
from tracemill.ingesters.detect_format import detect
from tracemill.ingesters.ingester_classes import SWEGymIngester
from tracemill.ingesters.reading.json_reading import new_report
from tracemill.ingesters.swe_gym.ingest_rows import iter_traces
from tracemill.records.errors import SourceError

ingest_file = file_reader("swe_gym", iter_traces)

TOOL = {
    "type": "function",
    "function": {"name": "execute_bash", "description": "d", "parameters": {"type": "object"}},
}


def _call(name: str, arguments: str = '{"command": "ls"}', tool: str = "execute_bash") -> dict[str, Any]:
    return {"id": name, "index": None, "type": "function", "function": {"name": tool, "arguments": arguments}}


def _message(role: str, content: str | None, **fields: Any) -> dict[str, Any]:
    """A message as the sampled set stores it: every key is there, most of them null."""
    empty = {"function_call": None, "name": None, "tool_call_id": None, "tool_calls": None}
    return {"role": role, "content": content, **empty, **fields}


def _messages() -> list[dict[str, Any]]:
    return [
        _message("system", "be good"),
        _message("user", "fix it"),
        _message("assistant", None, tool_calls=[_call("c1"), _call("c2", '{"command": "cat a"}')]),
        _message(
            "tool",
            "OBSERVATION:\na\n[Command finished with exit code 0]",
            tool_call_id="c1",
            name="execute_bash",
        ),
        _message("tool", "OBSERVATION:\nERROR:\nno such file", tool_call_id="c2", name="execute_bash"),
        _message("assistant", "", tool_calls=[_call("c3", '{"command": "make"}')]),
        _message("tool", "OBSERVATION:\nx\n[Command finished with exit code 2]", tool_call_id="c3"),
        _message("user", "Please go on."),
        _message("assistant", None, tool_calls=[_call("c4", "{}", "finish")]),
    ]


def _row(**fields: Any) -> dict[str, Any]:
    return {
        "instance_id": "orchard__seedbank-12_3",
        "run_id": "gpt-4o-2024-08-06_maxiter_30_N_v2.1-no-hint-train-t0-run_1",
        "resolved": False,
        "messages": _messages(),
        "tools": [TOOL],
        "test_result": {"report": {"resolved": False}},
        **fields,
    }


def _lines(path: Path, *rows: Any) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_a_sampled_row_is_one_context_whose_prefixes_are_the_messages_before(tmp_path: Path) -> None:
    (trace,), report = ingest_file(_lines(tmp_path / "t.jsonl", _row()))
    (context,) = trace.contexts
    assert [step.cut for step in context.steps] == [2, 5, 8]
    assert [len(s.student_action.tool_calls) for s in trace.states()] == [2, 1, 1]
    assert [m.content for m in context.messages[3:5]] == [m["content"] for m in _messages()[3:5]]
    assert (trace.harness, trace.instance_id, trace.repository, trace.outcome) == (
        "openhands", "orchard__seedbank-12", "orchard/seedbank", "not_resolved",
    )  # fmt: skip
    assert {(s.model, s.family) for s in context.steps} == {("gpt-4o-2024-08-06", "openai")}
    assert [(t.name, t.origin) for t in context.tools] == [("execute_bash", "recorded")]
    assert (context.fidelity.system, context.fidelity.tools) == ("recorded", "recorded")
    assert (report.steps_main, report.tool_calls, report.tool_errors, report.states) == (3, 4, 2, 3)


def test_failures_are_read_off_the_text(tmp_path: Path) -> None:
    (trace,), _ = ingest_file(_lines(tmp_path / "t.jsonl", _row()))
    results = [(r.is_error, r.error_kind) for s in trace.states() for r in s.results]
    assert results == [(False, None), (True, "tool_error"), (True, "exit_code")]
    silent = _row(messages=[*_messages()[:3], _message("tool", "fine", tool_call_id="c1")])
    (trace,), _ = ingest_file(_lines(tmp_path / "s.jsonl", silent))
    assert [r.is_error for s in trace.states() for r in s.results] == [None]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"output": "a.py", "exit_code": 0, "error": null}', (False, None)),
        ('{"output": "[Command finished with exit code 1]", "exit_code": 0, "error": null}', (False, None)),
        ('{"output":"bash: ruf: command not found","exit_code":127,"error":null}', (True, "exit_code")),
        ('{"exit_code": 1, "output": "no pears"}', (True, "exit_code")),
        ('{"exit_code": 1, "pears": 2}', (None, None)),
        ('{"output": "3 pears", "exit_code": "1"}', (None, None)),
        ('{"output": "3 pears", "exit_code": true}', (None, None)),
        ('{"output": "cut, "exit_code": 1', (None, None)),
        ('{"success": false, "error": "no such skill"}', (True, "tool_error")),
        ('{"error": "Command timed out after 5 s", "success": false}', (True, "timeout")),
        ('{"success": true, "matches": []}', (False, None)),
        ('{"success": "no"}', (None, None)),
        ('{"output": "no pears", "exit_code": 1, "success": true}', (True, "exit_code")),
        ("no pears\n\nCommand exited with code 127", (True, "exit_code")),
        ("no pears\n\n(Command exited with code 1)\n", (True, "exit_code")),
        ("Command exited with code 2", (True, "exit_code")),
        ("Exit code: 1", (True, "exit_code")),
        ("Exit Code: 2\nno pears", (True, "exit_code")),
        ("Exit code: 0\nWall time: 0.1 seconds\nOutput:\n", (False, None)),
        ("Exit code: 1 is what it should give", (None, None)),
        ("exit code 1", (True, "exit_code")),
        ("exit code 1 means no pears", (None, None)),
        ("Process exited with code 2\nno pears", (True, "exit_code")),
        ("Command failed with exit code 2: ls", (True, "exit_code")),
        ('{"error": "boom"}', (True, "tool_error")),
        ('{\n  "error": {"code": 404}\n}', (True, "tool_error")),
        ('{"error": null}', (None, None)),
        ('{"error": "boom", "pears": 2}', (None, None)),
        ('{"stdout": "", "stderr": "no", "exit_code": 1}', (True, "exit_code")),
        ("<error>File not found</error>\n", (True, "tool_error")),
        ("<error>1</error> <pears>2</pears>", (None, None)),
        ("Command exited with code 0", (None, None)),
        ("Command exited with code 1\nsays the log", (None, None)),
        ("the log says Command exited with code 1", (None, None)),
    ],
)
def test_a_result_tells_its_exit_code_in_an_object_or_in_its_last_line(
    tmp_path: Path, text: str, said: tuple[bool | None, str | None]
) -> None:
    row = _row(messages=[*_messages()[:3], _message("tool", text, tool_call_id="c1")])
    (trace,), report = ingest_file(_lines(tmp_path / "t.jsonl", row))
    (result,) = (r for s in trace.states() for r in s.results)
    assert (result.is_error, result.error_kind) == said
    assert (result.content, report.tool_errors) == (text, int(said[0] is True))


def test_parquet_json_and_lines_give_equal_traces(tmp_path: Path) -> None:
    rows = [_row(instance_id=f"orchard__seedbank-{n}", resolved=n % 2 == 0) for n in range(130)]
    for row in rows:
        row["tools"] = json.dumps(row["tools"])  # a list of unlike schemas is stored as text
    table = pa.Table.from_pylist(rows)
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=50)
    (tmp_path / "t.json").write_text(json.dumps(rows))
    _lines(tmp_path / "t.jsonl", *rows)
    by_kind = [ingest_file(tmp_path / f"t.{kind}")[0] for kind in ("parquet", "json", "jsonl")]
    assert [len(traces) for traces in by_kind] == [130, 130, 130]
    plain = [[(t.trace_id, t.outcome, t.contexts) for t in traces] for traces in by_kind]
    assert plain[0] == plain[1] == plain[2]
    assert sum(t.outcome == "resolved" for t in by_kind[0]) == 65


def test_rows_of_the_swe_agent_set_keep_actions_in_their_text(tmp_path: Path) -> None:
    def said(role: str, text: str | None, system: str | None = None) -> dict[str, Any]:
        return {"role": role, "text": text, "system_prompt": system, "mask": False, "cutoff_date": None}

    shell = "\n(Open file: n/a)\n(Current directory: /w)\nbash-$"
    row = {
        "instance_id": "orchard__seedbank-9_1",
        "model_name": "swe-agent-llama-70b",
        "target": True,
        "trajectory": [
            said("system", None, "SETTING: a shell"),
            said("user", "the issue"),
            said("ai", "look\n```\nls\n```"),
            said("user", "a.py\n" + shell),
            said("ai", "edit\n```\nedit 1:1\nx\nend_of_edit\n```"),
            said("user", "Your proposed edit has introduced new syntax error(s).\n" + shell),
            said("ai", "```\nsubmit\n```"),
        ],
    }
    (trace,), report = ingest_file(_lines(tmp_path / "t.jsonl", row))
    assert (trace.harness, trace.outcome, trace.contexts[0].steps[0].family) == (
        "swe_agent",
        "resolved",
        "meta",
    )
    messages = trace.contexts[0].messages
    assert [m.role for m in messages] == [
        "system",
        "user",
        "assistant",
        "user",
        "assistant",
        "user",
        "assistant",
    ]
    assert messages[0].content == "SETTING: a shell"
    assert messages[2].content == "look\n```\nls\n```"
    assert [(m.is_error, m.error_kind) for m in messages if m.role == "user"] == [
        (None, None), (None, None), (True, "tool_error"),
    ]  # fmt: skip
    assert (report.steps_main, report.tool_calls) == (3, 0)


def test_other_relatives(tmp_path: Path) -> None:
    parsed = [
        {
            "type": "function",
            "id": "c1",
            "function": {"name": "execute_bash", "arguments": {"command": "ls", "b": 1}},
        }
    ]
    nebius = _row(
        trajectory=[
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": "x", "tool_calls": parsed},
        ],
        resolved=1,
        repo="orchard/other",
        model="qwen/qwen3-coder",
    )
    del nebius["messages"]
    said = [
        {"role": "user", "content": [{"type": "text", "text": "go"}]},
        {"role": "assistant", "content": "y"},
    ]
    smith = {
        "traj_id": "t1",
        "instance_id": "orchard__seedbank.1a2b3c4d.func__abc",
        "model": "claude-3-7-sonnet",
        "resolved": "False",
        "messages": json.dumps(said),
    }
    sft = {
        "messages": [
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": "<function=finish>\n</function>"},
        ]
    }
    traces, report = ingest_file(_lines(tmp_path / "t.jsonl", nebius, smith, sft))
    assert [(t.harness, t.outcome, t.repository) for t in traces] == [
        ("openhands", "resolved", "orchard/other"),
        ("swe_agent", "not_resolved", "orchard/seedbank"),
        ("openhands", "unknown", None),
    ]
    (call,) = next(iter(traces[0].states())).student_action.tool_calls
    assert call.arguments == '{"b":1,"command":"ls"}'
    assert [t.contexts[0].steps[0].family for t in traces] == ["qwen", "anthropic", "unknown"]
    assert [t.contexts[0].messages[0].content for t in traces] == ["go", "go", "go"]
    assert report.skipped.total() == 0


def test_results_without_an_id_answer_the_calls_in_order(tmp_path: Path) -> None:
    messages = _messages()
    for message in messages:
        message["tool_call_id"] = None
    (trace,), _ = ingest_file(_lines(tmp_path / "t.jsonl", _row(messages=messages)))
    assert [r.tool_call_id for s in trace.states() for r in s.results] == ["c1", "c2", "c3"]


def test_the_student_family_is_unknown_where_no_model_is_named(tmp_path: Path) -> None:
    (trace,), _ = ingest_file(_lines(tmp_path / "t.jsonl", _row(run_id=None)))
    assert (trace.contexts[0].steps[0].model, trace.contexts[0].steps[0].family) == (None, "unknown")


@pytest.mark.parametrize(
    ("content", "skipped"),
    [
        ("", {"empty file": 1}),
        ('{"messages": [', {"not json": 1}),
        ('7\n"x"\n', {"not an object": 2}),
        ('{"a": 1}\n', {"row without messages, trajectory or conversations": 1}),
        (
            '{"messages": 3}\n{"messages": []}\n{"trajectory": "no json"}\n',
            {"messages are not a list of messages": 3},
        ),
        ('{"messages": [{"content": "x"}]}\n', {"messages have no role but content": 1}),
        ('{"messages": [{"role": "user", "content": "x"}]}\n', {"row without a step": 1}),
        ('{"messages": [{"role": "ghost"}, 4]}\n', {"role not understood: ghost": 1}),
    ],
)
def test_broken_rows_are_counted_and_stop_nothing(
    tmp_path: Path, content: str, skipped: dict[str, int]
) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(content)
    traces, report = ingest_file(path)
    assert (traces, dict(report.skipped)) == ([], skipped)
    if content:
        path.write_text(json.dumps(_row()) + "\n" + content)
        traces, report = ingest_file(path)
        assert (len(traces), dict(report.skipped)) == (1, skipped)


def test_no_part_of_another_type_is_fatal(tmp_path: Path) -> None:
    copies = list(_broken_copies(_row()))
    traces, report = ingest_file(_lines(tmp_path / "t.jsonl", *copies))
    assert len(copies) > 300
    assert len(traces) + report.skipped.total() == len(copies)


def _broken_copies(value: Any) -> Iterator[Any]:
    """The value with each of its parts, in turn, replaced by values of other types."""
    if isinstance(value, dict | list):
        for key in range(len(value)) if isinstance(value, list) else value:
            for broken in _broken_copies(value[key]):
                copy = value.copy()
                copy[key] = broken
                yield copy
    yield from (None, True, -1, "x", [], [[]], {}, {"x": [1]})


def test_what_is_broken_as_a_whole_is_a_source_error_and_stops_no_folder(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1 no more")
    (tmp_path / "b.json").write_text("[1, ")
    _lines(tmp_path / "c.jsonl", _row())
    with pytest.raises(SourceError, match="Parquet"):
        ingest_file(tmp_path / "a.parquet")
    ingester = SWEGymIngester()
    assert [t.origin for t in ingester.ingest(tmp_path)] == ["c.jsonl"]
    assert [bool(report.error) for report in ingester.reports] == [True, True, False]
    with pytest.raises(SourceError):
        list(SWEGymIngester().ingest(tmp_path / "absent.jsonl"))


def test_ingesting_twice_gives_equal_traces_with_ids_of_their_own(tmp_path: Path) -> None:
    other = _row(messages=[*_messages()[:-1], _message("assistant", "done")])
    path = _lines(tmp_path / "t.jsonl", _row(), other, _row())
    traces, report = ingest_file(path)
    assert traces == ingest_file(path)[0]
    assert len({t.trace_id for t in traces}) == 2
    assert report.skipped["the same session twice"] == 1


def test_rows_of_swe_play_hold_text_calls_and_results(tmp_path: Path) -> None:
    row = {
        "messages": [
            {"role": "system", "content": "You are an agent."},
            {"role": "user", "content": "Build it."},
            {"role": "assistant", "content": _written("execute_bash", command="make")},
            {
                "role": "user",
                "content": "EXECUTION RESULT of [execute_bash]:\nx\n[Command finished with exit code 2]",
            },
            {"role": "assistant", "content": _written("finish", message="done")},
        ],
        "category": "general",
        "source": "kiln",
        "id": "play-0",
    }
    path = _lines(tmp_path / "t.jsonl", row)
    assert detect(path) == "swe_gym"
    (trace,), report = ingest_file(path)
    assert (trace.harness, trace.contexts[0].fidelity.context) == ("openhands", "complete")
    does = [str(find_action_operation(state.student_action, trace.harness)) for state in trace.states()]
    assert does == ["run", "finish"]
    assert [(m.is_error, m.error_kind) for m in trace.contexts[0].messages if m.role == "user"] == [
        (None, None), (True, "exit_code"),
    ]  # fmt: skip
    assert (report.steps_main, report.tool_errors) == (2, 1)


def _written(name: str, **arguments: str) -> str:
    parameters = "".join(f"<parameter={key}>{value}</parameter>\n" for key, value in arguments.items())
    return f"So.\n<function={name}>\n{parameters}</function>"


def _smith(style: str) -> list[dict[str, Any]]:
    """A run as the splits of SWE-smith hold it."""
    start = [{"role": "system", "content": "s"}, {"role": "user", "content": "fix"}]
    if style == "tool":
        call = {
            "id": "c1",
            "type": "function",
            "function": {"name": "bash", "arguments": '{"command": "ls"}'},
        }
        said = {"role": "assistant", "content": "I look.", "tool_calls": [call], "message_type": "action"}
        told = {"role": "tool", "content": "OBSERVATION:\na.py", "tool_call_ids": ["c1"]}
        typed = {"agent": "main", "message_type": "observation"}
        return [*({**m, **typed} for m in start), said | {"agent": "main"}, told | typed]
    block = "I look.\n\n```\nls\n```" if style == "ticks" else _written("bash", command="ls")
    return [
        *start,
        {"role": "assistant", "content": block},
        {"role": "user", "content": "OBSERVATION:\na.py"},
    ]


@pytest.mark.parametrize("style", ["tool", "xml", "ticks"])
@pytest.mark.parametrize("as_text", [False, True])
def test_every_split_of_swe_smith(tmp_path: Path, style: str, as_text: bool) -> None:
    listed: Any = [*_smith(style), {"role": "assistant", "content": "end"}]
    row = {
        "messages": json.dumps(listed) if as_text else listed,
        "instance_id": "orchard__seedbank.1a2b3c4d.func__x1",
        "resolved": True,
        "model": "claude-3-7-sonnet-20250219",
        "traj_id": "orchard__seedbank.1a2b3c4d.func__x1.abc",
        "patch": "diff",
    }
    (trace,), _ = ingest_file(_lines(tmp_path / "t.jsonl", row))
    first = next(iter(trace.states()))
    assert (trace.harness, trace.outcome, trace.repository) == ("swe_agent", "resolved", "orchard/seedbank")
    assert find_action_operation(first.student_action, trace.harness) == "list"
    assert first.step.family == "anthropic"
    known = "complete" if style == "tool" else "approximate"
    assert trace.contexts[0].fidelity.context == known


def test_rows_of_mini_swe_agent_are_told_by_their_results(tmp_path: Path) -> None:
    row = {
        "instance_id": "orchard__seedbank-1",
        "messages": [
            {"role": "user", "content": "fix"},
            {"role": "assistant", "content": "```bash\nls\n```"},
            {"role": "user", "content": "<returncode>0</returncode>\n<output>\na\n</output>"},
            {"role": "assistant", "content": "```bash\necho COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\n```"},
        ],
    }
    (trace,), _ = ingest_file(_lines(tmp_path / "t.jsonl", row))
    assert trace.harness == "mini_swe_agent"
    assert [str(find_action_operation(s.student_action, trace.harness)) for s in trace.states()] == [
        "list",
        "finish",
    ]
    assert trace.contexts[0].messages[2].is_error is False


def test_rows_of_a_verifier_are_no_runs(tmp_path: Path) -> None:
    row = {
        "messages": [
            {"role": "system", "content": "You judge."},
            {"role": "user", "content": "=== LOG ==="},
            {"role": "assistant", "content": "<judgement>YES</judgement>"},
        ],
        "resolved": True,
    }
    traces, report = ingest_file(_lines(tmp_path / "t.jsonl", row))
    assert (traces, dict(report.skipped)) == ([], {"a judge's verdict on a run, no run": 1})


@pytest.mark.parametrize(
    ("more", "model"),
    [
        ({"run_id": "claude-3-5-sonnet-20241022_maxiter_30_N_v1"}, "claude-3-5-sonnet-20241022"),
        ({"run_id": None, "metadata": {"model": "glm-4.6"}}, "glm-4.6"),
        ({"run_id": None, "metadata": '{"llm_config": {"model": "kimi-k2"}}'}, "kimi-k2"),
        ({"run_id": None, "info": {"model_name": "gpt-4o"}}, "gpt-4o"),
        (
            {"run_id": None, "gen_tests_correct": None, "pred_passes_gen_tests": 1.0},
            "Qwen/Qwen3-Coder-480B-A35B-Instruct",
        ),
        ({"run_id": 3, "metadata": []}, None),
    ],
)
def test_the_model_is_found_where_a_row_names_it(
    tmp_path: Path, more: dict[str, Any], model: str | None
) -> None:
    (trace,), _ = ingest_file(_lines(tmp_path / "t.jsonl", _row(**more)))
    assert {step.model for step in trace.contexts[0].steps} == {model}


def test_messages_of_a_demonstration_are_shown_and_are_no_steps(tmp_path: Path) -> None:
    shown = [_message("user", "example"), _message("assistant", "as here")]
    messages = [_messages()[0], *({**m, "is_demo": True} for m in shown), *_messages()[1:]]
    (trace,), _ = ingest_file(_lines(tmp_path / "t.jsonl", _row(messages=messages)))
    assert [step.cut for step in trace.contexts[0].steps] == [4, 7, 10]


def test_a_second_result_is_left_out_and_an_id_used_again_is_another_call(tmp_path: Path) -> None:
    messages = [
        *_messages()[:4],
        _message("tool", "again", tool_call_id="c1"),
        _message("assistant", "", tool_calls=[_call("c1")]),
        _message("tool", "new", tool_call_id="c1"),
        _message("tool", "whose", tool_call_id="c9"),
        _message("assistant", "", tool_calls=[_call("c9")]),
    ]
    (trace,), report = ingest_file(_lines(tmp_path / "t.jsonl", _row(messages=messages)))
    states = list(trace.states())
    results = [(m.tool_call_id, m.content) for m in trace.contexts[0].messages if m.role == "tool"]
    assert [content for _, content in results[1:]] == ["new", "whose"]
    assert [call.id for state in states for call in state.student_action.tool_calls] == [
        "c1", "c2", "c1_2", "c9_2",
    ]  # fmt: skip
    assert [r.content for r in states[1].results] == ["new", "whose"]
    assert report.skipped == {"second result of one call": 1}
    assert report.flags == {"result without its call": 1, "row that lacks a result": 1}
    assert [state.fidelity.context for state in states] == ["complete", "lost", "lost"]


def test_every_result_that_names_no_call_and_finds_none_open_stays(tmp_path: Path) -> None:
    said = [("user", "go"), ("assistant", "I look"), ("tool", "a"), ("assistant", "again"), ("tool", "b")]
    row = {"messages": [_message(role, text) for role, text in (*said, ("tool", "c"), ("assistant", "done"))]}
    (trace,), report = ingest_file(_lines(tmp_path / "t.jsonl", row))
    assert [m.content for m in trace.contexts[0].messages if m.role == "tool"] == ["a", "b", "c"]
    assert (dict(report.flags), dict(report.skipped)) == ({"result without its call": 3}, {})


def test_broken_json_text_and_missing_columns_are_counted_by_name(tmp_path: Path) -> None:
    table = pa.Table.from_pylist(
        [
            {"instance_id": "orchard__seedbank-1", "messages": json.dumps(_messages()), "resolved": True},
            {"instance_id": "orchard__seedbank-2", "messages": json.dumps(_messages())[:-40]},
            {"instance_id": "orchard__seedbank-3", "messages": None},
            {"instance_id": None, "messages": json.dumps(_messages())},
        ]
    )
    pq.write_table(table, tmp_path / "t.parquet")
    traces, report = ingest_file(tmp_path / "t.parquet")
    assert [t.instance_id for t in traces] == ["orchard__seedbank-1", None]
    assert dict(report.skipped) == {
        "messages are not a list of messages": 1,
        "row without messages, trajectory or conversations": 1,
    }


def test_parquet_is_read_a_few_rows_at_a_time(tmp_path: Path) -> None:
    rows = [
        {"instance_id": f"orchard__seedbank-{n}", "messages": json.dumps(_messages())} for n in range(200)
    ]
    path = tmp_path / "t.parquet"
    pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=100)
    before = pa.total_allocated_bytes()
    held = []
    for trace in iter_traces(path, new_report(path, "swe_gym")):
        held.append(pa.total_allocated_bytes() - before)
        assert trace.step_count == 3
    assert len(held) == 200
    whole = pq.read_table(path).nbytes
    assert max(held) < whole


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    moves=st.lists(st.tuples(st.integers(0, 3), st.booleans(), st.booleans()), min_size=1, max_size=8),
    order=st.permutations(range(3)),
)
def test_laws_of_generated_rows(
    tmp_path: Path, moves: list[tuple[int, bool, bool]], order: list[int]
) -> None:
    """Prefixes are what stands before; no result of a step is in its own; ids depend on the row alone."""
    messages = _messages()[:2]
    for number, (calls, named, answered) in enumerate(moves):
        listed = [_call(f"c{number}-{place}") for place in range(calls)]
        messages.append(_message("assistant", f"t{number}", tool_calls=listed or None))
        for call in listed if answered else []:
            messages.append(_message("tool", "o", tool_call_id=call["id"] if named else None))
        messages.append(_message("user", f"go on {number}"))
    rows = [_row(instance_id=f"orchard__seedbank-{n}", messages=messages) for n in range(3)]
    traces, report = ingest_file(_lines(tmp_path / "t.jsonl", *(rows[n] for n in order)))
    assert {t.instance_id: t.trace_id for t in traces} == {
        t.instance_id: t.trace_id for t in ingest_file(_lines(tmp_path / "u.jsonl", *rows))[0]
    }
    states = list(traces[0].states())
    assert [[m.content for m in state.messages] for state in states] == [
        [m["content"] for m in messages[:place]]
        for place, message in enumerate(messages)
        if message["role"] == "assistant"
    ]
    for state in states:
        own = {call.id for call in state.student_action.tool_calls}
        answered_ids = [m.tool_call_id for m in state.messages if m.role == "tool"]
        assert not own & set(answered_ids)
        assert len(answered_ids) == len(set(answered_ids))
    assert report.steps_main == 3 * len(moves)


REAL = os.environ.get("TRACEMILL_REAL_TRACES")

if REAL:
    TRUTH = [
        t for t in json.loads((Path(REAL) / "ground_truth.json").read_text()) if t["format"] == "swe_gym"
    ]

    def _chars(trace: Any, skip_system: bool) -> int:
        messages = trace.contexts[0].messages
        return sum(len(m.content) for m in messages if not (skip_system and m.role == "system"))

    @pytest.mark.parametrize("truth", TRUTH, ids=lambda truth: truth["file"])
    def test_real_counts_are_the_ground_truth(truth: dict[str, Any]) -> None:
        traces, report = ingest_file(Path(REAL) / "swe_gym" / truth["file"])
        assert (report.steps_main, report.tool_calls) == (truth["steps_main"], truth["tool_calls"])
        assert report.records.total() == truth["records"]
        assert [t.step_count for t in traces] == [each["steps"] for each in truth["detail"]]
        assert [t.outcome == "resolved" for t in traces] == [each["resolved"] for each in truth["detail"]]
        # The ground truth leaves out what nebius stores in `system_prompt` (docs/formats/swe_gym.md).
        is_nebius = truth["file"].startswith("nebius")
        assert [_chars(t, skip_system=is_nebius) for t in traces] == [e["chars"] for e in truth["detail"]]
        for state in (state for trace in traces for state in trace.states()):
            own = {call.id for call in state.student_action.tool_calls}
            answered = [m.tool_call_id for m in state.messages if m.role == "tool"]
            assert not own & set(answered)
            assert len(answered) == len(set(answered))


@pytest.mark.parametrize("left_out", [2, 3])
def test_what_stands_behind_a_missing_or_second_result_of_a_row_is_lost(
    tmp_path: Path, left_out: int
) -> None:
    messages = [
        {"role": "user", "content": "mend it"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "Read", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "one"}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "two"}]},
        {"role": "assistant", "content": "done"},
    ]
    if left_out == 2:
        del messages[2:4]
    (trace,), report = ingest_file(_lines(tmp_path / "t.jsonl", {"messages": messages}))
    assert [state.fidelity.context for state in trace.states()] == ["complete", "lost"]
    assert report.flags == {"row that lacks a result": 1}


def test_a_call_that_ends_a_session_needs_no_result(tmp_path: Path) -> None:
    messages = [*_messages()[:2], _message("assistant", "", tool_calls=[_call("c1", tool="finish")])]
    messages += [_message("user", "go on"), _message("assistant", "done")]
    (trace,), report = ingest_file(_lines(tmp_path / "t.jsonl", _row(messages=messages)))
    assert [state.fidelity.context for state in trace.states()] == ["complete", "complete"]
    assert report.flags == {}
