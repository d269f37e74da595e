"""Options as the nested configuration values they override; options not given are left out."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tracemill.records.errors import ConfigError


def agent_overrides(**by_agent: Sequence[str] | None) -> dict[str, list[str]]:
    """Return the keys of `[sources]` for options named after agents; options not given are left out.

    Raises ConfigError for an empty value, which an unset shell variable gives.
    """
    for name, values in by_agent.items():
        if values and not all(values):
            raise ConfigError(f"a --{name.replace('_', '-')} is empty", "a file or folder of sessions")
    return {name: list(values) for name, values in by_agent.items() if values}


def source_overrides(
    paths: Sequence[str] | None, hub: Sequence[str] | None, form: str | None, min_age: float | None
) -> dict[str, Any]:
    """Return the keys of `[sources]`. Raises ConfigError for an empty value (an unset shell variable)."""
    if paths and "" in paths:
        raise ConfigError("a --path is empty", "a file, a folder or a URL")
    if hub and "" in hub:
        raise ConfigError("a --hub is empty", "a dataset, OWNER/NAME")
    if form == "":
        raise ConfigError("--format is empty", "the name of a format", "see `tracemill formats list`")
    return given_options(paths=paths, hub=hub, format=form, min_age_minutes=min_age)


def sample_overrides(size: int | None, seed: int | None) -> dict[str, Any]:
    """Return the table `[sample]`; empty where neither is given."""
    return given_options(sample=given_options(max_traces=size, seed=seed))


def select_overrides(
    project: Sequence[str] | None, deny_project: Sequence[str] | None, since: str | None, until: str | None
) -> dict[str, Any]:
    """Return the table `[select]`; empty if nothing is given."""
    chosen = given_options(
        projects=project, deny_projects=deny_project, since=since or None, until=until or None
    )
    return given_options(select=chosen)


def run_overrides(
    workspace: Path | None = None,
    preset: str | None = None,
    max_usd: float | None = None,
    name: str | None = None,
    concurrency: int | None = None,
    reredact: bool = False,
    accept_terms: bool = False,
    gate_share: float | None = None,
) -> dict[str, Any]:
    """Return the overrides from the options of a run."""
    return given_options(
        workspace=workspace and str(workspace),
        preset=preset,
        budget=given_options(max_total_usd=max_usd),
        release=given_options(name=name),
        replay=given_options(concurrency=concurrency, reredact=reredact),
        gate=given_options(share=gate_share),
        accept_terms=accept_terms,
    )


def release_overrides(
    over: dict[str, Any],
    allow_finding: list[str] | None,
    rebuild: bool = False,
    redact_findings: bool = False,
) -> dict[str, Any]:
    """Return `over` with the treatment of findings, and the request to rebuild splits, in `[release]`."""
    given = given_options(allow_findings=allow_finding, rebuild=rebuild, redact_findings=redact_findings)
    return over | given_options(release=over.get("release", {}) | given)


def given_options(**options: Any) -> dict[str, Any]:
    """Return the options but those without a value: None, an unset flag, an empty list or table."""
    return {
        key: value for key, value in options.items() if value is not False and value not in (None, [], {})
    }
