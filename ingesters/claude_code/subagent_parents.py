"""Find the parent of a subagent that has a file of its own, from the files beside it.

The session's file lies beside the session's folder (2.1.x: `<session>.jsonl` beside
`<session>/subagents/agent-<id>.jsonl`, or `<session>/subagents/workflows/<run>/agent-<id>.jsonl` for agents
of a workflow) or beside the agent's file. For a subagent of a subagent, `agent-<id>.meta.json` holds the
depth, and the call stands in another agent's file. Agent ids repeat between sessions, so only files of the
same session are read.
"""

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from tracemill.ingesters.claude_code.agent_chains import AgentChain, ParentCall
from tracemill.ingesters.claude_code.content_blocks import STARTERS, flatten_content_blocks
from tracemill.ingesters.claude_code.record_fields import field_objects, field_text
from tracemill.ingesters.claude_code.session import SessionFile
from tracemill.ingesters.reading.decompress import open_bytes
from tracemill.records.identity import make_trace_id

SUMMARISER = "acompact"
"""Prefix of the id of the agent that summarises a session; no call started it."""
_SUFFIXES = (".jsonl", ".jsonl.gz")


def find_subagent_parent(path: Path, session: SessionFile, chain: AgentChain) -> ParentCall:
    """Return the parent of the agent whose file is `path`, as far as files beside it show."""
    agent = chain.agent or path.name.removeprefix("agent-").partition(".")[0]
    main = next((file for file in _main_files(path, session.session_id) if file.is_file()), None)
    if chain.agent.startswith(SUMMARISER):
        return _scan(main, "", "", session.session_id) if main else ParentCall()
    run = _workflow_run(path)
    parent = _scan(main, agent, chain.prompt, session.session_id, run) if main else ParentCall()
    if parent.call_id is None and _depth(path, agent) > 1:
        for sibling in sorted(path.parent.glob("agent-*.jsonl*")):
            if sibling != path:
                above = _scan(sibling, agent, chain.prompt, session.session_id)
                if above.call_id is not None:
                    return above
    return parent


def subagent_session_folder(path: Path) -> Path | None:
    """Return the folder of the session that an agent's file belongs to, None if the path names none.

    The session's own file is beside this folder, under the same name.
    """
    folder = path.parent.parent.parent if _workflow_run(path) else path.parent
    return folder.parent if folder.name == "subagents" else None


def has_subagent_file(path: Path, agent: str) -> bool:
    """Return whether a file of this agent is beside that of the session."""
    name = f"agent-{agent}"
    if Path(name).name != name:
        return False
    folder = path.with_name(path.name.partition(".")[0]) / "subagents"
    return any(
        (place / f"{name}{suffix}").is_file() for place in (folder, path.parent) for suffix in _SUFFIXES
    )


def _workflow_run(path: Path) -> str:
    """Return the workflow run that started the agent of a file, "" if none did."""
    return path.parent.name if path.parent.parent.name == "workflows" else ""


def _main_files(path: Path, session_id: str) -> Iterator[Path]:
    """Yield the paths where the session's own file may be."""
    folder = subagent_session_folder(path)
    for suffix in _SUFFIXES:
        if folder is not None:
            yield folder.with_name(f"{folder.name}{suffix}")
        if session_id and Path(session_id).name == session_id:
            yield path.parent / f"{session_id}{suffix}"


def _depth(path: Path, agent: str) -> int:
    """Return the agent's depth from the file beside it, 1 if there is none."""
    try:
        depth = _record(path.with_name(f"agent-{agent}.meta.json").read_bytes()).get("spawnDepth")
    except (OSError, ValueError):
        return 1
    return depth if isinstance(depth, int) else 1


def _scan(path: Path, agent: str, prompt: str, session_id: str, run: str = "") -> ParentCall:
    """Return the trace id of a file, and the call in it that started the agent or its workflow run."""
    trace_id: str | None = None
    call_id: str | None = None
    prompt_calls: set[str] = set()
    needle, side_file = (run or agent).encode(), path.name.startswith("agent-")
    find_call = _workflow_call if run else _starting_call
    try:
        with open_bytes(path) as lines:
            for line in lines:
                named, calls = bool(needle) and needle in line, b'"prompt"' in line
                if trace_id is not None and not (named or calls):
                    continue
                record = _record(line)
                trace_id = trace_id or _trace_id_of(record, session_id, side_file)
                prompt_calls.update(_calls_by_prompt(record, prompt) if calls and prompt else ())
                call_id = find_call(record, run or agent) if named else None
                if trace_id is not None and (call_id is not None or not (agent or prompt)):
                    break
    except (OSError, EOFError, zlib.error):
        pass
    if call_id is None and len(prompt_calls) == 1:
        call_id = prompt_calls.pop()
    return ParentCall(trace_id, call_id)


def _trace_id_of(record: dict[str, Any], session_id: str, side_file: bool) -> str | None:
    """Return the id of the trace whose first record this is, None for a record of another chain."""
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


def _starting_call(record: dict[str, Any], agent: str) -> str | None:
    """Return the call that started the agent, from a progress record or the call's result."""
    data = record.get("data")
    if isinstance(data, dict) and data.get("agentId") == agent:
        call = record.get("parentToolUseID") or data.get("parentToolUseID")
        return call if isinstance(call, str) else None
    structured = record.get("toolUseResult")
    matches = isinstance(structured, dict) and structured.get("agentId") == agent
    for block in _blocks(record):
        call = block.get("tool_use_id")
        if isinstance(call, str) and (
            matches or f"agentId: {agent}" in flatten_content_blocks(block.get("content"), [])
        ):
            return call
    return None


def _workflow_call(record: dict[str, Any], run: str) -> str | None:
    """Return the call that launched a workflow run, from its result."""
    structured = record.get("toolUseResult")
    matches = isinstance(structured, dict) and structured.get("runId") == run
    calls = (block.get("tool_use_id") for block in _blocks(record)) if matches else ()
    return next((call for call in calls if isinstance(call, str)), None)


def _calls_by_prompt(record: dict[str, Any], prompt: str) -> Iterator[str]:
    """Yield the calls of a record that start an agent with this prompt."""
    for block in _blocks(record):
        arguments = block.get("input")
        if field_text(block, "name") in STARTERS and isinstance(arguments, dict):
            text, call = arguments.get("prompt"), block.get("id")
            if isinstance(text, str) and isinstance(call, str) and text.strip() == prompt:
                yield call


def _blocks(record: dict[str, Any]) -> list[dict[str, Any]]:
    message = record.get("message")
    return field_objects(message.get("content")) if isinstance(message, dict) else []
