"""Build the vote of a configuration, and the early stopper of a replay."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from tracemill.agreement.voting.early_stop import EarlyStopper, Stop
from tracemill.agreement.voting.policy import VotePolicy
from tracemill.agreement.voting.vote import VOTE_VERSION
from tracemill.flows.admission.stage_versions import versions_text
from tracemill.flows.config.run_settings import RunSettings
from tracemill.records.errors import WorkspaceError
from tracemill.records.families import UNKNOWN
from tracemill.records.identity import StepId, canonical_json, digest
from tracemill.records.reply import AskDecision
from tracemill.records.storage.workspace import Workspace
from tracemill.teachers.core.eligibility import require_eligible
from tracemill.teachers.core.teacher_settings import BaseTeacherSettings

if TYPE_CHECKING:
    from tracemill.flows.labeling.label_shard import ShownTrace

ASKED = "asked"
TOO_FEW = "too few families may vote"


def build_vote_policy(settings: RunSettings) -> VotePolicy:
    """Return the vote policy of a configuration."""
    return settings.agreement.rule()


def vote_version(settings: RunSettings) -> str:
    """Return the version of a vote that shards of pairs and votes record."""
    code = versions_text("vote", {"vote": VOTE_VERSION})
    return digest(code, canonical_json(asdict(build_vote_policy(settings))), size=8)


def require_labels(work: Workspace, settings: RunSettings) -> None:
    """Refuse teachers' pairs or votes made under another vote than that of the settings.

    Pairs of other sources depend on no vote; a shard without a vote version is accepted. Raises
    WorkspaceError.
    """
    wanted = vote_version(settings)
    for name, column in (("pairs", "label_source"), ("votes", "verdict")):
        for shard, traces in work.current_traces(name):
            if not traces or work.made_by(name, shard) in ("", wanted):
                continue
            rows = work.read(name, shard, ("step_id", column)).to_pylist()
            voted = [row for row in rows if name == "votes" or row[column] == "teachers"]
            if any(StepId.parse(row["step_id"]).trace_id in traces for row in voted):
                raise WorkspaceError(
                    f"{work.root} holds {name} made under other [agreement] settings",
                    f"{name} of these settings",
                    "give the configuration they were made with, or run `tracemill label`: it sends nothing "
                    "and costs nothing",
                )


def build_stopper(settings: RunSettings, shown: Iterable["ShownTrace"]) -> EarlyStopper | None:
    """Build the early stopper of these traces; None if every teacher is asked at every step."""
    return build_stopper_for(shown, build_vote_policy(settings), settings.replay.stop)


def build_stopper_for(shown: Iterable["ShownTrace"], policy: VotePolicy, stop: Stop) -> EarlyStopper | None:
    """Build the early stopper of a vote policy and a stopping rule."""
    if stop == "off":
        return None
    states = {
        str(state.step_id): (state, item.presentations[state.context.index].tools)
        for item in shown
        for state in item.trace.states()
    }
    return EarlyStopper(states, policy, stop)


def check_vote(settings: RunSettings) -> None:
    """Check that the teachers of a configuration can win its vote.

    Raises ConfigError if they cannot. It needs no key and contacts no server.
    """
    asked, policy = settings.asked_teachers(), build_vote_policy(settings)
    if not asked:
        return
    require_eligible(
        asked,
        (),
        threshold=policy.threshold,
        min_families=policy.min_families,
        exclude_student_family=policy.exclude_student_family,
    )


def drop_hopeless(
    decisions: Sequence[AskDecision], teachers: Sequence[BaseTeacherSettings], vote: VotePolicy
) -> list[AskDecision]:
    """Skip steps at which fewer teachers or families would be asked than the vote needs."""
    families = {teacher.name: teacher.family for teacher in teachers}
    asked: dict[str, list[str]] = {}
    for decision in decisions:
        if decision.verdict == "ask":
            asked.setdefault(decision.step_id, []).append(families[decision.teacher])
    hopeless = {
        step_id
        for step_id, found in asked.items()
        if len(found) < vote.threshold or len(set(found) - {UNKNOWN}) < vote.min_families
    }
    return [
        replace(d, verdict="skip", reason=TOO_FEW, probability=0.0)
        if d.verdict == "ask" and d.step_id in hopeless
        else d
        for d in decisions
    ]


def record_vote_outcomes(
    decisions: Sequence[AskDecision], not_asked: Mapping[tuple[str, str], str]
) -> list[AskDecision]:
    """Return the decisions, with `outcome` set if the verdict is `ask`.

    The outcome is `asked`, or the reason in `not_asked`, by step id and teacher, for which no question was
    sent.
    """
    return [
        replace(d, outcome=not_asked.get((d.step_id, d.teacher), ASKED)) if d.verdict == "ask" else d
        for d in decisions
    ]
