"""Run a policy on tasks: one episode after the other, or several at a time."""

import hashlib
import json
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from dataclasses import dataclass, replace

from tracemill.environments.episodes.workspace import EpisodeJudgement, TaskWorkspace
from tracemill.environments.monitor.hack_finding import HackFinding
from tracemill.environments.sandbox.sandbox import DEFAULT_LIMITS, Limits, Sandbox
from tracemill.environments.task import Task
from tracemill.environments.tools.tool_session import SYSTEM_PROMPTS, HarnessName, tool_specs
from tracemill.environments.verdict.judge import Verdict
from tracemill.records.message import Message, ToolSpec

Policy = Callable[[Sequence[Message], Sequence[ToolSpec]], Message]
"""Returns the next answer of an agent, an assistant message, to all messages so far and the tools offered."""


@dataclass(frozen=True)
class Episode:
    """An agent's work on a task: every message, the tools it was offered, the judgement."""

    task: Task
    harness: HarnessName
    number: int
    model: str
    tools: tuple[ToolSpec, ...]
    messages: tuple[Message, ...]
    judgement: EpisodeJudgement
    malformed: int
    seconds: float

    @property
    def session(self) -> str:
        """Return an id, the same for the same task, model, number, prompt and answers of the policy."""
        told = [message.to_wire() for message in self.messages if message.role != "tool"]
        said = hashlib.blake2b(json.dumps(told).encode(), digest_size=16).hexdigest()
        key = f"{self.task.name} {self.harness} {self.model} {self.number} {said}"
        return str(uuid.uuid5(uuid.NAMESPACE_URL, f"tracemill:{key}"))

    @property
    def verdict(self) -> Verdict:
        """Return the verdict of the tests alone."""
        return self.judgement.verdict

    @property
    def findings(self) -> tuple[HackFinding, ...]:
        """Return the findings of the monitors."""
        return self.judgement.findings

    @property
    def hacked(self) -> bool:
        """Return whether a finding is a hack, or a canary passed."""
        return self.judgement.hacked

    @property
    def reward(self) -> float:
        """Return the reward, 0 if the episode was flagged as a hack."""
        return self.judgement.reward


def run_episode(
    task: Task,
    policy: Policy,
    sandbox: Sandbox,
    *,
    harness: HarnessName = "claude_code",
    model: str = "unknown",
    number: int = 0,
    level: str = "detailed",
    most_turns: int = 50,
    limits: Limits = DEFAULT_LIMITS,
) -> Episode:
    """Run a policy on a task until it answers without a call, finishes or runs out of turns.

    Malformed actions are answered with an error and stay in the record.
    """
    began, tools = time.monotonic(), tool_specs(harness)
    messages = [Message("system", SYSTEM_PROMPTS[harness]), Message("user", task.texts[level])]
    malformed, ended = 0, False
    with TaskWorkspace(task, sandbox, limits) as workspace:
        session = workspace.tools(harness)
        for _ in range(most_turns):
            answer = _as_recorded(policy(messages, tools), harness)
            messages.append(answer)
            for call in answer.tool_calls:
                result = session.call(call)
                malformed += result.malformed
                ended = ended or (call.name == "finish" and not result.failed)
                if call.name != "finish":
                    messages.append(result.to_message(call))
            if ended or not answer.tool_calls:
                break
        calls = [call for message in messages for call in message.tool_calls]
        judgement = workspace.judge(calls)
    seconds = time.monotonic() - began
    return Episode(task, harness, number, model, tools, tuple(messages), judgement, malformed, seconds)


def _as_recorded(answer: Message, harness: HarnessName) -> Message:
    """Return an answer as the harness records it: Claude Code records the arguments of calls as objects."""
    if harness != "claude_code":
        return answer
    calls = []
    for call in answer.tool_calls:
        given = call.parsed()
        kept = {"malformed": call.arguments} if given is None else given
        text = json.dumps(kept, ensure_ascii=False, separators=(",", ":"))
        calls.append(replace(call, arguments=text))
    return replace(answer, tool_calls=tuple(calls))


def sample_numbers(tasks: Iterable[Task]) -> list[int]:
    """Return for each task how many of those before it are the same one."""
    seen: Counter[str] = Counter()
    numbers = []
    for task in tasks:
        numbers.append(seen[task.name])
        seen[task.name] += 1
    return numbers


def run_episodes(
    tasks: Sequence[Task],
    make_policy: Callable[[Task], Policy],
    make_sandbox: Callable[[], Sandbox],
    *,
    at_once: int = 4,
    harness: HarnessName = "claude_code",
    model: str = "unknown",
    level: str = "detailed",
    most_turns: int = 50,
    limits: Limits = DEFAULT_LIMITS,
    numbers: Sequence[int] | None = None,
    finished: Callable[[Episode], object] = lambda episode: None,
) -> Iterator[Episode]:
    """Yield the episodes of tasks in order, `at_once` at a time, each in its own sandbox.

    `finished` is called with each episode as soon as it is judged, in the thread that ran it. An error, a
    policy's own too, ends the episodes that run already in peace; an interrupt ends them at their next turn.
    """
    stop = threading.Event()

    def work(task: Task, number: int) -> Episode:
        policy = make_policy(task)

        def answer(messages: Sequence[Message], tools: Sequence[ToolSpec]) -> Message:
            if stop.is_set():
                raise CancelledError
            return policy(messages, tools)

        episode = run_episode(
            task,
            answer,
            make_sandbox(),
            harness=harness,
            model=model,
            number=number,
            level=level,
            most_turns=most_turns,
            limits=limits,
        )
        finished(episode)
        return episode

    pool = ThreadPoolExecutor(at_once)
    try:
        chosen = sample_numbers(tasks) if numbers is None else numbers
        for future in [pool.submit(work, *each) for each in zip(tasks, chosen, strict=True)]:
            yield future.result()
    except (KeyboardInterrupt, GeneratorExit):
        stop.set()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
