"""The sources to read in plain values, from a configuration or the command line."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tracemill.ingesters.reading.remote_files import is_remote, printable_url

MIN_AGE_MINUTES = 15.0
"""A session that was added to within so many minutes is left alone; an agent's command may run for ten."""


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """Options that name the sources to read.

    They are files and folders with the format each must have (None for any), URLs of Parquet files,
    datasets of the Hub, a dialect forced on any source, and the minutes without a change after which a
    session counts as finished.
    """

    given: tuple[tuple[Path, str | None], ...] = ()
    urls: tuple[str, ...] = ()
    hub: tuple[str, ...] = ()
    format: str | None = None
    min_age_minutes: float = MIN_AGE_MINUTES

    def names(self) -> list[str]:
        """Return each source as it was given, without anything secret."""
        return [*(str(path) for path, _ in self.given), *map(printable_url, self.urls), *self.hub]

    def __bool__(self) -> bool:
        return bool(self.given or self.urls or self.hub)


def order_of(
    paths: Sequence[str] = (),
    hub: Sequence[str] = (),
    format: str | None = None,
    min_age_minutes: float = MIN_AGE_MINUTES,
) -> SourceOptions:
    """Return the options for paths and URLs in one list, and datasets."""
    local, urls = split_urls(paths)
    given = tuple((Path(path), None) for path in local)
    return SourceOptions(given, tuple(urls), tuple(hub), format, min_age_minutes)


def split_urls(given: Sequence[str]) -> tuple[list[str], list[str]]:
    """Separate paths from URLs."""
    return [text for text in given if not is_remote(text)], [text for text in given if is_remote(text)]
