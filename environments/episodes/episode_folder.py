"""A folder of episodes: a session for each, and their outcomes in a file beside it.

An episode is added as soon as it is finished: its outcome first, then its session, each file written
atomically. An episode counts as finished where both are there. So a run that was killed leaves nothing half
written, and the same run goes on with what is missing.
"""

import fcntl
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracemill.environments.episodes.run_episode import Episode
from tracemill.environments.episodes.session_records import claude_code_records, gym_row
from tracemill.environments.task import Task
from tracemill.environments.tools.tool_session import HarnessName, tool_specs
from tracemill.records.errors import EnvironmentTaskError
from tracemill.records.message import Message, ToolSpec
from tracemill.records.storage.atomic_files import write_atomically


@dataclass(frozen=True)
class RecordedEpisode:
    """An episode of an earlier run, as its folder has it; `path` is its session."""

    task: Task
    harness: HarnessName
    model: str
    session: str
    reward: float
    hacked: bool
    malformed: int
    path: Path
    messages: tuple[Message, ...] = ()
    """Empty until the session is read."""

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """Return the tools that were offered."""
        return tool_specs(self.harness)


class EpisodeFolder:
    """Sessions of episodes below a folder, and their outcomes in `<folder>-outcomes.jsonl`.

    What earlier calls wrote to the same folder stays.
    """

    def __init__(self, folder: Path) -> None:
        """Make the folder. Raises EnvironmentTaskError if it cannot be made."""
        self.path = folder.absolute()
        self._outcomes = self.path.with_name(f"{self.path.name}-outcomes.jsonl")
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise EnvironmentTaskError(
                f"{folder} cannot hold sessions ({error.strerror})", "a folder that can be written"
            ) from None

    def add(self, episode: Episode, run: str = "") -> None:
        """Write an episode; `run` is what `run_key` says of it, and replaces what is there of the same."""
        judgement = episode.judgement
        row = {
            "session": episode.session,
            "task": episode.task.name,
            "resolved": episode.reward == 1.0,
            "reward": episode.reward,
            "reasons": judgement.reasons(episode.task.exam.fail_to_pass),
            "suspicious": judgement.suspicions,
            "harness": episode.harness,
            "model": episode.model,
            "hack": episode.hacked,
            "malformed": episode.malformed,
            "run": run,
        }
        records = [gym_row(episode)] if episode.harness == "openhands" else claude_code_records(episode)
        with self._locked():
            kept = [line for line in self._lines() if not _is_replaced(line, row)]
            with write_atomically(self._outcomes) as file:
                _write_lines(file, [*kept, json.dumps(row)])
            with write_atomically(self._session(episode.session)) as file:
                _write_lines(file, map(json.dumps, records))

    def finished(self, planned: Mapping[str, Task]) -> dict[str, RecordedEpisode]:
        """Return the episodes that are there of those planned, by what `run_key` says of them."""
        found = {}
        for line in self._lines():
            row = _row(line)
            task, path = planned.get(row.get("run", "")), self._session(str(row.get("session")))
            if task is None or not path.is_file():
                continue
            found[row["run"]] = RecordedEpisode(
                task,
                row["harness"],
                row["model"],
                row["session"],
                row["reward"],
                row["hack"],
                row["malformed"],
                path,
            )
        return found

    def _session(self, name: str) -> Path:
        return self.path / f"{name}.jsonl"

    def _lines(self) -> list[str]:
        return self._outcomes.read_text(encoding="utf-8").splitlines() if self._outcomes.exists() else []

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the folder against other threads and processes that add to it."""
        handle = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)


def run_key(task: Task, number: int, **arguments: object) -> str:
    """Return an id of an episode by what is known before it is run: its task, number and arguments."""
    known = [task.name, task.exam.digest, *task.deleted, number, sorted(arguments.items())]
    return hashlib.blake2b(json.dumps(known).encode(), digest_size=16).hexdigest()


def write_sessions(episodes: Iterable[Episode], folder: Path) -> Path:
    """Write episodes below a folder, with their outcomes; return the path for `[sources] paths`.

    An outcome holds the reward, the reasons why it is below 1, and what was suspicious.
    """
    place = EpisodeFolder(folder)
    for episode in episodes:
        place.add(episode)
    return folder


def _row(line: str) -> dict[str, Any]:
    """Return an outcome; an empty one for a line that is none."""
    try:
        row = json.loads(line)
    except ValueError:
        return {}
    return row if isinstance(row, dict) else {}


def _is_replaced(line: str, row: Mapping[str, Any]) -> bool:
    """Return whether a line is on the same episode as a new row: by its run, or by its session alone."""
    old = _row(line)
    run = old.get("run", "")
    return run == row["run"] if run else old.get("session") == row["session"]


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)
