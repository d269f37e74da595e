"""Every error tracemill raises on purpose.

    TracemillError            exit code 2 on the command line
    ├── ConfigError           a configuration, flag or environment variable is wrong or missing
    ├── SourceError           a path is not a session, or cannot be read
    ├── WorkspaceError        the workspace cannot be written, or was written by another version
    ├── PrivacyError          text would leave this machine without being redacted
    ├── LedgerError           the ledger cannot be opened, or contradicts itself
    ├── TeacherError          a teacher cannot be used at all (wrong key, unknown model)
    ├── NormalizeError        the recipe or an operator of it cannot run
    ├── ReleaseError          a release cannot be written, or does not exist
    ├── TrainingError         a training run cannot start, or failed
    ├── ClusterError          a Ray cluster cannot be used, or lost its workers
    └── EnvironmentTaskError  a task cannot be made, run or verified, or no sandbox is installed

An error that affects the whole run is an exception, raised before any money is spent. One broken item
(a record, a call, a row) is counted with its reason and stops nothing. A message says what is wrong,
what is expected and what to do; it never holds a prompt, a reply or a secret.
"""

from collections.abc import Iterator

from tracemill.records.printable import printable, printable_lines

_MAX_CHARS = 2_000
"""Limit for `problem` and for `expected`, each."""


class TracemillError(Exception):
    """The base of all errors of tracemill; `str(error)` is the one line a user sees."""

    def __init__(self, problem: str, expected: str = "", do: str = "") -> None:
        """Build the message from the problem, what is expected and what to do.

        Only `do` may have several lines.
        """
        parts = [printable(problem, _MAX_CHARS)]
        if expected:
            parts.append(f"expected {printable(expected, _MAX_CHARS)}")
        if do:
            parts.append(printable_lines(do))
        super().__init__("; ".join(parts))


class ConfigError(TracemillError):
    """A configuration, flag or environment variable is wrong or missing."""


class SourceError(TracemillError):
    """A path is not a session, or cannot be read."""


class WorkspaceError(TracemillError):
    """The workspace cannot be written, or was written by another version."""


class WorkspaceBusyError(WorkspaceError):
    """Another process is working on the workspace."""


class PrivacyError(TracemillError):
    """Text would leave this machine without being redacted."""


class RefusedReleaseError(PrivacyError):
    """The publish gate refuses a release; `values` are the private values found, never in the message."""

    values: tuple[str, ...] = ()


class LedgerError(TracemillError):
    """The ledger cannot be opened, or contradicts itself."""


class TeacherError(TracemillError):
    """A teacher cannot be used at all: wrong key, unknown model, no network."""


class NormalizeError(TracemillError):
    """The recipe, or one of its operators, cannot run."""


class ReleaseError(TracemillError):
    """A release cannot be written, or does not exist."""


class TrainingError(TracemillError):
    """A training run cannot start, or failed."""


class ClusterError(TracemillError):
    """A Ray cluster cannot be used, or lost its workers."""


class EnvironmentTaskError(TracemillError):
    """A task cannot be made, run or verified, or no sandbox is installed."""


def error_chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error, then the errors that caused it or during whose handling it was raised."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__
