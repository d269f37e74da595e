"""Split the entries of a file into the main chain and one side chain for each subagent.

Subagents are in the main file (1.0.x: `isSidechain`, each with a root of its own) or in files of their own
(`agent-<id>.jsonl`, with the parent's session id; see `subagent_parents`). The call that started one in the
same file is found by the agent id in its result, by progress records, or by the prompt.
"""

from dataclasses import dataclass, field

from tracemill.ingesters.claude_code.content_blocks import STARTERS
from tracemill.ingesters.claude_code.session import SessionEntry, SessionFile
from tracemill.ingesters.claude_code.steps import AssembledUnits
from tracemill.records.identity import make_trace_id


@dataclass(slots=True)
class AgentChain:
    """The entries of one agent; `key` is "" for the main chain."""

    key: str
    agent: str
    entries: list[SessionEntry] = field(default_factory=list)

    @property
    def prompt(self) -> str:
        """Return the first text the agent was given."""
        return next((entry.text.strip() for entry in self.entries if entry.kind == "user"), "")


@dataclass(frozen=True, slots=True)
class ParentCall:
    """The trace a subagent was started from, and the call that started it; None if unknown."""

    trace_id: str | None = None
    call_id: str | None = None


def split_chains(session: SessionFile) -> list[AgentChain]:
    """Return the agent chains of a file, the main one first, then in the order they begin."""
    chains: dict[str, AgentChain] = {}
    roots: dict[str, str] = {}
    for entry in session.entries:
        key = (entry.agent or _chain_root(entry, session, roots)) if entry.side else ""
        chain = chains.get(key)
        if chain is None:
            chain = chains[key] = AgentChain(key, entry.agent or "")
        chain.entries.append(entry)
    return sorted(chains.values(), key=lambda chain: chain.key != "")


def _chain_root(entry: SessionEntry, session: SessionFile, roots: dict[str, str]) -> str:
    """Return the uppermost ancestor of an entry inside its side chain."""
    path: list[str] = []
    at = entry.uuid
    while at not in roots:
        path.append(at)
        above = session.parents.get(at)
        if above is None or above not in session.side_uuids or len(path) > len(session.parents):
            roots[at] = at
            break
        at = above
    root = roots[at]
    roots.update(dict.fromkeys(path, root))
    return root


def agent_chain_trace_id(session: SessionFile, chain: AgentChain) -> str:
    """Return the trace id of a chain: session, agent, uuid of its first record."""
    first = session.first_uuid if chain.key == "" else chain.entries[0].uuid
    return make_trace_id("claude_code", session.session_id, chain.agent, first or "")


def find_agent_chain_parents(
    session: SessionFile, chains: list[AgentChain], assembled: AssembledUnits
) -> dict[str, ParentCall]:
    """Return the parents found in the same file, by side chain key."""
    parents: dict[str, ParentCall] = {}
    if all(chain.key == "" for chain in chains):
        return parents
    ids = {chain.key: agent_chain_trace_id(session, chain) for chain in chains}
    trace_of = {entry.order: ids[chain.key] for chain in chains for entry in chain.entries}
    prompts = _prompts(assembled)
    for chain in chains:
        if chain.key == "":
            continue
        call = session.agent_calls.get(chain.agent) if chain.agent else None
        if call is None:
            waiting = prompts.get(chain.prompt, [])
            call = waiting.pop(0) if waiting else None
        step = assembled.by_call.get(call) if call else None
        if step is not None:
            parents[chain.key] = ParentCall(trace_of.get(step.order), call)
    return parents


def _prompts(assembled: AssembledUnits) -> dict[str, list[str]]:
    """Return the calls that start agents, by their prompt, in file order."""
    prompts: dict[str, list[str]] = {}
    for call_id, step in assembled.by_call.items():
        call = step.calls[call_id]
        if call.name in STARTERS:
            prompt = (call.parsed() or {}).get("prompt")
            if isinstance(prompt, str):
                prompts.setdefault(prompt.strip(), []).append(call_id)
    return prompts
