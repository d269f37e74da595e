"""Run the checks of the services a configuration names, in the order they are printed."""

from collections.abc import Iterator

from tracemill.flows.config.run_settings import RunSettings
from tracemill.flows.live_checks.live_check import LiveCheck
from tracemill.flows.service_checks.clock import ClockReading, check_clock
from tracemill.flows.service_checks.disk import check_disk
from tracemill.flows.service_checks.ledger import check_ledger_of
from tracemill.flows.service_checks.prefect_server import check_prefect_server
from tracemill.records.errors import ConfigError


def run_service_checks(settings: RunSettings) -> Iterator[LiveCheck]:
    """Yield a check for each service; only configured servers are contacted."""
    clocks: list[ClockReading] = []
    yield check_disk(settings)
    yield check_ledger_of(settings, clocks)
    yield from _account_checks(settings)
    yield from check_prefect_server(clocks)
    yield check_clock(clocks)


def _account_checks(settings: RunSettings) -> Iterator[LiveCheck]:
    """Yield the checks of keys and tokens; none if none is configured."""
    try:
        asked = settings.asked_teachers()
    except ConfigError:  # the check `teachers` says so
        return
    if asked or settings.release.hub is not None:
        from tracemill.flows.service_checks.accounts import check_hub_token, check_keys

        yield from check_keys(settings)
        yield check_hub_token(settings)
