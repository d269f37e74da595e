"""Have Prefect send messages on failures, caps, releases and drift: one automation for each occasion.

A message goes through notification blocks of the Prefect server (Slack, e-mail, a webhook and others). It
holds names, versions and figures, never text of a session.
"""

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from tracemill.flows.config.notification_settings import OCCASIONS, NotificationSettings, Occasion
from tracemill.flows.publish.drift_event import DRIFTED
from tracemill.flows.runtime.named_server import names_a_server
from tracemill.records.errors import ConfigError

if TYPE_CHECKING:
    from uuid import UUID

    from prefect.client.orchestration import SyncPrefectClient
    from prefect.events.schemas.automations import AutomationCore

_LIMIT_S = 30.0


class Notification(NamedTuple):
    """The event that triggers a message, and its text: Jinja over `event`."""

    event: str
    subject: str
    body: str


MESSAGES: dict[Occasion, Notification] = {
    "failure": Notification(
        "tracemill.run.failed",
        "tracemill: {{ event.payload.flow }} failed",
        "{{ event.payload.flow }} of {{ event.resource.name }} failed: {{ event.payload.error }}",
    ),
    "cap": Notification(
        "tracemill.budget.reached",
        "tracemill: {{ event.resource.name }} reached its cap",
        "run {{ event.payload.run_id }} spent ${{ event.payload.spent_usd }} of ${{ event.payload.cap_usd }}",
    ),
    "release": Notification(
        "tracemill.release.created",
        "tracemill: {{ event.payload.dataset }} {{ event.payload.version }}",
        "wrote version {{ event.payload.version }} of {{ event.payload.dataset }},"
        " {{ event.payload.rows }} rows",
    ),
    "published": Notification(
        "tracemill.release.published",
        "tracemill: published {{ event.payload.dataset }} {{ event.payload.version }}",
        "version {{ event.payload.version }} of {{ event.payload.dataset }} is on the Hub,"
        " commit {{ event.payload.commit }}",
    ),
    "drift": Notification(
        DRIFTED,
        "tracemill: {{ event.payload.dataset }} drifts",
        "version {{ event.payload.version }} of {{ event.payload.dataset }} was not published: it drifts from"
        " {{ event.payload.previous }}. Look at `tracemill release diff`",
    ),
}


def automation_name(occasion: Occasion) -> str:
    """Return the name of the automation of an occasion."""
    return f"tracemill: notify on {occasion}"


def apply_notifications(settings: NotificationSettings) -> list[str]:
    """Set the automations of the Prefect server to those of the settings; return a line for each change.

    Other notification automations are removed. Raises ConfigError if no server is named or answers, or a
    block does not exist or sends no messages; nothing is changed then.
    """
    import httpx

    if not names_a_server():
        raise ConfigError("no Prefect server is named", "its address", "set PREFECT_API_URL")
    from prefect.client.orchestration import get_client

    try:
        with get_client(httpx_settings={"timeout": _LIMIT_S}, sync_client=True) as client:
            blocks = [_find_block(client, block) for block in settings.blocks]
            return [line for occasion in OCCASIONS for line in _apply(client, settings, occasion, blocks)]
    except (httpx.HTTPError, RuntimeError) as error:
        raise ConfigError(
            f"the Prefect server does not answer ({type(error).__name__})",
            "a server at PREFECT_API_URL",
            "`tracemill doctor` checks it",
        ) from None


def _find_block(client: "SyncPrefectClient", block: str) -> "UUID":
    """Return the id of a block. Raises ConfigError if it does not exist or sends no messages."""
    from prefect.exceptions import ObjectNotFound

    kind, _, name = block.partition("/")
    try:
        found = client.read_block_document_by_name(name, kind, include_secrets=False)
    except ObjectNotFound:
        raise ConfigError(
            f"the Prefect server has no block {block}",
            "a notification block",
            f"make it with `prefect block create {kind}`",
        ) from None
    if found.block_schema is None or "notify" not in found.block_schema.capabilities:
        raise ConfigError(f"the block {block} sends no messages", "a notification block")
    return found.id


def _apply(
    client: "SyncPrefectClient", settings: NotificationSettings, occasion: Occasion, blocks: "list[UUID]"
) -> Iterator[str]:
    """Make, replace or remove the automation of an occasion; yield the changes."""
    existing = client.read_automations_by_name(automation_name(occasion))
    for each in existing:
        client.delete_automation(each.id)
    if blocks and occasion in settings.on:
        client.create_automation(_build_automation(occasion, blocks))
        yield f"{occasion}: {', '.join(settings.blocks)}"
    elif existing:
        yield f"{occasion}: removed"


def _build_automation(occasion: Occasion, blocks: "list[UUID]") -> "AutomationCore":
    from prefect.events.actions import SendNotification
    from prefect.events.schemas.automations import AutomationCore, EventTrigger, Posture

    message = MESSAGES[occasion]
    return AutomationCore(
        name=automation_name(occasion),
        description="Made by `tracemill notify`.",
        tags=["tracemill"],
        trigger=EventTrigger(expect={message.event}, posture=Posture.Reactive, threshold=1),
        actions=[
            SendNotification(block_document_id=block, subject=message.subject, body=message.body)
            for block in blocks
        ],
    )


def send_test_message(block: str) -> None:
    """Send a message through a block from this machine. Raises ConfigError if that fails."""
    from prefect.blocks.core import Block

    try:
        loaded: Any = asyncio.run(Block.aload(block))
        loaded.notify("a test message of `tracemill notify`", "tracemill: test")
    except Exception as error:  # each kind of block raises errors of its own, which may hold its address
        raise ConfigError(
            f"the block {block} could not send a message ({type(error).__name__})",
            "a block that works",
            "correct it in the Prefect UI",
        ) from None
