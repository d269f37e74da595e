"""The registry of session formats.

A package adds a format by an entry point of the group `tracemill.ingesters`; its detection comes after that
of tracemill's own formats.
"""

import sys
from collections.abc import Mapping

from tracemill.ingesters.format import SessionFormat
from tracemill.records.errors import ConfigError
from tracemill.records.registry import Registry


def _warn(error: ConfigError) -> None:
    """Print that a package's format cannot be imported; the other formats are read."""
    sys.stderr.write(f"tracemill: {error}; its sessions are not read\n")


FORMATS: Registry[SessionFormat] = Registry(
    "session format",
    "tracemill.ingesters",
    {
        "claude_code": "tracemill.ingesters.claude_code.format:FORMAT",
        "mini_swe_agent": "tracemill.ingesters.mini_swe_agent.format:FORMAT",
        "swe_agent": "tracemill.ingesters.swe_agent.format:FORMAT",
        "codex": "tracemill.ingesters.codex.format:FORMAT",
        "gemini_cli": "tracemill.ingesters.gemini_cli.format:FORMAT",
        "pi": "tracemill.ingesters.pi.format:FORMAT",
        "sts": "tracemill.ingesters.sts.format:FORMAT",
        "cline": "tracemill.ingesters.cline.format:FORMAT",
        "cursor": "tracemill.ingesters.cursor.format:FORMAT",
        "opencode": "tracemill.ingesters.opencode.format:FORMAT",
        "inspect_ai": "tracemill.ingesters.inspect_ai.format:FORMAT",
        "atif": "tracemill.ingesters.atif.format:FORMAT",
        "otel": "tracemill.ingesters.otel.format:FORMAT",
        "openhands": "tracemill.ingesters.openhands.format:FORMAT",
        "swe_gym": "tracemill.ingesters.swe_gym.format:FORMAT",
    },
    fits=lambda name, form: isinstance(form, SessionFormat) and form.name == name,
    expected="a SessionFormat of that name",
    on_import_error=_warn,
)


def format_of(dialect: str | None) -> SessionFormat | None:
    """Return the format a dialect belongs to, None if there is none."""
    if dialect is None:
        return None
    return next((form for form in FORMATS if dialect in form.dialects), None)


def source_of(dialect: str | None) -> str | None:
    """Return the source name of a dialect's traces, None if no format has the dialect."""
    form = format_of(dialect)
    return form.name if form else None


def dialects() -> tuple[str, ...]:
    """Return every dialect that has a reader."""
    return tuple(dialect for form in FORMATS for dialect in form.dialects)


def reader_versions() -> Mapping[str, int]:
    """Return the version of each reader by its source name."""
    return {form.name: form.version for form in FORMATS}
