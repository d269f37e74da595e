"""What the workspace keeps for its owner alone: modes of files and of the folder itself."""

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tracemill.flows.admission.forgotten_list import ForgottenList
from tracemill.flows.consent.consent import save_consents
from tracemill.flows.run_state.run_records import write_manifest
from tracemill.privacy.publish_gate.accepted_findings import record_accepted
from tracemill.privacy.publish_gate.findings import Finding
from tracemill.records.storage.atomic_files import write_json
from tracemill.records.storage.workspace import Workspace
from tracemill.teachers.ledger.ledger import Ledger, sqlite_url

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "sessions" / "claude_code"
Run = Callable[..., CompletedProcess[str]]


@pytest.fixture(autouse=True)
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_private_files_of_a_workspace_are_readable_by_their_owner_alone(tmp_path: Path) -> None:
    work = Workspace.open(tmp_path / "deep" / "w")
    save_consents(work, [])
    consent = write_manifest(work, "run", "consent", {}, private=True)
    ForgottenList.of(work).adding(["t1"]).write(work)
    finding = Finding("f", 1, None, "c", "EMAIL", ("own",), "x", "0123456789ab", 1)
    record_accepted(work.root / "accepted.json", [finding])
    kept = [
        work.root / name for name in ("consents.json", "forgotten.json", "accepted.json", "redaction.key")
    ]
    assert {path.name: oct(mode(path)) for path in [*kept, consent]} == {
        path.name: "0o600" for path in [*kept, consent]
    }
    assert mode(work.root) == 0o700
    assert mode(work.root.parent) == 0o755
    assert mode(work.root / "workspace.json") == 0o600


def test_a_file_that_was_private_stays_so_when_it_is_written_anew(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"n": 1}, private=True)
    write_json(tmp_path / "a.json", {"n": 2})
    write_json(tmp_path / "b.json", {"n": 1})
    assert (mode(tmp_path / "a.json"), mode(tmp_path / "b.json")) == (0o600, 0o644)
    write_json(tmp_path / "b.json", {"n": 2}, private=True)
    assert mode(tmp_path / "b.json") == 0o600
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["a.json", "b.json"]


def test_a_folder_that_was_there_keeps_its_mode(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir(mode=0o750)
    assert mode(Workspace.open(tmp_path / "w").root) == 0o750


def test_whatever_a_run_leaves_in_a_folder_of_others_is_its_owners(console: Run, tmp_path: Path) -> None:
    work = tmp_path / "w"
    work.mkdir(mode=0o755)
    for command in (
        ("ingest", EXAMPLES, "--workspace", work),
        ("label", "-w", work),
        ("release", "write", "-w", work),
    ):
        done = console(*command, TRACEMILL_KINGFISHER="none")
        assert done.returncode == 0, done.stderr
    found = sorted(work.rglob("*"))
    assert {"releases", "runs", "traces", "pairs", "sources.jsonl"} <= {path.name for path in work.iterdir()}
    assert len([path for path in found if path.is_file()]) > 25
    open_ones = {
        path.relative_to(work).as_posix(): oct(mode(path))
        for path in found
        if mode(path) != (0o700 if path.is_dir() else 0o600)
    }
    assert open_ones == {}


def test_the_library_leaves_the_umask_of_its_program_alone(tmp_path: Path) -> None:
    work = Workspace.open(tmp_path / "w")
    (tmp_path / "of_the_program.txt").touch()
    assert (mode(tmp_path / "of_the_program.txt"), mode(work.root)) == (0o644, 0o700)


def test_files_that_an_older_version_left_open_are_closed_once(tmp_path: Path) -> None:
    work = Workspace.open(tmp_path / "w")
    (work.root / "workspace.json").write_text('{"layout": 1, "text": "redacted"}')
    folder = work.root / "releases" / "demo"
    folder.mkdir(parents=True)
    (folder / "t.parquet").write_text("x")
    for path in work.root.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    Workspace.open(work.root, writes=False)
    assert mode(folder / "t.parquet") == 0o644
    Workspace.open(work.root)
    assert {oct(mode(path)) for path in work.root.rglob("*")} == {"0o600", "0o700"}
    (folder / "t.parquet").chmod(0o640)
    Workspace.open(work.root)
    assert mode(folder / "t.parquet") == 0o640


def test_the_ledger_its_log_and_its_index_are_private(tmp_path: Path) -> None:
    place = tmp_path / "ledger.sqlite"
    with Ledger(sqlite_url(place)) as ledger:
        ledger.open_run("run", 10)
        found = {path.name: mode(path) for path in tmp_path.iterdir()}
    assert found == dict.fromkeys(("ledger.sqlite", "ledger.sqlite-wal", "ledger.sqlite-shm"), 0o600)
    with Ledger(sqlite_url(place)) as ledger:
        ledger.compact()
        assert ledger.spent("run").cap_nanousd == 10
    assert mode(place) == 0o600
