"""Write a release, whole or not at all: `<releases>/<name>/<version>/`."""

import fcntl
import os
import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain, islice
from pathlib import Path

from tracemill.data_cards.card.check_card import check_card
from tracemill.data_cards.card.render_card import render_card
from tracemill.data_cards.model.compare_versions import compare_labels, compare_pairs
from tracemill.data_cards.model.manifest import (
    MANIFEST,
    ChangeEntry,
    GateEntry,
    Manifest,
    read_manifest,
    restore_files,
)
from tracemill.data_cards.model.release_spec import OperatorDrops, ReleaseSpec
from tracemill.data_cards.model.versions import next_version, parse_version_key, versions_in_folder
from tracemill.data_cards.report.write_report import write_report
from tracemill.data_cards.writing.manifest_summary import build_manifest
from tracemill.data_cards.writing.split_writer import SplitOf, put_all_in_train
from tracemill.data_cards.writing.tables import Shorten, StepRow, WrittenTables, write_tables
from tracemill.records.errors import PrivacyError, ReleaseError
from tracemill.records.pair import DroppedPair, NormalizedDPOPair, StepVotes
from tracemill.records.views import ActionLabel

Gate = Callable[[Path], GateEntry]


@dataclass(frozen=True, slots=True)
class Release:
    """A finished release; `created` is False if the same content existed already."""

    path: Path
    version: str
    rows: int
    created: bool
    content_fingerprint: str


@dataclass(frozen=True, slots=True)
class NoRelease:
    """The reason why no release was written: no pair and no label is left."""

    reason: str


def write_release(
    spec: ReleaseSpec,
    kept: Iterable[NormalizedDPOPair],
    dropped: Iterable[DroppedPair],
    releases_dir: Path,
    other_votes: Iterable[StepVotes] = (),
    gate: Gate | None = None,
    steps: Iterable[StepRow] = (),
    split_of: SplitOf = put_all_in_train,
    finished: Callable[[ReleaseSpec], ReleaseSpec] = lambda spec: spec,
    short: Mapping[int, Shorten] | None = None,
) -> Release | NoRelease:
    """Write a new version below `releases_dir / spec.name`, or return the latest one if it has this content.

    Tables, card and manifest are written to a temporary folder, which is renamed under a lock, so that
    readers see a whole release or none. Content equal to that of the latest version, in any order, returns
    that version unless `spec` names a later one; its missing or changed files are restored. Without a pair or
    a label nothing is written.

    - `steps`: labelled actions, and rows of the views `prm` and `soft`.
    - `split_of`: returns the split of a trace id. `short`: cuts rows for short contexts, by tokens.
    - `finished`: completes `spec` after all of `kept` and `steps` were read.
    - `gate`: scans the folder before it is renamed, or the existing version; it raises to refuse the release.

    Raises PrivacyError if `spec` states no redaction. Raises ReleaseError if the version is malformed, older
    than the latest or taken by other content, and if the folder cannot be written.
    """
    if not spec.redaction.strip():
        raise PrivacyError("no redaction is stated for these rows", "the version of the redaction rules")
    if spec.version is not None:
        parse_version_key(spec.version)
    rows, later_steps = iter(kept), iter(steps)
    first_row = list(islice(rows, 1))
    first_steps = [] if first_row else _read_to_first_label(later_steps)
    if not first_row and not any(isinstance(step, ActionLabel) for step in first_steps):
        return NoRelease(_why_empty(finished(spec), dropped))
    with _temporary(releases_dir / spec.name) as folder:
        written = write_tables(
            folder,
            chain(first_row, rows),
            dropped,
            other_votes,
            chain(first_steps, later_steps),
            spec.views,
            split_of,
            spec.file_bytes,
            short,
        )
        return _finish(finished(spec), folder, written, gate)


def _read_to_first_label(steps: Iterator[StepRow]) -> list[StepRow]:
    """Read steps up to the first label, or all if there is none."""
    read: list[StepRow] = []
    for step in steps:
        read.append(step)
        if isinstance(step, ActionLabel):
            break
    return read


