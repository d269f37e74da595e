"""A whole trace through the redactor: what is covered, what is shared, what stays the same object."""

import json
import re
import stat
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from whole_records import whole_text

from tracemill.privacy.core.placeholder_keys import workspace_key
from tracemill.privacy.redaction.redactor import RULES_VERSION, Redactor
from tracemill.records.errors import WorkspaceError
from tracemill.records.message import Message, ToolCall, ToolSpec
from tracemill.records.trace import Context, Step, Trace

TOKEN = "gh" + "p_" + "a8Kd72Lq" * 4 + "Zz91"
VALUE = "plain-but" + "-private"


def _trace(*contexts: Context, trace_id: str = "claude_code-1", **fields: Any) -> Trace:
    return Trace(trace_id, "claude_code", "claude_code", "claude_code", contexts, **fields)


def _context(
    index: int, *messages: Message, cwd: str | None = None, tools: tuple[ToolSpec, ...] = ()
) -> Context:
    steps = tuple(
        Step(i, cut, cwd=cwd)
        for i, cut in enumerate(n for n, m in enumerate(messages) if m.role == "assistant")
    )
    return Context(index, messages, steps, tools=tools)


def _call(arguments: str) -> Message:
    return Message("assistant", "", (ToolCall("c1", "Bash", arguments),))


def test_every_text_of_a_trace_is_covered() -> None:
    tool = ToolSpec(
        "Bash", f"Runs a command with {TOKEN}", {"properties": {"x": {"description": f"like {TOKEN}"}}}
    )
    messages = (
        Message("system", f"You work for {TOKEN}."),
        Message("user", f"use {TOKEN}", name="x"),
        Message(
            "assistant",
            f"ok {TOKEN}",
            (ToolCall("c1", "Bash", json.dumps({"command": f"echo {TOKEN}"})),),
            reasoning=TOKEN,
        ),
        Message("tool", f"{TOKEN}\n", tool_call_id="c1", is_error=True, error_kind="exit_code"),
    )
    trace = _trace(
        _context(0, *messages, cwd=f"/x/{TOKEN}", tools=(tool,)),
        project=f"p-{TOKEN}", repository=f"o/{TOKEN}", origin=f"/x/{TOKEN}.jsonl", instance_id=f"i-{TOKEN}",
    )  # fmt: skip
    redacted, counts = Redactor(key=b"k").redact_trace(trace)
    assert TOKEN not in whole_text(redacted)
    assert counts == Counter(GITHUB_TOKEN=13)
    assert len(set(re.findall(r"<GITHUB_TOKEN_[0-9a-f]{8}>", whole_text(redacted)))) == 1
    assert redacted.redaction == RULES_VERSION == "r27"
    result = redacted.contexts[0].messages[3]
    assert (result.is_error, result.error_kind, result.tool_call_id) == (True, "exit_code", "c1")
    assert redacted.contexts[0].messages[2].tool_calls[0].id == "c1"


def test_a_trace_of_this_version_is_returned_as_it_is() -> None:
    once, _ = Redactor(key=b"k").redact_trace(_trace(_context(0, Message("user", TOKEN))))
    twice, counts = Redactor(key=b"k").redact_trace(once)
    assert twice is once
    assert counts == Counter()


def test_messages_shared_by_contexts_are_redacted_once_and_stay_shared() -> None:
    shared, clean = Message("user", f"use {TOKEN}"), Message("assistant", "done")
    trace = _trace(_context(0, shared, clean), _context(1, shared, clean, Message("user", "more")))
    redacted, counts = Redactor(key=b"k").redact_trace(trace)
    assert counts == Counter(GITHUB_TOKEN=1)
    assert redacted.contexts[0].messages[0] is redacted.contexts[1].messages[0]
    assert redacted.contexts[0].messages[1] is clean


def test_what_is_clean_stays_the_same_object() -> None:
    message = Message(
        "assistant", "Reading.", (ToolCall("c1", "Read", '{"file_path": "a.py"}'),), reasoning="hm"
    )
    trace = _trace(_context(0, Message("user", "hello"), message, cwd="/repo"))
    redacted, counts = Redactor(key=b"k").redact_trace(trace)
    assert redacted.contexts[0] is trace.contexts[0]
    assert counts == Counter()
    assert Redactor(key=b"k").redact_message(message)[0] is message


def test_placeholders_depend_on_value_trace_and_key_and_on_nothing_else() -> None:
    other = TOKEN[:-1] + "2"
    redactor = Redactor(key=b"k")
    first = redactor.redact_text(f"{TOKEN} {other}", "t1")[0].split()
    assert redactor.redact_text(f"{other} {TOKEN}", "t1")[0].split() == first[::-1]
    assert first[0] != first[1]
    assert redactor.redact_text(TOKEN, "t2")[0] != first[0]
    assert Redactor(key=b"another").redact_text(TOKEN, "t1")[0] != first[0]


