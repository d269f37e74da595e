"""Run `tracemill privacy`: scan anything as the publish gate does, and show what redaction would change."""

import json
import os
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tracemill.flows.admission.redaction_setup import make_redactor
from tracemill.privacy.core.placeholder_keys import workspace_key
from tracemill.privacy.publish_gate.accepted_findings import read_accepted
from tracemill.privacy.publish_gate.documents import SkippedFiles
from tracemill.privacy.publish_gate.file_texts import walk_text_files
from tracemill.privacy.publish_gate.findings import FINGERPRINT, Finding, summarize_findings
from tracemill.privacy.publish_gate.gate import release_gate_opinions
from tracemill.privacy.publish_gate.kingfisher import ABSENT
from tracemill.privacy.publish_gate.preview_changes import (
    FileChanges,
    preview_changes,
    preview_changes_with_values,
)
from tracemill.privacy.publish_gate.scan_paths import Scanner, ScanResult
from tracemill.privacy.redaction.redactor import RULES_VERSION
from tracemill.records.errors import ConfigError
from tracemill.records.printable import printable, printable_count
from tracemill.records.storage.workspace import Workspace
from tracemill.records.storage.workspace_marker import MARKER, is_redacted

if TYPE_CHECKING:
    from tracemill.flows.admission.privacy_settings import PrivacySettings

_SHOWN = 200  # findings in the list; --json has them all
_NAMED = 5  # files that were not read, of each reason; --json has them all
_NOT_READ = 3
_LONG = 2_000  # characters of a line
_ACCEPTED = "accepted.json"


def scan_path(
    path: Path, workspace: Path | None, accept: list[str], as_json: bool, config: Path | None = None
) -> int:
    """Scan a path; return the exit code of `tracemill privacy scan`.

    The code is 1 if there are findings that are not accepted, 3 if there are none and some files could not
    be read, else 0. The lists of `config` apply as in the publish gate.

    Raises SourceError if the path does not exist or is not a file, folder or pipe, ConfigError for an
    invalid fingerprint, PrivacyError if kingfisher fails.
    """
    if not all(FINGERPRINT.fullmatch(each) for each in accept):
        raise ConfigError("--allow-finding is no fingerprint", "12 hex digits, as scan prints them")
    work = _workspace_of(path, workspace)
    key = workspace_key(work.root / "redaction.key" if work else _own_key())
    verdict = Scanner(make_redactor(None, _lists_of(config)).known, key, os.environ).scan(path)
    accepted = {*accept, *(read_accepted(work.root / _ACCEPTED) if work else ())}
    found = [each for each in verdict.findings if each.fingerprint not in accepted]
    _print_scan(verdict, found, as_json)
    return 1 if found else _NOT_READ if verdict.not_read else 0


def _print_scan(verdict: ScanResult, found: list[Finding], as_json: bool) -> None:
    who = release_gate_opinions(verdict, RULES_VERSION)
    accepted = len(verdict.findings) - len(found)
    if as_json:
        record: dict[str, Any] = {
            **{name: getattr(verdict, name) for name in ("files", "texts", "characters")},
            "passed_over": verdict.passed_over,
            "not_read": verdict.not_read,
            "opinions": who,
            "second_opinion": verdict.second is not None,
            "accepted": accepted,
            "findings": [each.to_json() for each in found],
        }
        _write(json.dumps(record))
        return
    for each in found[:_SHOWN]:
        _write(printable(each.text(), _LONG))
    if len(found) > _SHOWN:
        _write(f"and {len(found) - _SHOWN:,} more; --json lists them all")
    nothing = "nothing found in what was read" if verdict.not_read else "nothing found"
    said = summarize_findings(found) if found else nothing
    rest = f", {accepted:,} allowed" if accepted else ""
    read = f"{printable_count(verdict.files, 'file')} with {printable_count(verdict.texts, 'text')} scanned"
    _write(f"{said}{rest}: {read} ({', '.join(who)})")
    _say_skipped(verdict.passed_over, verdict.not_read)
    if verdict.second is None:
        typer.echo(ABSENT, err=True)


