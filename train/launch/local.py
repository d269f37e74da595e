"""The launcher `local`: a process on this machine, with accelerate where it is to be several."""

import os
from typing import Any, ClassVar

from tracemill.train.child_environment import child_environment
from tracemill.train.launch.detached_process import (
    ProcessLauncher,
    job_command,
    start_process,
    write_launch,
)
from tracemill.train.launch.launcher import LaunchAttempt, LaunchOptions
from tracemill.train.start_child import check_settings
from tracemill.train.training_settings import TrainingSettings


class LocalLauncher(ProcessLauncher):
    """A launcher of trainings with TRL on this machine."""

    options: ClassVar = LaunchOptions

    def check(self, settings: TrainingSettings) -> None:
        """Raise TrainingError for a missing folder or package."""
        check_settings(settings)

    def describe(self, launch: LaunchAttempt) -> dict[str, Any]:
        """Return command, processes and names of the environment variables."""
        return {
            "command": job_command(launch.folder),
            "processes": launch.settings.processes,
            "environment": sorted(child_environment(os.environ, launch.settings.environment)),
        }

    def submit(self, launch: LaunchAttempt) -> str:
        """Start the process and return its id."""
        write_launch(launch)
        return start_process(launch, child_environment(os.environ, launch.settings.environment))


LOCAL = LocalLauncher()
