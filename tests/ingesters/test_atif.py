"""ATIF trajectories: prompts of what came before, copied steps, subagents, rewards, and what is not read."""

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import tracemill as tm
from tracemill.harnesses.operations import find_operation_and_target
from tracemill.ingesters.census import take_census
from tracemill.ingesters.detect_format import detect
from tracemill.ingesters.discover import discover
from tracemill.ingesters.read_source import ingest_source
from tracemill.records.ingest_report import IngestReport
from tracemill.records.message import ErrorKind
from tracemill.records.trace import Trace
from tracemill.teachers.core.presets import PRESETS

PLACE = Path(__file__).resolve().parents[1] / "golden" / "inputs" / "atif"
REAL = os.environ.get("TRACEMILL_REAL_TRACES")


def _read(path: Path) -> tuple[list[Trace], IngestReport]:
    (source,) = discover([path])
    assert source.dialect == "atif"
    traces, report = ingest_source(source)
    assert report.error is None
    return traces, report


def _write(path: Path, steps: list[Any], **more: Any) -> Path:
    head = {"schema_version": "ATIF-v1.7", "session_id": "s", "agent": {"name": "openhands", "version": "1"}}
    path.write_text(json.dumps({**head, "steps": steps, **more}))
    return path


def test_a_prompt_is_the_steps_before_the_answer() -> None:
    (trace,), report = _read(PLACE / "recorded_tools")
    (context,) = trace.contexts
    assert [step.cut for step in context.steps] == [2, 4, 6, 8, 10]
    assert [m.role for m in context.messages] == ["system", "user", *(["assistant", "tool"] * 4), "assistant"]
    assert [find_operation_and_target(s.student_action, trace.harness) for s in trace.states()] == [
        ("read", "src/row.py"), ("read", "src/rows.py"), ("edit", "src/rows.py"), ("run_test", "pytest"),
        ("finish", None),
    ]  # fmt: skip
    assert [m.is_error for m in context.messages if m.role == "tool"] == [True, False, None, False]
    fidelity = context.fidelity
    assert (fidelity.system, fidelity.tools, fidelity.context) == ("recorded", "recorded", "approximate")
    assert (trace.outcome, trace.harness, report.tool_errors) == ("resolved", "openhands", 1)
    usage = context.steps[0].usage
    assert (usage.completion_tokens, usage.cached_tokens, usage.cost_usd) == (10, 50, 0.001)
    assert context.messages[8].reasoning == "Test it."


def test_keys_of_terminus_are_commands_and_its_end_is_an_end() -> None:
    (trace,), _ = _read(PLACE / "keys_in_one_terminal")
    assert [find_operation_and_target(s.student_action, trace.harness) for s in trace.states()] == [
        ("list", "."), ("create", "hello.txt"), ("read", "hello.txt"), ("finish", None), ("finish", None),
    ]  # fmt: skip
    assert {m.role for m in trace.contexts[0].messages} == {"user", "assistant"}


def test_a_compaction_begins_a_context_that_lacks_its_history() -> None:
    (trace,), report = _read(PLACE / "a_compaction")
    assert [(c.start, c.fidelity.context, len(c.steps)) for c in trace.contexts] == [
        ("start", "approximate", 1), ("compaction", "lost", 2),
    ]  # fmt: skip
    assert report.compactions == 1


def test_a_compaction_that_holds_what_replaced_the_history_shows_it(tmp_path: Path) -> None:
    def note(*texts: str, kind: str = "compaction", boundary: str = "replace") -> dict[str, Any]:
        results = [{"content": text} for text in texts]
        managed = {"context_management": {"type": kind, "boundary": boundary}}
        return {"source": "system", "message": "", "observation": {"results": results}, "extra": managed}

    path = _write(
        tmp_path / "trajectory.json",
        [
            {"source": "system", "message": "You count trees."},
            {"source": "user", "message": "Count."},
            {"source": "agent", "message": "One."},
            note("One tree is counted."),
            {"source": "agent", "message": "Two."},
            note("Nothing is left.", kind="reset"),
            {"source": "user", "message": "Go on."},
            {"source": "agent", "message": "Three."},
            note(""),
            {"source": "agent", "message": "Four."},
            note("A remark.", boundary="append"),
            {"source": "agent", "message": "Five."},
        ],
    )
    (trace,), report = _read(path)
    assert [[message.content for message in state.messages] for state in trace.states()] == [
        ["You count trees.", "Count."],
        ["You count trees.", "One tree is counted."],
        ["You count trees.", "Nothing is left.", "Go on."],
        [],
        [],
    ]
    assert [(c.start, c.fidelity.context, c.fidelity.system) for c in trace.contexts] == [
        ("start", "approximate", "recorded"), ("compaction", "approximate", "recorded"),
        ("compaction", "approximate", "recorded"), ("compaction", "lost", "absent"),
        ("compaction", "lost", "absent"),
    ]  # fmt: skip
    assert report.compactions == 4


