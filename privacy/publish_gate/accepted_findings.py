"""Read and write accepted findings: fingerprint, rule and date, never a value."""

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tracemill.privacy.publish_gate.findings import FINGERPRINT, Finding
from tracemill.records.errors import PrivacyError
from tracemill.records.storage.atomic_files import read_json_file, write_json


def read_accepted(path: Path) -> dict[str, dict[str, Any]]:
    """Return the accepted findings by fingerprint.

    Raises PrivacyError where the file has another form.
    """
    if not path.exists():
        return {}
    value = read_json_file(path)
    entries = value.get("accepted") if isinstance(value, dict) else None
    if not isinstance(entries, list) or not all(_is_entry(entry) for entry in entries):
        raise PrivacyError(f"{path} is no list of accepted findings", "one as --allow-finding writes it")
    return {entry["fingerprint"]: entry for entry in entries}


def _is_entry(entry: Any) -> bool:
    return isinstance(entry, dict) and bool(FINGERPRINT.fullmatch(str(entry.get("fingerprint"))))


def record_accepted(path: Path, findings: Iterable[Finding]) -> None:
    """Add findings accepted now, with the time (UTC) and their first place."""
    entries = read_accepted(path)
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    first: dict[str, Finding] = {}
    for found in findings:
        first.setdefault(found.fingerprint, found)
    new = {
        name: {
            "fingerprint": name,
            "rule": found.rule,
            "opinions": list(found.opinions),
            "accepted_at": now,
            "where": found.where(),
        }
        for name, found in first.items()
        if name not in entries
    }
    if new:
        kept = sorted([*entries.values(), *new.values()], key=lambda entry: entry["fingerprint"])
        write_json(path, {"schema": 1, "accepted": kept}, private=True)
