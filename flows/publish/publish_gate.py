"""Build the publish gate of a workspace, as the release writer calls it."""

import os
from collections.abc import Callable
from pathlib import Path

from tracemill.data_cards.model.manifest import GateEntry
from tracemill.flows.admission.redaction_setup import make_redactor
from tracemill.flows.config.run_settings import RunSettings
from tracemill.flows.runtime.progress import show_step
from tracemill.privacy.core.placeholder_keys import workspace_key
from tracemill.privacy.publish_gate.clean_texts import CLEAN_TEXTS
from tracemill.privacy.publish_gate.gate import PublishGate
from tracemill.privacy.publish_gate.scan_paths import Scanner, ScanProgress
from tracemill.privacy.redaction.known_secrets import KNOWN_SECRETS, KnownSecrets
from tracemill.privacy.redaction.redactor import RULES_VERSION
from tracemill.records.storage.workspace import Workspace

ACCEPTED = "accepted.json"


def make_gate(settings: RunSettings, work: Workspace) -> PublishGate:
    """Build the publish gate from this user's values, the workspace's key and its accepted findings.

    Raises ConfigError if `TRACEMILL_KINGFISHER` names a missing file.
    """
    key = workspace_key(work.root / "redaction.key")
    secrets = KnownSecrets(work.root / KNOWN_SECRETS, key)
    return PublishGate(
        scanner=Scanner(
            make_redactor(work, settings.privacy).known, key, os.environ, secrets, work.root / CLEAN_TEXTS
        ),
        rules_version=RULES_VERSION,
        record=work.root / ACCEPTED,
        accept=settings.release.allow_findings,
        require_second=settings.release.require_second_opinion,
    )


def judge_with_workspace_gate(gate: PublishGate, said: list[str]) -> Callable[[Path], GateEntry]:
    """Wrap the gate as a callback for `write_release`; its lines for the closing table go to `said`."""

    def judge(folder: Path) -> GateEntry:
        show_step("check for private text")
        passed = gate.judge(folder, _show_progress)
        said[:] = passed.lines()
        return GateEntry(
            statement=passed.statement, opinions=passed.opinions, accepted=passed.accepted, texts=passed.texts
        )

    return judge


def _show_progress(at: ScanProgress) -> None:
    read = f"{at.texts:,} texts, {at.characters / 1e6:.1f} MB"
    show_step(f"check for private text, file {at.file} of {at.files}, {read}")
