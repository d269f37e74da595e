"""Check what keys and tokens still allow: credit at OpenRouter, the right to write on the Hub.

A key goes to its own server alone, and nothing else is sent.
"""

import asyncio
import os
from collections.abc import Iterator

from tracemill.data_cards.hub.hub_errors import RetryPolicy
from tracemill.data_cards.hub.repo_state import open_hub, require_writer
from tracemill.flows.config.run_settings import RunSettings
from tracemill.flows.live_checks.live_check import LiveCheck
from tracemill.records.errors import TracemillError
from tracemill.teachers.client.key_credit import KeyCredit, read_key_credit
from tracemill.teachers.core.api_keys import api_key
from tracemill.teachers.core.teacher_settings import OpenRouterTeacherSettings

_HUB = "hub token"
_QUICK = RetryPolicy(tries=2, first_wait_s=1.0, most_wait_s=1.0, most_retry_after_s=1.0)


def check_keys(settings: RunSettings) -> Iterator[LiveCheck]:
    """Yield a check for each teachers' API key whose server reports the remaining credit."""
    seen: set[tuple[str, str]] = set()
    for teacher in settings.models():
        if not isinstance(teacher, OpenRouterTeacherSettings):
            continue
        try:
            key, url = api_key(teacher, os.environ) or "", teacher.sends_to(os.environ)
        except TracemillError:  # the check `teachers` says so
            continue
        if (url, key) in seen:
            continue
        seen.add((url, key))
        name = f"credit of {teacher.key_variable()}"
        try:
            credit = asyncio.run(read_key_credit(url, key))
        except TracemillError as error:
            yield LiveCheck(name, "failed", str(error))
        else:
            yield _judge(name, credit, settings.budget and float(settings.budget.max_total_usd))


def _judge(name: str, credit: KeyCredit, cap_usd: float | None) -> LiveCheck:
    """Return whether credit is left, and whether it covers the cap of a run."""
    if credit.left_usd is None:
        return LiveCheck(
            name, "ok", "no limit on the key; its server does not tell the credit of the account"
        )
    said = f"${credit.left_usd:,.2f} left {credit.of}"
    if credit.left_usd <= 0:
        return LiveCheck(name, "failed", f"{said}; expected more; add credit or raise the limit of the key")
    if cap_usd is not None and credit.left_usd < cap_usd:
        return LiveCheck(name, "ok", f"{said}, less than the cap of ${cap_usd:,.2f}: a run may end early")
    return LiveCheck(name, "ok", said)


def check_hub_token(settings: RunSettings) -> LiveCheck:
    """Return whether the token may write to the dataset of `release.hub`."""
    repo_id = settings.release.hub
    if repo_id is None:
        return LiveCheck(_HUB, "ok", "none needed: release.hub is not set")
    try:
        api = open_hub()
        _QUICK.run(lambda: require_writer(api, repo_id))
    except TracemillError as error:
        return LiveCheck(_HUB, "failed", str(error))
    return LiveCheck(_HUB, "ok", f"may write to {repo_id} at {api.endpoint}")
