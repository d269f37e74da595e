"""Prefect is told that something failed and of which type, never what: its server may be another machine's,
it keeps what it is told, and messages name folders and show what stands around a finding."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Unsaid(Exception):
    """An error by the name of its type. The error itself stays in the process: it is not pickled."""

    def __init__(self, kind: str, error: Exception | None = None) -> None:
        super().__init__(kind)
        self.error = error

    def __reduce__(self) -> tuple[type["Unsaid"], tuple[object, ...]]:
        """What a copy of it is made of."""
        return type(self), self.args


def mask_errors(work: Callable[P, T]) -> Callable[P, T]:
    """The work, raising Unsaid for every error; for what Prefect runs."""

    @wraps(work)
    def quiet(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return work(*args, **kwargs)
        except Exception as error:
            raise Unsaid(type(error).__name__, error) from None

    return quiet


def unmask_errors(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What the work gives, with its errors as they were raised; for who calls what Prefect runs."""
    try:
        return work(*args, **kwargs)
    except Unsaid as hidden:
        raise (hidden.error or hidden) from None
