"""SWE-agent runs, written as its versions write them together with what the agent was really sent."""

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from file_readers import file_reader
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tracemill.harnesses.operations import find_action_operation, find_action_target
from tracemill.ingesters.detect_format import detect
from tracemill.ingesters.discover import discover
from tracemill.ingesters.read_source import ingest_source
from tracemill.ingesters.swe_agent.ingest_trajectory import iter_traces
from tracemill.records.errors import SourceError
from tracemill.records.ingest_report import IngestReport
from tracemill.records.trace import Trace

ingest_file = file_reader("swe_agent", iter_traces)

SHELL = "\n(Open file: {})\n(Current directory: /repo)\nbash-$"
Sent = tuple[tuple[str, str, tuple[str, ...]], ...]


@dataclass
class Run:
    """A loop of SWE-agent: `version` 0 writes `history`, 1 `messages`, 2 `query`. `keep` is how many
    observations are sent whole, None for all. `sent` is the prompt of every answer, `answers` the answers."""

    version: int = 0
    by_calls: bool = False
    keep: int | None = None
    demo: bool = False
    history: list[dict[str, Any]] = field(default_factory=list)
    trajectory: list[dict[str, Any]] = field(default_factory=list)
    sent: list[Sent] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)
    count: int = 0

    def __post_init__(self) -> None:
        self._say("system", "You solve issues.", "system_prompt")
        if self.demo:
            self._say("user", "Here is how another solved one.", "demonstration", is_demo=True)
        self._say("user", "Fix it." + SHELL.format("n/a"), "observation")

    def _say(self, role: str, content: Any, kind: str, **more: Any) -> None:
        typed = {"message_type": kind} if self.version else {}
        self.history.append({"role": role, "content": content, "agent": "main", **typed, **more})

    def _prompt(self) -> list[dict[str, Any]]:
        """What is sent now: the first observation and the last `keep` whole, those between shortened."""
        places = [
            place
            for place, item in enumerate(self.history)
            if item["role"] in ("user", "tool") and not item.get("is_demo")
        ]
        old = places[1 : max(1, len(places) - (self.keep if self.keep is not None else len(places)))]
        return [
            item | {"content": "Old environment output: (1 lines omitted)"} if place in old else item
            for place, item in enumerate(self.history)
        ]

    def _ask(self, prompt: list[dict[str, Any]], answer: str) -> None:
        self.sent.append(tuple((i["role"], i["content"], _call_ids(i)) for i in prompt))
        self.answers.append(answer)

    def _record(self, action: str, observation: str, answer: str, prompt: list[dict[str, Any]]) -> None:
        state: Any = {"working_dir": "/repo", "open_file": "n/a"}
        step = {"action": action, "observation": observation, "response": answer, "thought": "I think."}
        step["state"] = state if self.version else json.dumps(state)
        if self.version == 1:
            step["messages"] = self._prompt()
        elif self.version == 2:
            step["query"] = prompt
        self.trajectory.append(step)

    def act(self, command: str = "", output: str = "") -> None:
        """An answer that is carried out."""
        self.count += 1
        command, output = command or f"cat f{self.count}.py", output or f"text of f{self.count}"
        answer = f"Look {self.count}." if self.by_calls else f"Look {self.count}.\n```\n{command}\n```"
        prompt = self._prompt()
        self._ask(prompt, answer)
        call_id = f"call_{self.count}"
        arguments = json.dumps({"command": command})
        calls = [{"id": call_id, "type": "function", "function": {"name": "bash", "arguments": arguments}}]
        extra: dict[str, Any] = {"tool_calls": calls} if self.by_calls else {}
        self._say("assistant", answer, "action", thought="I think.", action=command, **extra)
        told = {"tool_call_ids": [call_id]} if self.by_calls else {}
        if command != "submit":
            self._say("tool" if self.by_calls else "user", output + SHELL.format("a"), "observation", **told)
        self._record(command, output, answer, prompt)

    def refuse(self) -> None:
        """An answer without a command, asked again: it stands in no later prompt but the next."""
        self.count += 1
        answer = f"No command {self.count}."
        prompt = self._prompt()
        self._ask(prompt, answer)
        self._record("", "", answer, prompt)
        self.count += 1
        complaint = [
            {"role": "assistant", "content": answer, "agent": "main", "message_type": "assistant"},
            {"role": "user", "content": "Give a command.", "agent": "main", "message_type": "user"},
        ]
        again = [*prompt, *complaint]
        better = f"Then {self.count}.\n```\nls\n```"
        self._ask(again, better)
        self._say("assistant", better, "action", thought="I think.", action="ls")
        self._say("user", "a.py" + SHELL.format("a"), "observation")
        self._record("ls", "a.py", better, again)

    def value(self, **more: Any) -> dict[str, Any]:
        """The file."""
        info = {"exit_status": "submitted", "model_stats": {"tokens_sent": 9, "api_calls": self.count}}
        body = {"trajectory": self.trajectory, "history": self.history, "info": info}
        return {"environment": "main", **body, **more}


