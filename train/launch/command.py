"""The launcher `command`: any shell command on this machine, with the release in its environment."""

import os
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field

from tracemill.train.child_environment import child_environment
from tracemill.train.launch.detached_process import (
    ProcessLauncher,
    start_process,
    write_launch,
)
from tracemill.train.launch.launcher import LaunchAttempt, LaunchOptions
from tracemill.train.launch.run_command import command_environment
from tracemill.train.training_settings import TrainingSettings


class CommandOptions(LaunchOptions):
    """Options of the launcher `command`."""

    command: str = Field(min_length=1)
    """Run by `/bin/sh`; it writes its checkpoint into `$TRACEMILL_OUTPUT`."""


class CommandLauncher(ProcessLauncher):
    """A launcher of trainings by a user's command."""

    options: ClassVar = CommandOptions

    def check(self, settings: TrainingSettings) -> None:
        """Accept all settings: the command checks its own needs."""

    def describe(self, launch: LaunchAttempt) -> dict[str, Any]:
        """Return the command, its directory, the variables it gets and the names of those it inherits."""
        return {
            "command": launch.options(CommandOptions).command,
            "directory": str(Path.cwd()),
            "environment": sorted(child_environment(os.environ, launch.settings.environment)),
            "variables": command_environment(launch.job),
        }

    def submit(self, launch: LaunchAttempt) -> str:
        """Start the command in the current directory and return the id of its process."""
        write_launch(launch, command=launch.options(CommandOptions).command, directory=str(Path.cwd()))
        return start_process(launch, child_environment(os.environ, launch.settings.environment))


COMMAND = CommandLauncher()
