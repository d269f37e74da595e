"""OpenHands files that are broken, and the real samples against their ground truth."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingesters.openhands import DIALECTS, ingest_file
from records.errors import SourceError


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


_NO_EVENTS = {
    "event is no object": 1,
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


def test_a_broken_event_file_of_a_folder_is_counted(tmp_path: Path) -> None:
    events = tmp_path / "events"
    events.mkdir()
    for event in _history():
        (events / f"{event['id']}.json").write_text(json.dumps(event))
    (events / "9.json").write_text('{"id": 9, ')
    (trace,), report = ingest_file(tmp_path, "openhands_events_v0")
    assert (trace.step_count, dict(report.skipped)) == (2, {"event file does not parse": 1})


def test_what_is_broken_as_a_whole_is_a_source_error(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text("{}")
    for dialect, wanted in (("openhands_events_v0", "list of events"), ("nothing", "choose one")):
        with pytest.raises(SourceError, match=wanted):
            ingest_file(path, dialect)
    with pytest.raises(SourceError):
        ingest_file(tmp_path / "absent.json", "openhands_eval_v0")


def _words(text: str) -> list[str]:
    return text.split()


_KEYS = _words(
    "id source action observation args extras content cause tool_call_metadata history kind llm_message "
    "tool_call forgotten_event_ids summary summary_offset tools system_prompt parent_id messages response "
    "metadata metrics microagent_knowledge recall_type model_response choices message tool_calls input "
    "llm_response_id issue instance name function arguments token_usages response_id"
)
_VALUES = _words(
    "agent user run edit message system condensation recall finish error delegate a assistant tool "
    "ActionEvent ObservationEvent MessageEvent Condensation SystemPromptEvent SystemPromptUpdateEvent "
    "AgentErrorEvent workspace_context"
)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 9) | st.sampled_from(_VALUES) | st.just(1.5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_KEYS), inner, max_size=5),
    max_leaves=25,
)


@settings(max_examples=200)
@given(
    st.sampled_from(DIALECTS),
    st.lists(st.dictionaries(st.sampled_from(_KEYS), _JSON, max_size=7), max_size=5),
)
def test_no_json_of_any_types_is_fatal(
    tmp_path_factory: Any, dialect: str, rows: list[dict[str, Any]]
) -> None:
    folder = tmp_path_factory.mktemp("fuzz")
    wrapped = [*rows, {"instance_id": "a__b-1", "history": rows}]
    path = _write(folder / "x.jsonl", *wrapped)
    if dialect.startswith("openhands_completion"):
        path = folder / "x.json"
        path.write_text(json.dumps(rows[0] if rows else {}))
    traces, report = ingest_file(path, dialect)
    assert len(traces) == report.traces


_JUNK: tuple[Any, ...] = (None, True, -1, "x", [], [[]], {}, {"x": [1]})
_V1 = [
    {"kind": "SystemPromptEvent", "id": "s", "system_prompt": {"text": "x"}, "tools": [{"title": "finish"}]},
    {"kind": "MessageEvent", "id": "u", "source": "user", "llm_message": {"content": [{"text": "go"}]}},
    {"kind": "ActionEvent", "id": "a", "llm_response_id": "r", "tool_call": {"id": "c", "name": "finish"}},
    {"kind": "ObservationEvent", "tool_call_id": "c", "observation": {"metadata": {"exit_code": 1}}},
    {"kind": "Condensation", "id": "k", "forgotten_event_ids": ["u"], "summary": "s", "summary_offset": 1},
    {"kind": "ActionEvent", "id": "b", "parent_id": "a", "thought": [{"text": "t"}], "action": {"x": "ls"}},
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


REAL = os.environ.get("TRACEMILL_REAL_TRACES")

if REAL:
    ROOT = Path(REAL) / "openhands"
    TRUTH = [
        t for t in json.loads((Path(REAL) / "ground_truth.json").read_text()) if t["format"] == "openhands"
    ]
    BY_FOLDER = {
        "eval_v0": "openhands_eval_v0",
        "gui_v0": "openhands_events_v0",
        "resolver_v0": "openhands_resolver_v0",
        "sdk_v1": "openhands_sdk_v1",
        "sdk_v1_conv": "openhands_sdk_v1",
        "sdk_v1_completions": "openhands_completion_v1",
    }

    @pytest.mark.parametrize("truth", TRUTH, ids=lambda truth: truth["file"])
    def test_real_counts_are_the_ground_truth(truth: dict[str, Any]) -> None:
        path = ROOT / truth["file"].removesuffix("/events/*")
        traces, report = ingest_file(path, BY_FOLDER[truth["file"].split("/")[0]])
        for name in ("steps_main", "tool_calls", "tool_errors", "compactions"):
            assert getattr(report, name) == truth.get(name, getattr(report, name)), name
        if "types" in truth:
            assert dict(report.records) == truth["types"]
        assert report.states == sum(t.step_count for t in traces)
        for state in (state for trace in traces for state in trace.states()):
            answered = [m.tool_call_id for m in state.messages if m.role == "tool"]
            assert not {call.id for call in state.student_action.tool_calls} & set(answered)
            assert len(answered) == len(set(answered))

    @pytest.mark.parametrize("run", ["20260121-223755", "20260121-204008"])
    def test_rebuilt_prompts_are_those_logged(run: str) -> None:
        (trace,), _ = ingest_file(ROOT / "sdk_v1_conv" / run, "openhands_sdk_v1")
        logs = sorted((ROOT / "sdk_v1_conv" / run).glob("telemetry*/*.json"))
        for path, state in zip(logs, trace.states(), strict=True):
            (logged,), _ = ingest_file(path, "openhands_completion_v1")
            (exact,) = logged.states()
            assert [m.to_wire() for m in state.messages] == [m.to_wire() for m in exact.messages]
            assert state.student_action == exact.student_action
            assert [t.name for t in state.context.tools] == [t.name for t in exact.context.tools]
        assert [c.start for c in trace.contexts] == ["start", "tools_changed"]
