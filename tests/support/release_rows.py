"""Rows of a release: pairs of teachers and of hindsight, with arguments of every JSON type and of none."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from plain_pairs import plain_pair

from tracemill.data_cards.model.release_spec import ReleaseSpec
from tracemill.data_cards.writing.write_release import NoRelease, Release
from tracemill.records.message import Message, ToolCall, ToolSpec
from tracemill.records.pair import DPOPair, NormalizedDPOPair, Vote
from tracemill.records.trace import MessageView

DAY = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
SPEC = ReleaseSpec(name="demo", redaction="r1", created=DAY)
TOOLS = (
    ToolSpec("Bash", "Runs a command.", {"type": "object", "properties": {"cmd": {"type": "string"}}}),
    ToolSpec(
        "Read", "Reads.", {"type": "object", "properties": {"path": {"type": "string", "default": None}}}
    ),
)
ARGUMENTS = (
    '{"cmd": "ls"}',
    '{"path":"a.py","limit":null,"ranges":[[1,2],[]]}',
    '{"deep": {"a": {"b": [1, 2.5, true, "x"]}}, "empty": {}}',
    '{"text": "line 1\\nline 2 \\u00e9 \\ud83d\\ude00"}',
    '{"tiny": 1e-07, "big": 9007199254740993}',
    "{}",
)
EXACT_ONLY = ("not json", '["a list"]', '"text"', '{"huge": 123456789012345678901234567890}', "")


def calls(*arguments: str) -> tuple[ToolCall, ...]:
    return tuple(ToolCall(f"call-{n}", "Bash", text) for n, text in enumerate(arguments))


def context(length: int = 9) -> tuple[Message, ...]:
    messages = [Message("system", "You are an agent."), Message("user", "Fix | the\nbug.")]
    while len(messages) < length:
        n = len(messages)
        messages.append(Message("assistant", f"step {n}", calls(ARGUMENTS[n % 6], EXACT_ONLY[n % 5])))
        messages.append(Message("tool", f"result {n}", tool_call_id="call-0", name="Bash"))
        messages.append(Message("tool", "", tool_call_id="call-1"))
    return tuple(messages)


def vote(teacher: str, agrees: bool, counted: bool = True) -> Vote:
    reason = "" if counted else "student's family"
    return Vote(
        teacher, teacher.split("-")[0], 0, counted, reason, "run:ls", "run", agrees, 0.00125, f"key-{teacher}"
    )


VOTES = (
    vote("qwen-a", True),
    vote("zai-a", True),
    vote("deepseek-a", False),
    vote("anthropic-a", False, False),
)


def pair(number: int, **changes: Any) -> DPOPair:
    messages = context()
    base = plain_pair(
        step_id=f"claude_code-{number:04}:0:1",
        label_source="teachers",
        state_messages=MessageView(messages, len(messages) - 2 * (number % 2)),
        tools=TOOLS,
        chosen=(Message("assistant", "I look first.", calls(*ARGUMENTS, *EXACT_ONLY)),),
        rejected=(Message("assistant", f"Done with {number}."),),
        source="claude_code",
        harness="claude_code",
        presentation="p1;system=stand_in",
        student_model="anthropic/claude-x",
        student_family="anthropic",
        n_teachers_agreeing=2,
        votes=VOTES,
        families=("qwen", "zai"),
        cost_usd=0.005,
        policy="default",
        repository="owner/repo",
    )
    return replace(base, **changes)


def normalized(*pairs: DPOPair) -> list[NormalizedDPOPair]:
    return [NormalizedDPOPair(p, "I look first.", p.rejected[0].content, "default-abc") for p in pairs]


def hindsight(number: int) -> DPOPair:
    plain: dict[str, Any] = {"votes": (), "families": (), "n_teachers_agreeing": 0, "cost_usd": 0.0}
    return pair(number, label_source="hindsight", evidence="call failed, fixed 1 step later", **plain)


def written(result: Release | NoRelease) -> Release:
    assert isinstance(result, Release)
    return result
