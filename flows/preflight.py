"""Preflight checks: find everything that can be wrong before a run starts and anything is spent."""

import os
from dataclasses import dataclass

from tracemill.agreement.voting.policy import VotePolicy
from tracemill.flows.admission.redaction_setup import make_redactor
from tracemill.flows.config.run_settings import RunSettings
from tracemill.flows.consent.destinations import list_destinations
from tracemill.flows.ingest.ingest_order import (
    IngestOptions,
    find_watermarks,
    make_ingester,
    open_watermarks,
    plan_order,
)
from tracemill.flows.ingest.ingest_shard import ShardIngester
from tracemill.flows.labeling.action_scores import check_step_scorer
from tracemill.flows.labeling.dispute_sources import dispute_sources
from tracemill.flows.labeling.vote_policy import build_vote_policy, check_vote
from tracemill.flows.release.outcome_file import read_outcome_file
from tracemill.flows.release.training_terms import require_training_terms
from tracemill.flows.runtime.ray_pool import require_ray
from tracemill.flows.sources.shard_plan import SourcePlan
from tracemill.flows.sources.watermarks import Watermarks
from tracemill.normalize.contamination import load_benchmarks
from tracemill.normalize.context_length.token_counts import make_token_counter
from tracemill.normalize.datajuicer.recipe import check_available, load_recipe
from tracemill.normalize.normalizer import DJNormalizer
from tracemill.privacy.publish_gate.kingfisher import require_kingfisher, try_kingfisher
from tracemill.privacy.redaction.redactor import TODAYS_RULES, RuleSet
from tracemill.records.errors import ConfigError
from tracemill.records.storage.workspace import Workspace
from tracemill.teachers.core.api_keys import api_key
from tracemill.train.launch.registry import LAUNCHERS


@dataclass(frozen=True, slots=True)
class PreparedRun:
    """A run that is ready to start: its workspace, its sources, and its label and redaction settings."""

    settings: RunSettings
    work: Workspace
    order: IngestOptions
    plan: SourcePlan
    marks: Watermarks
    ingester: ShardIngester
    policy: VotePolicy
    normalizer: DJNormalizer


def run_preflight(settings: RunSettings, rules: RuleSet = TODAYS_RULES) -> PreparedRun:
    """Check a configuration against this machine; `rules` are those of redaction.

    Raises an error of `records.errors` for missing or broken sources, teachers that cannot be used, a
    recipe that cannot run and a workspace that cannot be written; nothing is written before all other
    checks pass. Slow checks come last: data-juicer needs seconds to check a recipe.
    """
    make_redactor(None, settings.privacy)
    order = _order_of(settings, rules)
    known = find_watermarks(order)
    plan = plan_order(order, known)
    check_teachers(settings)
    check_second_opinion(settings)
    check_ledger(settings)
    check_cluster(settings)
    check_training(settings)
    check_publishing_rights(settings)
    load_recipe(settings.normalize.recipe)
    read_outcome_file(settings.release.outcomes)
    if _answers_are_needed_of_this_machine(settings):
        from tracemill.flows.labeling.ask_session import check_answering

        check_answering(settings)
    normalizer = make_normalizer(settings)
    work = Workspace.open(settings.workspace)
    ingester = make_ingester(order, work)
    marks = known or open_watermarks(order, ingester.redactor)
    policy = build_vote_policy(settings)
    return PreparedRun(settings, work, order, plan, marks, ingester, policy, normalizer)


def _order_of(settings: RunSettings, rules: RuleSet) -> IngestOptions:
    """Return the ingest options of a run, which ingests in one process."""
    return IngestOptions(
        settings.sources.order(),
        settings.workspace,
        settings.select,
        jobs=1,
        shard_mb=settings.shard_mb,
        sample=settings.sample.order(),
        privacy=settings.privacy,
        reredact=settings.replay.reredact,
        rules=rules,
    )


