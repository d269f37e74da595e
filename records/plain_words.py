"""Plain words of closing table, card and report for names and reasons that tables store.

Stored names stay as they are, so that tables of older workspaces read the same.
"""

PLAIN_WORDS = {
    # Verdicts of votes
    "pair": "pair made",
    "agrees_with_student": "teachers agree with the agent",
    "no_agreement": "teachers disagree",
    "order_only": "same calls, other order",
    "dead_zone": "too close to call",
    "too_few_votes": "too few votes",
    "one_family": "votes of one model family only",
    "student_did_nothing": "agent did nothing",
    # Reasons of decisions
    "not needed: the pair is certain": "outcome already decided",
    "not needed: no pair can come of it": "no pair possible any more",
    "not needed: the first teacher agrees with the student": "first teacher agrees with the agent",
    "not needed: the caps of the release have no room for its pair": "session has its limit of pairs",
    "student family": "teacher has the agent's own model family",
    "explored": "sampled for calibration (all teachers asked)",
}
"""Stored reasons and what users read for them."""

_STAGES = {"traces": "sessions", "states": "steps"}
_KINDS_OF_STAGES = {"no hindsight pair": "no self-repair"}


def reason_in_words(reason: str) -> str:
    """Return a stored reason in plain words; an unknown one with blanks for its underscores."""
    return PLAIN_WORDS.get(reason) or reason.replace("_", " ")


def stage_in_words(stage: str) -> str:
    """Return a stage of the funnel of a release in plain words, such as `vote: too close to call`."""
    kind, colon, reason = stage.partition(": ")
    if not colon:
        return _STAGES.get(stage, stage)
    return f"{_KINDS_OF_STAGES.get(kind, kind)}: {reason_in_words(reason)}"
