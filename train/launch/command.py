"""The launcher `command`: any shell command on this machine, with the release in its environment."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field

from tracemill.train.child_environment import child_environment
from tracemill.train.launch.detached_process import (
    poll_process,
    process_log,
    start_process,
    stop_process,
    write_launch,
)
from tracemill.train.launch.launcher import JobStatus, Launch, LaunchOptions
from tracemill.train.launch.run_command import command_environment
from tracemill.train.training_settings import TrainingSettings


class CommandOptions(LaunchOptions):
    """Options of the launcher `command`."""

    command: str = Field(min_length=1)
    """Run by `/bin/sh`; it writes its checkpoint into `$TRACEMILL_OUTPUT`."""


class CommandLauncher:
    """A launcher of trainings with a command of the user's."""

    options: ClassVar = CommandOptions
    attached: ClassVar = True
    remote: ClassVar = False
    poll_s: ClassVar = 0.1

    def check(self, settings: TrainingSettings) -> None:
        """Accept everything: what the command needs is its own affair."""

    def describe(self, launch: Launch) -> dict[str, Any]:
        """Return the command, its directory, the variables it gets and the names of those it inherits."""
        return {
            "command": launch.options(CommandOptions).command,
            "directory": str(Path.cwd()),
            "environment": sorted(child_environment(os.environ, launch.settings.environment)),
            "variables": command_environment(launch.job),
        }

    def submit(self, launch: Launch) -> str:
        """Start the command in the current directory and return the id of its process."""
        write_launch(launch, command=launch.options(CommandOptions).command, directory=str(Path.cwd()))
        return start_process(launch, child_environment(os.environ, launch.settings.environment))

    def poll(self, launch: Launch, job_id: str) -> JobStatus:
        """Return what has become of the process."""
        return poll_process(launch)

    def logs(self, launch: Launch, job_id: str) -> Iterator[str]:
        """Yield what the command has written."""
        return process_log(launch)

    def cancel(self, launch: Launch, job_id: str) -> None:
        """Send SIGTERM to the command, and SIGKILL the second time."""
        stop_process(launch)


COMMAND = CommandLauncher()
