"""How good the labels are: every (student, trio of teachers) of recorded multi-model tables.

    TRACEMILL_MULTITEACHER=FOLDER python benchmarks/labels.py [--half all|tune|test] [--weaker] [--json FILE]

The folder holds `intercode_sql.jsonl.gz`, `intercode_bash.jsonl.gz` (MIT) and `msb_swe_agent.jsonl.gz`: rows
with a state and what several models did in it. A pair is good where the chosen action was rewarded more than
the rejected one, bad where less, else a tie. Per rule: median and 10th percentile over draws of precision
without ties and of the useful share (good of all), and the number of pairs.
"""

import argparse
import gzip
import itertools
import json
import os
import statistics
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agreement.arguments import fold_text
from agreement.fold import record_of
from agreement.labels import Voice, label_of
from agreement.ladder import Keys, keys
from agreement.policy import DEFAULT, LENIENT, STRICT, Policy
from agreement.validity import why_impossible, why_invalid
from agreement.world import World
from harnesses.swe_agent_commands import call_of_command
from records.families import family_of
from records.identity import digest
from records.message import Action, Message, ToolCall, ToolSpec
from records.reply import TeacherReply
from records.state import Context

PLAIN: dict[str, Any] = {"far": False, "dead_zone": False, "grounded": False, "proven": False}
OPEN: dict[str, Any] = {"min_families": 1, "exclude_student_family": False}


@dataclass(frozen=True)
class Done:
    """What a model did in a state: its keys, why it has no vote, and how it was rewarded."""

    keys: Keys
    folded: Keys
    reason: str | None
    length: int
    reward: float | None
    family: str


@dataclass(frozen=True)
class State:
    """A state with what each model did in it."""

    task: str
    depth: int
    done: dict[str, Done]


def read_states(path: Path, harness: str, prefixes: Sequence[Any] = ()) -> list[State]:
    """The states of a table, every action on the ladder."""
    with gzip.open(path, "rt") as lines:
        rows = [json.loads(line) for line in lines]
    return [_state(row, harness, prefixes) for row in rows]


def _state(row: dict[str, Any], harness: str, prefixes: Sequence[Any]) -> State:
    named = row["tools"] if isinstance(row["tools"], list) else []
    names = [tool if isinstance(tool, str) else tool["name"] for tool in named]
    tools = tuple(ToolSpec(name, "", {"properties": {}}, "inferred") for name in names)
    messages = tuple(_message(each, number, row, prefixes) for number, each in enumerate(row["messages"]))
    record = record_of(Context(0, messages, ()), harness)
    cwd = f"/{row['task_id'].rsplit('-', 1)[0]}" if harness == "swe_agent" else None
    world = World(harness, cwd, tools, record, len(messages))
    return State(row["task_id"], row["depth"], {m: _done(m, a, world) for m, a in row["actions"].items()})


def _message(each: dict[str, Any], number: int, row: dict[str, Any], prefixes: Sequence[Any]) -> Message:
    if "content_ref" in each:
        place = int(each["content_ref"].split("[")[1].rstrip("]"))
        return Message(each["role"], str(prefixes[place]["content"]))
    calls = tuple(replace(_call(call, "swe_agent"), id=f"c{number}") for call in each.get("tool_calls") or ())
    if each["role"] == "assistant" and row["source"].startswith("intercode"):
        arguments = json.dumps({"command": each["content"]})
        calls = (ToolCall(f"c{number}", row["tools"][0]["name"], arguments),)
    answered = f"c{number - 1}" if each["role"] == "tool" else None
    return Message(each["role"], each.get("content") or "", calls, answered)


def _done(model: str, given: dict[str, Any], world: World) -> Done:
    calls = tuple(_call(call, world.harness) for call in given["tool_calls"])
    action = Action(str(given.get("text") or ""), calls)
    known = keys(action, world)
    reply = TeacherReply("", "", model, "", 0, 0, action=action)
    offered = (
        world if not calls or world.tools else replace(world, tools=tuple(_spec(call) for call in calls))
    )
    reason = why_invalid(reply, offered.tools, world.harness) or why_impossible(action, known, world)
    words = " ".join(f"{c.name} {fold_text(str(list((c.parsed() or {}).values())))}" for c in calls)
    reward = given.get("reward")
    length = sum(len(call.arguments) for call in calls)
    plain = replace(known, exact=digest(words or fold_text(action.text)))
    return Done(known, plain, reason, length, reward, family_of(model))


def _call(given: dict[str, Any], harness: str) -> ToolCall:
    """A recorded call; the Java runs give every call as the command line it was."""
    if harness == "swe_agent":
        return call_of_command(str(given["arguments"]["command"]))
    return ToolCall("t", given["name"], json.dumps(given["arguments"]))


def _spec(call: ToolCall) -> ToolSpec:
    return ToolSpec(call.name, "", {"properties": {}}, "inferred")


def draws(states: Sequence[State]) -> tuple[list[tuple[str, tuple[str, ...]]], dict[str, float]]:
    """Every (student, trio), and each model's mean reward on its first step."""
    first: dict[str, list[float]] = defaultdict(list)
    models: set[str] = set()
    for state in states:
        models |= state.done.keys()
        for model, done in state.done.items():
            if state.depth == 0 and done.reward is not None:
                first[model].append(done.reward)
    trios = [
        (student, trio)
        for student in sorted(models)
        for trio in itertools.combinations(sorted(models - {student}), 3)
    ]
    return trios, {model: statistics.mean(rewards) for model, rewards in first.items()}


def folded(policy: Policy) -> Policy:
    """The rule that compares folded text and knows nothing else."""
    return replace(policy, name="folded", level="exact", **PLAIN)


