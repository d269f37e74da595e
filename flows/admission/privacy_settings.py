"""Settings of redaction: what is known, redacted and allowed."""

from pathlib import Path

from tracemill.records.frozen_model import FrozenModel


class PrivacySettings(FrozenModel):
    """Settings of redaction: texts redacted beyond the rules, and texts allowed through (`privacy/`)."""

    redact: tuple[str, ...] = ()
    """Exact texts, or patterns as `re:...`, that are always redacted."""
    allow: tuple[str, ...] = ()
    """Exact texts, or patterns as `re:...`, that are left as they are."""
    env_files: tuple[Path, ...] = ()
    """`.env` files whose values (8 characters or more) are redacted wherever they occur."""
