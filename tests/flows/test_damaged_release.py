"""A release that is damaged, or called so that it cannot be told from a version: each command says it in one
line, and what is whole is listed all the same."""

from collections.abc import Callable
from pathlib import Path

import pytest
from release_rows import DAY, SPEC, hindsight, normalized, pair, written

from tracemill.data_cards.model.audit_sample import AUDIT, read_audit, write_audit
from tracemill.data_cards.writing.write_release import write_release
from tracemill.flows.config.run_settings import load_settings
from tracemill.flows.publish.list_versions import diff_listed_versions, list_releases, release_rows
from tracemill.flows.release.audit_run import run_audit
from tracemill.flows.training.resolve_release import resolve_training_release
from tracemill.records.errors import ConfigError, ReleaseError
from tracemill.records.storage.workspace import Workspace

OLD, NEW = "2026.11.21", "2026.11.22"


@pytest.fixture
def work(tmp_path: Path) -> Workspace:
    """A workspace with two versions of `demo`."""
    made = Workspace.open(tmp_path / "w")
    for version, rows in ((OLD, (pair(1), pair(2))), (NEW, (pair(1), pair(2), hindsight(3)))):
        spec = SPEC.model_copy(update={"created": DAY, "version": version})
        written(write_release(spec, normalized(*rows), [], made.releases_dir))
    return made


def audit(work: Workspace, keys: str) -> None:
    answers = work.root / "keys"
    answers.write_text(keys)
    run_audit("demo", work.root, answers, 3, False)


@pytest.mark.parametrize(
    "command",
    [
        lambda work: diff_listed_versions(work, OLD, NEW),
        lambda work: diff_listed_versions(work, NEW, OLD),
        lambda work: audit(work, "a"),
        lambda work: resolve_training_release("demo", work.releases_dir),
    ],
    ids=["diff to", "diff from", "audit", "train"],
)
@pytest.mark.parametrize("config", ["dpo", "kto"])
def test_a_table_that_is_missing_or_changed_is_one_line(
    work: Workspace, command: Callable[[Workspace], object], config: str
) -> None:
    folder = work.releases_dir / "demo" / NEW
    table = folder / "data" / config / "train-00000-of-00001.parquet"
    kept = table.read_bytes()
    for harm, said in ((kept[:-1], "was changed"), (None, "is missing")):
        table.unlink()
        if harm is not None:
            table.write_bytes(harm)
        with pytest.raises(ReleaseError) as caught:
            command(work)
        assert str(caught.value) == (
            f"{table} {said}; expected the release as it was written; write the release again"
        )
        assert not (folder / AUDIT).exists()


def test_an_audit_of_pairs_that_the_release_does_not_hold_is_one_line(work: Workspace) -> None:
    audit(work, "a")
    folder = work.releases_dir / "demo" / NEW
    manifest = next(line for line in list_releases(work, None) if line["version"] == NEW)
    begun = read_audit(folder, manifest["content"])
    assert begun is not None
    write_audit(folder, begun.model_copy(update={"pair_ids": (*begun.pair_ids[:-1], "another")}))
    with pytest.raises(ReleaseError, match=r"names 1 pairs that the release does not hold; .*; move it away"):
        audit(work, "a")


def test_a_damaged_manifest_is_told_with_its_way_out_and_hides_no_other_version(work: Workspace) -> None:
    manifest = work.releases_dir / "demo" / NEW / "manifest.json"
    manifest.write_text('{"schema_version": 1')
    lines = list_releases(work, None)
    assert [(line["version"], line["rows"]) for line in lines] == [(OLD, 2), (NEW, None)]
    said = (
        f"{manifest} is not a manifest of this version (the whole file); expected schema 1; "
        "restore it, or move the folder out of the workspace and release anew"
    )
    assert (lines[0]["error"], lines[1]["error"]) == (None, said)
    assert release_rows(lines)[1] == (f"demo@{NEW}", said)
    with pytest.raises(ReleaseError) as caught:
        diff_listed_versions(work, OLD, NEW)
    assert str(caught.value) == said


@pytest.mark.parametrize("name", ["latest", "2026.11.22", "2026.11.22.3", "v2-2026.11.22"])
def test_a_name_that_reads_like_a_version_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="neither `latest` nor a date"):
        load_settings(None, {"release": {"name": name}})


def test_names_that_only_begin_like_a_version_are_taken() -> None:
    for name in ("latest-1", "2026", "v2", "2026.11.22-x"):
        assert load_settings(None, {"release": {"name": name}}).release.name == name


def test_a_number_after_the_latest_makes_a_version_also_of_rows_that_are_there(work: Workspace) -> None:
    """As where the version between them was forgotten: whoever has it is to find one in its place."""
    folder = work.releases_dir / "demo" / NEW
    folder.rename(work.root / "gone")
    rows = normalized(pair(1), pair(2))
    spec = SPEC.model_copy(update={"created": DAY, "version": "2026.11.22.1"})
    made = written(write_release(spec, rows, [], work.releases_dir))
    assert (made.version, made.created, made.rows) == ("2026.11.22.1", True, 2)
    again = written(write_release(spec, normalized(pair(1), pair(2)), [], work.releases_dir))
    assert (again.version, again.created) == ("2026.11.22.1", False)
