"""The commands about a finished release: its report, and its audit."""

from pathlib import Path
from typing import Annotated

import typer

from tracemill.cli.options import Json, Release, WorkspaceOption


def report(release: Release = None, workspace: WorkspaceOption = None, json: Json = False) -> None:
    """Write the report of a release again: one offline page beside it, and its figures as JSON."""
    from tracemill.flows.release.rewrite_report import write_report_again

    write_report_again(release, workspace, json)


def audit(
    release: Release = None,
    workspace: WorkspaceOption = None,
    answers: Annotated[
        Path | None, typer.Option(help="File of the letters a, r, u, q in place of the keyboard; - is stdin.")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of the sample; else by chance.")] = None,
    json: Json = False,
) -> None:
    """Judge 50 random pairs of a release, one key each: the precision goes on its card and report.

    What is judged is kept after every key; the same command goes on.
    """
    from tracemill.flows.release.audit_run import run_audit

    run_audit(release, workspace, answers, seed, json)
