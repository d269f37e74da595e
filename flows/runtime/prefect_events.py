"""Send events to a Prefect server, which its automations can wait for.

Nothing is sent where no server is named in `PREFECT_API_URL`.
"""

import os
import sys

HARVESTED = "tracemill.harvest.finished"
CREATED = "tracemill.release.created"
PUBLISHED = "tracemill.release.published"
BUDGET_REACHED = "tracemill.budget.reached"
RUN_FAILED = "tracemill.run.failed"


def release_resource(dataset: str) -> str:
    """Return the resource id for events of a release.

    `dataset` is the name of a release, or `OWNER/NAME` on the Hub.
    """
    return f"tracemill.release.{dataset}"


def emit_harvested(name: str, run_id: str) -> None:
    """Emit the event that a harvest has ended, with or without losses."""
    _emit(HARVESTED, f"tracemill.run.{name}", name, {"run_id": run_id})


def emit_release_created(name: str, version: str, rows: int) -> None:
    """Emit the event that a version was written in a workspace."""
    _emit(CREATED, release_resource(name), name, {"dataset": name, "version": version, "rows": rows})


def emit_release_published(repository: str, version: str, commit: str) -> None:
    """Emit the event that a version is on the Hub."""
    payload: dict[str, object] = {"dataset": repository, "version": version, "commit": commit}
    _emit(PUBLISHED, release_resource(repository), repository, payload)


def emit_budget_reached(name: str, run_id: str, cap_usd: float | None, spent_usd: float) -> None:
    """Emit the event that a run stopped asking at a cap, in USD."""
    payload: dict[str, object] = {"run_id": run_id, "cap_usd": cap_usd, "spent_usd": spent_usd}
    _emit(BUDGET_REACHED, f"tracemill.run.{name}", name, payload)


def emit_run_failed(name: str, flow: str, error: Exception) -> None:
    """Emit the event that a flow failed, with the type of the error."""
    payload: dict[str, object] = {"flow": flow, "error": type(error).__name__}
    _emit(RUN_FAILED, f"tracemill.run.{name}", name, payload)


def _emit(event: str, resource_id: str, name: str, payload: dict[str, object]) -> None:
    if "PREFECT_API_URL" not in os.environ and "prefect" not in sys.modules:
        return
    from prefect.settings import PREFECT_API_URL

    if PREFECT_API_URL.value() is None:
        return
    from prefect.events import emit_event

    resource = {"prefect.resource.id": resource_id, "prefect.resource.name": name}
    emit_event(event, resource, payload=payload)
