"""Episodes as single-step tasks: a state, the tools, and the actions that were taken there with their values.

The value of an action is the mean reward of the episodes that took it in this state. States are the same
where all messages are, but for the ids of calls; so the first step of a task is one state for all episodes.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tracemill.environments.episodes.episode_folder import RecordedEpisode
from tracemill.environments.episodes.run_episode import Episode
from tracemill.records.message import Message


def single_steps(
    episodes: Iterable[Episode | RecordedEpisode], least_value: float = 1.0
) -> Iterator[dict[str, Any]]:
    """Yield a row for each state, in order; actions whose value is at least `least_value` are accepted."""
    states: dict[str, tuple[Episode | RecordedEpisode, Sequence[Message], int]] = {}
    taken: defaultdict[str, defaultdict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for episode in episodes:
        step = 0
        for place, message in enumerate(episode.messages):
            if message.role != "assistant":
                continue
            seen = episode.messages[:place]
            key = json.dumps([episode.task.name, episode.harness, [_bare(each) for each in seen]])
            states.setdefault(key, (episode, seen, step))
            taken[key][json.dumps(_bare(message), sort_keys=True)].append(episode.reward)
            step += 1
    for key, (episode, seen, step) in states.items():
        actions = [_action(json.loads(action), rewards) for action, rewards in taken[key].items()]
        for action in actions:
            action["accepted"] = action["value"] >= least_value
        yield {
            "task": episode.task.name,
            "step": step,
            "messages": [{**message.to_wire(), "content": message.content} for message in seen],
            "tools": [tool.to_wire() for tool in episode.tools],
            "actions": sorted(actions, key=lambda action: -action["value"]),
        }


def _action(bare: dict[str, Any], rewards: Sequence[float]) -> dict[str, Any]:
    return {**bare, "value": sum(rewards) / len(rewards), "episodes": len(rewards)}


def _bare(message: Message) -> dict[str, Any]:
    """Return a message without the ids of its calls."""
    return {
        "role": message.role,
        "content": message.content,
        "tool_calls": [{"name": call.name, "arguments": call.arguments} for call in message.tool_calls],
    }
