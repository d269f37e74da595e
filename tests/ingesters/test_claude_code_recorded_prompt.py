"""Claude Code since about 2.1.267: the system prompt, the tools and the reminders that the file records."""

from pathlib import Path
from typing import Any

import pytest
from claude_code_records import answer, boundary, ingest, line, read, says, summary, texts, user

from tracemill.harnesses.presentation import Presentation, present_all
from tracemill.records.message import ToolSpec
from tracemill.records.trace import Trace

NEW = {"version": "2.1.287"}
SYSTEM = ["You are an agent.\n", "# Tone\nShort — é.", "__SYSTEM_PROMPT_DYNAMIC_BOUNDARY__", "# Last\n"]
JOINED = "You are an agent.\n\n\n# Tone\nShort — é.\n\n# Last\n"
BASH = {
    "name": "Bash",
    "description": "Runs  a command.\n",
    "schema": {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {
            "command": {"type": "string"},
            "limit": {"anyOf": [{"type": "null"}], "default": None},
        },
        "required": ["command"],
        "additionalProperties": False,
    },
}
FIND = {"name": "mcp__docs__find", "description": "Finds.", "schema": {"type": "object", "properties": {}}}


def attached(uuid: str, parent: str | None, rendered: Any = ..., role: str = "system", **fields: Any) -> Any:
    """An attachment of a new version; `rendered` are the texts that the model was shown."""
    extra = {} if rendered is ... else {"rendered": [{"content": text} for text in rendered]}
    if extra:
        extra |= {"renderedRole": role, "renderedInHumanTurn": extra["rendered"]}
    return line("attachment", uuid, parent, attachment=fields, **extra, **NEW)


def snapshot(uuid: str, parent: str | None, system: list[str], tools: list[Any] | None = None) -> Any:
    given = {} if tools is None else {"tools": tools}
    more = {"reminderFold": False, "echoWireToolInputs": False, "contextRendering": "announced"}
    return attached(uuid, parent, type="prompt_snapshot", systemPrompt=system, **given, **more)


def session() -> list[dict[str, Any]]:
    return [
        snapshot("p1", None, ["You are an agent.\n", "# Tone\nShort \ufffd é."]),
        snapshot("p2", "p1", SYSTEM, [BASH]),
        attached(
            "a1",
            "p2",
            ["<system-reminder>\nlist:\n- x\n</system-reminder>"],
            type="skill_listing",
            content="x",
        ),
        attached("a2", "a1", ["Today is\t2026-10-01."], "user", type="date", date="2026-10-01"),
        user("1", "a2", "go", **NEW),
        says("2", "1", "m1", ("c1", "Bash", {"command": "ls"}), **NEW),
        answer("3", "2", "c1", "a.py", **NEW),
        says("4", "3", "m2", "done", **NEW),
    ]


def presented(trace: Trace) -> dict[int, Presentation]:
    return present_all(trace)


def test_system_prompt_tools_and_reminders_are_the_recorded_bytes(tmp_path: Path) -> None:
    traces, report = ingest(tmp_path, *session())
    (context,) = traces[0].contexts
    assert texts(context.messages) == [
        f"system:{JOINED}",
        "system:<system-reminder>\nlist:\n- x\n</system-reminder>",
        "user:Today is\t2026-10-01.",
        "user:go",
        "assistant:",
        "tool:a.py",
        "assistant:done",
    ]
    assert context.tools == (ToolSpec("Bash", BASH["description"], BASH["schema"], "recorded"),)
    fidelity = [(s.fidelity.system, s.fidelity.tools, s.fidelity.context) for s in traces[0].states()]
    assert fidelity == [("recorded", "recorded", "complete")] * 2
    assert (report.flags, report.skipped) == ({}, {})
    shown = presented(traces[0])[0]
    assert shown.kind == "system=recorded,tools=recorded,later_system=user"
    assert shown.tools == context.tools
    assert [message.content for message in shown.messages][:4] == [
        message.content for message in context.messages[:4]
    ]
    assert shown.cuts == (4, 6)


