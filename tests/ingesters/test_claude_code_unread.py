"""Claude Code: content that is not understood is named, and nothing behind it is called whole."""

from pathlib import Path
from typing import Any

import pytest
from claude_code_records import (
    answer,
    attachment,
    boundary,
    ingest,
    line,
    queued,
    read,
    says,
    summary,
    texts,
    user,
    write,
)

from tracemill.ingesters.census import take_census
from tracemill.ingesters.claude_code.entries import UNREAD
from tracemill.records.message import ToolCall

HOLOGRAM = {"type": "hologram", "data": "IMPORTANT"}
LS = ("c", "Bash", {"command": "ls"})


def session(**changed: Any) -> list[Any]:
    """A prompt, two calls with their results, an answer; `changed` takes the place of one."""
    records = {
        "ask": user("1", None, "go"),
        "call": says("2", "1", "m1", LS),
        "result": answer("3", "2", "c", "a.py"),
        "more": says("4", "3", "m2", ("d", "Bash", {"command": "cat a.py"})),
        "shown": answer("5", "4", "d", "x = 1"),
        "end": says("6", "5", "m3", "done"),
    }
    return list((records | changed).values())


def fidelity(tmp_path: Path, records: list[Any]) -> tuple[list[str], dict[str, int], dict[str, int]]:
    """What each step is said to have seen, and what the report says of the file."""
    traces, report = ingest(tmp_path, *records)
    steps = [state.fidelity.context for trace in traces for state in trace.states()]
    return steps, dict(report.skipped), dict(report.unknown)


RESULTS: list[tuple[Any, str, str]] = [
    ([HOLOGRAM], "hologram", ""),
    ([{"type": "text", "text": "seen"}, HOLOGRAM], "hologram", "seen"),
    ({"stdout": "IMPORTANT"}, "untyped.text", ""),
    (17, "int", ""),
    ([True], "bool", ""),
    ([{"type": "text", "value": "IMPORTANT"}], "text.text", ""),
    ([{"type": "text", "text": 5}], "text.text", ""),
    ([{"type": "hologram", "text": "said"}], "hologram", "said"),
    ([{"type": "image", "source": "IMPORTANT"}], "image.source", "[image]"),
    ([{"type": "document", "source": {"type": "file", "file_id": "f"}}], "document.source", "[document]"),
    ([{"type": "tool_reference", "name": "X"}], "tool_reference.tool_name", "[tool loaded: ]"),
    ([{"type": ["text"], "text": "said"}], "untyped", "said"),
]


@pytest.mark.parametrize(("content", "name", "text"), RESULTS, ids=[name for _, name, _ in RESULTS])
def test_steps_behind_a_result_that_is_not_understood_are_lost(
    tmp_path: Path, content: Any, name: str, text: str
) -> None:
    records = session(result=answer("3", "2", "c", content))
    assert fidelity(tmp_path, records) == (
        ["complete", "lost", "lost"],
        {UNREAD: 1},
        {f"block {name}": 1},
    )
    assert read(tmp_path, *records).contexts[0].messages[2].content == text


def test_content_that_is_understood_is_whole(tmp_path: Path) -> None:
    shapes = [
        None,
        "",
        ["a", "b"],
        [{"text": "untyped"}],
        [{"type": "tool_reference", "tool_name": "X"}],
        [{"type": "search_result", "title": "t", "source": "s", "content": [{"type": "text", "text": "x"}]}],
        [{"type": "document", "title": "t", "source": {"type": "text", "data": "body"}}],
    ]
    told = []
    for shape in shapes:
        records = session(result=answer("3", "2", "c", shape))
        assert fidelity(tmp_path, records) == (["complete"] * 3, {}, {})
        told.append(read(tmp_path, *records).contexts[0].messages[2].content)
    assert told == ["", "", "a\nb", "untyped", "[tool loaded: X]", "t\ns\nx", "t\nbody"]