def _call_ids(item: dict[str, Any]) -> tuple[str, ...]:
    return tuple(call["id"] for call in item.get("tool_calls") or ())


def _seen(messages: Any) -> Sent:
    return tuple((m.role, m.content, tuple(call.id for call in m.tool_calls)) for m in messages)


def _write(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value, indent=2))
    return path


def _read(tmp_path: Path, run: Run, **more: Any) -> tuple[Trace, IngestReport]:
    (trace,), report = ingest_file(_write(tmp_path / "orchard__seedbank-12.traj", run.value(**more)))
    return trace, report


def _config(**agent: Any) -> str:
    return json.dumps({"agent": agent, "problem_statement": {"id": "orchard__seedbank-7"}})


@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize("by_calls", [False, True])
def test_every_step_sees_what_was_sent(tmp_path: Path, version: int, by_calls: bool) -> None:
    run = Run(version, by_calls, demo=True)
    for command in ("cat a.py", "edit 1:1\nx = 2\nend_of_edit", "submit"):
        run.act(command)
    trace, report = _read(tmp_path, run)
    (context,) = trace.contexts
    assert [_seen(state.messages) for state in trace.states()] == run.sent
    assert [state.student_action.text for state in trace.states()] == run.answers
    assert context.messages[1].content == "Here is how another solved one."
    assert context.fidelity.context == ("complete" if version else "approximate")
    assert (context.fidelity.system, context.fidelity.tools) == ("recorded", "absent")
    assert {step.cwd for step in context.steps} == {"/repo"}
    assert (trace.harness, trace.instance_id, trace.repository) == (
        "swe_agent", "orchard__seedbank-12", "orchard/seedbank",
    )  # fmt: skip
    does = [str(find_action_operation(state.student_action, trace.harness)) for state in trace.states()]
    assert does == ["read", "edit", "finish"]
    assert (report.steps_main, report.states, report.tool_calls) == (3, 3, 3 if by_calls else 0)
    assert report.records.total() == len(run.history)


def test_messages_of_1_0_are_the_prompt_of_the_next_step(tmp_path: Path) -> None:
    run = Run(1)
    for _ in range(3):
        run.act()
    own = run.trajectory[1]["messages"]
    assert own[-2]["content"] == run.answers[1]  # they hold their own step
    trace, _ = _read(tmp_path, run)
    second, third = list(trace.states())[1:]
    assert len(second.messages) == len(own) - 2
    assert [m.content for m in third.messages] == [item["content"] for item in own]
    assert not any(m.content.startswith("text of f2") for m in second.messages)


def test_query_of_1_1_is_the_prompt_of_its_own_step(tmp_path: Path) -> None:
    run = Run(2)
    for _ in range(3):
        run.act()
    trace, _ = _read(tmp_path, run)
    for state, step in zip(trace.states(), run.trajectory, strict=True):
        assert [m.content for m in state.messages] == [item["content"] for item in step["query"]]
        assert not any(m.content.startswith(step["observation"] + "\n") for m in state.messages)


