"""Count what runs came to on each task, and weigh tasks by it: what always or never succeeds teaches nothing.

The counts stand in the task itself: `[metadata.tracemill.runs]` by model, and `sample_weight` = p (1 - p) in
`[metadata]`, where p is the share of solved runs, hacks not among them. `counted` names the sessions of runs
that are in the counts.
"""

import tomllib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tracemill.environments.episodes.episode_folder import RecordedEpisode
from tracemill.environments.episodes.run_episode import Episode
from tracemill.environments.harbor.task_files import write_settings


@dataclass(frozen=True)
class RunCounts:
    """The number of runs of a task, of those that solved it, and of those that were hacks."""

    attempts: int = 0
    solved: int = 0
    hacks: int = 0

    @property
    def sample_weight(self) -> float | None:
        """Return p (1 - p), at most .25; None before there are two runs."""
        share = self.solved / self.attempts if self.attempts else 0.0
        return share * (1 - share) if self.attempts > 1 else None

    def __add__(self, other: "RunCounts") -> "RunCounts":
        """Return the counts of both."""
        return RunCounts(self.attempts + other.attempts, self.solved + other.solved, self.hacks + other.hacks)


def read_counts(folder: Path) -> Mapping[str, RunCounts]:
    """Return the counts of a task by model."""
    settings = tomllib.loads((folder / "task.toml").read_text(encoding="utf-8"))
    runs = settings["metadata"]["tracemill"].get("runs", {})
    return {model: RunCounts(**counts) for model, counts in runs.items()}


def add_runs(episodes: Iterable[Episode | RecordedEpisode]) -> Mapping[str, RunCounts]:
    """Add episodes to the counts of their tasks, write the weights, and return the counts by task.

    An episode that was counted before is not counted again.
    """
    by_task: defaultdict[Path, list[Episode | RecordedEpisode]] = defaultdict(list)
    for episode in episodes:
        by_task[episode.task.folder].append(episode)
    return {group[0].task.name: _count(folder, group) for folder, group in by_task.items()}


def total(counts: Mapping[str, RunCounts]) -> RunCounts:
    """Return the counts of all models together."""
    return sum(counts.values(), RunCounts())


def _count(folder: Path, episodes: Sequence[Episode | RecordedEpisode]) -> RunCounts:
    """Count episodes of one task in its settings."""
    path, counts = folder / "task.toml", dict(read_counts(folder))
    settings = tomllib.loads(path.read_text(encoding="utf-8"))
    metadata = settings["metadata"]
    counted = {*metadata["tracemill"].get("counted", ())}
    for episode in episodes:
        if episode.session not in counted:
            one = RunCounts(1, int(episode.reward == 1.0), int(episode.hacked))
            counts[episode.model] = counts.get(episode.model, RunCounts()) + one
            counted.add(episode.session)
    whole = total(counts)
    metadata["tracemill"]["counted"] = sorted(counted)
    metadata["tracemill"]["runs"] = {
        model: {"attempts": each.attempts, "solved": each.solved, "hacks": each.hacks}
        for model, each in sorted(counts.items())
    }
    if whole.sample_weight is not None:
        metadata["sample_weight"] = round(whole.sample_weight, 4)
    write_settings(path, settings)
    return whole
