"""Translate errors of the Hub to one line without tokens, and retry those that may pass."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from tenacity import RetryCallState, Retrying, retry_if_exception_type, stop_after_attempt

from tracemill.records.errors import ReleaseError

if TYPE_CHECKING:
    from huggingface_hub.errors import HfHubHTTPError

T = TypeVar("T")
_TOKEN = re.compile(r"hf_[A-Za-z0-9]{8,}|(?<=Bearer )\S+")
_TRANSIENT_CODES = frozenset({408, 412, 429, 500, 502, 503, 504})
_MAX_CHARS = 300


class TransientHubError(Exception):
    """An error of the Hub that may pass; `wait_s` is the wait that it asked for, in seconds."""

    def __init__(self, line: str, wait_s: float | None = None) -> None:
        super().__init__(line)
        self.wait_s = wait_s


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Number of tries of a call, and the waits between them in seconds.

    Waits double from `first_wait_s` to `most_wait_s`; a `Retry-After` is followed up to `most_retry_after_s`.
    """

    tries: int = 6
    first_wait_s: float = 1.0
    most_wait_s: float = 30.0
    most_retry_after_s: float = 300.0

    def run(self, call: Callable[[], T]) -> T:
        """Return the result of `call`, retried.

        Raises ReleaseError if it is refused for good or every try failed.
        """
        retrying = Retrying(
            retry=retry_if_exception_type(TransientHubError),
            stop=stop_after_attempt(self.tries),
            wait=self._wait,
            reraise=True,
        )
        try:
            return retrying(call)
        except TransientHubError as error:
            raise ReleaseError(
                f"{error}, {self.tries} times", "a Hub that answers", "try again later: nothing is sent twice"
            ) from None

    def request(self, what: str, call: Callable[[], T]) -> T:
        """Return the result of one request, retried; `what` names it in errors."""
        return self.run(lambda: translate_hub_errors(what, call))

    def _wait(self, state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        if isinstance(error, TransientHubError) and error.wait_s is not None:
            return min(error.wait_s, self.most_retry_after_s)
        return min(self.first_wait_s * 2 ** (state.attempt_number - 1), self.most_wait_s)


PATIENCE = RetryPolicy()


def translate_hub_errors(what: str, call: Callable[[], T]) -> T:
    """Return the result of `call`; `what` names the request in errors.

    Raises TransientHubError for 408, 412, 429, 5xx and lost connections, ReleaseError for other errors.
    """
    try:
        return call()
    except (OSError, ValueError, RuntimeError, _transport_error()) as error:
        raise _translate(what, error) from None


def _transport_error() -> type[Exception]:
    from huggingface_hub.utils import httpx

    return httpx.TransportError


def _translate(what: str, error: BaseException) -> Exception:
    """Translate an error; an upload wraps its cause in a RuntimeError."""
    from huggingface_hub.errors import HfHubHTTPError
    from huggingface_hub.utils import httpx

    if isinstance(error, RuntimeError) and error.__cause__ is not None:
        return _translate(what, error.__cause__)
    if isinstance(error, HfHubHTTPError):
        return _translate_response(what, error)
    message = _without_tokens(str(error)) or type(error).__name__
    if isinstance(error, httpx.UnsupportedProtocol):
        return ReleaseError(f"{what} failed ({message})", "an address of a Hub", "correct HF_ENDPOINT")
    if isinstance(error, (OSError, httpx.TransportError)):
        return TransientHubError(f"the Hub cannot be reached to {what} ({message})")
    return ReleaseError(f"{what} failed ({message})")


def _translate_response(what: str, error: "HfHubHTTPError") -> Exception:
    status = error.response.status_code
    line = f"the Hub answers {status} to {what}"
    if message := _without_tokens(error.server_message or ""):
        line += f" ({message})"
    if status in _TRANSIENT_CODES:
        return TransientHubError(line, _seconds(error.response.headers.get("Retry-After")))
    if status in (401, 403):
        tokens = "make one at https://huggingface.co/settings/tokens"
        return ReleaseError(line, "a token with the right to do that", tokens)
    return ReleaseError(line)


def _without_tokens(text: str) -> str:
    return _TOKEN.sub("[token]", " ".join(text.split()))[:_MAX_CHARS]


def _seconds(header: str | None) -> float | None:
    try:
        return max(0.0, float(header)) if header else None
    except ValueError:
        return None
