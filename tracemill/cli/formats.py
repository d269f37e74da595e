"""`tracemill formats` on the command line."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from tracemill.ingesters.census import Census

formats_app = typer.Typer(help="Look at the formats of session files; changes nothing.", no_args_is_help=True)
Json = Annotated[bool, typer.Option("--json", help="One JSON object on stdout instead of the list.")]
SessionPaths = Annotated[list[Path], typer.Argument(help="Files or folders of sessions.")]


@formats_app.callback()
def formats() -> None:
    """Look at the formats of session files; changes nothing."""


@formats_app.command()
def census(paths: SessionPaths, json: Json = False) -> None:
    """Which kinds of records and which keys files hold, by format and version, and which no reader knows."""
    from tracemill.ingesters.census import take_census

    found = take_census(paths)
    if json:
        import orjson

        typer.echo(orjson.dumps(found.to_json(), option=orjson.OPT_INDENT_2).decode())
        return
    for line in _lines(found):
        typer.echo(line)


def _lines(census: "Census") -> list[str]:
    lines: list[str] = []
    for (name, version), found in sorted(census.found.items()):
        lines.append(
            f"{name} {version}  {found.files:,} files, {found.records:,} records, {len(found.kinds):,} kinds"
        )
        for what, counts in (("unknown kinds", found.unknown_kinds), ("unknown keys ", found.unknown_keys)):
            lines += [f"  {what}  {count:,}  {each}" for each, count in counts.most_common()]
    lines += [f"not read  {count:,}  {reason}" for reason, count in census.unread.most_common()]
    return lines or ["no sessions found"]