CALLS: list[tuple[dict[str, Any], str]] = [
    ({"type": "tool_use", "id": "c", "name": "Bash", "parameters": {"command": "ls"}}, "tool_use.input"),
    ({"type": "tool_use", "id": "c", "name": "Bash", "input": ["ls"]}, "tool_use.input"),
    ({"type": "tool_use", "id": "c", "input": {"command": "ls"}}, "tool_use.name"),
    ({"type": "mcp_tool_use", "id": "c", "name": "x", "args": {}}, "mcp_tool_use.input"),
]


@pytest.mark.parametrize(("block", "name"), CALLS, ids=["parameters", "list", "nameless", "mcp"])
def test_a_call_that_is_not_understood_is_no_action(tmp_path: Path, block: dict[str, Any], name: str) -> None:
    records = session(call=says("2", "1", "m1", block))
    assert fidelity(tmp_path, records) == (["lost", "lost"], {UNREAD: 1}, {f"block {name}": 1})
    context = read(tmp_path, *records).contexts[0]
    assert texts(context.messages) == ["user:go", "assistant:", "tool:x = 1", "assistant:done"]
    assert [step.cut for step in context.steps] == [1, 3]


def test_a_call_beside_one_that_is_not_understood_is_no_whole_action(tmp_path: Path) -> None:
    records = session(call=says("2", "1", "m1", LS, CALLS[0][0] | {"id": "e"}))
    assert fidelity(tmp_path, records) == (["lost", "lost"], {UNREAD: 1}, {"block tool_use.input": 1})
    message = read(tmp_path, *records).contexts[0].messages[1]
    assert message.tool_calls == (ToolCall("c", "Bash", '{"command":"ls"}'),)


@pytest.mark.parametrize(
    ("block", "name"),
    [
        (HOLOGRAM, "hologram"),
        ({"type": "text", "value": "IMPORTANT"}, "text.text"),
        ({"type": "text", "text": 5}, "text.text"),
        ("bare", "hologram"),
    ],
)
def test_a_response_that_is_not_understood_whole_is_no_step(tmp_path: Path, block: Any, name: str) -> None:
    given = {"type": "hologram"} if block == "bare" else block
    records = session(more=says("4", "3", "m2", given, ("d", "Bash", {"command": "cat a.py"})))
    assert fidelity(tmp_path, records) == (["complete", "lost"], {UNREAD: 1}, {f"block {name}": 1})


@pytest.mark.parametrize("content", [17, {"text": "IMPORTANT"}, None])
def test_a_response_whose_content_is_no_list_of_blocks_is_no_step(tmp_path: Path, content: Any) -> None:
    record = says("4", "3", "m2")
    record["message"]["content"] = content
    steps, skipped, unknown = fidelity(tmp_path, session(more=record))
    assert (steps, skipped, unknown) == (["complete", "lost"], {UNREAD: 1}, {"block content": 1})


@pytest.mark.parametrize(
    ("content", "name", "shown"),
    [
        ([{"type": "text", "text": "do"}, HOLOGRAM], "hologram", ["user:do"]),
        ({"text": "IMPORTANT"}, "content", []),
        (17, "content", []),
    ],
)
def test_a_prompt_that_is_not_understood_loses_all_behind_it(
    tmp_path: Path, content: Any, name: str, shown: list[str]
) -> None:
    records = session(ask=user("1", None, content))
    assert fidelity(tmp_path, records) == (["lost"] * 3, {UNREAD: 1}, {f"block {name}": 1})
    messages = read(tmp_path, *records).contexts[0].messages
    assert texts(messages)[: len(shown) + 1] == [*shown, "assistant:"]


def test_a_record_of_an_unknown_type_with_a_message_loses_all_behind_it(tmp_path: Path) -> None:
    strange = line("prompt", "9", "3", message={"role": "user", "content": "and hurry"})
    records = session(more=says("4", "9", "m2", ("d", "Bash", {"command": "cat a.py"})))
    records.insert(3, strange)
    expected = (["complete", "lost", "lost"], {"unknown record type": 1}, {"record prompt": 1})
    assert fidelity(tmp_path, records) == expected
    silent = line("beacon", "9", None, blob=1)
    assert fidelity(tmp_path, [*session(), silent])[0] == ["complete"] * 3


