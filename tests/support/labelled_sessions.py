"""A workspace whose teachers answered in every way at the steps of a session, beside sessions that solved."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from growing_traces import task
from kept_pairs import put
from sibling_runs import bash, run

from tracemill.agreement.voting.policy import VotePolicy
from tracemill.flows.admission.reredaction import Reredactor
from tracemill.flows.labeling.label_shard import (
    LabelledTraces,
    ShownTrace,
    make_pairs,
    write_labels,
    write_replies,
)
from tracemill.records.message import Action, ToolCall
from tracemill.records.reply import TeacherReply
from tracemill.records.storage.workspace import Workspace
from tracemill.records.trace import Trace

SOLVED = run("solved", "resolved", bash("ls"), bash("cat a.py"), bash("pytest"), task=task(1))
HELPER = replace(
    run("helper", "unknown", bash("grep -rn slug ."), task=task(2)),
    kind="side",
    parent_trace_id=SOLVED.trace_id,
)
FAILED = run(
    "failed",
    "not_resolved",
    bash("ls /r", "main.py"),
    bash("rm -rf build"),
    bash("sed -n 1,20p /r/main.py", "text"),
    bash("git status"),
    bash("git diff"),
    bash("pytest -q"),
    bash("ls -la"),
    task=task(3),
)
SESSIONS = tuple(
    replace(each, redaction="r1", repository=f"owner/{each.trace_id}", instance_id=None)
    for each in (SOLVED, HELPER, FAILED)
)
LOOK = Action(
    "I look at it.", (ToolCall("t", "str_replace_editor", '{"command": "view", "path": "/r/main.py"}'),)
)


def say(command: str, words: str = "") -> Action:
    """A command line as a teacher's action."""
    return Action(words, (ToolCall("t", "execute_bash", f'{{"command": "{command}"}}'),))


TAIL = "sed -n 300,400p /r/main.py"
ANSWERS: dict[str, dict[str, Action | None]] = {
    "openhands-failed:0:0": {"qwen": say("ls /r", "qwen looks"), "zai": say("ls /r"), "kimi": say("pytest")},
    "openhands-failed:0:1": {"qwen": say("pytest", "I test."), "zai": say("pytest"), "kimi": say("ls")},
    "openhands-failed:0:2": {"qwen": say(TAIL, "I read it."), "zai": say(TAIL), "kimi": None},
    "openhands-failed:0:3": {"qwen": say("ls"), "zai": say("pytest"), "kimi": LOOK},
    "openhands-failed:0:4": {"qwen": None, "zai": None},
    "openhands-solved:0:1": {"qwen": say("pytest"), "zai": say("pytest")},
    "openhands-solved:0:2": {"qwen": say("pytest"), "zai": say("pytest")},
}
"""What each teacher answers at each step, None where the call failed."""


def replies(shown: Sequence[ShownTrace]) -> list[TeacherReply]:
    """The answers as they were bought for what is shown."""
    made: list[TeacherReply] = []
    for item in shown:
        for state in item.trace.states():
            step_id = str(state.step_id)
            prompt_id = item.presentations[state.context.index].prompt_ids[state.step.index]
            for teacher, action in ANSWERS.get(step_id, {}).items():
                plain: dict[str, Any] = {"action": action} if action else {"failure": "rate_limited"}
                given = {"prompt_id": prompt_id, "cost_usd": 0.25, **plain}
                made.append(TeacherReply(step_id, f"k-{teacher}-{step_id}", teacher, teacher, 0, 0, **given))
    return made


def fill(work: Workspace, reredactor: Reredactor, sessions: Sequence[Trace] = SESSIONS) -> LabelledTraces:
    """Put the sessions with their answers, votes and pairs into a workspace."""
    put(work, sessions)
    shown = [ShownTrace.of(each, reredactor) for each in sessions]
    ids = [each.trace_id for each in sessions]
    bought = replies(shown)
    write_replies(work, "openhands", ids, bought)
    made = make_pairs(shown, bought, VotePolicy(), of_traces=False)
    write_labels(work, "openhands", ids, made, "")
    return made
