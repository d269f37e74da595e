"""Everything that can be known to be wrong is found here, before a run starts and anything is spent."""

import os
from dataclasses import dataclass

from tracemill.agreement.voting.policy import Policy
from tracemill.flows.admission.redaction_setup import make_redactor, make_sieve
from tracemill.flows.admission.reredaction import Renewer
from tracemill.flows.config.from_settings import make_renewer, plan_shards
from tracemill.flows.config.run_settings import RunSettings
from tracemill.flows.consent.destinations import list_destinations
from tracemill.flows.ingest.ingest_shard import Intake
from tracemill.flows.labeling.teacher_standing import measured_reliability_policy
from tracemill.flows.labeling.vote_policy import check_vote
from tracemill.flows.release.outcome_file import read_outcome_file
from tracemill.flows.release.training_terms import require_training_terms
from tracemill.flows.run_state.stored_traces import StoredTraces
from tracemill.flows.sources.open_watermarks import open_known_watermarks, open_watermarks
from tracemill.flows.sources.shard_plan import Plan
from tracemill.flows.sources.watermarks import Watermarks
from tracemill.normalize.contamination import load_benchmarks
from tracemill.normalize.context_length.token_counts import make_token_counter
from tracemill.normalize.datajuicer.recipe import check_available, load_recipe
from tracemill.normalize.normalizer import DJNormalizer
from tracemill.privacy.publish_gate.kingfisher import require_kingfisher, try_kingfisher
from tracemill.privacy.redaction.redactor import TODAYS_RULES, Rules
from tracemill.records.errors import ConfigError
from tracemill.records.storage.workspace import Workspace
from tracemill.teachers.core.api_keys import api_key
from tracemill.train.launchers import LAUNCHERS


@dataclass(frozen=True, slots=True)
class Prepared:
    """A run that can start: where it writes, what it reads, how it labels and cleans."""

    settings: RunSettings
    work: Workspace
    plan: Plan
    marks: Watermarks
    policy: Policy
    renewer: Renewer
    intake: Intake
    normalizer: DJNormalizer


def run_preflight(settings: RunSettings, rules: Rules = TODAYS_RULES) -> Prepared:
    """Check a configuration against this machine. `rules` redact.

    Raises an error of `records.errors` for missing or broken sources, teachers that cannot be used, a
    recipe that cannot run and a workspace that cannot be written; nothing is written before the rest
    holds. What takes long is checked last: data-juicer takes seconds to say what it thinks of a recipe.
    """
    make_redactor(None, settings.privacy)
    again, form = settings.replay.ask_again, settings.sources.format
    known = open_known_watermarks(
        settings.workspace, settings.privacy, settings.select, form, anew=again, rules=rules
    )
    plan = plan_shards(settings, known)
    check_teachers(settings)
    check_second_opinion(settings)
    check_ledger(settings)
    check_training(settings)
    if settings.release.hub is not None:
        from tracemill.flows.publish.publish_run import check_publishing

        check_publishing(settings)
    load_recipe(settings.normalize.recipe)
    read_outcome_file(settings.release.outcomes)
    if _answers_are_needed_of_this_machine(settings):
        from tracemill.flows.labeling.ask_session import check_answering

        check_answering(settings)
    normalizer = make_normalizer(settings)
    work = Workspace.open(settings.workspace)
    renewer = make_renewer(work, settings, rules)
    sieve = make_sieve(settings.select, work)
    return Prepared(
        settings,
        work,
        plan,
        known or open_watermarks(work.root, renewer.redactor, settings.select, form, anew=again),
        measured_reliability_policy(settings, work),
        renewer,
        Intake(work, renewer, sieve, settings.shard_mb * 1e6, StoredTraces(work)),
        normalizer,
    )


def _answers_are_needed_of_this_machine(settings: RunSettings) -> bool:
    """Whether teachers may be tried already: a run whose ledger has answers may need nobody any more, and
    another machine hears nothing of us before it was consented to."""
    if not settings.asked() or list_destinations(settings, os.environ):
        return False
    if settings.ledger_url is None:
        return not (settings.workspace / "ledger.sqlite").exists()
    from tracemill.teachers.ledger.ledger import Ledger

    with Ledger(settings.ledger_url) as ledger:
        return ledger.is_empty()


def check_second_opinion(settings: RunSettings) -> None:
    """Raises PrivacyError where the publish gate would fail for its second opinion: kingfisher is wanted and
    absent, or there and broken. It is tried before anything is sent to another machine; where nothing is, the
    gate finds out soon enough."""
    require_kingfisher(os.environ, settings.release.require_second_opinion)
    if list_destinations(settings, os.environ):
        try_kingfisher(os.environ)


def check_training(settings: RunSettings) -> None:
    """Raises TrainingError where the run is to end with a training that could not start."""
    if settings.training is not None and settings.training.after_release:
        LAUNCHERS.get(settings.training.launcher).check(settings.training)


def check_ledger(settings: RunSettings) -> None:
    """Raises LedgerError where teachers are to be asked and the ledger of `ledger_url` cannot be opened."""
    if settings.asked() and settings.ledger_url is not None:
        from tracemill.teachers.ledger.ledger import Ledger

        Ledger(settings.ledger_url).close()


def check_teachers(settings: RunSettings) -> None:
    """Raises ConfigError where there is no cap, where terms of a teacher restrict training, where the vote
    cannot be won (`check_vote`), or where a key is not set or cannot be one."""
    asked = settings.asked()
    if not asked:
        return
    settings.cap_usd()
    if not settings.accept_terms:
        require_training_terms(asked)
    check_vote(settings)
    for teacher in asked:
        variable = teacher.key_variable()
        if variable and not os.environ.get(variable):
            raise ConfigError(
                f"teacher {teacher.name} needs a key and {variable} is not set",
                f"an API key in {variable}",
                "export it, or use --preset simulated",
            )
        api_key(teacher, os.environ)


def make_normalizer(settings: RunSettings) -> DJNormalizer:
    """The normaliser of a configuration. Raises NormalizeError where it cannot run here.

    A recipe of the user's own, and any recipe before money is spent, is tried by data-juicer itself.
    """
    recipe = settings.normalize.recipe
    normalizer = DJNormalizer(recipe)
    check_available()
    load_recipe(recipe)
    load_benchmarks(settings.normalize.benchmarks)
    make_token_counter(settings.release.tokenizer)
    if recipe is not None or not all(teacher.simulated for teacher in settings.asked()):
        normalizer.check()
    return normalizer