def _finish(spec: ReleaseSpec, folder: Path, written: WrittenTables, gate: Gate | None) -> Release:
    created = (spec.created or datetime.now(UTC)).astimezone(UTC)
    versions = versions_in_folder(folder.parent)
    latest = versions[-1] if versions else None
    rows = written.tallies.rows
    changes: tuple[ChangeEntry, ...] = ()
    since = labels_since = None
    if latest:
        last = folder.parent / latest
        manifest = read_manifest(last)
        if manifest.content_fingerprint == written.fingerprint and not _supersedes(spec, latest):
            restore_files(last, manifest, folder)
            _restore_card(last, spec, manifest, written)
            if gate is not None:
                gate(last)
            return Release(last, latest, rows, False, written.fingerprint)
        changes = manifest.changes
        since = compare_pairs(last, folder, whole=False)
        labels_since = compare_labels(last, folder, whole=False)
    version = spec.version or next_version(latest, created, spec.major)
    _check_free(folder.parent, version, versions)
    manifest = build_manifest(spec, version, created, written, changes, since, labels_since)
    _describe(spec, folder, manifest, written)
    write_report(folder, manifest, spec.run)
    if gate is not None:
        judged = gate(folder)
        _describe(spec, folder, manifest.model_copy(update={"gate": judged}), written)
    _sync(folder)
    target = folder.rename(folder.parent / version)
    return Release(target, version, rows, True, written.fingerprint)


def _supersedes(spec: ReleaseSpec, latest: str) -> bool:
    """Return whether `spec` names a later version than the latest one.

    It does after a version was removed: users of the removed version must get a later one, even if its rows
    are the same as before.
    """
    return spec.version is not None and parse_version_key(spec.version) > parse_version_key(latest)


def _describe(spec: ReleaseSpec, folder: Path, manifest: Manifest, written: WrittenTables) -> None:
    card = render_card(spec, manifest, written.tallies)
    (folder / "README.md").write_text(card, encoding="utf-8")
    (folder / MANIFEST).write_text(manifest.model_dump_json(indent=2) + "\n", encoding="utf-8")


def _restore_card(folder: Path, spec: ReleaseSpec, manifest: Manifest, written: WrittenTables) -> None:
    """Write the card again if it is missing or lacks a field or section."""
    try:
        check_card(folder, manifest)
    except ReleaseError:
        card = folder / "README.md"
        fresh = card.with_suffix(".tmp")
        fresh.write_text(render_card(spec, manifest, written.tallies), encoding="utf-8")
        fresh.replace(card)


def _check_free(folder: Path, version: str, versions: list[str]) -> None:
    if version in versions:
        raise ReleaseError(
            f"{folder / version} exists with other content",
            "a version that does not exist",
            "leave the version out",
        )
    if versions and parse_version_key(version) < parse_version_key(versions[-1]):
        raise ReleaseError(
            f"version {version} is older than {versions[-1]}", "a later one", "leave the version out"
        )


@contextmanager
def _temporary(folder: Path) -> Iterator[Path]:
    """Create a temporary folder, removed at the end unless it was renamed; one writer at a time."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            for abandoned in folder.glob(".*.tmp"):  # of killed writers, as the lock was free
                shutil.rmtree(abandoned)
            temporary = folder / f".{uuid.uuid4().hex[:12]}.tmp"
            temporary.mkdir()
            try:
                yield temporary
            finally:
                shutil.rmtree(temporary, ignore_errors=True)
    except OSError as error:
        raise ReleaseError(
            f"{folder} cannot be written ({error.strerror or error})",
            "a folder with write permission and room",
        ) from error


def _sync(folder: Path) -> None:
    for path in [*folder.rglob("*"), folder]:
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


_NOT_OF_THE_RECIPE = {
    "max_tokens": "raise `release.max_tokens`",
    "wording": "change `pairs.wording`",
    "split": "`--rebuild` gives every row its split anew",
}


def _why_empty(spec: ReleaseSpec, dropped: Iterable[DroppedPair]) -> str:
    reports = [report for report in spec.losses if report.dropped]
    if reports:
        last, most = reports[-1], max(reports, key=lambda report: report.dropped)
        reason = f"no pair was left: {last.operator} dropped the last {last.dropped} of {reports[0].rows_in}"
        if most.dropped > last.dropped:
            reason += f", {most.operator} dropped {most.dropped}"
        return f"{reason}; {_what_to_change(most, spec.recipe)}"
    operators = [pair.operator for pair in dropped]
    if operators:
        return f"no pair was left of {len(operators)}: dropped by {', '.join(sorted(set(operators)))}"
    return "no pair was found"


def _what_to_change(report: OperatorDrops, recipe: str) -> str:
    """Return which setting lets an operator drop fewer rows."""
    name = report.operator.partition("(")[0]
    if name in _NOT_OF_THE_RECIPE or name.endswith("_cap"):
        return _NOT_OF_THE_RECIPE.get(name, "raise the caps of `[pairs]`")
    reasons = f" ({report.examples[0].reason})" if report.examples else ""
    return f"change its bounds{reasons} or leave it out, in the recipe {recipe} (`normalize.recipe`)"
