"""A release, written whole or not at all: `<releases>/<name>/<version>/`."""

import fcntl
import os
import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

from tracemill.data_cards.card.check_card import check_card
from tracemill.data_cards.card.render_card import render_card
from tracemill.data_cards.model.compare_versions import compare_labels, compare_pairs
from tracemill.data_cards.model.manifest import MANIFEST, GateEntry, Manifest, read_manifest, restore_files
from tracemill.data_cards.model.release_spec import Loss, ReleaseSpec
from tracemill.data_cards.model.versions import next_version, parse_version_key, versions_in_folder
from tracemill.data_cards.report.write_report import write_report
from tracemill.data_cards.writing.manifest_summary import build_manifest
from tracemill.data_cards.writing.split_writer import SplitOf, put_all_in_train
from tracemill.data_cards.writing.tables import Shorten, StepRow, Written, write_tables
from tracemill.records.errors import PrivacyError, ReleaseError
from tracemill.records.pair import DroppedPair, NormalizedDPOPair, StepVotes
from tracemill.records.views import ActionLabel

Gate = Callable[[Path], GateEntry]


@dataclass(frozen=True, slots=True)
class Release:
    """A finished release; `created` is False where the same content was there already."""

    path: Path
    version: str
    rows: int
    created: bool
    content_fingerprint: str


@dataclass(frozen=True, slots=True)
class NoRelease:
    """Why there is no release: no pair and no label was left, and which operator took the last ones."""

    reason: str


def _as_it_is(spec: ReleaseSpec) -> ReleaseSpec:
    return spec


def write_release(
    spec: ReleaseSpec,
    kept: Iterable[NormalizedDPOPair],
    dropped: Iterable[DroppedPair],
    releases_dir: Path,
    other_votes: Iterable[StepVotes] = (),
    gate: Gate | None = None,
    steps: Iterable[StepRow] = (),
    split_of: SplitOf = put_all_in_train,
    finished: Callable[[ReleaseSpec], ReleaseSpec] = _as_it_is,
    short: Mapping[int, Shorten] | None = None,
) -> Release | NoRelease:
    """Writes the pairs as a new version below `releases_dir / spec.name`, or finds that they are there.

    The tables, the card and the manifest are written to a temporary folder beside the version and renamed to
    it, under a lock, so that a reader sees a whole release or none. Content equal to the latest version's, in
    whatever order, gives that version back unless `spec` names a later one, with tables and a card that it
    lacks or that were changed put back. Without a pair or a label nothing is written. `steps` are labelled
    actions, and what the views `prm` and `soft` hold. `split_of` says the split of a trace by its id. `short`
    makes the configs of short contexts, by tokens. `finished` puts into `spec` what is known once all of
    `kept` and `steps` were read.

    `gate` judges the folder before it is put in its place, or the version that is there already; what it
    raises refuses the release.

    Raises PrivacyError where no redaction is stated, ReleaseError where the version is taken by other
    content, older than the latest or misspelt, and where the folder cannot be written.
    """
    if not spec.redaction.strip():
        raise PrivacyError("no redaction is stated for these rows", "the version of the redaction rules")
    if spec.version is not None:
        parse_version_key(spec.version)
    rows, further = iter(kept), iter(steps)
    first = [row for row in (next(rows, None),) if row is not None]
    ahead = [] if first else _up_to_a_label(further)
    if not first and not any(isinstance(step, ActionLabel) for step in ahead):
        return NoRelease(_why_empty(finished(spec), dropped))
    with _temporary(releases_dir / spec.name) as folder:
        written = write_tables(
            folder,
            chain(first, rows),
            dropped,
            other_votes,
            chain(ahead, further),
            spec.views,
            split_of,
            spec.file_bytes,
            short,
        )
        return _finish(finished(spec), folder, written, gate)


def _up_to_a_label(steps: Iterator[StepRow]) -> list[StepRow]:
    """What is read up to the first label, all where there is none."""
    met: list[StepRow] = []
    for step in steps:
        met.append(step)
        if isinstance(step, ActionLabel):
            break
    return met