def run_privacy_scan_diff(
    path: Path,
    workspace: Path | None,
    show_values: bool,
    excerpts: int,
    as_json: bool,
    config: Path | None = None,
) -> None:
    """Show the changes that redaction, with the lists of `config`, would make; nothing is written.

    Raises ConfigError if values are asked for and stdout is no terminal, SourceError if the path cannot be
    read.
    """
    if show_values and (as_json or not sys.stdout.isatty()):
        raise ConfigError("--show-values and no terminal", "values on a terminal alone", "leave it out")
    work = _workspace_of(path, workspace)
    redactor = make_redactor(work, _lists_of(config))
    key = workspace_key(work.root / "redaction.key") if work else b""
    changes = preview_changes_with_values if show_values else preview_changes
    skipped = SkippedFiles()
    base = path if path.is_dir() else path.parent
    made: list[FileChanges] = []
    files = 0
    for file in walk_text_files(path, skipped):
        files += 1
        found = changes(file, str(file.relative_to(base)), redactor.known, key, skipped)
        if found.counts:
            made.append(found)
            if not as_json:
                _print_changes(found, excerpts)
    if as_json:
        listed = [each.to_json(excerpts) for each in made]
        left = {"passed_over": dict(skipped.passed_over), "not_read": skipped.not_read}
        _write(json.dumps({"files": files, "changed": listed, **left}))
        return
    total = sum((each.counts for each in made), Counter[str]())
    what = f": {_counted(total)}" if total else ""
    _write(f"{len(made):,} of {printable_count(files, 'file')} would change{what}")
    _say_skipped(skipped.passed_over, skipped.not_read)


def _print_changes(found: FileChanges, excerpts: int) -> None:
    file = printable(found.file, _LONG)
    _write(f"--- {file}\n+++ {file} redacted: {_counted(found.counts)}")
    for each in found.excerpts[:excerpts]:
        before, after = printable(each.before, _LONG), printable(each.after, _LONG)
        _write(f"@@ {printable(each.where)} @@\n-{before}\n+{after}")
    if len(found.excerpts) > excerpts:
        _write(f"@@ and {len(found.excerpts) - excerpts:,} more lines @@")


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{count:,} {kind}" for kind, count in counts.most_common())


def _say_skipped(passed_over: dict[str, int], not_read: dict[str, list[str]]) -> None:
    for reason, count in passed_over.items():
        typer.echo(f"skipped: {count:,} {reason}", err=True)
    for reason, files in not_read.items():
        more = f" and {len(files) - _NAMED:,} more" if len(files) > _NAMED else ""
        names = "".join(c if c.isprintable() else "?" for c in ", ".join(files[:_NAMED]))
        typer.echo(f"not read: {len(files):,} {reason}: {names}{more}", err=True)


def _workspace_of(path: Path, given: Path | None) -> Workspace | None:
    """Return the given workspace, or the one that contains the path."""
    if given is not None:
        return Workspace.open(given, create=False, writes=False)
    place = path.absolute()
    for folder in (place, *place.parents):
        if (marker := folder / MARKER).is_file():
            return Workspace.open(folder, create=False, writes=False) if is_redacted(marker) else None
    return None


def _lists_of(config: Path | None) -> "PrivacySettings | None":
    """Return the `[privacy]` table of a run configuration.

    Raises ConfigError if it is invalid.
    """
    if config is None:
        return None
    from tracemill.flows.config.run_settings import load_settings

    return load_settings(config, {}).privacy


def _own_key() -> Path:
    """Return the path of the user's key for fingerprints outside of workspaces."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "tracemill" / "scan.key"


def _write(line: str) -> None:
    sys.stdout.write(line.encode("utf-8", "replace").decode() + "\n")
