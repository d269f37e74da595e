"""Rows of ShareGPT, and requests with their responses: turns become answers with calls and results."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from file_readers import file_reader

import tracemill as tm
from tracemill.harnesses.text_calls import tool_or_text_calls
from tracemill.ingesters.census import take_census
from tracemill.ingesters.detect_format import detect
from tracemill.ingesters.reading.parquet_rows import TableSlice
from tracemill.ingesters.row_preview import preview_rows
from tracemill.ingesters.swe_gym.ingest_rows import iter_traces
from tracemill.records.ingest_report import IngestReport
from tracemill.records.trace import Trace
from tracemill.teachers.core.presets import PRESETS

ingest_file = file_reader("swe_gym", iter_traces)
GOLDEN = Path(__file__).parent.parent / "golden" / "inputs" / "swe_gym" / "turns_of_sharegpt" / "t.jsonl"


def read(tmp_path: Path, *rows: Any) -> tuple[list[Trace], IngestReport]:
    path = write(tmp_path, *rows)
    assert detect(path) == "swe_gym"
    return ingest_file(path)


def write(tmp_path: Path, *rows: Any) -> Path:
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def turns(*pairs: tuple[str, Any]) -> list[dict[str, Any]]:
    return [{"from": speaker, "value": value} for speaker, value in pairs]


def told(trace: Trace) -> list[tuple[str, str, str]]:
    """Role, text, and the calls or the call that is answered."""
    return [
        (m.role, m.content, m.tool_call_id or " ".join(f"{c.id}:{c.name}{c.arguments}" for c in m.tool_calls))
        for m in trace.contexts[0].messages
    ]


def call(name: str = "read", **arguments: Any) -> str:
    return json.dumps({"name": name, "arguments": arguments})


def test_turns_of_one_answer_are_one_message_and_results_answer_in_order() -> None:
    traces, report = ingest_file(GOLDEN)
    assert (len(traces), report.states, report.tool_calls, dict(report.skipped)) == (4, 7, 4, {})
    listed, tagged, chat, response = traces
    assert told(listed) == [
        ("system", "Mend the orchard.", ""),
        ("user", "Which apples are ripe?", ""),
        (
            "assistant",
            "I look at both lists.",
            'call-1-0:read_file{"path":"apples.txt"} call-1-1:read_file{"path":"pears.txt"}',
        ),
        ("tool", "boskoop", "call-1-0"),
        ("tool", "ERROR: no such file", "call-1-1"),
        ("assistant", "The boskoop.", ""),
    ]
    (context,) = listed.contexts
    assert [step.cut for step in context.steps] == [2, 5]
    fidelity = context.fidelity
    assert (fidelity.system, fidelity.tools, fidelity.context) == ("recorded", "recorded", "complete")
    assert (context.tools[0].origin, listed.harness, context.steps[0].model) == (
        "recorded",
        "generic",
        "orchard/picker-7b",
    )
    assert told(tagged)[2:] == [
        ("assistant", "I list them.", 'call-2-0:terminal{"command":"ls ladders"}'),
        ("tool", '{"output":"a b","exit_code":0}', "call-2-0"),
        ("assistant", "Two.", ""),
    ]
    assert tagged.contexts[0].messages[2].reasoning == "A listing will do."
    assert tagged.contexts[0].fidelity.context == "approximate"
    assert (chat.harness, [m.role for m in chat.contexts[0].messages]) == (
        "openhands",
        ["user", "assistant", "user", "assistant"],
    )
    assert told(response) == [
        ("system", "Be brief.", ""),
        ("user", "Weigh the pears.", ""),
        ("assistant", "", 'call_1:weigh{"what": "pears"}'),
    ]


def test_a_rollout_of_nemo_gym_is_read_as_its_request_and_its_response(tmp_path: Path) -> None:
    weigh = {"type": "function_call", "call_id": "call_1", "name": "weigh", "arguments": '{"what": "pears"}'}
    items = [
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I weigh."}]},
        weigh | {"id": "fc_1", "status": "completed"},
        {"type": "function_call_output", "call_id": "call_1", "output": "3 kg"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "3 kg."}]},
    ]
    tool = {"type": "function", "name": "weigh", "parameters": {"type": "object", "properties": {}}}
    asked = {"input": [{"role": "user", "content": "Weigh the pears."}], "instructions": "Be brief."}
    row = {
        "responses_create_params": asked | {"tools": [tool], "model": None},
        "response": {"id": "resp_1", "object": "response", "model": "orchard/scales-1", "output": items},
        "reward": 1.0,
        "resolved": True,
        "instance_id": "orchard__scales-4",
    }
    (trace,), report = read(tmp_path, row)
    assert told(trace) == [
        ("system", "Be brief.", ""),
        ("user", "Weigh the pears.", ""),
        ("assistant", "I weigh.", 'call_1:weigh{"what": "pears"}'),
        ("tool", "3 kg", "call_1"),
        ("assistant", "3 kg.", ""),
    ]
    (context,) = trace.contexts
    assert [(step.cut, step.model) for step in context.steps] == [(cut, "orchard/scales-1") for cut in (2, 4)]
    assert [(tool.name, tool.origin) for tool in context.tools] == [("weigh", "recorded")]
    assert (trace.outcome, trace.instance_id, context.fidelity.context) == (
        "resolved",
        "orchard__scales-4",
        "complete",
    )
    assert (report.states, report.tool_calls, dict(report.skipped)) == (2, 1, {})
    other, counts = ingest_file(write(tmp_path, row | {"response": {"output": []}}))
    assert (other, sum(counts.skipped.values())) == ([], 1)


def test_a_call_without_a_result_loses_what_follows(tmp_path: Path) -> None:
    said = turns(("human", "go"), ("function_call", call()), ("function_call", call(path="b")))
    said += turns(("observation", "x"), ("gpt", "done"))
    (trace,), report = read(tmp_path, {"conversations": said})
    assert (trace.contexts[0].fidelity.context, trace.contexts[0].lost_from) == ("lost", 1)
    assert dict(report.flags) == {"row that lacks a result": 1}


def test_calls_of_one_turn_are_a_list_and_text_calls_stay_text(tmp_path: Path) -> None:
    both = f"<think>two</think>[{call(path='a')}, {call(path='b')}]"
    said = turns(("human", "go"), ("function_call", both), ("observation", "x"), ("observation", "y"))
    written = "I run it.\n<function=execute_bash><parameter=command>ls</parameter></function>"
    failed = "EXECUTION RESULT of [execute_bash]:\nno such file\n[The command completed with exit code 2.]"
    said += turns(("function_call", written), ("observation", "z"))
    said += turns(("function_call", written), ("observation", failed), ("gpt", "done"))
    (trace,), report = read(tmp_path, {"conversations": json.dumps(said), "agent": "CodeAct OpenHands"})
    assert told(trace)[1:] == [
        ("assistant", "", 'call-1-0:read{"path":"a"} call-1-1:read{"path":"b"}'),
        ("tool", "x", "call-1-0"),
        ("tool", "y", "call-1-1"),
        ("assistant", written, ""),
        ("user", "z", ""),
        ("assistant", written, ""),
        ("user", failed, ""),
        ("assistant", "done", ""),
    ]
    assert trace.contexts[0].messages[1].reasoning == "two"
    assert [m.is_error for m in trace.contexts[0].messages[-4:]] == [None, None, True, None]
    assert (trace.harness, report.tool_errors, dict(report.flags)) == ("openhands", 1, {})
    assert dict(report.skipped) == {}


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (turns(("narrator", "hm")), "speaker not understood: narrator"),
        (turns(("a b/c", "hm")), "speaker not understood: a name that is not a plain word"),
        (turns(("function", "hm")), "speaker not understood: function"),
        (turns(("gpt", ["hm"])), "value of a turn that is not text"),
        ([*turns(("gpt", "hm")), {"role": "tool", "content": "x"}], "turn without from and value"),
        ([{"from": "gpt", "value": "hm", "plan": "x"}], "key of a turn not understood: plan"),
        (turns(("function_call", "read a.py")), "tool call in a text not understood"),
        (turns(("function_call", '{"name": "read"}')), "tool call in a text not understood"),
        (turns(("function_call", "[]")), "tool call in a text not understood"),
        (
            turns(("gpt", "<tool_call>{'name': 1}</tool_call>")),
            "tool call in a text not understood",
        ),
        (turns(("gpt", f"<tool_call>{call()}")), "tool call in a text not understood"),
        (turns(("gpt", f"<tool_call>{call()}</tool_call> so")), "text behind a call of the same answer"),
        (
            turns(("gpt", "I look"), ("function_call", f"<think>hm</think>{call()}")),
            "thoughts behind other parts of the same answer",
        ),
        (
            turns(("gpt", "x"), ("tool", "so <tool_response>y</tool_response>")),
            "text beside a tool_response",
        ),
    ],
)
def test_a_row_that_is_not_understood_is_left_out_whole_and_named(
    tmp_path: Path, row: list[Any], reason: str
) -> None:
    human = turns(("human", "go"))
    plain = {"conversations": [*human, *turns(("gpt", "hi"))]}
    traces, report = read(tmp_path, {"conversations": human + row}, plain)
    assert (len(traces), dict(report.skipped)) == (1, {reason: 1})


WRITTEN = "I list them.\n\n<function=execute_bash>\n<parameter=command>ls</parameter>\n</function>"
FENCED = "I list them.\n\n```bash\nls crates\n```"


def test_answers_that_are_named_calls_are_texts_where_calls_stand_in_texts(tmp_path: Path) -> None:
    said = turns(("human", "Count."), ("function_call", "Ok."), ("human", "The crates."))
    said += turns(("function_call", WRITTEN), ("observation", "EXECUTION RESULT of [execute_bash]:\none"))
    said += turns(("function_call", FENCED), ("observation", "one"), ("function_call", "One crate."))
    (trace,), report = read(tmp_path, {"conversations": said, "system": "Act in Python."})
    assert told(trace) == [
        ("system", "Act in Python.", ""),
        ("user", "Count.", ""),
        ("assistant", "Ok.", ""),
        ("user", "The crates.", ""),
        ("assistant", WRITTEN, ""),
        ("user", "EXECUTION RESULT of [execute_bash]:\none", ""),
        ("assistant", FENCED, ""),
        ("user", "one", ""),
        ("assistant", "One crate.", ""),
    ]
    (context,) = trace.contexts
    assert [step.cut for step in context.steps] == [2, 4, 6, 8]
    assert (trace.harness, context.fidelity.context) == ("openhands", "approximate")
    assert (dict(report.skipped), dict(report.flags)) == ({}, {})


def test_answers_that_are_commands_are_those_of_mini_swe_agent(tmp_path: Path) -> None:
    said = turns(("human", "Count."), ("function_call", FENCED), ("observation", "one"))
    said += turns(("function_call", "One.\n\n<function=finish></function>"))
    (trace,), _ = read(tmp_path, {"conversations": said})
    assert [each[:2] for each in told(trace)[1:]] == [
        ("assistant", FENCED),
        ("user", "one"),
        ("assistant", "One.\n\n<function=finish></function>"),
    ]
    assert trace.harness == "mini_swe_agent"
    (state, _) = trace.states()
    calls = tool_or_text_calls(state.student_action, trace.harness)
    assert [(c.name, c.arguments) for c in calls] == [("bash", '{"command": "ls crates"}')]


def test_a_text_that_is_no_call_makes_no_answer_where_calls_are_json(tmp_path: Path) -> None:
    said = turns(("human", "go"), ("function_call", call()), ("observation", "x"))
    rows = [
        {"conversations": [*said, *turns(("function_call", "read a.py"))]},
        {"conversations": [*said[:1], *turns(("function_call", WRITTEN), ("function_call", '{"name": 1}'))]},
    ]
    traces, report = read(tmp_path, *rows)
    assert (traces, dict(report.skipped)) == ([], {"tool call in a text not understood": 2})


def test_calls_with_quoted_arguments_are_read(tmp_path: Path) -> None:
    quoted = """{"name": "weigh", "arguments": '{"what": "pears"}'}"""
    said = turns(("human", "Weigh."), ("function-call", quoted), ("function-response", '{"kg": 3}'))
    said += turns(("gpt", f"So. <functioncall> {quoted} <|endoftext|>"), ("function_response", "4"))
    said += turns(("gpt", "7 kg"))
    broken = turns(("human", "Weigh."), ("gpt", """<functioncall> {"name": "weigh", "arguments": '{"a}'}"""))
    (trace,), report = read(tmp_path, {"conversations": said}, {"conversations": broken})
    assert told(trace) == [
        ("user", "Weigh.", ""),
        ("assistant", "", 'call-1-0:weigh{"what": "pears"}'),
        ("tool", '{"kg": 3}', "call-1-0"),
        ("assistant", "So.", 'call-3-0:weigh{"what": "pears"}'),
        ("tool", "4", "call-3-0"),
        ("assistant", "7 kg", ""),
    ]
    assert trace.contexts[0].fidelity.context == "approximate"
    assert dict(report.skipped) == {"tool call in a text not understood": 1}


def test_messages_with_roles_of_calls_and_results_are_turns(tmp_path: Path) -> None:
    roles = ("user", "assistant", "tool_call", "tool_call", "tool_response", "tool_response", "assistant")
    texts = ("Weigh.", "Both.", call(path="a"), call(path="b"), "1", "2", "3 kg")
    listed = [{"role": role, "content": text} for role, text in zip(roles, texts, strict=True)]
    (trace,), report = read(tmp_path, {"messages": listed, "tools": "[]"})
    assert told(trace) == [
        ("user", "Weigh.", ""),
        ("assistant", "Both.", 'call-1-0:read{"path":"a"} call-1-1:read{"path":"b"}'),
        ("tool", "1", "call-1-0"),
        ("tool", "2", "call-1-1"),
        ("assistant", "3 kg", ""),
    ]
    assert (trace.harness, trace.contexts[0].fidelity.context) == ("generic", "complete")
    assert (dict(report.skipped), report.tool_calls) == ({}, 2)
    pq.write_table(pa.Table.from_pylist([{"id": "r1", "messages": listed}]), tmp_path / "t.parquet")
    (preview,) = preview_rows(TableSlice(tmp_path / "t.parquet", 0, 1, 1), "swe_gym")
    assert preview.steps == trace.step_count == 2


def valued(role: str, *parts: tuple[str, str]) -> dict[str, Any]:
    return {"role": role, "content": [{"type": kind, "value": value} for kind, value in parts]}


def test_parts_with_values_are_texts_thoughts_and_calls(tmp_path: Path) -> None:
    listed = [
        valued("system", ("text", "Be brief.")) | {"loss_weight": 0.0},
        valued("user", ("text", "Weigh.")),
        valued(
            "assistant", ("reasoning", "Both."), ("tool_call", call(path="a")), ("tool_call", call(path="b"))
        ),
        valued("tool", ("text", "1")),
        valued("tool", ("text", "2")),
        valued("assistant", ("reasoning", "Add."), ("text", "3"), ("text", "kg")),
    ]
    (trace,), report = read(tmp_path, {"messages": listed, "tools": "[]"})
    assert told(trace) == [
        ("system", "Be brief.", ""),
        ("user", "Weigh.", ""),
        ("assistant", "", 'call-2-0:read{"path":"a"} call-2-1:read{"path":"b"}'),
        ("tool", "1", "call-2-0"),
        ("tool", "2", "call-2-1"),
        ("assistant", "3\nkg", ""),
    ]
    assert [m.reasoning for m in trace.contexts[0].messages if m.role == "assistant"] == ["Both.", "Add."]
    assert (trace.harness, trace.contexts[0].fidelity.context) == ("generic", "complete")
    assert dict(report.skipped) == {}
    census = take_census([tmp_path]).found["swe_gym", "no version"]
    assert (census.unknown_kinds, census.unknown_keys) == ({}, {})


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (valued("user", ("image_url", "a.jpg")), "content part not understood: image_url"),
        (valued("assistant", ("tool_call", "read a")), "tool call in a text not understood"),
        (valued("assistant", ("tool_call", call()), ("text", "so")), "text behind a call of the same answer"),
        (
            valued("user", ("reasoning", "hm")),
            "thoughts or calls in a message that is not the agent's",
        ),
    ],
)
def test_parts_with_values_that_are_not_understood_leave_the_row_out(
    tmp_path: Path, message: dict[str, Any], reason: str
) -> None:
    row = {"messages": [valued("user", ("text", "go")), message, valued("assistant", ("text", "x"))]}
    traces, report = read(tmp_path, row)
    assert (traces, dict(report.skipped)) == ([], {reason: 1})


def test_transitions_of_one_run_are_its_last_and_others_are_counted(tmp_path: Path) -> None:
    asked = {"type": "message", "role": "user", "content": "Weigh the pears.", "is_env_state": True}
    weigh = {"type": "function_call", "call_id": "c1", "name": "weigh", "arguments": '{"what": "pears"}'}
    first = [asked, weigh, {"type": "function_call_output", "call_id": "c1", "output": "3"}]
    answer = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "3 kg"}]}
    hidden = [asked | {"content": "[hidden]"}, *first[1:], answer]
    rows = [
        {
            "responses_create_params": {"input": [], "instructions": "Be brief."},
            "response": {"id": f"resp_{place}", "model": "scales-1", "output": output},
        }
        for place, output in enumerate(([first, [*first, answer]], [first, hidden]))
    ]
    (trace,), report = read(tmp_path, *rows)
    assert told(trace) == [
        ("system", "Be brief.", ""),
        ("user", "Weigh the pears.", ""),
        ("assistant", "", 'c1:weigh{"what": "pears"}'),
        ("tool", "3", "c1"),
        ("assistant", "3 kg", ""),
    ]
    assert [(step.cut, step.model) for step in trace.contexts[0].steps] == [(2, "scales-1"), (4, "scales-1")]
    assert dict(report.skipped) == {"transitions that change what stood before": 1}


@pytest.mark.parametrize("column", ["images", "videos", "audios"])
def test_a_text_that_stands_for_an_image_makes_the_row_left_out(tmp_path: Path, column: str) -> None:
    text = f"<{column[:-1]}>what is it"
    said = turns(("human", text), ("gpt", "a pear"))
    chat = [{"role": "user", "content": text}, {"role": "assistant", "content": "an apple"}]
    rows: list[dict[str, Any]] = [{"conversations": said}, {"messages": chat}]
    traces, report = read(tmp_path, *(row | {column: ["a.bin"]} for row in rows), *rows)
    assert (len(traces), dict(report.skipped)) == (2, {"images beside the messages": 2})


def test_a_row_of_another_kind_is_named_by_what_it_looks_like(tmp_path: Path) -> None:
    plain = {"conversations": turns(("human", "go"), ("gpt", "hi"))}
    strange = {"conversations": [{"speaker": "me", "said": "x"}]}
    rows = [plain, {"instruction": "x", "output": "y"}, {"prompt": "x", "chosen": "y", "rejected": "z"}]
    traces, report = read(tmp_path, *rows, strange, {"secret of a user": 1})
    assert len(traces) == 1
    bare = "row without messages, trajectory or conversations"
    assert dict(report.skipped) == {
        f"{bare}: it looks like Alpaca instructions": 1,
        f"{bare}: it looks like preferences (chosen and rejected)": 1,
        "messages have no role but speaker, said": 1,
        bare: 1,
    }


@pytest.mark.parametrize("side", ["chosen", "rejected"])
def test_comparisons_are_no_sessions(tmp_path: Path, side: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"conversations": turns(("human", "go")), side: turns(("gpt", "hi"))}) + "\n")
    assert detect(path) is None


def test_a_table_of_turns_is_read_and_previewed_as_lines_are(tmp_path: Path) -> None:
    rows = [json.loads(line) for line in GOLDEN.read_text().splitlines()[:2]]
    keys = ("id", "model", "system", "tools", "conversations")
    pq.write_table(
        pa.Table.from_pylist([{key: row.get(key) for key in keys} for row in rows]), tmp_path / "t.parquet"
    )
    assert detect(tmp_path / "t.parquet") == "swe_gym"
    traces, report = ingest_file(tmp_path / "t.parquet")
    lines = ingest_file(GOLDEN)[0][:2]
    assert [told(trace) for trace in traces] == [told(trace) for trace in lines]
    assert [trace.trace_id for trace in traces] == [trace.trace_id for trace in lines]
    assert dict(report.skipped) == {}
    previews = list(preview_rows(TableSlice(tmp_path / "t.parquet", 0, 1, 1), "swe_gym"))
    assert [(each.number, each.steps, each.trace.step_count) for each in previews] == [
        (0, None, 1),
        (1, None, 1),
    ]


def test_a_census_names_speakers_that_are_not_known(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    said = [*turns(("human", "go"), ("narrator", "hm")), {"from": "gpt", "value": "x", "plan": "y"}]
    path.write_text(json.dumps({"conversations": said}) + "\n")
    found = take_census([path]).found["swe_gym", "no version"]
    assert (found.unknown_kinds, found.unknown_keys) == ({"turn narrator": 1}, {"turn gpt: plan": 1})


def test_a_session_of_turns_is_replayed_voted_on_and_paired(tmp_path: Path) -> None:
    said = turns(("system", "Mend the orchard."), ("human", "`ripe` in src/ripe.py drops pears. Keep them."))
    for path, output in (
        ("ripe.py", "ERROR: no such file"),
        ("src/ripe.py", "def ripe(): ..."),
        ("x.py", "y"),
    ):
        said += turns(("gpt", "I look."), ("function_call", call("read_file", path=path)))
        said += turns(("observation", output))
    said += turns(("function_call", call("run_command", command="pytest -q")), ("observation", "1 failed"))
    (trace,), _ = read(tmp_path, {"conversations": [*said, *turns(("gpt", "It keeps pears now."))]})
    states = list(trace.states())
    assert len(states) == 5
    asked_of_all = tm.ReplaySettings(stop="off")
    replies = tm.replay_trace_sync(
        states, teachers=PRESETS["simulated"].teachers, max_total_usd=1.0, settings=asked_of_all
    )
    assert (len(replies), [reply for reply in replies if reply.action is None]) == (20, [])
    pairs = tm.extract_dpo_pairs(states, replies, agreement_threshold=2)
    assert pairs
    operations = {pair.chosen_operation for pair in pairs} | {pair.rejected_operation for pair in pairs}
    assert operations <= {"read", "run_test", "run", "edit", "search", "finish"}
