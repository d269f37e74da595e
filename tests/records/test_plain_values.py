"""Records as plain values and as one line: nothing is lost in a dict, and no text is in a line."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from plain_pairs import plain_pair
from training_releases import STATE, TOOLS, kept

import tracemill as tm
from tracemill.records.errors import TracemillError
from tracemill.records.message import Action, Message, ToolCall
from tracemill.records.pair import DPOPair, NormalizedDPOPair, RowTokens, Vote
from tracemill.records.reply import TeacherReply
from tracemill.records.trace import MessageView

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "sessions"
VOTE = Vote("zai-a", "glm", 0, True, "", "k", "run_test", True, 0.25, "request")
WHOLE = plain_pair(
    3,
    state_messages=MessageView(STATE, 3),
    tools=TOOLS,
    chosen=(Message("assistant", "a\ud800b", (ToolCall("x", "Bash", "not JSON"),), reasoning="I think."),),
    rejected=(Message("tool", "no", tool_call_id="x", name="Bash", is_error=True, error_kind="timeout"),),
    votes=(VOTE, replace(VOTE, counted=False, reason="failed")),
    families=("glm", "qwen"),
    cost_usd=0.1,
    verified="execution",
    repository="o/n",
    weight=0.75,
    state_key="s",
)


def test_a_pair_comes_back_from_json_as_it_was() -> None:
    text = json.dumps(WHOLE.to_dict())
    back = DPOPair.from_dict(json.loads(text))
    assert back == WHOLE
    assert hash(back.state_messages) == hash(WHOLE.state_messages)
    assert json.loads(text) == WHOLE.to_dict()
    assert WHOLE.to_dict()["chosen"][0]["tool_calls"][0]["arguments"] == "not JSON"
    assert len(WHOLE.to_dict()["state_messages"]) == 3


def test_a_normalized_pair_comes_back_too() -> None:
    for length in (None, RowTokens(5, 9, 2, "turns")):
        normalized = replace(kept(2), pair=WHOLE, length=length)
        back = NormalizedDPOPair.from_dict(json.loads(json.dumps(normalized.to_dict())))
        assert back == normalized


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"chosen": [{"role": "SECRET", "content": "x"}]}, "chosen.0.role: Input should be 'system', 'user'"),
        ({"weight": "SECRET"}, "weight: Input should be a valid number"),
        ({"colour": "SECRET"}, "unknown key 'colour'; expected a dict as DPOPair.to_dict gives it"),
        ({"step_id": None}, "step_id: Input should be a valid string; expected a dict as DPOPair.to_dict"),
    ],
)
def test_what_is_no_pair_is_said_in_one_line_without_its_text(change: dict[str, Any], line: str) -> None:
    with pytest.raises(TracemillError) as caught:
        DPOPair.from_dict(WHOLE.to_dict() | change)
    assert str(caught.value).startswith(line)
    assert "SECRET" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_session_is_chat_messages() -> None:
    [trace, *_] = tm.ClaudeCodeIngester().ingest(EXAMPLES / "claude_code")
    messages = trace.to_messages()
    assert [message["role"] for message in messages[:3]] == ["user", "assistant", "tool"]
    assert len(messages) == len(trace.contexts[-1].messages) == 24
    call = messages[1]["tool_calls"][0]
    assert call["type"] == "function"
    assert json.loads(call["function"]["arguments"])["file_path"].endswith("tides.py")
    assert messages[2]["tool_call_id"] == call["id"]
    assert {key for message in messages for key in message} == {
        *("role", "content", "tool_calls", "tool_call_id")
    }
    assert trace.to_messages(0) == messages
    with pytest.raises(IndexError):
        trace.to_messages(7)


def test_a_record_is_described_in_one_line_without_its_text() -> None:
    [trace, *_] = tm.ClaudeCodeIngester().ingest(EXAMPLES / "claude_code")
    state = list(trace.states())[3]
    reply = TeacherReply("t:0:1", "k", "a/b", "f", 0, 0, action=Action("SECRET", STATE[2].tool_calls))
    said = {
        "Message(assistant, 7 characters, calls Bash)": STATE[2],
        "Message(tool, 2 characters, failed: timeout)": WHOLE.rejected[0],
        f"Trace({trace.trace_id}, 12 steps in 1 context, outcome unknown, not redacted)": trace,
        "TraceState(claude_code-3ab60806198d22416591:0:3, saw 7 messages, called Edit)": state,
        "MessageView(7 of 24 messages)": state.messages,
        "DPOPair(trace-3:0:0, hindsight: run over finish)": WHOLE,
        "DPOPair(trace-3:0:0, teachers: run over finish, 3 teachers agree)": replace(
            WHOLE, label_source="teachers", n_teachers_agreeing=3
        ),
        "NormalizedDPOPair(trace-3:0:0, hindsight: run over finish)": replace(kept(1), pair=WHOLE),
        "TeacherReply(t:0:1, a/b, calls Bash, $0.0000)": reply,
        "TeacherReply(t:0:1, a/b, failed: timeout, $0.5000)": replace(
            reply, action=None, failure="timeout", cost_usd=0.5
        ),
    }
    assert [repr(record) for record in said.values()] == list(said)


def test_a_line_stays_short_whatever_the_names() -> None:
    name = "mcp__a_server_with_a_long_name__a_tool_with_a_long_name\x1b[31m"
    calls = tuple(ToolCall(str(n), name, "{}") for n in range(5))
    place = f"claude_code-{'0123456789' * 2}:100:10000"
    many = (
        Message("assistant", "x" * 10**6, calls, is_error=True, error_kind="user_rejection"),
        TeacherReply(place, "k", "openrouter/" + "x" * 90, "f", 0, 0, action=Action("", calls)),
        plain_pair(step_id=place, label_source="user_rejection", n_teachers_agreeing=12),
        replace(kept(1), pair=plain_pair(step_id=place, chosen_operation="read_outside")),
    )
    for record in many:
        assert len(repr(record)) <= 130, repr(record)
        assert repr(record).isprintable()


def test_the_package_says_that_it_is_typed() -> None:
    assert (Path(tm.__file__).parent / "py.typed").is_file()
