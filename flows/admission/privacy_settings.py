"""Settings of redaction: what is known, redacted and allowed."""

from pathlib import Path

from pydantic import (
    BaseModel,
    ConfigDict,
)


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class PrivacySettings(_Model):
    """What is redacted beyond the rules, and what is let through (`privacy/`)."""

    redact: tuple[str, ...] = ()
    """Exact texts, or patterns as `re:...`, that are always redacted."""
    allow: tuple[str, ...] = ()
    """Exact texts, or patterns as `re:...`, that are left as they are."""
    env_files: tuple[Path, ...] = ()
    """`.env` files whose values (8 characters or more) are redacted wherever they occur."""
