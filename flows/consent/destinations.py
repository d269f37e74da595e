"""List where text would go: the teachers that are not on this machine, and on what terms."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tracemill.flows.config.run_settings import RunSettings
from tracemill.records.printable import printable
from tracemill.teachers.core.base_urls import host_of, origin_of
from tracemill.teachers.core.presets import PRESETS
from tracemill.teachers.core.teacher_settings import BaseTeacherSettings

THIS_MACHINE = frozenset(("localhost", "127.0.0.1", "::1"))
"""Hosts that need no consent where the configuration says that the server sends nothing on. Every other
address does, also others of 127.0.0.0/8, which are what tunnels and forwarded ports are put on."""

ANY = "any"
UNSTATED = "unstated"


@dataclass(frozen=True, slots=True, order=True)
class Destination:
    """A model at a server.

    `origin` is its scheme, host and port; `provider` is the pinned provider, `any` if none is pinned;
    `data_collection` is the policy requested of it: `deny`, `allow`, or `unstated` if none is requested.
    `distillable` is True if only endpoints that allow distillation may answer.
    """

    origin: str
    model: str
    provider: str = ANY
    data_collection: str = UNSTATED
    distillable: bool = False

    def covers(self, other: "Destination") -> bool:
        """Return whether consent to this destination covers the other.

        It does if place and model are the same, the choice of providers is the same or narrower, and the
        data policy is not weaker.
        """
        return (
            (self.origin, self.model) == (other.origin, other.model)
            and self.provider in (ANY, other.provider)
            and (self.data_collection != "deny" or other.data_collection == "deny")
            and (other.distillable or not self.distillable)
        )

    def policy(self) -> str:
        """Return the data policy in words."""
        said = {
            "deny": "no provider that stores prompts or trains on them (data_collection = deny)",
            "allow": "providers may store prompts and train on them (data_collection = allow)",
            UNSTATED: "no data policy requested",
        }[self.data_collection]
        only = "" if self.provider == ANY else f"; provider {printable(self.provider)} only"
        return said + only + ("; only where distillation is allowed" if self.distillable else "")

    def to_json(self) -> dict[str, Any]:
        """Return the destination as JSON values."""
        return {name: getattr(self, name) for name in self.__slots__}


def list_destinations(settings: RunSettings, environ: Mapping[str, str]) -> list[Destination]:
    """Return the destinations of a run, without local servers that are configured to forward nothing."""
    return sorted({found for t in settings.models() if (found := destination_of(t, environ)) is not None})


def destination_of(teacher: BaseTeacherSettings, environ: Mapping[str, str]) -> Destination | None:
    """Return the destination of a teacher's questions; None if they stay on this machine."""
    url, policy = teacher.sends_to(environ), teacher.data_policy()
    if url is None or (host_of(url) in THIS_MACHINE and teacher.stays_here()):
        return None
    return Destination(
        origin_of(url),
        teacher.model,
        policy.provider or ANY,
        policy.data_collection or UNSTATED,
        policy.distillable,
    )


def destination_terms(settings: RunSettings) -> str:
    """Return the terms that a preset's user must know; empty for teachers listed one by one."""
    return "" if settings.preset == "none" else PRESETS[settings.preset].terms


def destination_servers(found: Sequence[Destination]) -> str:
    """Return a list of the servers in words, each once."""
    return ", ".join(sorted({printable(destination.origin) for destination in found}))
