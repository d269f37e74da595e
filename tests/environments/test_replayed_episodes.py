"""Labels by execution: sides of a disagreement are run from states of recorded episodes."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import orchard
import pytest

from tracemill import ClaudeCodeIngester, SWEGymIngester
from tracemill.environments.episodes.episode_folder import write_sessions
from tracemill.environments.episodes.replayed_episodes import ReplayedEpisodes
from tracemill.environments.episodes.run_episode import Policy, run_episode
from tracemill.environments.task import Task
from tracemill.environments.tools.tool_session import HarnessName
from tracemill.pairs.verified import verify_actions
from tracemill.records.errors import ConfigError
from tracemill.records.message import Action, Message, ToolCall, ToolSpec
from tracemill.records.step_environment import NotExecuted, StepEnvironment
from tracemill.records.trace import TraceState

DELETED, CONSTANT = "raise NotImplementedError", "return 0"


def first_file(task: Task) -> str:
    """The first file that misses something, relative to the repository."""
    return sorted(symbol.partition("::")[0] for symbol in task.deleted)[0]


def bash(harness: HarnessName, command: str) -> tuple[str, dict[str, Any]]:
    return ("Bash" if harness == "claude_code" else "execute_bash"), {"command": command}


def look(task: Task, harness: HarnessName) -> tuple[str, dict[str, Any]]:
    return bash(harness, f"cat /repository/{first_file(task)}")


def mend(task: Task, harness: HarnessName) -> tuple[str, dict[str, Any]]:
    """The right action: the original files are put back, all by one command."""
    files = [path for path in task.original.rglob("*") if path.is_file()]
    commands = [
        f"cat > /repository/{path.relative_to(task.original)} <<'END'\n{path.read_text()}END"
        for path in files
    ]
    return bash(harness, "\n".join(commands))


def spoil(task: Task, harness: HarnessName) -> tuple[str, dict[str, Any]]:
    """A wrong action: what is missing gives a constant, in every file."""
    return bash(harness, f"grep -rl '{DELETED}' /repository | xargs sed -i 's/{DELETED}/{CONSTANT}/'")


def action(made: tuple[str, dict[str, Any]]) -> Action:
    return Action("", (ToolCall("call_x", made[0], json.dumps(made[1])),))


def scripted(*calls: tuple[str, Any]) -> Policy:
    def answer(messages: Sequence[Message], tools: Sequence[ToolSpec]) -> Message:
        place = sum(message.role == "assistant" for message in messages)
        if place >= len(calls):
            return Message("assistant", "Done.")
        name, given = calls[place]
        return Message("assistant", "", (ToolCall(f"call_{place}", name, json.dumps(given)),))

    return answer


def states_of(task: Task, folder: Path, harness: HarnessName, *calls: tuple[str, Any]) -> list[TraceState]:
    """The states of an episode in which these calls are made, as they are read back."""
    episode = run_episode(task, scripted(*calls), orchard.sandbox(), harness=harness)
    place = write_sessions([episode], folder / f"{task.name}-{harness}-{len(calls)}")
    [file] = place.glob("*.jsonl")
    reader = ClaudeCodeIngester() if harness == "claude_code" else SWEGymIngester()
    [trace] = reader.ingest(file)
    return list(trace.states())


@pytest.fixture
def environment(orchard_tasks: list[Task]) -> Iterator[ReplayedEpisodes]:
    found = ReplayedEpisodes(orchard_tasks, orchard.sandbox())
    yield found
    found.close()


@pytest.mark.parametrize("harness", ["claude_code", "openhands"])
def test_actions_are_worth_what_the_task_says(
    orchard_tasks: list[Task], environment: ReplayedEpisodes, tmp_path: Path, harness: HarnessName
) -> None:
    task = orchard_tasks[3]
    assert isinstance(environment, StepEnvironment)
    states = states_of(task, tmp_path, harness, look(task, harness), spoil(task, harness))
    assert [environment.restores(state) for state in states] == [True] * 3
    right, wrong, harmless = (action(made(task, harness)) for made in (mend, spoil, look))
    at_edit = states[1]
    found = verify_actions(at_edit, [right, wrong, harmless, Action("Done.")], environment, 2)
    assert [(each.chosen, each.rejected, each.runs) for each in found] == [
        (2, 0, 2),  # what the agent does behind it finds nothing to spoil
        (0, 0, 2),
        (0, 0, 2),
        (0, 0, 2),
    ]
    assert found[0].low > 0


def test_what_comes_to_the_same_later_is_no_difference(
    orchard_tasks: list[Task], environment: ReplayedEpisodes, tmp_path: Path
) -> None:
    task = orchard_tasks[0]
    harness: HarnessName = "claude_code"
    states = states_of(task, tmp_path, harness, look(task, harness), mend(task, harness))
    right, wrong = action(mend(task, harness)), action(spoil(task, harness))
    [early] = verify_actions(states[0], [right], environment, 1)
    assert (early.chosen, early.rejected) == (1, 1)  # a look before the edit is not wrong
    assert not environment.succeeds(states[1], wrong, 0)
    assert not environment.succeeds(states[1], Action("Done."), 0)  # ends the episode: nothing follows
    assert environment.succeeds(states[2], Action("Done."), 0)


def test_a_state_that_does_not_come_back_is_not_executed(
    orchard_tasks: list[Task], environment: ReplayedEpisodes, tmp_path: Path
) -> None:
    task = orchard_tasks[0]
    noise = bash("claude_code", "head -c 8 /dev/urandom | base64")
    states = states_of(task, tmp_path, "claude_code", look(task, "claude_code"), noise)
    assert [environment.restores(state) for state in states] == [True, True, False]
    with pytest.raises(NotExecuted, match="a call gave another result than the recorded one"):
        environment.succeeds(states[2], Action("Done."), 0)
    other = ReplayedEpisodes([replace(task, texts={"terse": "Something else."})], orchard.sandbox())
    assert not other.restores(states[0])
    with pytest.raises(ConfigError, match="no tasks; expected the key `tasks` under"):
        ReplayedEpisodes([task]).restores(states[0])


@pytest.mark.long
@pytest.mark.slow
def test_labels_by_execution_equal_the_truth_of_the_tasks(
    orchard_tasks: list[Task], environment: ReplayedEpisodes, tmp_path: Path
) -> None:
    """Right, wrong and harmless proposals at every step of agents that fail and that succeed."""
    seen: Counter[tuple[str, str]] = Counter()
    for task in orchard_tasks:
        for solves in (False, True):
            own = mend if solves else spoil
            harness: HarnessName = "openhands" if solves else "claude_code"
            states = states_of(task, tmp_path, harness, look(task, harness), own(task, harness))
            for place, state in enumerate(states[:2]):
                proposals = {"right": mend, "wrong": spoil, "harmless": look}
                actions = [action(made(task, harness)) for made in proposals.values()]
                found = verify_actions(state, actions, environment, 2)
                for proposal, each in zip(proposals, found, strict=True):
                    label = "better" if each.low > 0 else "worse" if each.high < 0 else "equal"
                    seen[_truth(proposal, solves, place), label] += 1
    assert seen == {("better", "better"): 8, ("worse", "worse"): 8, ("equal", "equal"): 32}


def _truth(proposal: str, solves: bool, place: int) -> str:
    """How a proposal compares with the agent's action where the agent then goes on as it did."""
    if not solves:
        return "better" if proposal == "right" else "equal"
    return "worse" if place == 1 and proposal != "right" else "equal"