def test_an_attachment_that_is_not_understood_loses_all_behind_it(tmp_path: Path) -> None:
    def behind(record: Any) -> tuple[list[str], dict[str, int], dict[str, int]]:
        return fidelity(tmp_path, [*session()[:3], record, *session(more=says("4", "a", "m2", "ok"))[3:4]])

    unknown = behind(attachment("a", "3", type="hologram", content="?"))
    assert unknown == (["complete", "lost"], {}, {"attachment hologram": 1})
    typed = behind(attachment("a", "3", type="queued_command", commandMode="prompt", prompt=[HOLOGRAM]))
    assert typed == (["complete", "lost"], {UNREAD: 1}, {"block hologram": 1})
    shown = attachment("a", "3", type="date", date="today") | {"rendered": [{"text": "IMPORTANT"}]}
    assert behind(shown) == (["complete", "lost"], {UNREAD: 1}, {"block rendered.content": 1})


def test_a_queued_prompt_that_is_not_understood_loses_what_stands_behind_it(tmp_path: Path) -> None:
    records = session()
    records.insert(3, queued("enqueue") | {"content": [HOLOGRAM]})
    expected = (["complete", "lost", "lost"], {UNREAD: 1}, {"block enqueue.content": 1})
    assert fidelity(tmp_path, records) == expected
    records[3] = queued("teleport", "x")
    assert fidelity(tmp_path, records) == (["complete"] * 3, {}, {"queue-operation teleport": 1})


def test_a_summary_or_a_blanking_ends_the_loss(tmp_path: Path) -> None:
    gutted = session(result=answer("3", "2", "c", [HOLOGRAM]))
    later = [summary("8", "7"), says("9", "8", "m4", "again")]
    steps, _, _ = fidelity(tmp_path, [*gutted, boundary("7", {"trigger": "auto"}), *later])
    assert steps == ["complete", "lost", "lost", "complete"]
    blank = line("system", "7", "6", subtype="microcompact_boundary")
    blank["microcompactMetadata"] = {"compactedToolIds": ["c"]}
    steps, _, _ = fidelity(tmp_path, [*gutted, blank, says("9", "7", "m4", "again")])
    assert steps == ["complete", "lost", "lost", "complete"]


def test_a_result_that_was_sent_as_another_text_is_whole(tmp_path: Path) -> None:
    sent = {"type": "content-replacement", "replacements": [{"toolUseId": "c", "replacement": "a.py"}]}
    records = [*session(result=answer("3", "2", "c", [HOLOGRAM])), sent]
    assert fidelity(tmp_path, records)[0] == ["complete"] * 3
    assert read(tmp_path, *records).contexts[0].messages[2].content == "a.py"


def test_a_rewind_shares_the_loss(tmp_path: Path) -> None:
    records = [
        *session(result=answer("3", "2", "c", [HOLOGRAM])),
        user("7", "3", "rather"),
        says("8", "7", "m4", "ok"),
    ]
    traces, _ = ingest(tmp_path, *records)
    assert [
        [s.fidelity.context for s in traces[0].states() if s.context is c] for c in traces[0].contexts
    ] == [
        ["complete", "lost", "lost"],
        ["lost"],
    ]


def test_census_and_ingest_name_the_same_parts(tmp_path: Path) -> None:
    records = session(
        ask=user("1", None, {"text": "IMPORTANT"}),
        call=says("2", "1", "m1", CALLS[0][0], CALLS[2][0], HOLOGRAM),
        result=answer("3", "2", "c", [{"type": "text", "value": "IMPORTANT"}]),
        shown=answer("5", "4", "d", 17),
    )
    _, _, unknown = fidelity(tmp_path, records)
    assert unknown == {
        "block content": 1,
        "block tool_use.input": 1,
        "block tool_use.name": 1,
        "block hologram": 1,
        "block text.text": 1,
        "block int": 1,
    }
    census = take_census([write(tmp_path / "s.jsonl", *records)])
    (found,) = census.found.values()
    assert found.unknown_kinds == unknown
    assert (found.kinds["block tool_use"], found.kinds["block tool_result"]) == (3, 2)
