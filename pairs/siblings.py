"""Sibling pairs: runs of one task that share a prefix and then diverge, one resolved and one not.

Two runs share a prefix if its messages are equal. System prompts, ids of calls and what `normalize_text`
removes do not count. At a divergence, an action of unresolved runs only is rejected, and an action of
resolved runs is chosen. Actions of one intent count as one.

Prefixes are indexed on disk, so that memory grows with the largest trace and not with the number of traces.
"""

import hashlib
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing

from tracemill.pairs.divergence import build_diverging_run, from_json, judge_divergence, to_json
from tracemill.records.identity import canonical_json
from tracemill.records.message import Message
from tracemill.records.pair import DPOPair
from tracemill.records.trace import Context, Step, Trace, TraceState

ReadTraces = Callable[[frozenset[str]], Iterable[Trace]]
"""Yields the traces of these ids in any order. It is called twice."""
NormalizeText = Callable[[str], str]

_TABLES = """
create table step (prefix blob, resolved int, action blob, trace text, context int, step int);
create table run (prefix blob, body text);
"""
_DIVERGENCES = """
create table divergence as select prefix from step group by prefix
having min(resolved) = 0 and max(resolved) = 1 and count(distinct action) > 1
"""


def may_have_siblings(trace: Trace) -> bool:
    """Return whether a trace is a main session of a named task instance with a known outcome."""
    return trace.kind == "main" and bool(trace.instance_id) and trace.outcome != "unknown"


def sibling_pairs(
    trace_ids: frozenset[str], read: ReadTraces, normalize_text: NormalizeText = str
) -> tuple[list[DPOPair], Counter[str]]:
    """Return the sibling pairs of traces, and counted reasons for unresolved actions that give none.

    At a divergence each action of unresolved runs only gives one pair. Its chosen side is the action with the
    highest share of resolved runs, then the most of them. The outcome does not depend on the order of traces.

    A pair has no `state_messages`, and the tools that its chosen side calls. `normalize_text` removes from a
    text what is particular to its trace.
    """
    with closing(sqlite3.connect("")) as index:  # a temporary file that SQLite removes
        index.executescript(_TABLES)
        for trace in read(trace_ids):
            if may_have_siblings(trace):
                index.executemany("insert into step values (?, ?, ?, ?, ?, ?)", _steps(trace, normalize_text))
        index.execute("create index step_prefix on step (prefix)")
        index.execute("create index step_trace on step (trace)")
        index.execute(_DIVERGENCES)
        rows = index.execute("select distinct trace from step join divergence using (prefix)")
        for trace in read(frozenset(trace_id for (trace_id,) in rows)):
            index.executemany("insert into run values (?, ?)", _diverging_runs(trace, index))
        index.execute("create index run_prefix on run (prefix)")
        return _pairs(index)


def _steps(trace: Trace, normalize_text: NormalizeText) -> Iterator[tuple[object, ...]]:
    resolved = trace.outcome == "resolved"
    for context in trace.contexts:
        for step, prefix in _prefixes(trace, context, normalize_text):
            action = _action_digest(context.messages[step.cut], normalize_text)
            yield prefix, resolved, action, trace.trace_id, context.index, step.index


def _prefixes(trace: Trace, context: Context, normalize_text: NormalizeText) -> Iterator[tuple[Step, bytes]]:
    """Yield each step with a digest of the messages before it; leave out steps with lost context."""
    chain = hashlib.blake2b(digest_size=16)
    chain.update(_length_prefixed(trace.harness, trace.instance_id or ""))
    steps = {step.cut: step for step in context.steps}
    call_numbers: dict[str, int] = {}
    for number, message in enumerate(context.messages):
        step = steps.get(number)
        if step is not None and TraceState(trace, context, step).fidelity.context != "lost":
            yield step, chain.digest()
        if number == 0 and message.role == "system":
            continue
        for call in message.tool_calls:
            call_numbers[call.id] = len(call_numbers)
        answered = call_numbers.get(message.tool_call_id or "", -1)
        calls = [text for call in message.tool_calls for text in (call.name, normalize_text(call.arguments))]
        content = normalize_text(message.content)
        chain.update(_length_prefixed(message.role, content, str(answered), str(len(calls)), *calls))


def _length_prefixed(*texts: str) -> bytes:
    data = [text.encode("utf-8", "surrogatepass") for text in texts]
    return b"".join(len(each).to_bytes(8, "big") + each for each in data)


def _action_digest(message: Message, normalize_text: NormalizeText) -> bytes:
    calls = [[call.name, normalize_text(call.arguments)] for call in message.tool_calls]
    text = canonical_json([calls or normalize_text(message.content)])
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _diverging_runs(trace: Trace, index: sqlite3.Connection) -> list[tuple[bytes, str]]:
    """Return the trace's action at each divergence; the last one if it reached a divergence twice."""
    query = "select prefix, context, step from step join divergence using (prefix) where trace = ?"
    at = {prefix: (context, step) for prefix, context, step in sorted(index.execute(query, [trace.trace_id]))}
    contexts = {context.index: context for context in trace.contexts}
    states = {
        prefix: TraceState(trace, contexts[number], contexts[number].steps[step])
        for prefix, (number, step) in at.items()
    }
    return [(prefix, to_json(build_diverging_run(state))) for prefix, state in states.items()]


def _pairs(index: sqlite3.Connection) -> tuple[list[DPOPair], Counter[str]]:
    pairs: list[DPOPair] = []
    reasons: Counter[str] = Counter()
    for (prefix,) in index.execute("select prefix from divergence order by prefix"):
        bodies = index.execute("select body from run where prefix = ?", [prefix])
        new_pairs, new_reasons = judge_divergence([from_json(body) for (body,) in bodies])
        pairs += new_pairs
        reasons += new_reasons
    return sorted(pairs, key=lambda pair: pair.pair_id), reasons
