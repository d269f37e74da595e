"""Build the redactor and the trace filter of a workspace."""

import os
from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING

from tracemill.flows.admission.forgotten_list import ForgottenList
from tracemill.flows.admission.list_scope import ListScope
from tracemill.flows.admission.trace_filter import TraceFilter
from tracemill.privacy.core.placeholder_keys import workspace_key
from tracemill.privacy.redaction.redactor import TODAYS_RULES, Redactor, RuleSet
from tracemill.records.errors import WorkspaceError
from tracemill.records.storage.workspace import Workspace

if TYPE_CHECKING:
    from tracemill.flows.admission.privacy_settings import PrivacySettings
    from tracemill.flows.admission.select_settings import SelectSettings


def make_redactor(
    work: Workspace | None = None, lists: "PrivacySettings | None" = None, rules: RuleSet = TODAYS_RULES
) -> Redactor:
    """Build the redactor of this machine.

    It searches for the values of secret-named variables, the home folder, the user name, and the user's own
    lists. With the key of a workspace a placeholder reveals nothing and stays the same in that workspace.
    Raises ConfigError for a list entry or a file that cannot be used.
    """
    if lists:
        _require_usable(lists.redact, lists.allow)
    return Redactor.from_environment(
        os.environ,
        key=_redaction_key(work) if work else b"",
        redact=lists.redact if lists else (),
        allow=lists.allow if lists else (),
        env_files=lists.env_files if lists else (),
        rules=rules,
    )


@lru_cache
def _require_usable(redact: tuple[str, ...], allow: tuple[str, ...]) -> None:
    if redact or allow:
        from tracemill.privacy.core.check_user_lists import check_entries

        check_entries(redact, allow, _written_everywhere())


def _written_everywhere() -> str:
    """Return texts that are part of every release: column names, card, roles, stand-in prompts and tools."""
    from tracemill.data_cards.card.render_card import CONFIG_DESCRIPTIONS, TEMPLATE
    from tracemill.data_cards.model.columns import column_names
    from tracemill.data_cards.model.manifest import Manifest
    from tracemill.data_cards.writing.encode_views import WRITTEN
    from tracemill.harnesses.agents.registry import HARNESSES
    from tracemill.normalize.context_length.cut_context import LEFT_OUT
    from tracemill.normalize.context_length.cut_plan import SHORTENED
    from tracemill.records.label_source import ACTION_SOURCES, LABEL_SOURCES

    names = [*column_names(), *Manifest.model_fields, "system", "user", "assistant", "tool"]
    prompts = [text for each in HARNESSES for text in (each.system, each.text_system) if text]
    sources = (*LABEL_SOURCES, *ACTION_SOURCES.values())
    said = [
        *names,
        TEMPLATE.read_text("utf-8"),
        *CONFIG_DESCRIPTIONS.values(),
        *WRITTEN,
        *(text for source in sources for text in (source.name, source.means, source.better)),
        LEFT_OUT,
        SHORTENED,
        *prompts,
    ]
    return "\n".join(said)


def count_known_values(redactor: Redactor) -> Counter[str]:
    """Count the values from each `.env` file that are searched for; a file without any is included."""
    return Counter(
        {
            f"values known from {name}" if count else f"no value known from {name}": count or 1
            for name, count in redactor.known_from_files.items()
        }
    )


def list_scope(work: Workspace, lists: "PrivacySettings") -> ListScope:
    """Return the user's own lists in the form that a consent stores."""
    return ListScope.of(lists, _redaction_key(work))


def _redaction_key(work: Workspace) -> bytes:
    path = work.root / "redaction.key"
    if not path.exists() and work.live("replies"):
        raise WorkspaceError(
            f"{path} is gone and the workspace holds bought answers",
            "the key that redacted their prompts, since another key changes every prompt",
            "restore it, or start a new workspace with --workspace",
        )
    return workspace_key(path)


def make_trace_filter(select: "SelectSettings | None", work: Workspace) -> TraceFilter:
    """Build the filter of a workspace: it leaves out forgotten traces and those not selected."""
    return TraceFilter(ForgottenList.of(work).reason, select)
