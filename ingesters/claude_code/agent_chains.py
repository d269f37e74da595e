"""Which entries are one agent's: the main chain, and one side chain for each subagent.

Subagents stand in the main file (1.0.x: `isSidechain`, a root of their own for each) or in files of
their own (`agent-<id>.jsonl`, with the parent's session id; `claude_code_parents`). The call that started
one in the same file is known by the agent id its result bears, by progress records, or by the prompt.
"""

from dataclasses import dataclass, field

from tracemill.ingesters.claude_code.content_blocks import STARTERS
from tracemill.ingesters.claude_code.session import Entry, Session
from tracemill.ingesters.claude_code.steps import Assembled
from tracemill.records.identity import make_trace_id


@dataclass(slots=True)
class Chain:
    """The entries of one agent. `key` is "" for the main chain."""

    key: str
    agent: str
    entries: list[Entry] = field(default_factory=list)

    @property
    def prompt(self) -> str:
        """The first text the agent was given."""
        return next((entry.text.strip() for entry in self.entries if entry.kind == "user"), "")


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


def agent_chain_trace_id(session: Session, chain: Chain) -> str:
    """The identity of a chain: session, agent, uuid of its first record."""
    first = session.first_uuid if chain.key == "" else chain.entries[0].uuid
    return make_trace_id("claude_code", session.session_id, chain.agent, first or "")


def find_agent_chain_parents(
    session: Session, chains: list[Chain], assembled: Assembled
) -> dict[str, Parent]:
    """For each side chain key, the parent found in the same file."""
    found: dict[str, Parent] = {}
    if all(chain.key == "" for chain in chains):
        return found
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
            found[chain.key] = Parent(trace_of.get(step.order), call)
    return found


def _prompts(assembled: Assembled) -> dict[str, list[str]]:
    """Calls that start agents by the prompt they give, in file order."""
    prompts: dict[str, list[str]] = {}
    for call_id, step in assembled.by_call.items():
        call = step.calls[call_id]
        if call.name in STARTERS:
            prompt = (call.parsed() or {}).get("prompt")
            if isinstance(prompt, str):
                prompts.setdefault(prompt.strip(), []).append(call_id)
    return prompts