def test_a_flag_of_a_result_is_believed_before_its_text(tmp_path: Path) -> None:
    def result(number: int, text: str, **extra: Any) -> dict[str, Any]:
        return {"source_call_id": f"c{number}", "content": text, "extra": extra}

    results = [
        result(1, "no such bed", is_error=True),
        result(2, "Error: is what the page says", is_error=False),
        result(3, "Exit code: 2", note="x"),
        result(4, "half", is_error=False),
        result(4, "torn", is_error=True),
    ]
    calls = [{"tool_call_id": f"c{n}", "function_name": "look", "arguments": {}} for n in range(1, 5)]
    acts = {"source": "agent", "message": "", "tool_calls": calls, "observation": {"results": results}}
    path = _write(tmp_path / "trajectory.json", [{"source": "user", "message": "Look."}, acts])
    (trace,), report = _read(path)
    (state,) = trace.states()
    assert [(m.content, m.is_error, m.error_kind) for m in state.results] == [
        ("no such bed", True, ErrorKind.UNKNOWN),
        ("Error: is what the page says", False, None),
        ("Exit code: 2", True, ErrorKind.EXIT_CODE),
        ("half\ntorn", True, ErrorKind.UNKNOWN),
    ]
    assert report.tool_errors == 3


@pytest.mark.parametrize(("agent", "failed"), [("codex", 3), ("openhands", 0)])
def test_results_of_codex_fail_in_its_words(tmp_path: Path, agent: str, failed: int) -> None:
    head = "Chunk ID: 1a\nWall time: 0.1 seconds\nProcess exited with code"
    texts = [
        f"{head} 1\nOutput:\nno bed",
        f"Command: grep bed\n{head} 2\nOutput:\n",
        f"{head} 0\nOutput:\nProcess exited with code 1",
        "exec_command failed for `ls`",
    ]
    calls = [{"tool_call_id": f"c{n}", "function_name": "exec_command", "arguments": {}} for n in range(4)]
    results = [{"source_call_id": f"c{n}", "content": text} for n, text in enumerate(texts)]
    acts = {"source": "agent", "message": "", "tool_calls": calls, "observation": {"results": results}}
    steps = [{"source": "user", "message": "Look."}, acts]
    path = _write(tmp_path / "trajectory.json", steps, agent={"name": agent, "version": "1"})
    (trace,), report = _read(path)
    (state,) = trace.states()
    assert report.tool_errors == failed == sum(result.is_error is True for result in state.results)


def test_copied_steps_are_shown_and_no_steps() -> None:
    (trace,), report = _read(PLACE / "a_continued_trajectory")
    assert (trace.contexts[0].start, trace.step_count) == ("compaction", 2)
    assert [m.content for m in next(trace.states()).messages][2:] == [
        "What is done?",
        "Two trees are counted.",
    ]
    assert report.flags == {"answer copied from another trajectory": 1}


def test_continued_trajectories_beside_each_other_are_one_session(tmp_path: Path) -> None:
    def step(source: str, text: str, **more: Any) -> dict[str, Any]:
        return {"source": source, "message": text} | more

    later = {"name": "terminus-2", "extra": {"continuation_index": 1}}
    child = {"session_id": "side", "agent": {"name": "x"}, "steps": [step("user", "?"), step("agent", "!")]}
    first = _write(
        tmp_path / "trajectory.json",
        [step("user", "Count."), step("agent", "One.")],
        continued_trajectory_ref="trajectory.cont-1.json",
    )
    _write(
        tmp_path / "trajectory.cont-1.json",
        [step("user", "Count."), step("agent", "Asked.", is_copied_context=True), step("agent", "Two.")],
        agent=later,
        subagent_trajectories=[child],
        continued_trajectory_ref="trajectory.cont-2.json",
    )
    last = _write(
        tmp_path / "trajectory.cont-2.json", [step("user", "On."), step("agent", "Three.")], agent=later
    )
    _write(tmp_path / "other.json", [step("user", "Count."), step("agent", "Nine.")])
    assert [source.path.name for source in discover([tmp_path])] == ["other.json", "trajectory.json"]
    (trace, side), report = _read(first)
    assert [(c.index, c.start, len(c.steps)) for c in trace.contexts] == [
        (0, "start", 1), (1, "compaction", 1), (2, "compaction", 1),
    ]  # fmt: skip
    assert {context.fidelity.context for context in trace.contexts} == {"approximate"}
    assert [state.student_action.text for state in trace.states()] == ["One.", "Two.", "Three."]
    assert (side.kind, side.parent_trace_id, trace.notes["live_context"]) == ("side", trace.trace_id, 2)
    assert report.bytes == sum(each.stat().st_size for each in tmp_path.glob("trajectory*.json"))
    last.unlink()
    (trace, _), report = _read(first)
    assert len(trace.contexts) == 2
    assert report.flags["continued trajectory that is not beside it"] == 1


