"""The watermarks of a workspace, held against the way a run reads."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracemill.flows.admission.reading_version import ReadingVersion
from tracemill.flows.sources.watermarks import FILE, Watermarks
from tracemill.privacy.core.placeholder_keys import workspace_key

if TYPE_CHECKING:
    from tracemill.flows.admission.privacy_settings import PrivacySettings
    from tracemill.flows.admission.select_settings import SelectSettings
    from tracemill.privacy.redaction.redactor import Redactor, Rules
    from tracemill.records.storage.workspace_marker import Text

KEY_FILE = "redaction.key"


def open_known_watermarks(
    root: Path,
    lists: "PrivacySettings | None",
    select: "SelectSettings | None",
    forced: str | None,
    text: "Text" = "redacted",
    anew: bool = False,
    rules: "Rules | None" = None,
) -> Watermarks | None:
    """The watermarks of a workspace that has some; None for a new one. `anew`: what was redacted otherwise is
    read again. Nothing is written."""
    root = root.expanduser()
    if not (root / FILE).is_file():
        return None
    if text == "recorded":
        return open_watermarks(root, None, select, forced, text)
    if not (root / KEY_FILE).is_file():
        return None
    from tracemill.flows.admission.redaction_setup import TODAYS_RULES, make_redactor

    return open_watermarks(root, make_redactor(None, lists, rules or TODAYS_RULES), select, forced, anew=anew)


def open_watermarks(
    root: Path,
    redactor: "Redactor | None",
    select: "SelectSettings | None",
    forced: str | None,
    text: "Text" = "redacted",
    anew: bool = False,
) -> Watermarks:
    """The watermarks of a workspace whose key is there, if its text is redacted."""
    key = b"" if redactor is None else workspace_key(root / KEY_FILE)
    return Watermarks.load(root, ReadingVersion.of(redactor, _chosen(select, forced), key, anew), key, text)


def _chosen(select: "SelectSettings | None", forced: str | None) -> dict[str, Any]:
    given = select.model_dump(mode="json", exclude_defaults=True) if select else {}
    return {"select": given, "format": forced}
