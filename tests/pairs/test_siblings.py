"""Sibling pairs: where runs of a task part, what is chosen, and what says nothing."""

import json
import random
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

from sibling_runs import BAD, GOOD, LOOK, bash, run, view

from tracemill.pairs.divergence import NOT_OFFERED, SAME
from tracemill.pairs.siblings import sibling_pairs
from tracemill.privacy.core.placeholder_keys import strip_placeholder_digits
from tracemill.records.message import Message, ToolSpec
from tracemill.records.pair import DPOPair
from tracemill.records.trace import Fidelity, Trace

BASH = ToolSpec("execute_bash", "Runs.", {"type": "object", "properties": {"command": {"type": "string"}}})


def found(*traces: Trace) -> tuple[list[DPOPair], Counter[str]]:
    by_id = {trace.trace_id: trace for trace in traces}

    def read(trace_ids: Iterable[str]) -> Iterator[Trace]:
        return (by_id[name] for name in sorted(trace_ids))

    return sibling_pairs(frozenset(by_id), read, strip_placeholder_digits)


def sides(pairs: Iterable[DPOPair]) -> list[tuple[str, str, str]]:
    def told(side: tuple[Message, ...]) -> str:
        return " ".join(str(value) for value in json.loads(side[0].tool_calls[0].arguments).values())

    return [(pair.step_id, told(pair.chosen), told(pair.rejected)) for pair in pairs]


def test_the_pair_is_where_the_runs_part_and_says_what_it_rests_on() -> None:
    pairs, reasons = found(GOOD, BAD)
    assert sides(pairs) == [("openhands-b:0:1", "view /r/main.py", "rm -rf /r/build")]
    assert reasons == Counter()
    [pair] = pairs
    assert (pair.label_source, pair.verified, pair.policy) == ("siblings", "outcome", "siblings")
    assert (pair.chosen_operation, pair.outcome, pair.cost_usd) == ("read", "not_resolved", 0.0)
    assert (pair.repository, pair.instance_id, pair.licence) == ("o/r", "o__r-1", "MIT")
    assert pair.evidence == (
        "1 of 1 runs that did the chosen action here were resolved, 0 of 1 that did the rejected"
    )
    assert [tool.name for tool in pair.tools] == ["str_replace_editor"]


def test_no_pair_without_both_outcomes_one_task_and_one_harness() -> None:
    for other in (
        run("b", "resolved", LOOK, bash("rm -rf /r/build")),
        run("b", "unknown", LOOK, bash("rm -rf /r/build")),
        run("b", "not_resolved", LOOK, bash("rm -rf /r/build"), task="Fix that."),
        run("b", "not_resolved", bash("ls", "other.py"), bash("rm -rf /r/build")),
        run("b", "not_resolved", bash("ls", "main.py", "I look."), bash("rm -rf /r/build")),
    ):
        pairs, _ = found(GOOD, other)
        assert [pair.step_id for pair in pairs if pair.step_id.endswith(":1")] == []
    assert found(GOOD, replace(BAD, instance_id="o__r-2")) == ([], Counter())
    assert found(GOOD, replace(BAD, harness="swe_agent")) == ([], Counter())
    assert found(GOOD, replace(BAD, kind="side")) == ([], Counter())


def test_a_system_message_behind_the_first_is_part_of_what_was_said() -> None:
    def told(trace: Trace, text: str) -> Trace:
        context = trace.contexts[0]
        messages = (*context.messages[:4], Message("system", text), *context.messages[4:])
        steps = tuple(replace(step, cut=step.cut + (step.cut >= 4)) for step in context.steps)
        return replace(trace, contexts=(replace(context, messages=messages, steps=steps),))

    assert len(found(told(GOOD, "Plan."), told(BAD, "Plan."))[0]) == 1
    assert found(told(GOOD, "Plan."), told(BAD, "Act.")) == ([], Counter())


