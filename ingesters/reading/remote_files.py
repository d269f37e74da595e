"""Read remote files by byte ranges: of a Hub dataset (`hf://datasets/...`), or behind an http(s) URL.

They are never stored whole. The Hub's library finds the token and retries; neither the token nor the query of
a URL, which may hold one, is part of a name or message.
"""

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit, urlunsplit

from tracemill.records.errors import SourceError

HUB = "hf://datasets/"
_RETRIED = (408, 429, 500, 502, 503, 504)
_ATTEMPTS = 4
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.2, 10.0


class RemoteVersion(NamedTuple):
    """Size of a remote file in bytes, and a tag that changes with its content."""

    bytes: int
    tag: str


def is_remote(text: str) -> bool:
    """Return whether a source is named by a URL."""
    return text.startswith(("http://", "https://"))


def printable_url(url: str) -> str:
    """Return a URL without user, password, query and fragment, as it may be shown and stored."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2] if parts.scheme != "hf" else parts.netloc
    return urlunsplit((parts.scheme, host, parts.path, "", ""))


@contextmanager
def open_remote(url: str) -> Iterator[Any]:
    """Open a remote file as a seekable one; each read is one request for these bytes.

    Raises SourceError if it cannot be reached or read, also while it is being read.
    """
    with wrap_remote_faults(printable_url(url)):
        if url.startswith(HUB):
            from huggingface_hub import HfFileSystem

            opened = HfFileSystem().open(url.removeprefix("hf://"), "rb", cache_type="none")
        else:
            opened = _RetryingFile(_with_retries(lambda: _web().open(url, "rb", cache_type="none")))
        with opened as file:
            yield file


def remote_file_version(url: str) -> RemoteVersion:
    """Return size and version of a file at an http(s) URL.

    Raises SourceError if the server does not support byte ranges.
    """
    with wrap_remote_faults(printable_url(url)):
        info = _with_retries(lambda: _web().info(url))
    if not info.get("size") or info.get("partial") is False:
        raise _no_ranges(printable_url(url))
    return RemoteVersion(info["size"], str(info.get("ETag") or info.get("Last-Modified") or ""))


def fetch(url: str) -> Path:
    """Download a file of a Hub dataset into the Hub's cache and return its path. Raises SourceError."""
    from huggingface_hub import hf_hub_download

    repo, _, rest = url.removeprefix(HUB).partition("@")
    revision, _, name = rest.partition("/")
    with wrap_remote_faults(url):
        return Path(hf_hub_download(repo, name, repo_type="dataset", revision=revision))


def _web() -> Any:
    import fsspec

    return fsspec.filesystem("http", client_kwargs={"trust_env": True})


class _RetryingFile(io.RawIOBase):
    """A remote file whose reads are retried on temporary errors."""

    def __init__(self, file: Any) -> None:
        from fsspec.implementations.http import HTTPFile

        self._file = file  # closed with this one, also where that is not made
        if not isinstance(file, HTTPFile):
            file.close()
            raise ValueError("no ranges")

    def read(self, size: int = -1) -> bytes:
        at = self._file.tell()

        def attempt() -> bytes:
            self._file.seek(at)
            return self._file.read(size)

        return _with_retries(attempt)

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        super().close()
        self._file.close()


def _with_retries(attempt: Callable[[], Any]) -> Any:
    from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_random_exponential

    policy = Retrying(
        stop=stop_after_attempt(_ATTEMPTS),
        wait=wait_random_exponential(_FIRST_WAIT_S, _LONGEST_WAIT_S),
        retry=retry_if_exception(_is_temporary),
        reraise=True,
    )
    return policy(attempt)


def _is_temporary(error: BaseException) -> bool:
    from aiohttp import ClientConnectorDNSError, ClientError, ClientResponseError

    error = _cause(error)
    if isinstance(error, ClientResponseError):
        return error.status in _RETRIED
    if isinstance(error, ClientConnectorDNSError):
        return False
    return isinstance(error, ClientError | ConnectionError | TimeoutError)


def _cause(error: BaseException) -> BaseException:
    """Return the cause of a FileNotFoundError, which `fsspec` raises for any error of the network."""
    cause = error.__cause__
    return cause if isinstance(error, FileNotFoundError) and isinstance(cause, Exception) else error


@contextmanager
def wrap_remote_faults(name: str) -> Iterator[None]:
    """Raise errors of the network and the Hub as SourceError with one line."""
    try:
        yield
    except SourceError:
        raise
    except Exception as error:
        raise _source_error(name, _cause(error)) from None


def _source_error(name: str, error: BaseException) -> BaseException:
    """Return the error as a SourceError; one that is not of the network as it is."""
    from aiohttp import ClientError
    from huggingface_hub import errors
    from huggingface_hub.utils import httpx

    if isinstance(error, errors.GatedRepoError):
        return SourceError(
            f"{name} is gated",
            "a token whose account was given access",
            "ask for access on its page, then `hf auth login` or set HF_TOKEN",
        )
    if isinstance(error, errors.RevisionNotFoundError):
        return SourceError(f"{name} has no such revision", "a branch, tag or commit of it")
    if isinstance(error, errors.RepositoryNotFoundError):
        return SourceError(
            f"there is no dataset {name} on the Hub, or it is private",
            "owner/name of one that this account may read",
            "check the name, or `hf auth login`",
        )
    if isinstance(error, errors.OfflineModeIsEnabled):
        return SourceError(f"{name} is on the Hub, and HF_HUB_OFFLINE is set", "the network", "unset it")
    status = getattr(error, "status", None) or getattr(getattr(error, "response", None), "status_code", None)
    if isinstance(error, FileNotFoundError | errors.EntryNotFoundError) or status == 404:
        return SourceError(f"{name} does not exist", "a file that exists", "check the address")
    if isinstance(error, ValueError) and "range" in str(error):
        return _no_ranges(name)
    if isinstance(status, int):
        return SourceError(
            f"{name} answers {status}", "a file that can be read", "check access, or try later"
        )
    if isinstance(error, ClientError | httpx.HTTPError | OSError | TimeoutError):
        return SourceError(f"{name} cannot be reached: {type(error).__name__}", "the network", "try later")
    return error


def _no_ranges(name: str) -> SourceError:
    return SourceError(
        f"the server of {name} does not support byte ranges", "one that does", "download the file"
    )
