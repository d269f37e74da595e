"""Say what forgetting removes and leaves to do, for people and as JSON; never the text itself."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tracemill.flows.forget.find_targets import ForgetTargets
from tracemill.flows.runtime.terminal import stderr_console
from tracemill.records.printable import printable
from tracemill.records.storage.workspace import Workspace
from tracemill.teachers.ledger.ledger import Ledger


def say_plan(work: Workspace, found: ForgetTargets) -> None:
    """Print on stderr the data to be removed."""
    console = stderr_console()
    console.print(f"To be removed from {work.root} (taken as a {found.kind}):")
    console.print(
        f"  {len(found.traces):,} of {found.of:,} traces with their decisions, replies, votes and pairs"
    )
    names = ", ".join(printable(f"{path.parent.name} {path.name}") for path in found.releases)
    console.print(f"  {len(found.releases):,} releases that hold any of it: {names or 'none'}")
    if found.kind == "value":
        console.print(f"  {found.answers:,} answers in the ledger and {len(found.files):,} manifests hold it")
        console.print(f"  {found.replaced:,} of the traces hold a placeholder of it and not the text itself")
    if found.is_type:
        console.print("  The text is part of the placeholders that redaction writes.")


class ForgetRemains(NamedTuple):
    """The places where forgotten text remains: teachers, published versions, files of the ledger's database.

    `published` has the datasets of the Hub for each version, `NAME@VERSION`.
    """

    sent_to: Sequence[str]
    published: Mapping[str, Sequence[str]]
    ledger: Ledger | None


def record_of(
    found: ForgetTargets, rows: Mapping[str, int], answers: int, files: int, remains: ForgetRemains
) -> dict[str, Any]:
    """Return a record of the removed data, and of what remains to be done."""
    return {
        "kind": found.kind,
        "traces": len(found.traces),
        "replaced": found.replaced,
        "rows": dict(rows),
        "answers": answers,
        "files": files,
        "releases": [f"{path.parent.name} {path.name}" for path in found.releases],
        "remains": _remains(found, remains),
    }


def _remains(found: ForgetTargets, remains: ForgetRemains) -> list[str]:
    said = [
        "The recorded sessions: tracemill never removes them. Every further run of this workspace skips what "
        "was forgotten (forgotten.json).",
        "Copies and backups of the workspace.",
    ]
    if found.releases:
        said.append(
            "Local versions that held it are removed; `tracemill release write` makes one without it."
        )
    for version, repos in remains.published.items():
        said.append(
            f"{printable(version)} is published at {', '.join(map(printable, repos))}: "
            f"`tracemill release retract --release {printable(version)} --yes` deletes its files, tag and "
            "history there. Mirrors, caches and downloads keep their copies."
        )
    if remains.sent_to:
        said.append(f"What was sent to {', '.join(map(printable, remains.sent_to))}, under their terms.")
    if found.kind == "value":
        said.append("Later sessions that hold the text are skipped (its hash is in forgotten.json).")
    if found.kind == "project":
        said.append("Sessions of other projects that mention this one: forget its name with --as value.")
    if remains.ledger is not None and remains.ledger.backend != "sqlite":
        said.append("Deleted rows in the files of the ledger's database: run VACUUM FULL and check its log.")
    return said


def forget_output_rows(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Build the closing table as (name, figures)."""
    rows = [(f"{name} rows", f"{count:,}") for name, count in record["rows"].items()]
    return [
        ("taken as", record["kind"]),
        ("traces removed", f"{record['traces']:,}"),
        *rows,
        ("answers deleted", f"{record['answers']:,}; their cost stays in the ledger"),
        ("manifests rewritten", f"{record['files']:,}"),
        ("releases removed", ", ".join(record["releases"]) or "none"),
        ("remains", "\n".join(f"- {line}" for line in record["remains"])),
    ]
