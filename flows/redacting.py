"""What stands between recorded text and a workspace: its redactor, and the traces that stay out of it."""

import os
from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING

from flows.forgotten import Forgotten
from flows.list_scope import ListScope
from flows.renewing import Renewer
from flows.sieve import Sieve
from privacy.placeholders import workspace_key
from privacy.redact import TODAYS_RULES, Redactor, Rules
from records.errors import WorkspaceError
from records.workspace import Workspace

if TYPE_CHECKING:
    from flows.selection import SelectSettings
    from flows.settings import PrivacySettings, RunSettings


def make_redactor(
    work: Workspace | None = None, lists: "PrivacySettings | None" = None, rules: Rules = TODAYS_RULES
) -> Redactor:
    """The redactor of this machine: its secret-named variables, home folder and user name, and the
    user's own lists; with the key of a workspace, so that a placeholder reveals nothing and stays the
    same there. Raises ConfigError for a list entry or a file that cannot be used."""
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
        from privacy.list_checks import check_entries

        check_entries(redact, allow, _written_everywhere())


def _written_everywhere() -> str:
    """What no session says and every release holds: names of columns, the card, roles, stand-in prompts and
    tools."""
    from data_cards.card import CONFIGS_HOLD, TEMPLATE
    from data_cards.encode_views import WRITTEN
    from data_cards.features import column_names
    from data_cards.manifest import Manifest
    from harnesses.harness import HARNESSES
    from normalize.cutting import LEFT_OUT
    from normalize.plan import SHORTENED

    names = [*column_names(), *Manifest.model_fields, "system", "user", "assistant", "tool"]
    prompts = [text for each in HARNESSES for text in (each.system, each.text_system) if text]
    said = [
        *names,
        TEMPLATE.read_text("utf-8"),
        *CONFIGS_HOLD.values(),
        *WRITTEN,
        LEFT_OUT,
        SHORTENED,
        *prompts,
    ]
    return "\n".join(said)


def known_values(redactor: Redactor) -> Counter[str]:
    """How many values are looked for from each `.env` file; one that gives none is said too."""
    return Counter(
        {
            f"values known from {name}" if count else f"no value known from {name}": count or 1
            for name, count in redactor.known_from_files.items()
        }
    )


def list_scope(work: Workspace, lists: "PrivacySettings") -> ListScope:
    """The user's own lists as a consent knows them."""
    return ListScope.of(lists, _redaction_key(work))


def _redaction_key(work: Workspace) -> bytes:
    path = work.root / "redaction.key"
    if not path.exists() and work.live("replies"):
        raise WorkspaceError(
            f"{path} is gone and the workspace holds bought answers",
            "the key their prompts were redacted with: with another every prompt is another one",
            "restore it, or start a new workspace with --workspace",
        )
    return workspace_key(path)


def make_sieve(select: "SelectSettings | None", work: Workspace) -> Sieve:
    """What is left out of this workspace: what was forgotten, and what is not selected."""
    return Sieve(Forgotten.of(work).reason, select)


def make_renewer(work: Workspace, settings: "RunSettings", rules: Rules = TODAYS_RULES) -> Renewer:
    """What redacts the text of a workspace again on its way out, where it was redacted otherwise."""
    redactor = make_redactor(work, settings.privacy, rules)
    return Renewer.of(work, redactor, list_scope(work, settings.privacy), settings.replay.ask_again)
