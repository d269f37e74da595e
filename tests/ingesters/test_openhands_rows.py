"""OpenHands rows of evaluations and of the resolver, whole and broken."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tracemill.ingesters.detect_format import detect
from tracemill.ingesters.openhands.ingest_files import ingest_file
from tracemill.ingesters.openhands.v0.observation_text import cut_middle


def _write(path: Path, *rows: Any) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def _history(code: int = 0) -> list[dict[str, Any]]:
    function = {"name": "execute_bash", "arguments": '{"command":"ls"}'}
    calls = [{"id": "c1", "type": "function", "function": function}]
    message = {"role": "assistant", "content": "look", "tool_calls": calls}
    usage = {"prompt_tokens": 7, "completion_tokens": 3}
    response = {"id": "r1", "model": "deepseek-v3", "choices": [{"message": message}], "usage": usage}
    meta = {"function_name": "execute_bash", "tool_call_id": "c1", "model_response": response}
    knowledge = [{"name": "git", "trigger": "git", "content": "about git"}]
    recalled = {"recall_type": "knowledge", "microagent_knowledge": knowledge}
    seen = {"cause": 2, "content": "a", "extras": {"metadata": {"exit_code": code}}}
    return [
        {"id": 0, "source": "user", "action": "message", "args": {"content": "fix"}},
        {"id": 1, "source": "environment", "observation": "recall", "content": "", "extras": recalled},
        {"id": 2, "source": "agent", "action": "run", "args": {"command": "ls"}, "tool_call_metadata": meta},
        {"id": 3, "source": "agent", "observation": "run", "tool_call_metadata": meta, **seen},
        {"id": 4, "source": "agent", "action": "finish", "args": {"outputs": {}, "thought": "done"}},
    ]


def _row(**fields: Any) -> dict[str, Any]:
    return {
        "instance_id": "orchard__seedbank-12",
        "metadata": {"llm_config": {"model": "openai/configured", "max_message_chars": 30000}},
        "history": _history(),
        "metrics": {
            "token_usages": [
                {"response_id": "r1", "prompt_tokens": 90, "completion_tokens": 5, "cache_read_tokens": 60}
            ]
        },
        "error": None,
        "test_result": {"report": {"resolved": True}},
        "instance": {"repo": "orchard/seedbank"},
        **fields,
    }


def test_an_evaluation_row_carries_verdict_ids_model_and_usage(tmp_path: Path) -> None:
    path = _write(
        tmp_path / "output.jsonl",
        _row(),
        _row(instance_id="orchard__seedbank-13", test_result={"git_patch": ""}),
    )
    (solved, open_), report = ingest_file(path, "openhands_eval_v0")
    assert (solved.outcome, open_.outcome) == ("resolved", "unknown")
    assert (solved.instance_id, solved.repository) == ("orchard__seedbank-12", "orchard/seedbank")
    first, last = solved.contexts[0].steps
    assert (first.model, first.family) == ("deepseek-v3", "deepseek")
    assert (first.usage.prompt_tokens, first.usage.completion_tokens, first.usage.cached_tokens) == (
        90,
        5,
        60,
    )
    assert last.model == "deepseek-v3"
    assert solved.trace_id != open_.trace_id
    assert report.traces == 2
    # the evaluation harness does not show recalled knowledge, the product does
    assert all("about git" not in m.content for m in solved.contexts[0].messages)
    shown, _ = ingest_file(_write(tmp_path / "gui.jsonl", *_history()), "openhands_events_v0")
    assert any("about git" in m.content for m in shown[0].contexts[0].messages)


def test_outcomes_of_every_kind(tmp_path: Path) -> None:
    rows = [
        _row(instance_id="a__b-1", test_result={"report": {"resolved": False}}),
        _row(instance_id="a__b-2", test_result=None, resolved=True),
        _row(instance_id="a__b-3", test_result=None, success=False),
        _row(instance_id="a__b-4", test_result=None, error="RuntimeError: too many turns"),
    ]
    traces, report = ingest_file(_write(tmp_path / "o.jsonl", *rows), "openhands_eval_v0")
    assert [t.outcome for t in traces] == ["not_resolved", "resolved", "not_resolved", "unknown"]
    assert report.flags["run ended with an error"] == 1


def test_a_history_of_pairs_gives_the_messages_of_its_list_of_events(tmp_path: Path) -> None:
    events = [e for e in _history() if e.get("observation") != "recall"]
    pairs = [
        [events[0], {"observation": "null", "content": "", "extras": {}}],
        [events[1], {**events[2], "cause": None}],
        [events[3]],
    ]
    (paired,), _ = ingest_file(_write(tmp_path / "p.jsonl", _row(history=pairs)), "openhands_eval_v0")
    (listed,), _ = ingest_file(_write(tmp_path / "l.jsonl", _row(history=events)), "openhands_eval_v0")
    assert paired.contexts[0].messages == listed.contexts[0].messages


def test_a_row_of_another_benchmark(tmp_path: Path) -> None:
    action = {"id": 2, "source": "agent", "action": "run_ipython", "args": {"code": "1 + 1", "thought": "\n"}}
    seen = {
        "id": 3,
        "source": "agent",
        "observation": "run_ipython",
        "content": "2",
        "cause": 2,
        "extras": {},
    }
    row = {
        "id": "Riddle_1",
        "instruction": "solve it",
        "metadata": {"agent_class": "CodeActAgent", "model_name": "gpt-4o-2024-05-13"},
        "history": [[_history()[0], {"observation": "null", "content": "", "extras": {}}], [action, seen]],
        "test_result": {"result": False},
    }
    path = _write(tmp_path / "output.jsonl", row)
    assert detect(path) == "openhands_eval_v0"
    (trace,), _ = ingest_file(path, "openhands_eval_v0")
    assert (trace.instance_id, trace.repository, trace.outcome) == ("Riddle_1", None, "not_resolved")
    (step,) = trace.contexts[0].steps
    assert (step.model, step.family) == ("gpt-4o-2024-05-13", "openai")


def test_a_resolver_row_has_its_calls_rebuilt(tmp_path: Path) -> None:
    history = [
        {"action": "message", "content": "solve it", "wait_for_response": False},
        {"action": "run", "command": "touch a", "thought": "first", "is_confirmed": "confirmed"},
        {"observation": "run", "content": "", "command": "touch a", "exit_code": 0, "command_id": -1},
        {"action": "run_ipython", "code": "edit()", "thought": "then", "kernel_init_code": "import x"},
        {"observation": "run_ipython", "content": "ERROR: no such line", "code": "edit()"},
        {"action": "finish", "outputs": {}, "thought": "done"},
    ]
    row = {"issue": {"owner": "o", "repo": "r", "number": 5}, "history": history, "success": True}
    (trace,), report = ingest_file(_write(tmp_path / "output.jsonl", row), "openhands_resolver_v0")
    calls = [(c.name, c.arguments) for s in trace.states() for c in s.student_action.tool_calls]
    assert calls == [
        ("execute_bash", '{"command":"touch a"}'),
        ("execute_ipython_cell", '{"code":"edit()"}'),
        ("finish", "{}"),
    ]
    assert [(r.name, r.is_error) for s in trace.states() for r in s.results] == [
        ("execute_bash", False),
        ("execute_ipython_cell", True),
    ]
    assert (trace.outcome, trace.repository, trace.instance_id) == ("resolved", "o/r", "o__r-5")
    assert report.flags["call rebuilt from its action"] == 3


def test_runs_without_times_are_told_apart_by_all_they_did(tmp_path: Path) -> None:
    def run(last: str) -> dict[str, Any]:
        start = [{"action": "message", "content": "solve it"}, {"action": "run", "command": "ls"}]
        end = [{"observation": "run", "content": "a", "exit_code": 0}, {"action": "run", "command": last}]
        issue = {"owner": "o", "repo": "r", "number": 5}
        return {"issue": issue, "history": [*start, *end], "success": last == "a"}

    traces, report = ingest_file(_write(tmp_path / "o.jsonl", run("a"), run("b")), "openhands_resolver_v0")
    assert [t.outcome for t in traces] == ["resolved", "not_resolved"]
    fidelity = traces[0].contexts[0].fidelity
    assert (fidelity.system, fidelity.tools, fidelity.context) == ("absent", "absent", "complete")
    again, _ = ingest_file(
        _write(tmp_path / "o.jsonl", run("b"), {"x": 1}, run("a")), "openhands_resolver_v0"
    )
    assert [t.trace_id for t in again] == [t.trace_id for t in traces[::-1]]
    assert report.traces == 2


def _read_call(content: str) -> list[dict[str, Any]]:
    """A file read, and what it showed."""
    function = {"name": "str_replace_editor", "arguments": '{"command":"view","path":"/a"}'}
    message = {"content": "", "tool_calls": [{"id": "toolu_02", "function": function}]}
    response = {"id": "r2", "choices": [{"message": message}]}
    meta = {"function_name": "str_replace_editor", "tool_call_id": "toolu_02", "model_response": response}
    return [
        {"id": 3, "source": "agent", "action": "read", "args": {"path": "/a"}, "tool_call_metadata": meta},
        {"id": 3, "source": "agent", "observation": "read", "content": content, "tool_call_metadata": meta},
    ]


def test_what_a_run_says_of_itself(tmp_path: Path) -> None:
    history = _history()
    for event in (history[2], history[3]):
        meta = json.loads(json.dumps(event["tool_call_metadata"]).replace('"c1"', '"toolu_01"'))
        del meta["model_response"]["model"]
        event["tool_call_metadata"] = meta
    history[3]["content"] = "b" * 150
    history[4:4] = _read_call("c" * 150)
    metadata = {
        "llm_config": {"model": "openai/configured", "max_message_chars": 100},
        "eval_output_dir": "outputs/CodeActAgent/gpt_maxiter_50_N_v0.35.0-no-hint-run_1",
        "agent_config": {"enable_prompt_extensions": True},
    }
    usages = [
        {"response_id": "r1", "model": "meta-llama/llama-4-maverick", "prompt_tokens": 90},
        {"response_id": "condenser", "prompt_tokens": 1},
    ]
    metrics = {"accumulated_cost": 0.125, "token_usages": usages}
    row = _row(history=history, metadata=metadata, metrics=metrics)
    (trace,), report = ingest_file(_write(tmp_path / "o.jsonl", row), "openhands_eval_v0")
    assert (trace.harness_version, trace.notes) == ("0.35.0", {"reported_cost_micro_usd": 125_000})
    assert [step.family for step in trace.contexts[0].steps] == ["meta", "meta", "meta"]
    (result,), (read,), _ = (state.results for state in trace.states())
    assert read.content == "c" * 150  # its tool cut it, if anything did
    assert result.content.startswith("b" * 50 + "\n[... Observation truncated due to length ...]\n")
    assert report.flags == {
        "response in the metrics without an event": 1,
        "tools and calls are text in the prompt": 1,
        "call rebuilt from its action": 1,  # the finish bears none
        "retrieved context as a stand-in": 1,
    }


def test_a_cost_that_is_no_number_is_no_cost(tmp_path: Path) -> None:
    rows = [
        _row(instance_id=f"a__b-{n}", metrics={"accumulated_cost": c})
        for n, c in enumerate((float("inf"), float("nan"), 1e308, -1, "x"))
    ]
    traces, _ = ingest_file(_write(tmp_path / "o.jsonl", *rows), "openhands_eval_v0")
    assert [trace.notes for trace in traces] == [{}] * 5


def test_columns_of_json_text_are_what_they_hold(tmp_path: Path) -> None:
    (whole,), _ = ingest_file(_write(tmp_path / "o.jsonl", _row()), "openhands_eval_v0")
    packed = {key: value if isinstance(value, str) else json.dumps(value) for key, value in _row().items()}
    cut = packed | {"history": packed["history"][:-1]}
    table = tmp_path / "o.parquet"
    pq.write_table(pa.Table.from_pylist([packed, cut]), table)
    assert detect(table) == "openhands_eval_v0"
    (trace,), report = ingest_file(table, "openhands_eval_v0")
    assert (trace.contexts, trace.outcome, trace.repository) == (
        whole.contexts,
        "resolved",
        "orchard/seedbank",
    )
    assert trace.trace_id == whole.trace_id
    assert dict(report.skipped) == {"row without a history": 1}


def test_recalled_context_tells_the_workspace_and_each_knowledge_once(tmp_path: Path) -> None:
    recalled = {
        "recall_type": "workspace_context",
        "repo_name": "orchard/seedbank",
        "repo_directory": "/workspace/seedbank",
        "repo_instructions": "run make",
        "runtime_hosts": {"host-1": 8080},
        "date": "2026-01-01",
        "microagent_knowledge": [{"name": "git", "trigger": "git", "content": "about git"}],
    }
    again = {"recall_type": "knowledge", "microagent_knowledge": recalled["microagent_knowledge"]}
    history = [
        _history()[0],
        {"id": 1, "source": "environment", "observation": "recall", "content": "", "extras": recalled},
        {"id": 2, "source": "environment", "observation": "recall", "content": "", "extras": again},
        {"id": 3, "source": "agent", "action": "message", "args": {"content": "ok"}},
    ]
    path = tmp_path / "gui.json"
    path.write_text(json.dumps({"trajectory": history}))
    (trace,), report = ingest_file(path, "openhands_events_v0")
    (state,) = trace.states()
    assert [m.role for m in state.messages] == ["user", "user"]
    for text in (
        "orchard/seedbank",
        "/workspace/seedbank",
        "run make",
        "host-1 (8080)",
        "2026-01-01",
        "about git",
    ):
        assert state.messages[1].content.count(text) == 1
    assert report.flags == {"retrieved context as a stand-in": 1}


def test_an_edit_that_a_model_wrote_is_shown_in_another_form(tmp_path: Path) -> None:
    history = _history()
    history[3] |= {"observation": "edit", "content": "diff", "extras": {"impl_source": "llm_based_edit"}}
    _, report = ingest_file(_write(tmp_path / "o.jsonl", _row(history=history)), "openhands_eval_v0")
    assert report.flags["edit result in another form than shown"] == 1


def test_the_same_row_twice_is_one_trace_and_counted(tmp_path: Path) -> None:
    traces, report = ingest_file(_write(tmp_path / "o.jsonl", _row(), _row()), "openhands_eval_v0")
    assert (len(traces), report.traces, report.skipped["the same session twice"]) == (1, 1, 1)


def test_long_texts_are_cut_in_the_middle() -> None:
    assert cut_middle("a" * 10, 10) == "a" * 10
    cut = cut_middle("a" * 60 + "b" * 60, 100)
    assert cut.startswith("a" * 50 + "\n[")
    assert cut.endswith("]\n" + "b" * 50)


_NO_EVENTS = {
    "event is not an object": 1,
    "event is neither action nor observation": 1,
    "session without a step": 1,
}


@pytest.mark.parametrize(
    ("content", "skipped"),
    [
        ("", {"empty file": 1}),
        ('{"instance_id": "a__b-1", "history": [', {"not json": 1}),
        ('"text"\n[1]\n', {"not an object": 2}),
        ('{"instance_id": "a__b-1"}\n', {"row without a history": 1}),
        ('{"instance_id": "a__b-1", "history": []}\n', {"row without a history": 1}),
        ('{"history": [1, {"x": 1}]}\n', _NO_EVENTS),
    ],
)  # fmt: skip
def test_broken_rows_are_counted_and_stop_nothing(
    tmp_path: Path, content: str, skipped: dict[str, int]
) -> None:
    path = tmp_path / "output.jsonl"
    path.write_text(content)
    traces, report = ingest_file(path, "openhands_eval_v0")
    assert (traces, dict(report.skipped)) == ([], skipped)
    if content:
        path.write_text(json.dumps(_row()) + "\n" + content)
        traces, report = ingest_file(path, "openhands_eval_v0")
        assert (len(traces), dict(report.skipped)) == (1, skipped)


_JUNK: tuple[Any, ...] = (None, True, -1, "x", [], [[]], {}, {"x": [1]})
_V1 = [
    {"kind": "SystemPromptEvent", "id": "s", "system_prompt": {"text": "x"}, "tools": [{"title": "finish"}]},
    {"kind": "MessageEvent", "id": "u", "source": "user", "llm_message": {"content": [{"text": "go"}]}},
    {
        **{"kind": "ActionEvent", "id": "a", "llm_response_id": "r"},
        "tool_call": {"id": "c", "name": "finish", "arguments": "{}"},
    },
    {"kind": "ObservationEvent", "tool_call_id": "c", "observation": {"metadata": {"exit_code": 1}}},
    {"kind": "Condensation", "id": "k", "forgotten_event_ids": ["u"], "summary": "s", "summary_offset": 1},
    {
        "kind": "ActionEvent",
        "id": "b",
        "parent_id": "a",
        "thought": [{"text": "t"}],
        "tool_name": "run",
        "action": {"x": "ls"},
    },
]


def _broken_copies(value: Any) -> Iterator[Any]:
    """The value with each of its parts, in turn, replaced by values of other types."""
    if isinstance(value, dict | list):
        for key in range(len(value)) if isinstance(value, list) else value:
            for broken in _broken_copies(value[key]):
                copy = value.copy()
                copy[key] = broken
                yield copy
    yield from _JUNK


@pytest.mark.parametrize(
    ("dialect", "whole"),
    [("openhands_eval_v0", _row()), ("openhands_eval_v0", _row(history=_V1))],
    ids=["v0", "v1"],
)
def test_no_part_of_another_type_is_fatal(tmp_path: Path, dialect: str, whole: dict[str, Any]) -> None:
    copies = list(_broken_copies(whole))
    path = _write(tmp_path / "x.jsonl", *copies)
    traces, report = ingest_file(path, dialect)
    whole_rows = (
        "not an object",
        "row without a history",
        "session without a step",
        "the same session twice",
    )
    assert len(copies) > 250
    assert report.traces == len(traces) >= 5
    assert report.traces + sum(report.skipped[reason] for reason in whole_rows) == len(copies)