def _answers_are_needed_of_this_machine(settings: RunSettings) -> bool:
    """Return whether local teachers can be probed now.

    A run whose ledger has answers may need no teacher any more, and nothing is sent to another machine
    before consent.
    """
    if not settings.asked_teachers() or list_destinations(settings, os.environ):
        return False
    if settings.ledger_url is None:
        return not (settings.workspace / "ledger.sqlite").exists()
    from tracemill.teachers.ledger.ledger import Ledger

    with Ledger(settings.ledger_url) as ledger:
        return ledger.is_empty()


def check_second_opinion(settings: RunSettings) -> None:
    """Check kingfisher, the publish gate's second scanner, before anything is sent to another machine.

    Raises PrivacyError if kingfisher is required and missing, or installed and broken. If nothing is sent,
    the gate's own check is early enough.
    """
    require_kingfisher(os.environ, settings.release.require_second_opinion)
    if list_destinations(settings, os.environ):
        try_kingfisher(os.environ)


def check_publishing_rights(settings: RunSettings) -> None:
    """Raise ReleaseError or ConfigError if the run is to publish a release and cannot."""
    if settings.release.hub is not None:
        from tracemill.flows.publish.publish_run import check_publishing

        check_publishing(settings)


def check_training(settings: RunSettings) -> None:
    """Raise TrainingError if the run is to end with a training that cannot start.

    Raises ConfigError if the configured hint writer is not a teacher of the configuration.
    """
    settings.hint_writer()
    if settings.training is not None and settings.training.after_release:
        LAUNCHERS.get(settings.training.launcher).check(settings.training)


def check_ledger(settings: RunSettings) -> None:
    """Raise LedgerError if there are teachers and the ledger of `ledger_url` cannot be opened."""
    if settings.asked_teachers() and settings.ledger_url is not None:
        from tracemill.teachers.ledger.ledger import Ledger

        Ledger(settings.ledger_url).close()


def check_cluster(settings: RunSettings) -> None:
    """Check that stages can be executed on Ray if a cluster is configured.

    Raises ConfigError if Ray is not installed, and if the workers of a cluster, which may be on several
    machines, would share a ledger that is a file.
    """
    if not settings.cluster.is_used:
        return
    require_ray()
    if settings.cluster.address is None or not settings.asked_teachers():
        return
    if settings.ledger_url is None or not settings.ledger_url.startswith("postgres"):
        raise ConfigError(
            "the workers of cluster.address ask teachers, and the ledger is a file of one machine",
            "a ledger on PostgreSQL",
            "set ledger_url, or remove cluster.address",
        )


def check_teachers(settings: RunSettings) -> None:
    """Check cap, terms, vote and keys of the teachers and of the judge.

    Raises ConfigError without a cap, if terms of a teacher restrict training, if the vote cannot be won
    (`check_vote`), if no installed package registers the environment, or if a key is missing or malformed.
    Raises TrainingError if the gate's step scorer is invalid or cannot be loaded here.
    """
    asked = settings.asked_teachers()
    if not asked:
        return
    settings.cap_usd()
    if not settings.accept_terms:
        require_training_terms(settings.models())
    check_vote(settings)
    dispute_sources(settings)
    if settings.gate.step_scorer is not None:
        check_step_scorer(settings.gate.step_scorer)
    for teacher in settings.models():
        variable = teacher.key_variable()
        if variable and not os.environ.get(variable):
            raise ConfigError(
                f"teacher {teacher.name} needs a key and {variable} is not set",
                f"an API key in {variable}",
                "export it, or use --preset simulated",
            )
        api_key(teacher, os.environ)


def make_normalizer(settings: RunSettings) -> DJNormalizer:
    """Build the normaliser of a configuration.

    A user's own recipe, and any recipe before money is spent, is checked by data-juicer itself. Raises
    NormalizeError if it cannot run here.
    """
    recipe = settings.normalize.recipe
    normalizer = DJNormalizer(recipe)
    check_available()
    load_recipe(recipe)
    load_benchmarks(settings.normalize.benchmarks)
    make_token_counter(settings.release.tokenizer)
    if recipe is not None or not all(teacher.simulated for teacher in settings.asked_teachers()):
        normalizer.check()
    return normalizer
