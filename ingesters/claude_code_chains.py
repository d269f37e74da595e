"""Which entries are one agent's: the main chain, and one side chain for each subagent.

Subagents stand in the main file (1.0.x: `isSidechain`, a root of their own for each) or in files of
their own (`agent-<id>.jsonl`, with the parent's session id). The call that started one is known by the
agent id its result bears, by progress records, or by the prompt.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from ingesters.claude_code_entries import Entry, Session
from ingesters.claude_code_steps import Assembled
from ingesters.reading import open_bytes
from records.identity import make_trace_id

_STARTERS = frozenset(("Task", "Agent"))


@dataclass(slots=True)
class Chain:
    """The entries of one agent. `key` is "" for the main chain."""

    key: str
    agent: str
    entries: list[Entry] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Parent:
    """The trace a subagent was started from, and the call that started it, as far as known."""

    trace_id: str | None = None
    call_id: str | None = None


def split_chains(session: Session) -> list[Chain]:
    """The chains of a file, the main one first where there is one, then in the order they begin."""
    chains: dict[str, Chain] = {}
    tops: dict[str, str] = {}
    for entry in session.entries:
        key = (entry.agent or _top(entry, session, tops)) if entry.side else ""
        chain = chains.get(key)
        if chain is None:
            chain = chains[key] = Chain(key, entry.agent or "")
        chain.entries.append(entry)
    return sorted(chains.values(), key=lambda chain: chain.key != "")


def _top(entry: Entry, session: Session, tops: dict[str, str]) -> str:
    """The uppermost ancestor inside the side chain."""
    path: list[str] = []
    at = entry.uuid
    while at not in tops:
        path.append(at)
        above = session.parents.get(at)
        if above is None or above not in session.side_uuids or len(path) > len(session.parents):
            tops[at] = at
            break
        at = above
    top = tops[at]
    tops.update(dict.fromkeys(path, top))
    return top


def chain_trace_id(session: Session, chain: Chain) -> str:
    """The identity of a chain: session, agent, uuid of its first record."""
    first = session.first_uuid if chain.key == "" else chain.entries[0].uuid
    return make_trace_id("claude_code", session.session_id, chain.agent, first or "")


def parents_inside(session: Session, chains: list[Chain], assembled: Assembled) -> dict[str, Parent]:
    """For each side chain key, the parent found in the same file."""
    found: dict[str, Parent] = {}
    if all(chain.key == "" for chain in chains):
        return found
    ids = {chain.key: chain_trace_id(session, chain) for chain in chains}
    trace_of = {entry.order: ids[chain.key] for chain in chains for entry in chain.entries}
    prompts = _prompts(assembled)
    for chain in chains:
        if chain.key == "":
            continue
        call = session.agent_calls.get(chain.agent) if chain.agent else None
        if call is None:
            waiting = prompts.get(_first_text(chain), [])
            call = waiting.pop(0) if waiting else None
        step = assembled.by_call.get(call) if call else None
        if step is not None:
            found[chain.key] = Parent(trace_of.get(step.order), call)
    return found


def parent_outside(path: Path, session: Session, agent: str) -> Parent:
    """The parent of an `agent-<id>.jsonl` file, read from the session's own file where that is at hand."""
    agent = agent or path.name.removeprefix("agent-").partition(".")[0]
    for candidate in _parent_files(path, session.session_id):
        if candidate != path and candidate.is_file():
            try:
                return _scan(candidate, agent.encode())
            except OSError:
                return Parent()
    return Parent()


def _parent_files(path: Path, session_id: str) -> list[Path]:
    """Where the session's own file lies: beside the session's folder (2.1.x), or beside this file."""
    beside = [path.parent / f"{session_id}.jsonl"] if session_id else []
    return [path.parent.parent.with_suffix(".jsonl"), *beside] if path.parent.name == "subagents" else beside


def _scan(path: Path, agent: bytes) -> Parent:
    """The first main record's identity, and the call that a line naming the agent tells."""
    trace_id = call_id = None
    with open_bytes(path) as stream:
        for line in stream:
            if trace_id is not None and (not agent or agent not in line):
                continue
            record = _record(line)
            if (
                trace_id is None
                and isinstance(record.get("uuid"), str)
                and record.get("isSidechain") is not True
            ):
                trace_id = make_trace_id(
                    "claude_code", str(record.get("sessionId") or ""), "", record["uuid"]
                )
            call_id = _starter(record, agent.decode()) if agent and agent in line else None
            if call_id and trace_id:
                break
    return Parent(trace_id, call_id)


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
    twin, message = record.get("toolUseResult"), record.get("message")
    if not isinstance(twin, dict) or twin.get("agentId") != agent or not isinstance(message, dict):
        return None
    content = message.get("content")
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict) and isinstance(block.get("tool_use_id"), str):
            return block["tool_use_id"]
    return None


def _prompts(assembled: Assembled) -> dict[str, list[str]]:
    """Calls that start agents by the prompt they give, in file order."""
    prompts: dict[str, list[str]] = {}
    for call_id, step in assembled.by_call.items():
        call = step.calls[call_id]
        if call.name in _STARTERS:
            prompt = (call.parsed() or {}).get("prompt")
            if isinstance(prompt, str):
                prompts.setdefault(prompt.strip(), []).append(call_id)
    return prompts


def _first_text(chain: Chain) -> str:
    return next((entry.text.strip() for entry in chain.entries if entry.kind == "user"), "")
