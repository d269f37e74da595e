"""OpenHands rows of evaluations and of the resolver, and completion logs."""

import json
from pathlib import Path
from typing import Any

from ingesters.openhands import ingest_file
from ingesters.openhands_v0_text import cut_middle


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


def test_the_same_row_twice_is_one_trace_and_counted(tmp_path: Path) -> None:
    traces, report = ingest_file(_write(tmp_path / "o.jsonl", _row(), _row()), "openhands_eval_v0")
    assert (len(traces), report.traces, report.skipped["the same session twice"]) == (1, 1, 1)


def test_long_texts_are_cut_in_the_middle() -> None:
    assert cut_middle("a" * 10, 10) == "a" * 10
    cut = cut_middle("a" * 60 + "b" * 60, 100)
    assert cut.startswith("a" * 50 + "\n[")
    assert cut.endswith("]\n" + "b" * 50)


def test_a_completion_log_is_the_exact_prompt_and_its_answer(tmp_path: Path) -> None:
    call = {
        "id": "c2",
        "type": "function",
        "function": {"name": "terminal", "arguments": '{"command":"make"}'},
    }
    failed = "x\n[Command finished with exit code 2]"
    log = {
        "messages": [
            {"role": "system", "content": [{"type": "text", "text": "sys"}]},
            {"role": "user", "content": [{"type": "text", "text": "hi"}]},
            {"role": "assistant", "tool_calls": [{**call, "id": "c1"}]},
            {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": failed}]},
        ],
        "tools": [{"title": "terminal", "description": "Our own words", "kind": "TerminalTool"}],
        "response": {
            "id": "r",
            "model": "claude-x",
            "choices": [{"message": {"content": "again", "tool_calls": [call]}}],
            "usage": {"prompt_tokens": 12, "completion_tokens": 4},
        },
    }
    path = tmp_path / "log.json"
    path.write_text(json.dumps(log))
    (trace,), report = ingest_file(path, "openhands_completion_v1")
    (state,) = trace.states()
    assert [(m.role, m.content) for m in state.messages][:2] == [("system", "sys"), ("user", "hi")]
    assert (state.messages[3].is_error, state.messages[3].error_kind) == (True, "exit_code")
    assert state.student_action.tool_calls[0].arguments == '{"command":"make"}'
    assert (state.step.family, state.step.usage.prompt_tokens, report.steps_main) == ("anthropic", 12, 1)
    (tool,) = state.context.tools
    assert (tool.name, tool.description, tool.origin) == ("terminal", "Our own words", "stand_in")


def test_a_completion_log_of_the_responses_api(tmp_path: Path) -> None:
    log = {
        "instructions": "sys",
        "input": [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
            {"type": "function_call", "call_id": "c1", "name": "finish", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "ok"},
        ],
        "response": {"id": "r", "model": "gpt-5", "output": [
            {"type": "reasoning"},
            {"type": "message", "content": [{"type": "output_text", "text": "bye"}]},
            {"type": "function_call", "call_id": "c2", "name": "finish", "arguments": "{}"},
        ]},
    }  # fmt: skip
    path = tmp_path / "log.json"
    path.write_text(json.dumps(log))
    (trace,), _ = ingest_file(path, "openhands_completion_v1")
    messages = trace.contexts[0].messages
    assert [(m.role, m.content, [c.id for c in m.tool_calls]) for m in messages] == [
        ("system", "sys", []),
        ("user", "hi", []),
        ("assistant", "", ["c1"]),
        ("tool", "ok", []),
        ("assistant", "bye", ["c2"]),
    ]
