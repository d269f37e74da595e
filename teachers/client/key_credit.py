"""Read what is left on an API key of OpenRouter.

`GET /key` has the limit of the key and what remains of it, `GET /credits` the credit of the account, which
only some keys may read (https://openrouter.ai/docs/api-reference/limits).
"""

import math
from typing import Any, NamedTuple

from tracemill.records.errors import TeacherError
from tracemill.teachers.client.parse_completion import parse_json
from tracemill.teachers.client.transport import HttpResponse, Transport, TransportFault


class KeyCredit(NamedTuple):
    """USD that are left `of` the key's limit or the account; None if the server does not report it."""

    left_usd: float | None
    of: str = ""


async def read_key_credit(base_url: str, key: str) -> KeyCredit:
    """Return the remaining credit of a key.

    Raises TeacherError if the server does not answer or refuses the key.
    """
    transport = Transport(base_url, key)
    try:
        page = _page(await transport.key(), base_url)
        if (left := _amount(page.get("limit_remaining"))) is not None:
            return KeyCredit(left, "of the limit of the key")
        received = await transport.credits()
    except TransportFault as fault:
        raise TeacherError(f"{base_url} does not answer ({fault.kind})", do="check the network") from None
    finally:
        await transport.close()
    account = _data(received) if received.status == 200 else {}
    bought, used = _amount(account.get("total_credits")), _amount(account.get("total_usage"))
    if bought is None or used is None:
        return KeyCredit(None)
    return KeyCredit(bought - used, "on the account")


def _page(received: HttpResponse, base_url: str) -> dict[str, Any]:
    """Return the body of the key page. Raises TeacherError if the server has none."""
    if received.status in (401, 403):
        raise TeacherError(f"{base_url} refused the API key", "a valid key", "set it in the environment")
    if received.status != 200:
        raise TeacherError(f"{base_url}/key answers with HTTP {received.status}", do="try again later")
    return _data(received)


def _data(received: HttpResponse) -> dict[str, Any]:
    body = parse_json(received.text)
    data = body.get("data") if isinstance(body, dict) else None
    return data if isinstance(data, dict) else {}


def _amount(value: object) -> float | None:
    given = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if given and isinstance(value, int | float) else None