def _finish(spec: ReleaseSpec, folder: Path, written: Written, gate: Gate | None) -> Release:
    created = (spec.created or datetime.now(UTC)).astimezone(UTC)
    versions = versions_in_folder(folder.parent)
    latest = versions[-1] if versions else None
    rows = written.tallies.rows
    found = read_manifest(folder.parent / latest) if latest else None
    if (
        latest
        and found
        and found.content_fingerprint == written.fingerprint
        and not _supersedes(spec, latest)
    ):
        restore_files(folder.parent / latest, found, folder)
        _restore_card(folder.parent / latest, spec, found, written)
        if gate is not None:
            gate(folder.parent / latest)
        return Release(folder.parent / latest, latest, rows, False, written.fingerprint)
    version = spec.version or next_version(latest, created, spec.major)
    _check_free(folder.parent, version, versions)
    last = folder.parent / latest if latest else None
    earlier = found.changes if found else ()
    since = labels_since = None
    if last:
        since = compare_pairs(last, folder, whole=False)
        labels_since = compare_labels(last, folder, whole=False)
    manifest = build_manifest(spec, version, created, written, earlier, since, labels_since)
    _describe(spec, folder, manifest, written)
    write_report(folder, manifest, spec.run)
    if gate is not None:
        judged = gate(folder)
        _describe(spec, folder, manifest.model_copy(update={"gate": judged}), written)
    _sync(folder)
    target = folder.rename(folder.parent / version)
    return Release(target, version, rows, True, written.fingerprint)


def _supersedes(spec: ReleaseSpec, latest: str) -> bool:
    """Whether a later version is asked for by its number, as where one after the latest was removed: who
    has that one is to find a later one in its place, also of rows that were there before it."""
    return spec.version is not None and parse_version_key(spec.version) > parse_version_key(latest)


def _describe(spec: ReleaseSpec, folder: Path, manifest: Manifest, written: Written) -> None:
    card = render_card(spec, manifest, written.tallies)
    (folder / "README.md").write_text(card, encoding="utf-8")
    (folder / MANIFEST).write_text(manifest.model_dump_json(indent=2) + "\n", encoding="utf-8")


def _restore_card(folder: Path, spec: ReleaseSpec, manifest: Manifest, written: Written) -> None:
    """Writes the card again where it is missing or lacks what the Hub or a reader needs."""
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
            "a version that is not there",
            "leave the version out",
        )
    if versions and parse_version_key(version) < parse_version_key(versions[-1]):
        raise ReleaseError(
            f"version {version} is older than {versions[-1]}", "a later one", "leave the version out"
        )


@contextmanager
def _temporary(folder: Path) -> Iterator[Path]:
    """A temporary folder in `folder`, gone at the end unless it was renamed; one writer at a time."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            for left_over in folder.glob(".*.tmp"):  # of a writer that was killed: the lock was free
                shutil.rmtree(left_over)
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
    took = [loss for loss in spec.losses if loss.dropped]
    if took:
        last, most = took[-1], max(took, key=lambda loss: loss.dropped)
        said = f"no pair was left: {last.operator} dropped the last {last.dropped} of {took[0].rows_in}"
        if most.dropped > last.dropped:
            said += f", {most.operator} dropped {most.dropped}"
        return f"{said}; {_what_to_change(most, spec.recipe)}"
    operators = [gone.operator for gone in dropped]
    if operators:
        return f"no pair was left of {len(operators)}: dropped by {', '.join(sorted(set(operators)))}"
    return "no pair was found"


def _what_to_change(loss: Loss, recipe: str) -> str:
    """The bound that the operator of a loss goes by, and where it stands."""
    name = loss.operator.partition("(")[0]
    if name in _NOT_OF_THE_RECIPE or name.endswith("_cap"):
        return _NOT_OF_THE_RECIPE.get(name, "raise the caps of `[pairs]`")
    reasons = f" ({loss.examples[0].reason})" if loss.examples else ""
    return f"change its bounds{reasons} or leave it out, in the recipe {recipe} (`normalize.recipe`)"
