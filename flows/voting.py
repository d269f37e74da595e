"""The vote of a configuration, and the referee it gives a replay."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from agreement.policy import Policy
from agreement.settling import Referee
from flows.settings import RunSettings
from records.reply import Decision

if TYPE_CHECKING:
    from flows.shard_work import Shown

ASKED = "asked"


def policy_of(settings: RunSettings) -> Policy:
    """The vote of a configuration."""
    return settings.agreement.rule()


def referee_of(settings: RunSettings, shown: Iterable["Shown"]) -> Referee | None:
    """Who says when a step of these traces is settled; None where every teacher is asked everywhere."""
    if settings.replay.stop == "off":
        return None
    states = {
        str(state.step_id): (state, item.presentations[state.context.index].tools)
        for item in shown
        for state in item.trace.states()
    }
    return Referee(states, policy_of(settings), settings.replay.stop)


def with_outcomes(decisions: Sequence[Decision], not_asked: Mapping[tuple[str, str], str]) -> list[Decision]:
    """The decisions with what came of each that was to be asked: `asked`, or why it was not."""
    return [
        replace(d, outcome=not_asked.get((d.step_id, d.teacher), ASKED)) if d.verdict == "ask" else d
        for d in decisions
    ]