def test_subagents_are_side_traces_of_the_call_that_started_them() -> None:
    traces, report = _read(PLACE / "subagents")
    main, side = traces
    assert (side.kind, side.parent_trace_id) == ("side", main.trace_id)
    assert side.parent_call_id == next(main.states()).student_action.tool_calls[0].id
    assert (report.steps_main, report.steps_side) == (2, 2)


def test_what_no_model_did_is_no_step() -> None:
    (trace,), report = _read(PLACE / "notes_of_the_harness")
    assert trace.step_count == 2
    assert report.flags == {
        "note of the harness, not known to be shown": 1,
        "step without action": 1,
        "step of the agent that no model made": 1,
    }


def test_an_image_in_a_file_is_a_placeholder() -> None:
    (trace,), _ = _read(PLACE / "images")
    assert trace.contexts[0].messages[0].content.startswith("What is this?\n[image: by address, blake2b ")


def test_the_verdict_is_the_reward_in_the_trajectory_or_beside_it(tmp_path: Path) -> None:
    assert _read(PLACE / "version_1_4")[0][0].outcome == "not_resolved"
    steps = [
        {"step_id": 1, "source": "user", "message": "Go."},
        {"step_id": 2, "source": "agent", "message": "Ok."},
    ]
    (tmp_path / "agent").mkdir()
    (tmp_path / "verifier").mkdir()
    path = _write(tmp_path / "agent" / "trajectory.json", steps)
    assert _read(path)[0][0].outcome == "unknown"
    (tmp_path / "verifier" / "reward.txt").write_text("1.0\n")
    assert _read(path)[0][0].outcome == "resolved"


def test_what_is_not_understood_is_left_out_and_counted(tmp_path: Path) -> None:
    steps = [
        {"step_id": 1, "source": "user", "message": [{"type": "hologram"}]},
        {"step_id": 2, "source": "agent", "message": "Ok.", "tool_calls": [{"arguments": {}}]},
    ]
    traces, report = _read(_write(tmp_path / "a.json", steps))
    assert traces == []
    assert report.skipped == {"run with content that is not understood": 1}
    assert report.unknown == {"message hologram": 1, "message tool_call": 1}
    traces, report = _read(_write(tmp_path / "b.json", [1]))
    assert (traces, report.skipped) == ([], {"steps are not a list of steps": 1})
    cut = tmp_path / "c.json"
    cut.write_text((tmp_path / "a.json").read_text()[:-20])
    assert detect(cut) == "atif"
    _, report = ingest_source(discover([cut])[0])
    assert report.error is not None
    assert "does not parse" in report.error


def test_an_unknown_key_and_a_version_that_was_not_checked_are_counted(tmp_path: Path) -> None:
    steps = [
        {"step_id": 1, "source": "user", "message": "Go.", "future_key": 1},
        {"step_id": 2, "source": "agent", "message": "Ok."},
    ]
    _, report = _read(_write(tmp_path / "a.json", steps))
    assert (report.flags, report.unknown) == ({}, {"step key future_key": 1})
    for version in ("ATIF-v1.9", "ATIF-v2.0", "ATIF-v1.10"):
        path = _write(tmp_path / "a.json", steps, schema_version=version)
        (trace,), report = _read(path)
        assert report.flags == {"trajectory of a version of ATIF that this reader was not checked with": 1}
        assert trace.contexts[0].fidelity.context == "approximate"
        census = take_census([path]).to_json()["formats"][0]
        assert census["unknown_kinds"] == {"version unverified": 1}