def test_a_rendered_text_stands_in_the_role_that_its_record_names(tmp_path: Path) -> None:
    def note(uuid: str, parent: str, role: str | None, text: str) -> Any:
        record = attached(uuid, parent, [text], type="skill_listing", content="x")
        del record["renderedRole"]
        return record if role is None else record | {"renderedRole": role}

    def session_with(*roles: str | None) -> list[Any]:
        notes = [note(f"n{at}", "3", role, f"note {at}") for at, role in enumerate(roles)]
        return [*session()[:2], user("1", "p2", "go", **NEW), *session()[5:7], *notes, *session()[7:]]

    traces, report = ingest(tmp_path, *session_with("system", "user", None))
    (context,) = traces[0].contexts
    assert texts(context.messages)[4:7] == ["system:note 0", "user:note 1", "user:note 2"]
    assert [state.fidelity.context for state in traces[0].states()] == ["complete", "complete"]
    assert report.flags == {}
    shown = presented(traces[0])[0]
    assert texts(shown.messages)[1:7] == [
        "user:go",
        "assistant:",
        "tool:a.py",
        "user:note 0",
        "user:note 1",
        "user:note 2",
    ]
    assert shown.kind == "system=recorded,tools=recorded,later_system=user"

    traces, report = ingest(tmp_path, *session_with("developer"))
    assert texts(traces[0].contexts[0].messages)[4] == "user:note 0"
    assert [state.fidelity.context for state in traces[0].states()] == ["complete", "approximate"]
    assert report.flags == {"rendered text of unknown role": 1}
    assert presented(traces[0])[0].kind == "system=recorded,tools=recorded,context=approximate"


def test_a_rendered_text_of_the_system_is_never_taken_for_the_system_prompt(tmp_path: Path) -> None:
    """Without a snapshot it is the first message; no request begins with it."""
    records = session()[2:]
    trace = read(tmp_path, records[0] | {"parentUuid": None}, *records[1:])
    (context,) = trace.contexts
    assert texts(context.messages)[:3] == [
        "user:<system-reminder>\nlist:\n- x\n</system-reminder>",
        "user:Today is\t2026-10-01.",
        "user:go",
    ]
    assert (context.fidelity.system, context.fidelity.context) == ("absent", "approximate")
    shown = presented(trace)[0]
    assert shown.kind == "system=stand_in,tools=stand_in,context=approximate"
    assert "stand-in" in shown.messages[0].content


def test_the_prefix_of_the_program_stands_before_the_prompt_once(tmp_path: Path) -> None:
    fields = {"type": "prompt_snapshot", "systemPrompt": ["You are it.\nBe.", "Two"], "tools": []}
    for prefix, expected in (
        ("You are CC.", "You are CC.\n\nYou are it.\nBe.\n\nTwo"),
        ("You are it.", "You are it.\nBe.\n\nTwo"),
    ):
        trace = read(
            tmp_path,
            attached("p", None, cliPrefix=prefix, **fields),
            user("1", "p", "go", **NEW),
            says("2", "1", "m1", "hi", **NEW),
        )
        assert trace.contexts[0].messages[0].content == expected


def test_a_compaction_without_a_snapshot_keeps_the_prompt_and_one_with_takes_the_last(tmp_path: Path) -> None:
    behind = [
        boundary("b1", {}, **NEW),
        summary("s1", "b1") | NEW,
        says("5", "s1", "m3", "one", **NEW),
        boundary("b2", {}, **NEW),
        summary("s2", "b2") | NEW,
        snapshot("p3", "s2", ["Another."]),
        snapshot("p4", "p3", ["Another."], [BASH, FIND]),
        user("6", "p4", "more", **NEW),
        says("7", "6", "m4", "two", **NEW),
    ]
    traces, report = ingest(tmp_path, *session(), *behind)
    contexts = traces[0].contexts
    assert [c.start for c in contexts] == ["start", "compaction", "compaction"]
    assert [c.messages[0].content for c in contexts] == [JOINED, JOINED, "Another."]
    assert [[tool.name for tool in c.tools] for c in contexts] == [
        ["Bash"],
        ["Bash"],
        ["Bash", "mcp__docs__find"],
    ]
    assert texts(contexts[2].messages) == [
        "system:Another.",
        "user:the summary",
        "user:more",
        "assistant:two",
    ]
    assert report.flags == {}


