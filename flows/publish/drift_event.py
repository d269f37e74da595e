"""Tell Prefect of a release that was not published because it drifts from the last one."""

from contextlib import suppress

from tracemill.flows.runtime.named_server import names_a_server
from tracemill.flows.runtime.prefect_events import release_resource

DRIFTED = "tracemill.release.drifted"
_LIMIT_S = 10.0


def emit_release_drifted(repository: str, version: str, previous: str) -> None:
    """Emit an event with the dataset and both versions, if a Prefect server is configured.

    The release is refused even if the server does not accept the event.
    """
    if not names_a_server():
        return
    import httpx
    from prefect.client.orchestration import get_client
    from prefect.events import Event, Resource

    named = {"prefect.resource.id": release_resource(repository), "prefect.resource.name": repository}
    payload = {"dataset": repository, "version": version, "previous": previous}
    event = Event(event=DRIFTED, resource=Resource(named), payload=payload)
    with (
        suppress(httpx.HTTPError, RuntimeError, ValueError),
        get_client(httpx_settings={"timeout": _LIMIT_S}, sync_client=True) as client,
    ):
        client.request("POST", "/events", json=[event.model_dump(mode="json")])
