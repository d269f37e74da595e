"""The one list of session formats.

A format of a package is added by an entry point of the group `tracemill.ingesters`; it is asked after ours
whether a file is of it.
"""

import sys
from collections.abc import Mapping

from tracemill.ingesters.format import Format
from tracemill.records.errors import ConfigError
from tracemill.records.registry import Registry


def _say(error: ConfigError) -> None:
    """Tell that the format of a package is left out; the other formats are read."""
    sys.stderr.write(f"tracemill: {error}; its sessions are not read\n")


FORMATS: Registry[Format] = Registry(
    "session format",
    "tracemill.ingesters",
    {
        "claude_code": "tracemill.ingesters.claude_code.format:FORMAT",
        "mini_swe_agent": "tracemill.ingesters.mini_swe_agent.format:FORMAT",
        "swe_agent": "tracemill.ingesters.swe_agent.format:FORMAT",
        "openhands": "tracemill.ingesters.openhands.format:FORMAT",
        "swe_gym": "tracemill.ingesters.swe_gym.format:FORMAT",
    },
    fits=lambda name, form: isinstance(form, Format) and form.name == name,
    wanted="a Format of that name",
    passed_over=_say,
)


def format_of(dialect: str | None) -> Format | None:
    """Return the format a dialect belongs to, None where it is none of a session."""
    if dialect is None:
        return None
    return next((form for form in FORMATS if dialect in form.dialects), None)


def source_of(dialect: str | None) -> str | None:
    """Return the source of the traces of a dialect, None where it is none of a session."""
    form = format_of(dialect)
    return form.name if form else None


def dialects() -> tuple[str, ...]:
    """Return every dialect there is a reader for."""
    return tuple(dialect for form in FORMATS for dialect in form.dialects)


def reader_versions() -> Mapping[str, int]:
    """Return the version of each reader by its source."""
    return {form.name: form.version for form in FORMATS}
