"""Automations that close runs that died and start them again.

Prefect leaves a run Running whose process was killed with its worker. Its heartbeats stop, so an automation
marks it as crashed, and another starts it again.
"""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from prefect.automations import AutomationCore
from prefect.client.orchestration import PrefectClient

from tracemill.flows.deployment.deployment_plan import DEAD_AFTER_S, DeploymentPlan
from tracemill.flows.run_flow import SKIPPED, WITH_LOSSES

RESUME_ONCE_IN_S = 6 * 3600
"""Seconds in which one crashed run of a deployment is started again, and no second one."""
_HEARTBEAT = "prefect.flow-run.heartbeat"
_ENDS = ("Completed", WITH_LOSSES, SKIPPED, "Failed", "Crashed", "Cancelled", "TimedOut")


def close_dead_runs(plan: DeploymentPlan, deployments: Sequence[UUID]) -> AutomationCore:
    """Return the automation that marks runs of these deployments as crashed when their heartbeats stop."""
    return AutomationCore.model_validate(
        {
            "name": f"{plan.harvest_name}: close dead runs",
            "description": "Marks a run as crashed whose process is gone.",
            "trigger": {
                "type": "event",
                "posture": "Proactive",
                "after": [_HEARTBEAT],
                "expect": [_HEARTBEAT, *(f"prefect.flow-run.{state}" for state in _ENDS)],
                "match": {"prefect.resource.id": "prefect.flow-run.*"},
                "match_related": _of(*deployments),
                "for_each": ["prefect.resource.id"],
                "threshold": 1,
                "within": DEAD_AFTER_S,
            },
            "actions": [
                {
                    "type": "change-flow-run-state",
                    "state": "CRASHED",
                    "message": "its process is gone: no heartbeat came",
                }
            ],
        }
    )


def resume_crashed(name: str, deployment: UUID) -> AutomationCore:
    """Return the automation that restarts a crashed run of a deployment with the same parameters.

    It fires once in `RESUME_ONCE_IN_S`, so that a run that crashes its machine is not restarted for ever.
    """
    release = {"__prefect_kind": "jinja", "template": "{{ flow_run.parameters.release or '' }}"}
    training = name.startswith("training/")
    return AutomationCore.model_validate(
        {
            "name": f"{name.partition('/')[2]}: resume after a crash",
            "description": "Starts a crashed run again, once.",
            "trigger": {
                "type": "event",
                "posture": "Reactive",
                "expect": ["prefect.flow-run.Crashed"],
                "match": {"prefect.resource.id": "prefect.flow-run.*"},
                "match_related": _of(deployment),
                "threshold": 1,
                "within": RESUME_ONCE_IN_S,
            },
            "actions": [
                {
                    "type": "run-deployment",
                    "source": "selected",
                    "deployment_id": str(deployment),
                    "parameters": {"release": release} if training else None,
                }
            ],
        }
    )


def _of(*deployments: UUID) -> dict[str, Any]:
    """Return the match of events of the deployments' runs, by id, since heartbeats have no names."""
    ids = [f"prefect.deployment.{each}" for each in deployments]
    return {"prefect.resource.role": "deployment", "prefect.resource.id": ids}


async def put_automations(client: PrefectClient, plan: DeploymentPlan) -> None:
    """Create the automations of a plan whose deployments exist, replacing earlier ones."""
    ids = {name: (await client.read_deployment_by_name(name)).id for name in plan.full_names()}
    resuming = [resume_crashed(name, each) for name, each in ids.items()]
    for automation in (close_dead_runs(plan, list(ids.values())), *resuming):
        for earlier in await client.read_automations_by_name(automation.name):
            await client.delete_automation(earlier.id)
        await client.create_automation(automation)