@pytest.mark.parametrize("version", [1, 2])
def test_shortened_observations_start_a_context_each_and_0_x_says_approximate(
    tmp_path: Path, version: int
) -> None:
    run = Run(version, by_calls=True, keep=2)
    for _ in range(5):
        run.act()
    trace, report = _read(tmp_path, run)
    assert [_seen(state.messages) for state in trace.states()] == run.sent
    assert [(c.start, len(c.steps)) for c in trace.contexts] == [
        ("start", 3), ("microcompaction", 1), ("microcompaction", 1),
    ]  # fmt: skip
    assert {c.fidelity.context for c in trace.contexts} == {"complete"}
    assert report.compactions == 2
    assert all(state.results for state in trace.states())
    older = Run(0, by_calls=True, keep=2)
    for _ in range(5):
        older.act()
    trace, _ = _read(tmp_path, older)
    assert [(len(c.steps), c.fidelity.context) for c in trace.contexts] == [(5, "approximate")]


def test_cache_marks_start_no_context(tmp_path: Path) -> None:
    run = Run(2)
    for _ in range(3):
        run.act()
    for step in run.trajectory:
        last = dict(step["query"][-1])
        part = {"type": "text", "text": last["content"], "cache_control": {"type": "ephemeral"}}
        step["query"] = [*step["query"][:-1], last | {"content": [part]}]
    trace, _ = _read(tmp_path, run)
    assert [len(context.steps) for context in trace.contexts] == [3]
    assert [_seen(state.messages) for state in trace.states()] == run.sent


def test_a_refused_answer_is_a_step_and_in_the_next_prompt_alone(tmp_path: Path) -> None:
    run = Run(2)
    run.act()
    run.refuse()
    run.act()
    trace, report = _read(tmp_path, run)
    assert [_seen(state.messages) for state in trace.states()] == run.sent
    assert [state.student_action.text for state in trace.states()] == run.answers
    assert [(c.start, len(c.steps), c.fidelity.context) for c in trace.contexts] == [
        ("start", 3, "complete"), ("rewind", 1, "complete"),
    ]  # fmt: skip
    assert (report.steps_main, report.branches_real) == (4, 1)
    refused = list(trace.states())[1]
    assert find_action_operation(refused.student_action, trace.harness) == "other"


def test_1_0_does_not_record_the_complaint_and_says_so(tmp_path: Path) -> None:
    run = Run(1)
    run.act()
    run.refuse()
    run.act()
    trace, _ = _read(tmp_path, run)
    states = list(trace.states())
    exact = [_seen(state.messages) == sent for state, sent in zip(states, run.sent, strict=True)]
    assert exact == [True, True, False, True]
    known = {state.context.index: state.context.fidelity.context for state in states}
    assert [known[state.context.index] for state in states] == [
        "complete", "complete", "approximate", "approximate",
    ]  # fmt: skip


def test_a_step_cut_out_of_the_history_is_shown_what_the_next_one_was(tmp_path: Path) -> None:
    run = Run(0)
    for _ in range(3):
        run.act()
    del run.history[4:6]  # the second action and its result
    trace, report = _read(tmp_path, run)
    first, cut, last = trace.states()
    assert [state.student_action.text for state in (first, cut, last)] == run.answers
    assert [m.content for m in cut.messages] == [m.content for m in last.messages]
    assert [c.start for c in trace.contexts] == ["start", "rewind"]
    assert cut.context.messages[-1].content == "text of f2"
    assert (report.steps_main, report.states) == (3, 3)


def test_a_last_step_that_only_the_trajectory_holds_gets_its_call_back(tmp_path: Path) -> None:
    run = Run(1, by_calls=True)
    run.act()
    run.act("submit", "diff --git a b")
    for item in (run.history, run.trajectory[1]["messages"]):
        del item[4:]
    trace, report = _read(tmp_path, run)
    (call,) = list(trace.states())[-1].student_action.tool_calls
    assert (call.name, call.parsed()) == ("submit", {})
    assert trace.contexts[0].messages[-1].content == "diff --git a b"
    assert (report.steps_main, report.tool_calls) == (2, 1)
    assert report.flags["call rebuilt from the recorded command"] == 1


