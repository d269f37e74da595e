"""The parent of a subagent that has a file of its own, read from the files beside it.

The session's own file lies beside the session's folder (2.1.x: `<session>.jsonl` beside
`<session>/subagents/agent-<id>.jsonl`, or `<session>/subagents/workflows/<run>/agent-<id>.jsonl` for the
agents that a workflow starts) or beside the agent's. A subagent of a subagent is told by the
`agent-<id>.meta.json` beside it, and its call stands in another agent's file. Agent ids repeat from
session to session, so that only files of the same session are asked.
"""

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from tracemill.ingesters.claude_code.agent_chains import Chain, Parent
from tracemill.ingesters.claude_code.content_blocks import STARTERS, flatten_content_blocks
from tracemill.ingesters.claude_code.record_fields import field_objects, field_text
from tracemill.ingesters.claude_code.session import Session
from tracemill.ingesters.reading.decompress import open_bytes
from tracemill.records.identity import make_trace_id

SUMMARISER = "acompact"
"""How the id of the agent begins that summarises a session; no call started it."""
_SUFFIXES = (".jsonl", ".jsonl.gz")


def find_subagent_parent(path: Path, session: Session, chain: Chain) -> Parent:
    """The parent of the agent whose file `path` is, as far as the files at hand tell."""
    agent = chain.agent or path.name.removeprefix("agent-").partition(".")[0]
    main = next((file for file in _main_files(path, session.session_id) if file.is_file()), None)
    if chain.agent.startswith(SUMMARISER):
        return _scan(main, "", "", session.session_id) if main else Parent()
    found = _scan(main, agent, chain.prompt, session.session_id, _run_of(path)) if main else Parent()
    if found.call_id is None and _depth(path, agent) > 1:
        for sibling in sorted(path.parent.glob("agent-*.jsonl*")):
            if sibling != path:
                above = _scan(sibling, agent, chain.prompt, session.session_id)
                if above.call_id is not None:
                    return above
    return found


def subagent_session_folder(path: Path) -> Path | None:
    """The folder of the session that the agent of a file belongs to; its own file lies beside it under
    the same name. None where the path names none."""
    folder = path.parent.parent.parent if _run_of(path) else path.parent
    return folder.parent if folder.name == "subagents" else None


def has_subagent_file(path: Path, agent: str) -> bool:
    """Whether a file beside that of a session is of this agent of it."""
    name = f"agent-{agent}"
    if Path(name).name != name:
        return False
    folder = path.with_name(path.name.partition(".")[0]) / "subagents"
    return any(
        (place / f"{name}{suffix}").is_file() for place in (folder, path.parent) for suffix in _SUFFIXES
    )


def _run_of(path: Path) -> str:
    """The run of the workflow that started the agent of a file; "" where none did."""
    return path.parent.name if path.parent.parent.name == "workflows" else ""


def _main_files(path: Path, session_id: str) -> Iterator[Path]:
    """Where the session's own file may lie."""
    folder = subagent_session_folder(path)
    for suffix in _SUFFIXES:
        if folder is not None:
            yield folder.with_name(f"{folder.name}{suffix}")
        if session_id and Path(session_id).name == session_id:
            yield path.parent / f"{session_id}{suffix}"


def _depth(path: Path, agent: str) -> int:
    """How many subagents deep the agent is, as the file beside it says; 1 where there is none."""
    try:
        depth = _record(path.with_name(f"agent-{agent}.meta.json").read_bytes()).get("spawnDepth")
    except (OSError, ValueError):
        return 1
    return depth if isinstance(depth, int) else 1


def _scan(path: Path, agent: str, prompt: str, session_id: str, run: str = "") -> Parent:
    """The identity of the trace in a file, and the call in it that started the agent, or the workflow
    run that did."""
    trace_id: str | None = None
    call_id: str | None = None
    by_prompt: set[str] = set()
    needle, side_file = (run or agent).encode(), path.name.startswith("agent-")
    try:
        for line in _lines(path):
            named, calls = bool(needle) and needle in line, b'"prompt"' in line
            if trace_id is not None and not (named or calls):
                continue
            record = _record(line)
            trace_id = trace_id or _identity(record, session_id, side_file)
            by_prompt.update(_calls_with(record, prompt) if calls and prompt else ())
            call_id = (_launcher(record, run) if run else _starter(record, agent)) if named else None
            if trace_id is not None and (call_id is not None or not (agent or prompt)):
                break
    except (OSError, EOFError, zlib.error):
        pass
    if call_id is None and len(by_prompt) == 1:
        call_id = by_prompt.pop()
    return Parent(trace_id, call_id)


def _lines(path: Path) -> Iterator[bytes]:
    with open_bytes(path) as stream:
        yield from stream


def _identity(record: dict[str, Any], session_id: str, side_file: bool) -> str | None:
    """The id of the trace whose first record this is; None where it is of another chain."""
    uuid = record.get("uuid")
    if not isinstance(uuid, str) or (record.get("isSidechain") is True) is not side_file:
        return None
    if side_file and record.get("type") not in ("user", "assistant", "attachment"):
        return None
    agent = field_text(record, "agentId") if side_file else ""
    return make_trace_id("claude_code", field_text(record, "sessionId") or session_id, agent, uuid)


def _record(line: bytes) -> dict[str, Any]:
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        return {}
    return value if isinstance(value, dict) else {}


def _starter(record: dict[str, Any], agent: str) -> str | None:
    """The call that started the agent, as a progress record or the call's result tells it."""
    data = record.get("data")
    if isinstance(data, dict) and data.get("agentId") == agent:
        call = record.get("parentToolUseID") or data.get("parentToolUseID")
        return call if isinstance(call, str) else None
    twin = record.get("toolUseResult")
    same = isinstance(twin, dict) and twin.get("agentId") == agent
    for block in _blocks(record):
        call = block.get("tool_use_id")
        if isinstance(call, str) and (
            same or f"agentId: {agent}" in flatten_content_blocks(block.get("content"))
        ):
            return call
    return None


def _launcher(record: dict[str, Any], run: str) -> str | None:
    """The call that launched a run of a workflow, as its result tells."""
    twin = record.get("toolUseResult")
    same = isinstance(twin, dict) and twin.get("runId") == run
    calls = (block.get("tool_use_id") for block in _blocks(record)) if same else ()
    return next((call for call in calls if isinstance(call, str)), None)


def _calls_with(record: dict[str, Any], prompt: str) -> Iterator[str]:
    """The calls of a record that start an agent with this prompt."""
    for block in _blocks(record):
        given = block.get("input")
        if block.get("name") in STARTERS and isinstance(given, dict):
            text, call = given.get("prompt"), block.get("id")
            if isinstance(text, str) and isinstance(call, str) and text.strip() == prompt:
                yield call


def _blocks(record: dict[str, Any]) -> list[dict[str, Any]]:
    message = record.get("message")
    return field_objects(message.get("content")) if isinstance(message, dict) else []