def test_user_names_from_paths_are_redacted_throughout_the_trace() -> None:
    messages = (
        Message("user", "fix it"),
        _call('{"file_path": "/Users/klarsen/proj/a.py"}'),
        Message("tool", "-rw-r--r-- 1 klarsen staff 12 a.py\nhttps://git.host.dev/klarsen/proj\n"),
        Message("tool", "~/.claude/projects/-Users-klarsen-proj and K. klarsenson"),
    )
    redacted, counts = Redactor(key=b"k").redact_trace(
        _trace(_context(0, *messages, cwd="/Users/klarsen/proj"))
    )
    text = whole_text(redacted)
    assert re.findall(r"\bklarsen\b", text) == []
    assert "klarsenson" in text
    assert len(set(re.findall(r"user_[0-9a-f]{8}", text))) == 1
    arguments = json.loads(redacted.contexts[0].messages[1].tool_calls[0].arguments)
    assert re.fullmatch(r"/Users/user_[0-9a-f]{8}/proj/a\.py", arguments["file_path"])
    assert counts == Counter(USER=5)


def test_common_words_that_look_like_user_names_stay_outside_paths() -> None:
    message = Message("user", "the dashboard of /home/dashboard/x /home/dashboard/y /home/dashboard/z")
    redacted, _ = Redactor(key=b"k").redact_trace(_trace(_context(0, message)))
    assert redacted.contexts[0].messages[0].content.startswith("the dashboard of /home/user_")


def test_values_of_the_environment_are_found_wherever_they_stand() -> None:
    environ = {
        "SERVICE_TOKEN": VALUE,
        "SHORT_KEY": "abc",
        "SSH_AUTH_SOCK": "/run/user/1000/agent.sock",
        "GIT_AUTHOR_DATE": "not-a-secret-date",
        "DATABASE_URL": "postgres://app:quite%20hidden@db/x",
        "HOME": "/data/people/mzimmer",
        "USER": "mzimmer",
    }
    redactor = Redactor.from_environment(
        environ, secrets=["given-by-hand"], hostname="zimmer-laptop.lan", key=b"k"
    )
    text = f"x{VALUE}x quite hidden given-by-hand abc /run/user/1000/agent.sock not-a-secret-date "
    redacted, counts = redactor.redact_text(text + "/data/people/mzimmer/p mzimmer on zimmer-laptop")
    assert counts == Counter(SECRET=3, USER=2, HOST=1)
    for hidden in (VALUE, "quite hidden", "given-by-hand", "mzimmer", "zimmer-laptop"):
        assert hidden not in redacted
    assert " abc /run/user/1000/agent.sock not-a-secret-date /data/people/user_" in redacted


def test_no_repr_shows_a_value() -> None:
    redactor = Redactor(secrets=[VALUE], user="klarsen", hosts=["zimmer-laptop"], key=b"k")
    assert re.search(f"{VALUE}|klarsen|zimmer", repr(redactor) + repr(redactor.known)) is None


def test_json_in_json_is_redacted_at_the_leaf() -> None:
    inner = json.dumps({"password": "caf\u00e9-Tr0ub4dor", "path": "C:\\Users\\klarsen\\x", "n": 1}, indent=1)
    arguments = json.dumps({"command": "put", "body": inner})
    redacted, counts = Redactor(key=b"k").redact_message(_call(arguments))
    body = json.loads(json.loads(redacted.tool_calls[0].arguments)["body"])
    assert re.fullmatch(r"<PASSWORD_[0-9a-f]{8}>", body["password"])
    assert re.fullmatch(r"C:\\Users\\user_[0-9a-f]{8}\\x", body["path"])
    assert counts == Counter(PASSWORD=1, USER=1)


def test_arguments_that_are_no_json_are_redacted_as_text() -> None:
    redacted, _ = Redactor(key=b"k").redact_message(_call('{"command": "echo ' + TOKEN + '"'))
    assert re.fullmatch(r'\{"command": "echo <GITHUB_TOKEN_[0-9a-f]{8}>"', redacted.tool_calls[0].arguments)


def test_code_outside_strings_gets_a_name() -> None:
    redacted, _ = Redactor(key=b"k").redact_text("x = kim" + "@" + "northwind.io\n")
    assert re.fullmatch(r"x = REDACTED_EMAIL_[0-9a-f]{8}\n", redacted)
    assert Redactor(key=b"k").redact_text(redacted)[0] is redacted


def test_the_key_of_a_workspace_is_made_once_and_private(tmp_path: Path) -> None:
    path = tmp_path / "ws" / "redaction.key"
    key = workspace_key(path)
    assert len(key) == 32
    assert workspace_key(path) == key
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [p.name for p in path.parent.iterdir()] == ["redaction.key"]


@pytest.mark.parametrize("content", ["", "zz", "ab"])
def test_a_key_file_that_holds_no_key_is_an_error(tmp_path: Path, content: str) -> None:
    path = tmp_path / "redaction.key"
    path.write_text(content)
    with pytest.raises(WorkspaceError, match="redaction key"):
        workspace_key(path)


def test_a_key_file_that_is_a_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(WorkspaceError, match="IsADirectoryError"):
        workspace_key(tmp_path)
