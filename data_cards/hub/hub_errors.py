"""What the Hub refused, as one line without a token in it, and which refusals pass."""

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
_PASSING = frozenset({408, 412, 429, 500, 502, 503, 504})
_SAID = 300


class Passing(Exception):
    """A refusal that may be gone at the next try; `wait_s` where the Hub said how long."""

    def __init__(self, line: str, wait_s: float | None = None) -> None:
        super().__init__(line)
        self.wait_s = wait_s


@dataclass(frozen=True, slots=True)
class Patience:
    """How often a call is tried, and the waits between: doubling from `first_wait_s` to `most_wait_s`, or
    what `Retry-After` says, at most `most_told_s`."""

    tries: int = 6
    first_wait_s: float = 1.0
    most_wait_s: float = 30.0
    most_told_s: float = 300.0

    def run(self, call: Callable[[], T]) -> T:
        """What `call` gives. Raises ReleaseError where it is refused for good or every try failed."""
        again = Retrying(
            retry=retry_if_exception_type(Passing),
            stop=stop_after_attempt(self.tries),
            wait=self._wait,
            reraise=True,
        )
        try:
            return again(call)
        except Passing as error:
            raise ReleaseError(
                f"{error}, {self.tries} times", "a Hub that answers", "try again later: nothing is sent twice"
            ) from None

    def _wait(self, state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        if isinstance(error, Passing) and error.wait_s is not None:
            return min(error.wait_s, self.most_told_s)
        return min(self.first_wait_s * 2 ** (state.attempt_number - 1), self.most_wait_s)


PATIENCE = Patience()


def translate_hub_errors(what: str, call: Callable[[], T]) -> T:
    """What `call` gives; its errors as ours. `what` was to be done there, for the line.

    Raises Passing for 408, 412, 429, 5xx and lost connections, ReleaseError for every other answer.
    """
    try:
        return call()
    except (OSError, ValueError, RuntimeError, _transport_error()) as error:
        raise _ours(what, error) from None


def _transport_error() -> type[Exception]:
    from huggingface_hub.utils import httpx

    return httpx.TransportError


def _no_address() -> type[Exception]:
    from huggingface_hub.utils import httpx

    return httpx.UnsupportedProtocol


def _ours(what: str, error: BaseException) -> Exception:
    """The error as ours; an upload's is wrapped in a RuntimeError of its file."""
    from huggingface_hub.errors import HfHubHTTPError

    if isinstance(error, RuntimeError) and error.__cause__ is not None:
        return _ours(what, error.__cause__)
    if isinstance(error, HfHubHTTPError):
        return _answered(what, error)
    said = _scrubbed(str(error)) or type(error).__name__
    if isinstance(error, _no_address()):
        return ReleaseError(f"{what} failed ({said})", "an address of a Hub", "correct HF_ENDPOINT")
    if isinstance(error, (OSError, _transport_error())):
        return Passing(f"the Hub cannot be reached to {what} ({said})")
    return ReleaseError(f"{what} failed ({said})")


def _answered(what: str, error: "HfHubHTTPError") -> Exception:
    status = error.response.status_code
    line = f"the Hub answers {status} to {what}"
    if said := _scrubbed(error.server_message or ""):
        line += f" ({said})"
    if status in _PASSING:
        return Passing(line, _seconds(error.response.headers.get("Retry-After")))
    return ReleaseError(line, *_way_out(status))


def _way_out(status: int) -> tuple[str, str]:
    if status in (401, 403):
        return ("a token with the right to do that", "make one at https://huggingface.co/settings/tokens")
    return ("", "")


def _scrubbed(text: str) -> str:
    return _TOKEN.sub("[token]", " ".join(text.split()))[:_SAID]


def _seconds(header: str | None) -> float | None:
    try:
        return max(0.0, float(header)) if header else None
    except ValueError:
        return None
