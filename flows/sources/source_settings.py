"""The tables `[sources]` and `[sample]` of a configuration."""

from pathlib import Path
from typing import Any

from pydantic import Field, field_validator, model_validator

from tracemill.flows.sources.sampling import BY, SampleOptions, StratumField
from tracemill.flows.sources.source_spec import MIN_AGE_MINUTES, SourceOptions, split_urls
from tracemill.ingesters.reading.hub_datasets import HubSpec
from tracemill.ingesters.reading.remote_files import is_remote
from tracemill.ingesters.registry import dialects
from tracemill.records.errors import SourceError
from tracemill.records.frozen_model import FrozenModel


class SourceSettings(FrozenModel):
    """Sources to read. Under `paths` the format of each file is found by its content."""

    claude_code: tuple[Path, ...] = ()
    """Claude Code session files or folders of them."""
    codex: tuple[Path, ...] = ()
    """Rollouts of Codex CLI or folders of them."""
    openhands: tuple[Path, ...] = ()
    """OpenHands evaluation outputs, event lists or conversation folders."""
    swe_gym: tuple[Path, ...] = ()
    """SWE-Gym style rows: Parquet, JSONL or JSON."""
    paths: tuple[Path, ...] = ()
    """Files or folders of any of these; an http(s) URL here is taken as one of `urls`."""
    urls: tuple[str, ...] = ()
    """Parquet files behind http(s) URLs, read by byte ranges."""
    hub: tuple[str, ...] = ()
    """Datasets of the Hub: `ID[@REVISION][:[CONFIG/]SPLIT]`."""
    format: str | None = None
    """The format of everything under `paths`, `urls` and `hub`, whatever its content looks like."""
    min_age_minutes: float = Field(MIN_AGE_MINUTES, ge=0)
    """A session in a folder that was added to within so many minutes is left alone; 0 leaves none."""

    @model_validator(mode="before")
    @classmethod
    def _apart(cls, value: Any) -> Any:
        paths = value.get("paths") if isinstance(value, dict) else None
        if not isinstance(paths, list | tuple):
            return value
        local, urls = split_urls([str(path) for path in paths])
        return {**value, "paths": local, "urls": [*value.get("urls", ()), *urls]} if urls else value

    @field_validator("urls")
    @classmethod
    def _remote(cls, urls: tuple[str, ...]) -> tuple[str, ...]:
        if not all(is_remote(url) for url in urls):
            raise ValueError("http:// or https:// URLs only")
        return urls

    @field_validator("hub")
    @classmethod
    def _named(cls, hub: tuple[str, ...]) -> tuple[str, ...]:
        try:
            for text in hub:
                HubSpec.parse(text)
        except SourceError as error:
            raise ValueError(str(error)) from None
        return hub

    @field_validator("format")
    @classmethod
    def _known(cls, name: str | None) -> str | None:
        if name is not None and name not in dialects():
            raise ValueError(f"no such format; there are {', '.join(dialects())}")
        return name

    def every(self) -> list[tuple[Path, str | None]]:
        """Return each path with the format it must have, None for any."""
        given = [(p, "claude_code") for p in self.claude_code]
        given += [(p, "codex") for p in self.codex]
        given += [(p, "openhands") for p in self.openhands]
        given += [(p, "swe_gym") for p in self.swe_gym]
        return [*given, *((p, None) for p in self.paths)]

    def order(self) -> SourceOptions:
        """Return the settings as plain options."""
        return SourceOptions(tuple(self.every()), self.urls, self.hub, self.format, self.min_age_minutes)


class SampleSettings(FrozenModel):
    """Size of the sample of sessions, drawn before any step is considered."""

    max_traces: int | None = Field(None, ge=1)
    """Sessions taken at most; none given: all."""
    seed: int = 0
    """Another seed draws another sample."""
    by: tuple[StratumField, ...] = BY
    """What the sample has in the same shares as the whole."""

    def order(self) -> SampleOptions | None:
        """Return the settings as plain options; None if all sessions are taken."""
        return None if self.max_traces is None else SampleOptions(self.max_traces, self.seed, self.by)
