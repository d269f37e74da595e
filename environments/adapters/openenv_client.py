"""A client of `openenv_server`: typed observations, and states that can be looked at step by step."""

# openenv is installed in an environment of its own: the types of what it gives are not known here.
# pyright: reportMissingImports=false

from typing import Any

from openenv.core.client_types import StepResult
from openenv.core.env_client import EnvClient
from openenv.core.env_server import CallToolAction, ListToolsAction, ListToolsObservation, Observation

from tracemill.environments.adapters.openenv_server import TaskObservation, TaskState


class TaskClient(EnvClient[CallToolAction | ListToolsAction, Observation, TaskState]):
    """A client of a server of tasks; `TaskClient(base_url=...).sync()` blocks."""

    def _step_payload(self, action: CallToolAction | ListToolsAction) -> dict[str, Any]:
        return action.model_dump()

    def _parse_result(self, payload: dict[str, Any]) -> StepResult[Observation]:
        kind = ListToolsObservation if "tools" in payload["observation"] else TaskObservation
        reward, done = payload.get("reward"), payload.get("done", False)
        seen = kind.model_validate({**payload["observation"], "reward": reward, "done": done})
        return StepResult(observation=seen, reward=reward, done=done)

    def _parse_state(self, payload: dict[str, Any]) -> TaskState:
        return TaskState.model_validate(payload)