def test_the_word_of_the_harness_on_its_exit_is_no_step(tmp_path: Path) -> None:
    run = Run(2)
    run.act()
    word = "Exit due to cost limit"
    run.history.append({"role": "assistant", "content": word, "action": "", "agent": "main"})
    exit_step = {"action": "", "observation": "Exited (autosubmitted)", "response": word, "thought": word}
    run.trajectory.append(exit_step | {"query": [{}], "state": {}})
    trace, report = _read(tmp_path, run)
    assert trace.step_count == 1
    assert (report.steps_main, report.steps_synthetic, report.states) == (2, 1, 1)
    assert all(m.content != word for m in trace.contexts[0].messages)


def test_a_demonstration_is_a_history_alone(tmp_path: Path) -> None:
    run = Run(1, by_calls=True)
    run.act("open src/a.py 3")
    run.act("find_file b.py src")
    path = _write(tmp_path / "simple.traj", {"history": run.history})
    assert detect(path) == "swe_agent"
    (trace,), report = ingest_file(path)
    assert [_seen(state.messages) for state in trace.states()] == run.sent
    assert (report.steps_main, report.states, report.tool_calls) == (0, 2, 2)
    assert trace.contexts[0].fidelity.context == "approximate"


def test_a_trajectory_alone_has_lost_its_beginning(tmp_path: Path) -> None:
    run = Run(0)
    for _ in range(2):
        run.act()
    value = run.value()
    del value["history"]
    (trace,), _ = ingest_file(_write(tmp_path / "x.traj", value))
    assert [state.student_action.text for state in trace.states()] == run.answers
    assert {context.fidelity.context for context in trace.contexts} == {"lost"}


def test_messages_of_a_subroutine_are_not_shown_to_the_main_agent(tmp_path: Path) -> None:
    run = Run(0)
    run.act()
    run.history.insert(3, {"role": "user", "content": "for the helper", "agent": "helper"})
    trace, report = _read(tmp_path, run)
    assert all(m.content != "for the helper" for m in trace.contexts[0].messages)
    assert report.flags["message of another agent"] == 1


def test_failures_are_read_off_what_the_harness_writes(tmp_path: Path) -> None:
    run = Run(0)
    run.act("edit 1:1\nx\nend_of_edit", "Your proposed edit has introduced new syntax error(s).")
    run.act("sleep 99", "half\nEXECUTION TIMED OUT")
    run.act("ls", "a.py")
    trace, report = _read(tmp_path, run)
    told = [(m.is_error, m.error_kind) for m in trace.contexts[0].messages if m.role == "user"]
    assert told == [(None, None), (True, "tool_error"), (True, "timeout"), (None, None)]
    assert report.tool_errors == 2


@pytest.mark.parametrize(
    ("folder", "more", "model", "family"),
    [
        (
            "x",
            {"replay_config": _config(model={"name": "claude-sonnet-4-20250514"})},
            "claude-sonnet-4-20250514",
            "anthropic",
        ),
        ("x", {"replay_config": json.loads(_config(model={"model_name": "gpt4"}))}, "gpt4", "openai"),
        ("gpt4__swe-bench__default__t-0.00__p-0.95__c-3.00__install-1", {}, "gpt4", "openai"),
        (
            "default__deepseek--deepseek-chat__t-0.00__p-1.00__c-3.00___swe_bench",
            {},
            "deepseek/deepseek-chat",
            "deepseek",
        ),
        ("x", {"replay_config": _config(model={"name": "human_thought"})}, None, "unknown"),
        (
            "x",
            {"replay_config": _config(model={"name": "gpt-4o"}), "info": {"model_stats": {"tokens_sent": 0}}},
            None,
            "unknown",
        ),
        ("x", {"replay_config": "{broken"}, None, "unknown"),
    ],
)
def test_the_model_is_that_of_the_configuration_or_the_folder(
    tmp_path: Path, folder: str, more: dict[str, Any], model: str | None, family: str
) -> None:
    run = Run(2)
    run.act()
    (tmp_path / folder).mkdir()
    (trace,), _ = ingest_file(_write(tmp_path / folder / "i.traj", run.value(**more)))
    assert {(s.step.model, s.step.family) for s in trace.states()} == {(model, family)}
    told = "problem_statement" in str(more)
    assert trace.instance_id == ("orchard__seedbank-7" if told else "i")


