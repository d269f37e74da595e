"""Describe what a command reads into a workspace, and plan it."""

from dataclasses import astuple, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tracemill.flows.admission.reading_version import ReadingVersion
from tracemill.flows.ingest.ingest_shard import ShardIngester
from tracemill.flows.sources.shard_plan import SourcePlan, plan_sources
from tracemill.flows.sources.source_spec import SourceOptions
from tracemill.flows.sources.watermarks import FILE, Watermarks
from tracemill.privacy.core.placeholder_keys import workspace_key
from tracemill.records.identity import canonical_json, digest
from tracemill.records.storage.workspace import Workspace
from tracemill.records.trace import Trace

if TYPE_CHECKING:
    from tracemill.flows.admission.privacy_settings import PrivacySettings
    from tracemill.flows.admission.select_settings import SelectSettings
    from tracemill.flows.admission.trace_filter import TraceFilter
    from tracemill.flows.sources.sampling import SampleOptions
    from tracemill.privacy.redaction.redactor import Redactor, RuleSet
    from tracemill.records.storage.workspace_marker import Text

_KEY_FILE = "redaction.key"


@dataclass(frozen=True, slots=True)
class IngestOptions:
    """Options of an ingest: the sources, the workspace, and how sources are read.

    `jobs` is the maximum number of processes; None for one per 12 MB, up to the number of cores. `privacy`
    are the user's own lists. `forgotten` are the workspaces whose forgotten sessions are left out of a
    folder of recorded text, which has no list of its own.
    """

    sources: SourceOptions
    out: Path
    select: "SelectSettings | None" = None
    unredacted: bool = False
    jobs: int | None = None
    shard_mb: float = 16.0
    sample: "SampleOptions | None" = None
    privacy: "PrivacySettings | None" = None
    forgotten: tuple[Path, ...] = ()
    reredact: bool = False
    """What was redacted otherwise than today is read again, so that its steps are asked anew."""
    rules: "RuleSet | None" = None
    """Today's, unless others are given."""

    @property
    def text(self) -> "Text":
        """Return the kind of text that the workspace holds."""
        return "recorded" if self.unredacted else "redacted"

    def fingerprint(self) -> str:
        """Return a digest of the selected input, without the destination and the speed settings."""
        chosen = self.select.model_dump(mode="json") if self.select else {}
        sampled = astuple(self.sample) if self.sample else None
        lists = self.privacy.model_dump(mode="json") if self.privacy else {}
        asked = [self.sources.names(), self.sources.format, chosen, self.unredacted, sampled, lists]
        return digest("ingest", canonical_json(asked), size=8)


def find_watermarks(order: IngestOptions) -> Watermarks | None:
    """Open the watermarks of a workspace that has some; None for a new one. Nothing is written."""
    root = order.out.expanduser()
    if not (root / FILE).is_file():
        return None
    if order.unredacted:
        return open_watermarks(order, None)
    if not (root / _KEY_FILE).is_file():
        return None
    from tracemill.flows.admission.redaction_setup import TODAYS_RULES, make_redactor

    return open_watermarks(order, make_redactor(None, order.privacy, order.rules or TODAYS_RULES))


def open_watermarks(order: IngestOptions, redactor: "Redactor | None") -> Watermarks:
    """Open the watermarks of a workspace, with its existing key if its text is redacted."""
    root = order.out.expanduser()
    key = b"" if redactor is None else workspace_key(root / _KEY_FILE)
    select = order.select.model_dump(mode="json", exclude_defaults=True) if order.select else {}
    chosen = {"select": select, "format": order.sources.format}
    anew = order.reredact and redactor is not None
    return Watermarks.load(root, ReadingVersion.of(redactor, chosen, key, anew), key, order.text)


def plan_order(order: IngestOptions, marks: Watermarks | None) -> SourcePlan:
    """Find the sources of an ingest and plan which of them are read.

    Raises SourceError as `plan_sources` does.
    """
    return plan_sources(order.sources, order.shard_mb, marks, order.sample is not None)


def make_ingester(order: IngestOptions, work: Workspace) -> ShardIngester:
    """Return the ingester for the sources.

    Raises WorkspaceError if one of `forgotten` is not a workspace.
    """
    select, size = order.select, order.shard_mb * 1e6
    if order.unredacted:
        return ShardIngester(work, None, _recorded_filter(order) if select or order.forgotten else None, size)
    from tracemill.flows.admission.list_scope import NO_LISTS
    from tracemill.flows.admission.redaction_setup import (
        TODAYS_RULES,
        list_scope,
        make_redactor,
        make_trace_filter,
    )
    from tracemill.flows.admission.reredaction import Reredactor
    from tracemill.flows.run_state.stored_traces import StoredTraces

    lists = list_scope(work, order.privacy) if order.privacy else NO_LISTS
    redactor = make_redactor(work, order.privacy, order.rules or TODAYS_RULES)
    reredactor = Reredactor.of(work, redactor, lists, order.reredact)
    return ShardIngester(work, reredactor, make_trace_filter(select, work), size, StoredTraces(work))


def _recorded_filter(order: IngestOptions) -> "TraceFilter":
    from tracemill.flows.admission.forgotten_list import ForgottenList
    from tracemill.flows.admission.trace_filter import TraceFilter

    known = [ForgottenList.of(Workspace.open(place, create=False)) for place in order.forgotten]

    def reason(trace: Trace) -> str | None:
        return next((why for each in known if (why := each.reason(trace))), None)

    return TraceFilter(reason, order.select)