def test_what_stands_behind_a_call_without_a_result_is_lost(tmp_path: Path) -> None:
    call = {"tool_call_id": "a", "function_name": "count", "arguments": {}}
    steps = [
        {"source": "user", "message": "Go."},
        {"source": "agent", "message": "One.", "tool_calls": [call]},
        {"source": "agent", "message": "Two."},
    ]
    (trace,), _ = _read(_write(tmp_path / "a.json", steps))
    assert [state.fidelity.context for state in trace.states()] == ["approximate", "lost"]
    steps[1]["observation"] = {"results": [{"source_call_id": "a", "content": "9"}]}
    (trace,), _ = _read(_write(tmp_path / "a.json", steps))
    assert [state.fidelity.context for state in trace.states()] == ["approximate", "approximate"]


def test_further_results_of_a_call_are_joined_and_equal_ones_are_left_out(tmp_path: Path) -> None:
    def call(number: int) -> dict[str, Any]:
        return {"tool_call_id": "a", "function_name": "count", "arguments": {"bed": number}}

    def observed(*texts: str) -> dict[str, Any]:
        return {"results": [{"source_call_id": "a", "content": text} for text in texts]}

    failed = "[The command completed with exit code 2.]"
    steps = [
        {"source": "user", "message": "Go."},
        {
            "source": "agent",
            "message": "",
            "tool_calls": [call(1)],
            "observation": observed("9", "9", failed, "9"),
        },
        {"source": "agent", "message": "", "tool_calls": [call(2)], "observation": observed("8")},
        {
            "source": "agent",
            "message": "",
            "tool_calls": [call(3), call(4)],
            "observation": observed("7", "6", "", "5"),
        },
    ]
    (trace,), report = _read(_write(tmp_path / "a.json", steps))
    messages = trace.contexts[0].messages
    assert [(c.id, c.arguments) for m in messages for c in m.tool_calls] == [
        ("a", '{"bed":1}'),
        ("a_2", '{"bed":2}'),
        ("a_3", '{"bed":3}'),
        ("a_4", '{"bed":4}'),
    ]
    assert [(m.tool_call_id, m.content, m.is_error) for m in messages if m.role == "tool"] == [
        ("a", f"9\n{failed}", True),
        ("a_2", "8", None),
        ("a_3", "7", None),
        ("a_4", "6\n5", None),
    ]
    assert (report.states, report.tool_calls, report.tool_errors) == (3, 4, 1)
    assert report.skipped == {"second result of one call": 3}
    assert report.flags == {"further result of one call, joined to the one before": 2}


def test_tools_without_schemas_are_not_recorded(tmp_path: Path) -> None:
    steps = [{"step_id": 1, "source": "user", "message": "Go."}, {"source": "agent", "message": "Ok."}]
    agent = {"name": "x", "version": "1", "tool_definitions": [{"function": {"name": "count"}}]}
    (trace,), _ = _read(_write(tmp_path / "a.json", steps, agent=agent))
    assert (trace.contexts[0].tools[0].origin, trace.contexts[0].fidelity.tools) == ("inferred", "absent")


def test_a_trajectory_is_asked_about_and_paired() -> None:
    (trace,), _ = _read(PLACE / "recorded_tools")
    states = list(trace.states())
    replies = tm.replay_trace_sync(
        states,
        teachers=PRESETS["simulated"].teachers,
        max_total_usd=1.0,
        settings=tm.ReplaySettings(stop="off"),
    )
    pairs = tm.extract_dpo_pairs(states, replies, agreement_threshold=2)
    assert len(replies) == 4 * 5
    assert pairs
    assert all("context=approximate" in pair.presentation for pair in pairs)


if REAL:
    ROOT = Path(REAL) / "atif"
    TRUTH = [t for t in json.loads((Path(REAL) / "ground_truth.json").read_text()) if t["format"] == "atif"]

    @pytest.mark.parametrize("truth", TRUTH, ids=lambda truth: truth["file"])
    def test_counts_are_the_ground_truth_and_those_of_the_json(truth: dict[str, Any]) -> None:
        traces, report = _read(ROOT / truth["file"])
        steps = json.loads((ROOT / truth["file"]).read_text())["steps"]
        copied = sum(step["source"] == "agent" and bool(step.get("is_copied_context")) for step in steps)
        assert report.records == truth["types"] == Counter(step["source"] for step in steps)
        assert (report.steps_main + copied, report.tool_calls) == (truth["steps_main"], truth["tool_calls"])
        assert (report.skipped, report.unknown, report.bytes) == ({}, {}, truth["bytes"])
        said = [message.content for message in traces[0].contexts[0].messages if message.role == "assistant"]
        assert said == [step["message"] for step in steps if step["source"] == "agent"]
