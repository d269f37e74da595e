"""Read the API key of a teacher from the environment."""

from collections.abc import Mapping

from tracemill.records.errors import ConfigError
from tracemill.teachers.core.teacher_settings import BaseTeacherSettings


def api_key(settings: BaseTeacherSettings, environ: Mapping[str, str]) -> str | None:
    """Return the key of a teacher, None if it needs none.

    Raises ConfigError if the variable is not set, or its value cannot be a key.
    """
    variable = settings.key_variable()
    if variable is None:
        return None
    key = environ.get(variable, "").strip()
    if not key:
        raise ConfigError(
            f"the teacher {settings.name!r} has no API key",
            f"the environment variable {variable}",
            "set it, or use the simulated teachers",
        )
    if not key.isascii() or not key.isprintable() or " " in key:
        raise ConfigError(
            f"{variable} holds characters that no API key has",
            "printable ASCII without blanks",
            "set it again as the provider shows it",
        )
    return key
