"""What forgetting removes and leaves to do, as a person reads it and as JSON; never the text itself."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console

from tracemill.flows.forget.find_targets import Found
from tracemill.records.printable import printable
from tracemill.records.storage.workspace import Workspace
from tracemill.teachers.ledger.ledger import Ledger


def say_plan(work: Workspace, found: Found) -> None:
    """Print on stderr what would be removed."""
    console = Console(stderr=True, highlight=False, soft_wrap=True, markup=False, emoji=False)
    console.print(f"To be removed from {work.root} (taken as a {found.kind}):")
    console.print(
        f"  {len(found.traces):,} of {found.of:,} traces with their decisions, replies, votes and pairs"
    )
    console.print(f"  {len(found.releases):,} releases that hold any of it: {_names(found) or 'none'}")
    if found.kind == "value":
        console.print(f"  {found.answers:,} answers in the ledger and {len(found.files):,} manifests hold it")
        console.print(f"  {found.replaced:,} of the traces hold a placeholder of it and not the text itself")
    if found.is_type:
        console.print("  The text is part of what redaction writes in place of others.")


def _names(found: Found) -> str:
    return ", ".join(printable(f"{path.parent.name} {path.name}") for path in found.releases)


def record_of(
    found: Found,
    rows: Mapping[str, int],
    answers: int,
    files: int,
    sent_to: Sequence[str],
    ledger: Ledger | None,
) -> dict[str, Any]:
    """What was removed from where, and what remains to be done."""
    return {
        "kind": found.kind,
        "traces": len(found.traces),
        "replaced": found.replaced,
        "rows": dict(rows),
        "answers": answers,
        "files": files,
        "releases": [f"{path.parent.name} {path.name}" for path in found.releases],
        "remains": [*_remains(found, sent_to, ledger)],
    }


def _remains(found: Found, sent_to: Sequence[str], ledger: Ledger | None) -> list[str]:
    said = [
        "The recorded sessions lie where they lay; tracemill reads them and never removes them. Those that "
        "were forgotten are left out of every further run of this workspace (forgotten.json).",
        "Copies and backups of the workspace.",
    ]
    if found.releases:
        said += [
            "Local versions that held it are removed; `tracemill release` writes the next one without it.",
            f"Where one of them was published ({_names(found)}): `tracemill retract NAME@VERSION --yes` "
            "deletes the version's files and its tag from the Hub and squashes the history of main; mirrors, "
            "caches and everybody who downloaded it keep their copies.",
        ]
    if sent_to:
        said.append(
            f"What was sent is with its receivers, under their terms: {', '.join(map(printable, sent_to))}."
        )
    if found.kind == "value":
        said.append("Sessions yet to come that hold the text are left out (its hash is in forgotten.json).")
    if found.kind == "project":
        said.append("Sessions of other projects that mention this one stay; forget its name with --as value.")
    if ledger is not None and ledger.backend != "sqlite":
        said.append("The ledger's rows are deleted; run VACUUM FULL on its database and see to its log.")
    return said


def forget_output_rows(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The closing table as (what, figures)."""
    rows = [(f"{name} rows", f"{count:,}") for name, count in record["rows"].items()]
    return [
        ("taken as", record["kind"]),
        ("traces removed", f"{record['traces']:,}"),
        *rows,
        ("answers deleted", f"{record['answers']:,}; what they cost stays on the books"),
        ("manifests rewritten", f"{record['files']:,}"),
        ("releases removed", ", ".join(record["releases"]) or "none"),
        ("remains to be done", "\n".join(f"- {line}" for line in record["remains"])),
    ]