def test_the_tools_offered_are_known_by_their_bundles(tmp_path: Path) -> None:
    run = Run(2, by_calls=True)
    run.act()
    bundles = [{"path": "tools/windowed", "hidden_tools": ["create"]}, {"path": "tools/submit"}]
    trace, _ = _read(
        tmp_path, run, replay_config=_config(tools={"bundles": bundles, "enable_bash_tool": True})
    )
    assert trace.seen_tools == ("bash", "open", "goto", "scroll_up", "scroll_down", "submit")


@pytest.mark.parametrize(
    ("name", "results", "outcome"),
    [
        ("results.json", {"resolved": ["orchard__seedbank-12"]}, "resolved"),
        ("results.json", {"resolved_ids": [], "completed_ids": ["orchard__seedbank-12"]}, "not_resolved"),
        ("results.json", {"resolved_ids": ["orchard__seedbank-1"]}, "unknown"),
        ("report.json", {"orchard__seedbank-12": {"resolved": True}}, "resolved"),
        ("report.json", {"orchard__seedbank-12": {"resolved": False}}, "not_resolved"),
        ("report.json", [1], "unknown"),
    ],
)
@pytest.mark.parametrize("above", [False, True])
def test_the_outcome_is_what_an_evaluation_left_beside(
    tmp_path: Path, name: str, results: Any, outcome: str, above: bool
) -> None:
    run = Run(2)
    run.act()
    folder = tmp_path / "orchard__seedbank-12"
    folder.mkdir()
    _write((tmp_path if above else folder) / name, results)
    trace, _ = _read(folder, run)
    assert trace.outcome == outcome


def test_results_beside_that_do_not_parse_are_named_and_stop_nothing(tmp_path: Path) -> None:
    run = Run(2)
    run.act()
    (tmp_path / "results.json").write_text("{")
    trace, report = _read(tmp_path, run)
    assert (trace.outcome, report.flags["results beside the run do not parse"]) == ("unknown", 1)


def test_results_of_an_evaluation_are_no_session(tmp_path: Path) -> None:
    _write(tmp_path / "results.json", {"resolved_ids": ["a__b-1"]})
    _write(tmp_path / "report.json", {"a__b-1": {"resolved": True}})
    _write(tmp_path / "preds.json", {"a__b-1": {"model_patch": "", "instance_id": "a__b-1"}})
    assert {source.dialect for source in discover([tmp_path])} == {"evaluation"}


def test_attempts_are_sessions_and_only_the_chosen_one_was_judged(tmp_path: Path) -> None:
    runs = [Run(2), Run(2)]
    runs[0].act("cat a.py")
    runs[1].act("cat b.py")
    attempts = [run.value() for run in runs]
    chosen = {**attempts[1], "info": {**attempts[1]["info"], "best_attempt_idx": 1}}
    _write(tmp_path / "results.json", {"resolved": ["orchard__seedbank-12"]})
    traces, report = ingest_file(
        _write(tmp_path / "orchard__seedbank-12.traj", {"attempts": attempts, **chosen})
    )
    assert [trace.outcome for trace in traces] == ["unknown", "resolved"]
    assert len({trace.trace_id for trace in traces}) == 2
    assert (report.steps_main, report.states) == (2, 2)


def test_a_table_of_runs_is_read_row_by_row(tmp_path: Path) -> None:
    rows = []
    for number in range(3):
        run = Run(2)
        run.act(f"cat {number}.py")
        rows.append(run.value(instance_id=f"orchard__seedbank-{number}", model="qwen/qwen3-coder"))
    path = tmp_path / "runs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert detect(path) == "swe_agent"
    traces, _ = ingest_file(path)
    assert [trace.instance_id for trace in traces] == [f"orchard__seedbank-{n}" for n in range(3)]
    assert {s.step.family for t in traces for s in t.states()} == {"qwen"}


