"""Build the redaction of a configuration."""

from typing import TYPE_CHECKING

from tracemill.flows.admission.redaction_setup import list_scope, make_redactor
from tracemill.flows.admission.reredaction import Reredactor
from tracemill.privacy.redaction.redactor import TODAYS_RULES, RuleSet
from tracemill.records.storage.workspace import Workspace

if TYPE_CHECKING:
    from tracemill.flows.config.run_settings import RunSettings


def make_reredactor(work: Workspace, settings: "RunSettings", rules: RuleSet = TODAYS_RULES) -> Reredactor:
    """Return the redactor for stored text that leaves the workspace."""
    redactor = make_redactor(work, settings.privacy, rules)
    return Reredactor.of(work, redactor, list_scope(work, settings.privacy), settings.replay.reredact)
