"""Options that several commands share, above all those that say what is read and taken in."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

Out = Annotated[Path, typer.Option("--out", "-o", help="Workspace to write the traces to.")]
Recorded = Annotated[
    list[str] | None, typer.Argument(help="Files or folders of any known format, URLs of Parquet files.")
]
Jobs = Annotated[
    int | None, typer.Option("--jobs", "-j", min=1, help="Processes; else by size, up to the cores.")
]
Paths = Annotated[
    list[str] | None, typer.Option("--path", help="File, folder or https URL of a Parquet file; repeatable.")
]
Hub = Annotated[
    list[str] | None,
    typer.Option(help="Dataset of the Hub, OWNER/NAME[@REVISION][:[CONFIG/]SPLIT]; repeatable."),
]
Format = Annotated[
    str | None,
    typer.Option("--format", help="Read paths and datasets as this format, whatever is found."),
]
Idle = Annotated[
    float | None,
    typer.Option(min=0, help="Leave sessions in folders alone that were added to within so many minutes."),
]
Sample = Annotated[
    int | None, typer.Option(min=1, help="Take at most so many sessions, a stratified sample.")
]
Seed = Annotated[int | None, typer.Option(help="Seed of the sample.")]
Project = Annotated[list[str] | None, typer.Option(help="Only projects of this name or folder (glob).")]
DenyProject = Annotated[list[str] | None, typer.Option(help="Never projects of this name or folder (glob).")]
Since = Annotated[str | None, typer.Option(help="First day of sessions, YYYY-MM-DD (UTC).")]
Until = Annotated[str | None, typer.Option(help="Last day of sessions, YYYY-MM-DD (UTC).")]
PrivacyOf = Annotated[
    Path | None, typer.Option("--privacy", help="A run configuration whose [privacy] lists and files hold.")
]
Unredacted = Annotated[
    bool, typer.Option("--unredacted", help="Text as recorded, in a folder that nothing is sent from.")
]
ForgottenIn = Annotated[
    list[Path] | None,
    typer.Option(
        "--forgotten", help="With --unredacted: leave out what was forgotten in this workspace; repeatable."
    ),
]


def source_options_table(
    paths: Sequence[str] | None, hub: Sequence[str] | None, form: str | None, idle: float | None
) -> dict[str, Any]:
    """The flags as keys of `[sources]`; flags not given are left out."""
    given = {"paths": paths, "hub": hub, "format": form, "idle_minutes": idle}
    return {key: value for key, value in given.items() if value is not None and value != []}


def sample_asked(size: int | None, seed: int | None) -> dict[str, Any]:
    """The flags as the table `[sample]`; empty where none is given."""
    given = {"max_traces": size, "seed": seed}
    chosen = {key: value for key, value in given.items() if value is not None}
    return {"sample": chosen} if chosen else {}


def select_asked(
    project: Sequence[str] | None, deny_project: Sequence[str] | None, since: str | None, until: str | None
) -> dict[str, Any]:
    """The flags that choose sessions as the table `[select]`; flags not given are left out."""
    given = {"projects": project, "deny_projects": deny_project, "since": since, "until": until}
    chosen = {key: value for key, value in given.items() if value}
    return {"select": chosen} if chosen else {}


def source_options_overrides(
    workspace: Path | None = None,
    preset: str | None = None,
    max_usd: float | None = None,
    name: str | None = None,
    concurrency: int | None = None,
    ask_again: bool | None = None,
) -> dict[str, Any]:
    """Flags as the nested values they stand for; flags not given are left out."""
    over: dict[str, Any] = {}
    if workspace is not None:
        over["workspace"] = str(workspace)
    if preset is not None:
        over["preset"] = preset
    if max_usd is not None:
        over["budget"] = {"max_total_usd": max_usd}
    if name is not None:
        over["release"] = {"name": name}
    if concurrency is not None:
        over["replay"] = {"concurrency": concurrency}
    if ask_again:
        over.setdefault("replay", {})["ask_again"] = True
    return over


def accepted_options(over: dict[str, Any], accept: list[str] | None, rebuild: bool = False) -> dict[str, Any]:
    """The nested values with the fingerprints to accept and the word to rebuild, where they are given."""
    release: dict[str, Any] = {"accept": accept} if accept else {}
    if rebuild:
        release["rebuild"] = True
    return {**over, "release": {**over.get("release", {}), **release}} if release else over