# ---------------------------------------------------------------- broken input


@pytest.mark.parametrize(
    ("value", "skipped"),
    [
        ({"trajectory": None, "history": None}, {"neither trajectory nor history": 1}),
        (
            {"trajectory": "[", "history": []},
            {"part of a run that is not a list": 1, "neither trajectory nor history": 1},
        ),
        ({"history": [{"role": "user", "content": "x", "agent": "a"}]}, {"run without a step": 1}),
        (
            {"trajectory": [3, None], "history": ["x"]},
            {"run with content that is not understood": 1},
        ),
        ([4], {"run is not an object": 1}),
    ],
)
def test_what_is_no_run_is_counted_by_reason(tmp_path: Path, value: Any, skipped: dict[str, int]) -> None:
    traces, report = ingest_file(_write(tmp_path / "x.traj", value))
    assert (traces, dict(report.skipped)) == ([], skipped)


def test_a_cut_file_is_named_and_stops_no_other(tmp_path: Path) -> None:
    run = Run(2)
    run.act()
    whole = _write(tmp_path / "whole.traj", run.value()).read_text()
    (tmp_path / "cut.traj").write_text(whole[: len(whole) // 2])
    (tmp_path / "empty.traj").write_text("")
    with pytest.raises(SourceError, match=r"cut\.traj does not parse"):
        ingest_file(tmp_path / "cut.traj")
    read = {source.path.name: ingest_source(source) for source in discover([tmp_path])}
    assert {name: len(traces) for name, (traces, _) in read.items()} == {
        "whole.traj": 1, "cut.traj": 0, "empty.traj": 0,
    }  # fmt: skip
    assert "does not parse: not json" in str(read["cut.traj"][1].error)
    assert "empty.traj is empty" in str(read["empty.traj"][1].error)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_no_part_of_another_type_is_fatal(tmp_path: Path, version: int) -> None:
    run = Run(version, by_calls=True)
    run.act()
    run.act()
    value = run.value(
        replay_config={"agent": {"model": {"name": "x"}, "tools": {"bundles": [{"path": "a"}]}}}
    )
    copies = list(_broken_copies(value))
    assert len(copies) > 500
    path = tmp_path / "x.jsonl"
    path.write_text("".join(json.dumps(copy) + "\n" for copy in copies))
    traces, report = ingest_file(path)
    lost = sum(report.skipped[reason] for reason in _LOST)
    assert len(traces) + lost == len(copies)
    for trace in traces:
        _assert_laws(trace)


_LOST = (
    "run is not an object", "not an object", "run without a step", "neither trajectory nor history",
    "the same session twice", "run with content that is not understood",
)  # fmt: skip


def _broken_copies(value: Any) -> Any:
    """The value with each of its parts, in turn, replaced by values of other types."""
    if isinstance(value, dict | list):
        for key in range(len(value)) if isinstance(value, list) else value:
            for broken in _broken_copies(value[key]):
                copy = value.copy()
                copy[key] = broken
                yield copy
    yield from (None, True, -1, "x", [], [[]], {}, {"x": [1]})


# ---------------------------------------------------------------- laws


def _assert_laws(trace: Trace) -> None:
    """What holds of every trace."""
    for context in trace.contexts:
        cuts = [step.cut for step in context.steps]
        assert cuts == sorted(set(cuts))
        assert all(context.messages[cut].role == "assistant" for cut in cuts)
        assert [step.index for step in context.steps] == list(range(len(cuts)))
    for state in trace.states():
        own = {call.id for call in state.student_action.tool_calls}
        answered = [m.tool_call_id for m in state.messages if m.role == "tool"]
        assert not own & set(answered)
        assert len(answered) == len(set(answered))


RUNS = st.builds(
    Run,
    version=st.sampled_from([0, 1, 2]),
    by_calls=st.booleans(),
    keep=st.one_of(st.none(), st.integers(1, 3)),
    demo=st.booleans(),
)
MOVES = st.lists(st.sampled_from(["act", "refuse"]), min_size=1, max_size=8)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(run=RUNS, moves=MOVES)
def test_laws_of_generated_runs(tmp_path: Path, run: Run, moves: list[str]) -> None:
    for move in moves:
        if move == "refuse" and (run.by_calls or run.version == 0):
            run.act()
        else:
            getattr(run, move)()
    trace, report = _read(tmp_path, run)
    _assert_laws(trace)
    states = list(trace.states())
    assert [state.student_action.text for state in states] == run.answers
    assert report.states == report.steps_main == len(run.answers)
    for state, sent in zip(states, run.sent, strict=True):
        if state.context.fidelity.context == "complete":
            assert _seen(state.messages) == sent
    if run.version == 2:
        assert {context.fidelity.context for context in trace.contexts} == {"complete"}
    again, _ = _read(tmp_path, run)
    assert again == trace


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(order=st.permutations(range(4)), version=st.sampled_from([0, 1, 2]))
def test_a_run_keeps_its_identity_whatever_is_read_beside_it(
    tmp_path: Path, order: list[int], version: int
) -> None:
    rows = []
    for number in range(4):
        run = Run(version)
        run.act(f"cat {number}.py")
        rows.append(run.value(instance_id=f"orchard__seedbank-{number}"))
    path = tmp_path / "x.jsonl"
    path.write_text("".join(json.dumps(rows[number]) + "\n" for number in order))
    ids = {trace.instance_id: trace.trace_id for trace in ingest_file(path)[0]}
    alone = tmp_path / "elsewhere.json"
    for number, row in enumerate(rows):
        (trace,), _ = ingest_file(_write(alone, row))
        assert ids[f"orchard__seedbank-{number}"] == trace.trace_id


# ---------------------------------------------------------------- real runs

REAL = os.environ.get("TRACEMILL_REAL_TRACES")

if REAL:
    TRUTH = [
        t for t in json.loads((Path(REAL) / "ground_truth.json").read_text()) if t["format"] == "swe_agent"
    ]
    # Counted otherwise there, as docs/formats/swe_agent.md proves: shortened observations, a last step that
    # the history lacks.
    OTHER_LENGTH = {28719: 18200, 7163: 7702}

    @pytest.mark.parametrize("truth", TRUTH, ids=lambda truth: truth["file"][-60:])
    def test_real_counts_are_the_ground_truth(truth: dict[str, Any]) -> None:
        path = Path(REAL or "") / "swe_agent" / truth["file"]
        assert detect(path) == "swe_agent"
        (trace,), report = ingest_file(path)
        value = json.loads(path.read_text())
        assert report.steps_main == truth["steps_main"] == len(value.get("trajectory", []))
        assert report.tool_calls == truth["tool_calls"]
        assert report.records.total() == truth["records"]
        assert report.records["assistant"] == truth["assistant_msgs"]
        assert sum(bool(m.get("is_demo")) for m in value["history"]) == truth["demo_msgs"]
        longest = max(sum(len(m.content) for m in context.messages) for context in trace.contexts)
        assert longest == OTHER_LENGTH.get(truth["max_ctx_chars"], truth["max_ctx_chars"])
        assert report.skipped.total() == 0
        _assert_laws(trace)
        assert ingest_file(path)[0] == [trace]

    @pytest.mark.parametrize("truth", TRUTH, ids=lambda truth: truth["file"][-60:])
    def test_real_answers_are_the_commands_recorded_for_them(truth: dict[str, Any]) -> None:
        path = Path(REAL or "") / "swe_agent" / truth["file"]
        (trace,), _ = ingest_file(path)
        value = json.loads(path.read_text())
        steps = value.get("trajectory") or [m for m in value["history"] if m["role"] == "assistant"]
        for state, step in zip(trace.states(), steps, strict=True):
            first = step["action"].split(None, 1)[0]
            does = str(find_action_operation(state.student_action, trace.harness))
            known = {"open": "read", "goto": "read", "create": "create", "edit": "edit", "submit": "finish"}
            assert does == known.get(first, does)
            if first in ("open", "create"):
                assert find_action_target(state.student_action, trace.harness) == step["action"].split()[
                    1
                ].strip('"')
