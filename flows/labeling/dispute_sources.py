"""Label sources at steps where the teachers' votes make no pair: a judge, and a verifying environment."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from tracemill.flows.config.run_settings import RunSettings
from tracemill.flows.labeling.judge_setup import judge_fingerprint, judge_of
from tracemill.flows.labeling.label_shard import DisputeSource, VotedStep
from tracemill.pairs.disagreements import Proposal, judged_proposal
from tracemill.pairs.judge import ALL_PARTS, Judge, judge_pair
from tracemill.pairs.verified import StepEnvironment, step_environment, verified_pair
from tracemill.records.pair import DPOPair
from tracemill.records.reply import TeacherReply


@dataclass(frozen=True, slots=True)
class JudgeSource:
    """A label source that makes pairs of a judge's stored answers."""

    judge: Judge
    name: str = "judge"

    def pair_of(
        self, step: VotedStep, proposals: Sequence[Proposal], replies: Sequence[TeacherReply]
    ) -> tuple[DPOPair | None, str]:
        """Return the pair of the first proposal that is no part, or why there is none."""
        proposal = judged_proposal(proposals)
        if proposal is None:
            return None, ALL_PARTS
        return judge_pair(step.state, step.presentation, proposal, replies, self.judge)


@dataclass(frozen=True, slots=True)
class VerifiedSource:
    """A label source that makes pairs by executing both sides in an environment, `runs` times each."""

    environment: StepEnvironment
    runs: int
    name: str = "verified"

    def pair_of(
        self, step: VotedStep, proposals: Sequence[Proposal], replies: Sequence[TeacherReply]
    ) -> tuple[DPOPair | None, str]:
        """Return the pair of the best proposal, or why there is none."""
        pair, why = verified_pair(step.state, step.presentation, proposals, self.environment, self.runs)
        if pair is None:
            return None, why
        simulated = any(reply.simulated for reply in step.answers)
        return replace(pair, simulated=simulated, cost_usd=sum(r.cost_usd for r in step.answers)), ""


def dispute_sources(settings: RunSettings) -> list[DisputeSource]:
    """Return the configured label sources of disputed steps: a judge, a verifying environment, or both.

    Raises ConfigError if the environment is not registered by any installed package.
    """
    found: list[DisputeSource] = []
    if (judge := judge_of(settings)) is not None:
        found.append(JudgeSource(judge))
    if (verified := settings.verified) is not None:
        found.append(VerifiedSource(step_environment(verified.environment, verified.tasks), verified.runs))
    return found


def dispute_fingerprint(settings: RunSettings) -> dict[str, Any]:
    """Return the settings and versions that these sources depend on; empty if none is configured."""
    found = judge_fingerprint(settings)
    if settings.verified is not None:
        verified = settings.verified
        version = step_environment(verified.environment, verified.tasks).version
        found["verified"] = [verified.model_dump(mode="json", exclude_none=True), version]
    return found