def test_a_clear_without_a_snapshot_keeps_the_prompt_and_one_with_takes_the_last(tmp_path: Path) -> None:
    traces, report = ingest(
        tmp_path,
        *session(),
        user("5", None, "anew", **NEW),
        says("6", "5", "m3", "one", **NEW),
        snapshot("p3", None, ["Another."]),
        snapshot("p4", "p3", ["Another."], [BASH, FIND]),
        user("7", "p4", "and anew", **NEW),
        says("8", "7", "m4", "two", **NEW),
    )
    contexts = traces[0].contexts
    assert [c.start for c in contexts] == ["start", "clear", "clear"]
    assert [texts(c.messages) for c in contexts[1:]] == [
        [f"system:{JOINED}", "user:anew", "assistant:one"],
        ["system:Another.", "user:and anew", "assistant:two"],
    ]
    assert [len(c.tools) for c in contexts] == [1, 1, 2]
    fidelity = [(s.fidelity.system, s.fidelity.tools, s.fidelity.context) for s in traces[0].states()]
    assert fidelity == [("recorded", "recorded", "complete")] * 4
    assert report.flags == {}


def test_a_prompt_that_changes_in_mid_session_begins_a_context(tmp_path: Path) -> None:
    traces, report = ingest(
        tmp_path,
        *session(),
        snapshot("p3", "4", SYSTEM, [BASH, FIND]),
        user("5", "p3", "again", **NEW),
        says("6", "5", "m3", "yes", **NEW),
        snapshot("p4", "6", SYSTEM, [BASH, FIND]),
    )
    contexts = traces[0].contexts
    assert [(c.start, len(c.steps), len(c.tools)) for c in contexts] == [
        ("start", 2, 1),
        ("tools_changed", 1, 2),
    ]
    assert contexts[1].messages[: len(contexts[0].messages)] == contexts[0].messages
    assert report.flags == {}


def test_tools_that_are_recorded_behind_the_first_step_are_of_that_step(tmp_path: Path) -> None:
    late = session()
    late.insert(6, late.pop(1) | {"parentUuid": "2"})
    late[1]["parentUuid"] = "p1"
    traces, _ = ingest(tmp_path, *late)
    (context,) = traces[0].contexts
    assert (context.messages[0].content, [tool.name for tool in context.tools]) == (JOINED, ["Bash"])


def test_a_step_of_another_version_has_no_recorded_prompt(tmp_path: Path) -> None:
    traces, _ = ingest(
        tmp_path,
        *session(),
        user("5", "4", "next week", version="2.1.290"),
        says("6", "5", "m3", "yes", version="2.1.290"),
    )
    contexts = traces[0].contexts
    assert [c.fidelity.system for c in contexts] == ["recorded", "absent"]
    assert [p.kind.partition(",")[0] for p in presented(traces[0]).values()] == [
        "system=recorded",
        "system=stand_in",
    ]


def test_every_tool_that_was_used_is_declared_or_flagged(tmp_path: Path) -> None:
    entry = {
        "name": "WebFetch",
        "description": "Fetches.",
        "input_schema": {"type": "object"},
        "defer_loading": True,
    }
    unused = {"name": "CronList", "description": "Lists.", "input_schema": {"type": "object"}}
    traces, report = ingest(
        tmp_path,
        *session(),
        attached("d", "4", type="deferred_tools_record", entries=[entry, unused]),
        user("5", "d", "web", **NEW),
        says(
            "6",
            "5",
            "m3",
            ("c2", "WebFetch", {"url": "u"}),
            ("c3", "Mystery", {"n": 1}),
            ("c4", "Made", {}),
            **NEW,
        ),
        answer("7", "6", "c2", "page", **NEW),
        answer("8", "7", "c3", "fine", **NEW),
        answer("9", "8", "c4", "<tool_use_error>Error: No such tool available: Made</tool_use_error>", **NEW),
        says("10", "9", "m4", "ok", **NEW),
    )
    (context,) = traces[0].contexts
    assert [(tool.name, tool.origin) for tool in context.tools] == [
        ("Bash", "recorded"),
        ("WebFetch", "recorded"),
        ("Mystery", "inferred"),
    ]
    assert report.flags == {"tool that was used and not declared": 1}
    assert presented(traces[0])[0].kind == "system=recorded,tools=recorded+inferred,later_system=user"


def test_a_reminder_in_our_words_is_never_complete(tmp_path: Path) -> None:
    records = session()
    del records[3]["rendered"], records[2]["rendered"]
    trace = read(tmp_path, *records)
    assert [state.fidelity.context for state in trace.states()] == ["approximate", "approximate"]
    early = [user("0", None, "hi", **NEW), says("0a", "0", "m0", "hello", **NEW)]
    trace = read(
        tmp_path, *early, records[2] | {"parentUuid": "0a"}, records[4] | {"parentUuid": "a1"}, *records[5:]
    )
    assert [state.fidelity.context for state in trace.states()] == ["complete", "approximate", "approximate"]


