"""`tracemill simulate-openrouter`: the wire server until it is interrupted."""

import asyncio
from decimal import Decimal
from typing import Any

from pydantic import ValidationError
from rich.console import Console

from records.errors import ConfigError
from teachers.wire_settings import FaultKind, FaultSettings, WireSettings


def serve_until_interrupted(
    host: str, port: int, key: str, latency_s: float, credit_usd: float | None, faults: list[str], seed: int
) -> None:
    """Serve; says on stdout where, and how to use it. Raises ConfigError for a value out of range and a
    port that is taken."""
    from teachers.wire_server import serve

    values: dict[str, Any] = {"api_key": key, "latency_s": latency_s, "seed": seed}
    values["credit_usd"] = None if credit_usd is None else Decimal(str(credit_usd))
    try:
        settings = WireSettings(**values, faults=tuple(_fault(text) for text in faults))
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        raise ConfigError(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}") from None
    console = Console(highlight=False, soft_wrap=True)

    def ready(url: str) -> None:
        console.print(f"listening on {url} (simulated answers)", markup=False)
        console.print(f"export TRACEMILL_OPENROUTER_URL={url} OPENROUTER_API_KEY={key}", markup=False)

    asyncio.run(serve(host, port, settings, ready))


def _fault(text: str) -> FaultSettings:
    kind, _, share = text.partition("=")
    try:
        return FaultSettings(kind=FaultKind(kind), probability=float(share or 1.0))
    except (ValueError, ValidationError):
        kinds = ", ".join(sorted(FaultKind))
        raise ConfigError(
            f"--fault {text}", f"KIND=SHARE, a share of 0 to 1 and a kind of: {kinds}"
        ) from None
