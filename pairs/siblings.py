"""Sibling pairs: runs of one task that share everything up to a step and then part, one resolved and one not.

Runs share a prefix where the same text was said in it, system prompts, ids of calls and what is particular
to a trace in placeholders apart. At a step where they part, what an unresolved run did and no resolved one
did is rejected; chosen is what the resolved runs did there. Actions of one intent are one: of those nothing
says which is better.

Prefixes lie in an index on disk, so that memory follows the largest trace and not their number.
"""

import hashlib
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing

from tracemill.pairs.divergence import build_divergence_member, from_json, judge_divergence, to_json
from tracemill.records.identity import canonical_json
from tracemill.records.message import Message
from tracemill.records.pair import DPOPair
from tracemill.records.trace import Context, Step, Trace, TraceState

Read = Callable[[frozenset[str]], Iterable[Trace]]
"""Gives the traces of these ids, one after the other, in any order; it is called twice."""

_TABLES = """
create table step (prefix blob, resolved int, deed blob, trace text, context int, step int);
create table member (prefix blob, body text);
"""
_PARTINGS = """
create table parting as select prefix from step group by prefix
having min(resolved) = 0 and max(resolved) = 1 and count(distinct deed) > 1
"""


def may_have_siblings(trace: Trace) -> bool:
    """Whether a trace can be one of several runs of a task: a main session of a named instance whose outcome
    is known."""
    return trace.kind == "main" and bool(trace.instance_id) and trace.outcome != "unknown"


def sibling_pairs(
    trace_ids: frozenset[str], read: Read, plain: Callable[[str], str] = str
) -> tuple[list[DPOPair], Counter[str]]:
    """The sibling pairs of these traces by their ids, without what was shown; and for what an unresolved run
    did at a parting without giving a pair the reason, counted.

    At a parting each different action that only unresolved runs did gives one pair, against the action with
    the highest share of resolved runs, then the most of them. Neither depends on the order of the traces. The
    tools of a pair are those that the chosen side calls.
    `plain` takes out of a text what is particular to its trace.
    """
    with closing(sqlite3.connect("")) as index:  # a file that SQLite makes and removes, whatever happens
        index.executescript(_TABLES)
        for trace in read(trace_ids):
            if may_have_siblings(trace):
                index.executemany("insert into step values (?, ?, ?, ?, ?, ?)", _steps(trace, plain))
        index.execute("create index by_prefix on step (prefix)")
        index.execute("create index by_trace on step (trace)")
        index.execute(_PARTINGS)
        for trace in read(_parting_traces(index)):
            index.executemany("insert into member values (?, ?)", _members(trace, index))
        index.execute("create index by_member on member (prefix)")
        return _pairs(index)


def _steps(trace: Trace, plain: Callable[[str], str]) -> Iterator[tuple[object, ...]]:
    resolved = trace.outcome == "resolved"
    for context in trace.contexts:
        for step, prefix in _prefixes(trace, context, plain):
            deed = _deed(context.messages[step.cut], plain)
            yield prefix, resolved, deed, trace.trace_id, context.index, step.index


def _prefixes(trace: Trace, context: Context, plain: Callable[[str], str]) -> Iterator[tuple[Step, bytes]]:
    """What was said before each step, as a digest; of no step before which messages were lost."""
    chain = hashlib.blake2b(digest_size=16)
    chain.update(_framed(trace.harness, trace.instance_id or ""))
    steps = {step.cut: step for step in context.steps}
    places: dict[str, int] = {}
    for number, message in enumerate(context.messages):
        step = steps.get(number)
        if step is not None and TraceState(trace, context, step).fidelity.context != "lost":
            yield step, chain.digest()
        if message.role == "system":
            continue
        for call in message.tool_calls:
            places[call.id] = len(places)
        answers = places.get(message.tool_call_id or "", -1)
        told = [part for call in message.tool_calls for part in (call.name, plain(call.arguments))]
        chain.update(_framed(message.role, plain(message.content), str(answers), str(len(told)), *told))


def _framed(*parts: str) -> bytes:
    data = [part.encode("utf-8", "surrogatepass") for part in parts]
    return b"".join(len(each).to_bytes(8, "big") + each for each in data)


def _deed(message: Message, plain: Callable[[str], str]) -> bytes:
    calls = [[call.name, plain(call.arguments)] for call in message.tool_calls]
    text = canonical_json([calls or plain(message.content)])
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _parting_traces(index: sqlite3.Connection) -> frozenset[str]:
    found = index.execute("select distinct trace from step join parting using (prefix)")
    return frozenset(trace for (trace,) in found)


def _members(trace: Trace, index: sqlite3.Connection) -> list[tuple[bytes, str]]:
    """What a trace did at its partings. Where it came by one twice, what it did last counts: what it did
    before was taken back."""
    query = "select prefix, context, step from step join parting using (prefix) where trace = ?"
    at = {prefix: (context, step) for prefix, context, step in sorted(index.execute(query, [trace.trace_id]))}
    contexts = {context.index: context for context in trace.contexts}
    states = {
        prefix: TraceState(trace, contexts[number], contexts[number].steps[step])
        for prefix, (number, step) in at.items()
    }
    return [(prefix, to_json(build_divergence_member(state))) for prefix, state in states.items()]


def _pairs(index: sqlite3.Connection) -> tuple[list[DPOPair], Counter[str]]:
    pairs: list[DPOPair] = []
    reasons: Counter[str] = Counter()
    for (prefix,) in index.execute("select prefix from parting order by prefix"):
        bodies = index.execute("select body from member where prefix = ?", [prefix])
        found, why = judge_divergence([from_json(body) for (body,) in bodies])
        pairs += found
        reasons += why
    return sorted(pairs, key=lambda pair: pair.pair_id), reasons
