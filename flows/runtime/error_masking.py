"""Hide error messages from Prefect: its server may be remote.

It is told that something failed and of which type. It keeps what it is told, and messages name folders and
show what stands around a finding.
"""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class MaskedError(Exception):
    """An error known by the name of its type. The original stays in this process: it is not pickled."""

    def __init__(self, kind: str, error: Exception | None = None) -> None:
        super().__init__(kind)
        self.error = error

    def __reduce__(self) -> tuple[type["MaskedError"], tuple[object, ...]]:
        """Pickle the type alone."""
        return type(self), self.args


def mask_errors(work: Callable[P, T]) -> Callable[P, T]:
    """Make a function raise MaskedError for every error; for functions that Prefect runs."""

    @wraps(work)
    def quiet(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return work(*args, **kwargs)
        except Exception as error:
            raise MaskedError(type(error).__name__, error) from None

    return quiet


def unmask_errors(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a masked function and raise the original error; for callers of functions that Prefect runs."""
    try:
        return work(*args, **kwargs)
    except MaskedError as hidden:
        raise (hidden.error or hidden) from None
