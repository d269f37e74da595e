"""`tracemill formats` on the command line."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tracemill.cli.options import Json
from tracemill.records.printable import printable, printable_count

if TYPE_CHECKING:
    from tracemill.ingesters.census import Census, NotRead
    from tracemill.ingesters.format import SessionFormat

_NAMED = 3
"""Number of files named per reason."""
formats_app = typer.Typer(help="Inspect the formats of session files.", no_args_is_help=True)
SessionPaths = Annotated[list[Path], typer.Argument(help="Session files or folders.")]


@formats_app.command("list")
def list_formats(json: Json = False) -> None:
    """List the supported formats, how files are recognised and which parts of the prompt are recorded."""
    from tracemill.ingesters.registry import FORMATS

    if json:
        import orjson

        told = [_facts(form) for form in FORMATS]
        typer.echo(orjson.dumps(told, option=orjson.OPT_INDENT_2).decode())
        return
    for form in FORMATS:
        for name, value in _facts(form).items():
            shown = ", ".join(value) if isinstance(value, list) else value
            if name == "format":
                typer.echo(shown)
            elif shown:
                typer.echo(f"  {name:<13}  {shown}")


def _facts(form: "SessionFormat") -> dict[str, str | list[str]]:
    """Return the information of a format; one from a package may give only its dialects."""
    told: dict[str, str | list[str]] = {"format": form.name, "dialects": list(form.dialects)}
    if (facts := form.facts) is not None:
        told |= {"written by": facts.of, "recognised by": facts.recognised}
        told |= {"of the prompt": facts.prompt, "page": facts.page}
    return told


@formats_app.command()
def census(paths: SessionPaths, json: Json = False) -> None:
    """Count record kinds and keys by format; name unknown ones."""
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
        held = ((found.files, "file"), (found.records, "record"), (len(found.kinds), "kind"))
        lines.append(f"{name} {version}  {', '.join(printable_count(*each) for each in held)}")
        for what, counts in (("unknown kinds", found.unknown_kinds), ("unknown keys ", found.unknown_keys)):
            lines += [f"  {what}  {count:,}  {each}" for each, count in counts.most_common()]
    for reason, count in census.unread.most_common():
        paths = [_named(each) for each in census.not_read if each.reason == reason]
        more = [f"and {len(paths) - _NAMED:,} more: --json names them"] if len(paths) > _NAMED else []
        lines += [f"not read  {count:,}  {reason}", *(f"  {path}" for path in (*paths[:_NAMED], *more))]
    return lines or ["no sessions found"]


def _named(unread: "NotRead") -> str:
    path = printable(unread.path)
    return f"{path}: {unread.looks_like}" if unread.looks_like else path
