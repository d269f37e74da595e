"""Every error tracemill raises on purpose.

    TracemillError            exit code 2 on the command line
    ├── ConfigError           a configuration, flag or environment variable is wrong or missing
    ├── SourceError           a path is no trace, or cannot be read
    ├── WorkspaceError        the workspace cannot be written, or was written by another version
    ├── PrivacyError          text would leave without having been redacted
    ├── LedgerError           the ledger cannot be opened, or contradicts itself
    ├── TeacherError          a teacher cannot be used at all (wrong key, unknown model)
    ├── NormalizeError        the recipe or an operator of it cannot run
    ├── ReleaseError          a release cannot be written, or is not there
    └── TrainingError         a training run cannot start, or failed

Policy: what is broken as a whole is an exception, raised before any money is spent; one broken
item (a record, a call, a row) is a counted row with its reason and stops nothing. A message says
what was found, what was wanted and what to do; it never holds a prompt, a reply or a secret.
"""

from tracemill.records.printable import printable, printable_lines

_MOST = 2_000
"""Characters of what was found, and of what was wanted."""


class TracemillError(Exception):
    """Base of all; `str(error)` is the one line a user sees."""

    def __init__(self, found: str, wanted: str = "", do: str = "") -> None:
        """`found`: what is there; `wanted`: what should be; `do`: the way out, which alone may have several
        lines."""
        parts = [printable(found, _MOST)]
        if wanted:
            parts.append(f"wanted {printable(wanted, _MOST)}")
        if do:
            parts.append(printable_lines(do))
        super().__init__("; ".join(parts))


class ConfigError(TracemillError):
    """A configuration, flag or environment variable is wrong or missing."""


class SourceError(TracemillError):
    """A path is no trace, or cannot be read."""


class WorkspaceError(TracemillError):
    """The workspace cannot be written, or was written by another version."""


class PrivacyError(TracemillError):
    """Text would leave without having been redacted."""


class LedgerError(TracemillError):
    """The ledger cannot be opened, or contradicts itself."""


class TeacherError(TracemillError):
    """A teacher cannot be used at all: wrong key, unknown model, no network."""


class NormalizeError(TracemillError):
    """The recipe or an operator of it cannot run."""


class ReleaseError(TracemillError):
    """A release cannot be written, or is not there."""


class TrainingError(TracemillError):
    """A training run cannot start, or failed."""