def test_a_version_that_renders_shows_nothing_of_what_it_did_not_render(tmp_path: Path) -> None:
    records = session()
    del records[3]["rendered"]
    records[3]["attachment"] = {"type": "hologram"}
    trace, report = ingest(tmp_path, *records)
    assert texts(trace[0].contexts[0].messages)[1:3] == [
        "system:<system-reminder>\nlist:\n- x\n</system-reminder>",
        "user:go",
    ]
    assert [state.fidelity.context for state in trace[0].states()] == ["complete", "complete"]
    assert report.flags == {"attachment of unknown kind": 1}


def test_text_that_was_rendered_is_shown_whatever_its_kind(tmp_path: Path) -> None:
    records = session()
    records[2]["attachment"] = {"type": "hologram"}
    records[3]["rendered"] = []
    traces, report = ingest(tmp_path, *records)
    assert texts(traces[0].contexts[0].messages)[1:3] == [
        "system:<system-reminder>\nlist:\n- x\n</system-reminder>",
        "user:go",
    ]
    assert report.flags == {}


def test_what_was_sent_stands_where_the_record_names_it(tmp_path: Path) -> None:
    """A result that was replaced by a stub, and a call whose raw input was sent."""
    stub = "<persisted-output>\nOutput too large (90KB). Full output saved to: x.txt\n</persisted-output>"
    records = session()
    records[5]["wireToolInputs"] = {"c1": {"command": "cd /w && ls"}}
    copies = [{"id": "c1", "copy": "wire"}]
    replaced = {
        "type": "content-replacement",
        "sessionId": "s",
        "replacements": [
            {"kind": "tool-result", "toolUseId": "c1", "replacement": stub},
        ],
    }
    traces, report = ingest(
        tmp_path,
        *records,
        attached("d", "4", type="deferred_tools_record", entries=[], toolInputCopies=copies),
        replaced,
    )
    messages = traces[0].contexts[0].messages
    assert messages[4].tool_calls[0].arguments == '{"command":"cd /w && ls"}'
    assert messages[5].content == stub
    assert (report.flags, report.skipped) == ({}, {})


@pytest.mark.parametrize(
    "kind", ["continued-in", "relocated", "cost-state", "atis-latch", "content-replacement"]
)
def test_records_of_new_kinds_are_known(tmp_path: Path, kind: str) -> None:
    _, report = ingest(tmp_path, *session(), {"type": kind, "sessionId": "s"})
    assert report.skipped == {}


def test_tokens_are_those_of_the_last_request_of_the_model(tmp_path: Path) -> None:
    rounds = [
        {
            "type": "message",
            "input_tokens": 5,
            "cache_read_input_tokens": 100,
            "cache_creation_input_tokens": 0,
        },
        {
            "type": "message",
            "input_tokens": 7,
            "cache_read_input_tokens": 200,
            "cache_creation_input_tokens": 10,
        },
        {"type": "advisor_message", "input_tokens": 9000},
    ]
    usage = {"input_tokens": 9012, "output_tokens": 40, "iterations": rounds}
    trace = read(
        tmp_path, user("1", None, "go"), says("2", "1", "m1", "hi", usage=usage, stop_reason="end_turn")
    )
    found = trace.contexts[0].steps[0].usage
    assert (found.prompt_tokens, found.cached_tokens, found.completion_tokens) == (217, 200, 40)


def test_a_later_chunk_that_reports_nothing_erases_no_tokens(tmp_path: Path) -> None:
    usage = {"input_tokens": 11, "cache_read_input_tokens": 20, "output_tokens": 5}
    for last in ({}, {"input_tokens": None}, None):
        trace = read(
            tmp_path,
            user("1", None, "go"),
            says("2", "1", "m1", "hi", usage=usage, stop_reason="end_turn"),
            says("3", "2", "m1", ("c1", "Bash"), usage=last, stop_reason="end_turn"),
        )
        found = trace.contexts[0].steps[0].usage
        assert (found.prompt_tokens, found.cached_tokens, found.completion_tokens) == (31, 20, 5)


def test_a_subagent_in_a_file_of_its_own_has_its_own_prompt(tmp_path: Path) -> None:
    records = [record | {"isSidechain": True, "agentId": "a1b2"} for record in session()]
    trace = read(tmp_path, *records)
    assert (trace.kind, trace.contexts[0].messages[0].content) == ("side", JOINED)
    assert [tool.name for tool in trace.contexts[0].tools] == ["Bash"]