def pairs_of(
    states: Sequence[State], student: str, trio: Sequence[str], policy: Policy
) -> Iterable[tuple[Done, Done]]:
    """(chosen, rejected) of every pair a policy makes."""
    for state in states:
        own = state.done.get(student)
        if own is None:
            continue
        voters = [m for m in trio if m in state.done and _votes(state.done[m], own, policy)]
        voices = [_voice(m, state.done[m], policy) for m in voters]
        label = label_of(voices, _voice("", own, policy).keys, policy)
        if label.chosen is not None:
            yield state.done[voters[label.chosen]], own


def _votes(done: Done, own: Done, policy: Policy) -> bool:
    if policy.name != "folded" and done.reason is not None:
        return False
    return not (policy.exclude_student_family and done.family == own.family)


def _voice(model: str, done: Done, policy: Policy) -> Voice:
    return Voice(model, done.family, done.folded if policy.name == "folded" else done.keys, done.length)


def score(pairs: Iterable[tuple[Done, Done]]) -> Counter[str]:
    """Pairs by good, tie and bad."""
    count: Counter[str] = Counter()
    for chosen, rejected in pairs:
        gain = (chosen.reward or 0) - (rejected.reward or 0)
        count["good" if gain > 0 else "bad" if gain < 0 else "tie"] += 1
    return count


def summary(scores: Sequence[Counter[str]]) -> dict[str, float]:
    """Median and 10th percentile over draws; a draw without a pair that is no tie has no precision."""
    precision = [c["good"] / (c["good"] + c["bad"]) for c in scores if c["good"] + c["bad"]]
    useful = [c["good"] / c.total() for c in scores if c.total()]
    pairs = [c.total() for c in scores]
    return {
        "precision": _quantile(precision, 0.5),
        "precision_p10": _quantile(precision, 0.1),
        "useful": _quantile(useful, 0.5),
        "useful_p10": _quantile(useful, 0.1),
        "pairs": _quantile(pairs, 0.5),
        "pairs_total": sum(pairs),
    }


def _quantile(values: Sequence[float], share: float) -> float:
    return sorted(values)[int(share * (len(values) - 1))] if values else float("nan")


def rules() -> dict[str, Policy]:
    """The rules compared, by name."""
    found: dict[str, Policy] = {}
    for k in (1, 2, 3):
        plain: dict[str, Any] = {"threshold": k, **PLAIN}
        if k == 1:
            plain["min_families"] = 1
        found[f"folded k={k}"] = folded(replace(DEFAULT, **plain))
        found[f"exact k={k}"] = replace(DEFAULT, level="exact", **plain)
        found[f"canonical k={k}"] = replace(DEFAULT, level="canonical", **plain)
        found[f"default k={k}"] = replace(DEFAULT, threshold=k, min_families=min(k, 2))
    found["strict"] = STRICT
    found["lenient"] = LENIENT
    return found


def intercode(states: Sequence[State], half: str, weaker: bool) -> dict[str, dict[str, dict[str, float]]]:
    """Per kind of voters (all, or two families without the student's) and set of draws, per rule."""
    trios, standing = draws(states)
    strong = [(s, t) for s, t in trios if all(standing[m] >= standing[s] for m in t)]
    kept = [state for state in states if half == "all" or (half == "tune") == is_tuning(state.task)]
    out: dict[str, dict[str, dict[str, float]]] = {}
    for voters, changes in (("any family", OPEN), ("two families", {})):
        for name, chosen in (("stronger", strong), *((("all", trios),) if weaker else ())):
            out[f"{voters}, {name} draws"] = {
                rule: summary([score(pairs_of(kept, s, t, replace(policy, **changes))) for s, t in chosen])
                for rule, policy in rules().items()
            }
    return out


def is_tuning(task: str) -> bool:
    """The half of the tasks rules are tuned on, by a hash of the task."""
    return int(digest("half", task)[:8], 16) % 2 == 0


def java(states: Sequence[State]) -> dict[str, dict[str, int]]:
    """Pairs by operation, chosen over rejected, of every draw of the Java runs."""
    trios, _ = draws(states)
    out: dict[str, dict[str, int]] = {}
    for voters, changes in (("any family", OPEN), ("two families", {})):
        count: Counter[str] = Counter()
        for student, trio in trios:
            for chosen, rejected in pairs_of(states, student, trio, replace(DEFAULT, **changes)):
                count[f"{chosen.keys.cls} over {rejected.keys.cls}"] += 1
        out[voters] = dict(count.most_common())
    return out


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--half", choices=("all", "tune", "test"), default="all")
    parser.add_argument(
        "--weaker", action="store_true", help="also draws with teachers weaker than the student"
    )
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    folder = os.environ.get("TRACEMILL_MULTITEACHER")
    if not folder:
        sys.exit("TRACEMILL_MULTITEACHER is not set: name the folder with the tables")
    root, found = Path(folder), {}
    for table in ("sql", "bash"):
        found[table] = intercode(
            read_states(root / f"intercode_{table}.jsonl.gz", "intercode"), given.half, given.weaker
        )
        for draw, by_rule in found[table].items():
            print(f"\n{table}, {draw}")
            for rule, figures in by_rule.items():
                print(f"  {rule:16}", "  ".join(f"{name} {value:.3f}" for name, value in figures.items()))
    prefixes = json.loads((root / "msb_prefix.json").read_text())
    found["java"] = java(read_states(root / "msb_swe_agent.jsonl.gz", "swe_agent", prefixes))
    for voters, count in found["java"].items():
        told = sum(
            n for kind, n in count.items() if kind.split()[0] in ("edit", "run_test", "finish", "create")
        )
        print(
            f"\njava, {voters}: {sum(count.values())} pairs, {told} edit, create, run_test or finish: {count}"
        )
    if given.json:
        given.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
