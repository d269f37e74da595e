"""Serve `tracemill dev openrouter-stub` until it is interrupted."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError
from rich.console import Console

from tracemill.records.errors import ConfigError
from tracemill.teachers.openrouter_stub.stub_settings import FaultKind, FaultSettings, StubSettings


def serve_until_interrupted(
    host: str, port: int, given: Mapping[str, Any], faults: Sequence[str], retry_after_s: float
) -> None:
    """Serve with the settings `given`; print the address and how to use it on stdout.

    Raises ConfigError for a value out of range and a port that is taken.
    """
    from tracemill.teachers.openrouter_stub.server import serve

    settings = simulate_server_settings(given, faults, retry_after_s)
    console = Console(highlight=False, soft_wrap=True)

    def ready(url: str) -> None:
        console.print(f"listening on {url} (simulated answers)", markup=False)
        console.print(
            f"export TRACEMILL_OPENROUTER_URL={url} OPENROUTER_API_KEY={settings.api_key}", markup=False
        )

    asyncio.run(serve(host, port, settings, ready))


def simulate_server_settings(
    given: Mapping[str, Any], faults: Sequence[str], retry_after_s: float
) -> StubSettings:
    """Return the settings of the server.

    Raises ConfigError for a value out of range and an unknown fault.
    """
    try:
        settings = StubSettings.model_validate(dict(given))
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        raise ConfigError(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}") from None
    return settings.model_copy(update={"faults": tuple(_fault(text, retry_after_s) for text in faults)})


def _fault(text: str, retry_after_s: float) -> FaultSettings:
    kind, _, rest = text.partition("=")
    share, _, model = rest.partition("@")
    try:
        return FaultSettings(
            kind=FaultKind(kind),
            probability=float(share or 1.0),
            model=model or None,
            retry_after_s=retry_after_s,
        )
    except (ValueError, ValidationError):
        kinds = ", ".join(sorted(FaultKind))
        raise ConfigError(
            f"--fault {text}", f"KIND=SHARE or KIND=SHARE@MODEL, a share of 0 to 1 and a kind of: {kinds}"
        ) from None
