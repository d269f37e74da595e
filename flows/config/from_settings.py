"""What is built from the settings of a run: redaction, shard plan."""

from typing import TYPE_CHECKING

from tracemill.flows.admission.redaction_setup import list_scope, make_redactor
from tracemill.flows.admission.reredaction import Renewer
from tracemill.flows.sources.shard_plan import Plan, plan_sources
from tracemill.flows.sources.watermarks import Watermarks
from tracemill.privacy.redaction.redactor import TODAYS_RULES, Rules
from tracemill.records.storage.workspace import Workspace

if TYPE_CHECKING:
    from tracemill.flows.config.run_settings import RunSettings


def make_renewer(work: Workspace, settings: "RunSettings", rules: Rules = TODAYS_RULES) -> Renewer:
    """What redacts the text of a workspace again on its way out, where it was redacted otherwise."""
    redactor = make_redactor(work, settings.privacy, rules)
    return Renewer.of(work, redactor, list_scope(work, settings.privacy), settings.replay.ask_again)


def plan_shards(settings: "RunSettings", marks: Watermarks | None = None) -> Plan:
    """The plan of a configuration. Raises SourceError as `plan_sources` does."""
    sampled = settings.sample.max_traces is not None
    return plan_sources(settings.sources.order(), settings.shard_mb, marks, sampled)