def test_what_a_resolved_run_did_too_is_not_rejected() -> None:
    same = run("c", "resolved", LOOK, bash("rm -r -f /r/build"))
    pairs, reasons = found(GOOD, BAD, same)
    assert sides(pairs) == []
    assert reasons == {SAME: 1}


def test_each_other_action_of_unresolved_runs_gives_one_pair_whoever_did_it() -> None:
    again = run("d", "not_resolved", LOOK, bash("rm -rf /r/build"), bash("make"))
    other = run("e", "not_resolved", LOOK, bash("git stash"))
    pairs, _ = found(GOOD, again, other, BAD)
    assert sides(pairs) == [
        ("openhands-b:0:1", "view /r/main.py", "rm -rf /r/build"),
        ("openhands-e:0:1", "view /r/main.py", "git stash"),
    ]
    assert pairs[0].evidence.endswith("0 of 2 that did the rejected")


def test_chosen_is_the_action_with_the_best_share_of_resolved_runs() -> None:
    weak = [
        run("w1", "resolved", LOOK, bash("git log")),
        run("w2", "resolved", LOOK, bash("git log")),
        run("w3", "not_resolved", LOOK, bash("git log")),
    ]
    pairs, _ = found(BAD, *weak, GOOD)
    assert sides(pairs) == [("openhands-b:0:1", "view /r/main.py", "rm -rf /r/build")]
    pairs, _ = found(BAD, *weak)
    assert sides(pairs) == [("openhands-b:0:1", "git log", "rm -rf /r/build")]
    assert pairs[0].evidence.startswith("2 of 3 runs")


def test_the_order_of_the_traces_does_not_matter() -> None:
    traces = [GOOD, BAD]
    traces += [run(f"r{n}", "resolved", LOOK, view(f"/r/{n}.py")) for n in range(5)]
    done = ("git stash", "make", "curl x.org")
    traces += [run(f"u{n}", "not_resolved", LOOK, bash(done[n % 3])) for n in range(6)]
    first = found(*traces)
    assert len(first[0]) == 4
    for seed in range(5):
        random.Random(seed).shuffle(traces)
        by_id = {trace.trace_id: trace for trace in traces}

        def read(ids: Iterable[str], by_id: dict[str, Trace] = by_id) -> Iterator[Trace]:
            return (trace for name, trace in by_id.items() if name in ids)

        assert sibling_pairs(frozenset(by_id), read, strip_placeholder_digits) == first


def test_placeholders_of_two_traces_do_not_part_them() -> None:
    good = run("a", "resolved", bash("env", "TOKEN=<GITHUB_TOKEN_3f2ac91d>"), view("/r/main.py"))
    bad = run("b", "not_resolved", bash("env", "TOKEN=<GITHUB_TOKEN_00aa11bb>"), bash("git stash"))
    assert sides(found(good, bad)[0]) == [("openhands-b:0:1", "view /r/main.py", "git stash")]


def test_a_tool_that_was_not_among_the_recorded_ones_is_not_chosen() -> None:
    pairs, reasons = found(
        GOOD, run("b", "not_resolved", LOOK, bash("git stash"), tools=(BASH,), fidelity=Fidelity("recorded"))
    )
    assert (pairs, reasons) == ([], {NOT_OFFERED: 1})


def test_where_messages_were_lost_nothing_is_compared() -> None:
    lost = Fidelity(context="lost")
    assert found(GOOD, run("b", "not_resolved", LOOK, bash("git stash"), fidelity=lost)) == ([], Counter())
    later = run("b", "not_resolved", LOOK, bash("git stash"), fidelity=lost, lost_from=2)
    assert len(found(GOOD, later)[0]) == 1


def test_what_was_taken_back_is_not_what_a_run_did() -> None:
    first = BAD.contexts[0]
    second = run("b", "not_resolved", LOOK, bash("git stash")).contexts[0]
    both = replace(BAD, contexts=(first, replace(second, index=1, start="rewind")))
    assert [pair[2] for pair in sides(found(GOOD, both)[0])] == ["git stash"]
