"""Run `tracemill doctor --live`: one call of each teacher and a round trip to the Hub, once accepted."""

import os
import sys
import threading
from collections.abc import Iterator

from tracemill.data_cards.hub.hub_errors import RetryPolicy
from tracemill.data_cards.hub.repo_state import open_hub
from tracemill.data_cards.hub.round_trip import (
    PROBE_FILE,
    ROUND_TRIP_PATIENCE,
    draw_probe_repo,
    make_round_trip,
    removal_command,
)
from tracemill.flows.config.run_settings import RunSettings
from tracemill.flows.consent.destinations import Destination, destination_terms, list_destinations
from tracemill.flows.live_checks.live_check import LiveCheck
from tracemill.flows.live_checks.teacher_calls import CAP_NANOUSD, PROBE_TEXT, call_teachers
from tracemill.flows.runtime.interrupts import on_interrupt
from tracemill.flows.runtime.terminal import confirm_on_terminal, say_lines
from tracemill.records.errors import PrivacyError, ReleaseError
from tracemill.records.printable import printable_count
from tracemill.teachers.core.price import nanousd_to_usd
from tracemill.teachers.core.teacher_settings import BaseTeacherSettings

_HUB = "hub round trip"


def run_live_checks(
    settings: RunSettings, yes: bool, patience: RetryPolicy = ROUND_TRIP_PATIENCE
) -> Iterator[LiveCheck]:
    """Yield the results of the checks; `yes` accepts what is sent, `patience` is the Hub's retry policy.

    Raises PrivacyError, before anything is sent, without consent, and KeyboardInterrupt at an interrupt,
    after the dataset that was made is deleted or reported.
    """
    asked, no_teachers = _teachers_to_try(settings)
    hub, no_hub = _hub_to_try(settings)
    _require_consent(settings, list_destinations(settings, os.environ) if asked else [], hub, yes)
    yield from [no_teachers] if no_teachers else call_teachers(asked, os.environ, settings.replay)
    yield from [no_hub] if no_hub else _hub_checks(hub[0], patience)


def _teachers_to_try(settings: RunSettings) -> tuple[tuple[BaseTeacherSettings, ...], LiveCheck | None]:
    """Return the teachers to call, or the check that reports that there are none."""
    asked = settings.asked_teachers()
    return asked, None if asked else LiveCheck("teachers", "not tried", "none configured")


def _hub_to_try(settings: RunSettings) -> tuple[tuple[str, str], LiveCheck | None]:
    """Return the dataset to create and the address of the Hub, or the reason to create none."""
    if settings.release.hub is None:
        return ("", ""), LiveCheck(_HUB, "not tried", "no publish target: release.hub is not set")
    try:
        endpoint = open_hub().endpoint
    except ReleaseError as error:
        return ("", ""), LiveCheck(_HUB, "failed", str(error))
    return (draw_probe_repo(settings.release.hub.split("/")[0]), endpoint), None


def _require_consent(
    settings: RunSettings, destinations: list[Destination], hub: tuple[str, str], yes: bool
) -> None:
    """Print the data that would be sent and ask for consent. Raises PrivacyError without it."""
    repo_id, endpoint = hub
    if not destinations and not repo_id:
        return
    terminal = sys.stdin.isatty() and sys.stderr.isatty()
    if yes or terminal:
        say_lines(_what_would_leave(settings, destinations, repo_id, endpoint))
    if yes or (terminal and confirm_on_terminal("Send this?")):
        return
    models = [f"a fixed text to {printable_count(len(destinations), 'model')}"] if destinations else []
    probes = [f"a fixed file to the Hub at {endpoint}"] if repo_id else []
    raise PrivacyError(
        f"not accepted yet: {' and '.join(models + probes)}; nothing was sent",
        "consent",
        "accept it with --yes; it contains no data of yours",
    )


def _what_would_leave(
    settings: RunSettings, destinations: list[Destination], repo_id: str, endpoint: str
) -> Iterator[str]:
    yield "This check would send fixed texts of tracemill, none of your data."
    if destinations:
        cap = f"${nanousd_to_usd(CAP_NANOUSD):g}"
        yield f"A text of {len(PROBE_TEXT)} characters, once to each of these, for at most {cap} together:"
        yield from (f"  {each.model} at {each.origin}: {each.policy()}" for each in destinations)
        if terms := destination_terms(settings):
            yield f"  {terms}"
    if repo_id:
        size = len(PROBE_FILE)
        yield f"A file of {size} bytes to {endpoint}, in a private dataset that is made and deleted again:"
        yield f"  {repo_id}"
        yield "  Should tracemill be killed before it is deleted, remove it with:"
        yield f"  {removal_command(repo_id)}"


def _hub_checks(repo_id: str, patience: RetryPolicy) -> Iterator[LiveCheck]:
    """Run the round trip. At an interrupt the current request finishes, and the dataset is deleted."""
    pressed = threading.Event()

    def go_on() -> None:
        if pressed.is_set():
            raise KeyboardInterrupt

    with on_interrupt(pressed.set):
        trip = make_round_trip(repo_id, go_on, patience)
    if trip.interrupted:
        if trip.left:
            say_lines([trip.left])
        raise KeyboardInterrupt
    if trip.fault or trip.left:
        yield LiveCheck(_HUB, "failed", "; ".join(filter(None, (trip.fault, trip.left))))
    else:
        said = f"{repo_id} made private, {len(PROBE_FILE)} bytes pushed and read back, deleted"
        yield LiveCheck(_HUB, "ok", f"{said} in {trip.seconds:.1f} s")
