"""A workspace behind a URL and its working copies: what is pulled, pushed, fetched and refused."""

from pathlib import Path

import pyarrow as pa
import pytest

from tracemill.flows.run_state.run_records import sole_writer
from tracemill.records.errors import WorkspaceError
from tracemill.records.storage.shard_rewrite import sweep_rewritten_shards
from tracemill.records.storage.table_schemas import VOTES
from tracemill.records.storage.working_copy import WorkingCopy, open_working_copy
from tracemill.records.storage.workspace import Workspace

EMPTY = pa.Table.from_pylist([], schema=VOTES)


class Lock:
    """A lock of one process that counts who held it."""

    def __init__(self) -> None:
        self.held: list[str] = []

    def __call__(self, name: str, wait: bool) -> "Lock":
        self.held.append(name)
        return self

    def __enter__(self) -> None: ...
    def __exit__(self, *_: object) -> None: ...


def machine(folder: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> WorkingCopy:
    """The working copy of one machine."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / name))
    (folder / "there").mkdir(exist_ok=True)
    copy = open_working_copy((folder / "there").as_uri() + "/team/")
    copy.lock = Lock()
    return copy


def files(folder: Path) -> set[str]:
    found = (path for path in folder.rglob("*") if path.is_file() and "lock" not in path.name)
    return {path.relative_to(folder).as_posix() for path in found}


def test_a_machine_sees_what_another_pushed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = machine(tmp_path, "one", monkeypatch)
    work = Workspace.open(one.root)
    shard = work.write("votes", EMPTY, ["t1"], "claude_code", "2026-11-23")
    (one.root / "consents.json").write_text("[1]")
    one.push()
    there = tmp_path / "there" / "team"
    assert files(there) == {"workspace.json", "consents.json", "votes/live.json", shard.path}

    two = machine(tmp_path, "two", monkeypatch)
    assert files(two.root) == {"workspace.json", "consents.json"}
    other = Workspace.open(two.root, create=False)
    assert other.live("votes") == [shard]
    assert other.covers("votes", shard) == {"t1"}
    assert not (two.root / shard.path).exists()
    assert other.read("votes", shard).num_rows == 0
    assert (two.root / shard.path).read_bytes() == (there / shard.path).read_bytes()
    assert one.lock is not None
    assert one.lock.held == [f"{one.url} tables"]  # type: ignore[attr-defined]


def test_the_url_is_the_truth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = machine(tmp_path, "one", monkeypatch)
    Workspace.open(one.root)
    (one.root / "runs").mkdir()
    for name in ("runs/a.json", "runs/b.json"):
        (one.root / name).write_text("{}")
    one.push()
    two = machine(tmp_path, "two", monkeypatch)
    (one.root / "runs" / "a.json").unlink()
    (one.root / "runs" / "b.json").write_text('{"b": 1}')
    one.push()
    with pytest.raises(WorkspaceError, match="was written by another machine while this command started"):
        two.require_unchanged()
    (two.root / "runs" / "never-pushed.json").write_text("{}")
    two.pull()
    two.require_unchanged()
    assert files(two.root / "runs") == {"b.json"}
    assert (two.root / "runs" / "b.json").read_text() == '{"b": 1}'


def test_a_folder_that_a_run_writes_is_not_pulled_into(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = machine(tmp_path, "one", monkeypatch)
    work = Workspace.open(copy.root)
    copy.push()
    with sole_writer(work):
        (copy.root / "splits").mkdir()
        (copy.root / "splits" / "demo.json").write_text("{}")
        machine(tmp_path, "one", monkeypatch)
        assert "splits/demo.json" in files(copy.root)
    assert "splits/demo.json" in files(tmp_path / "there" / "team")


def test_what_is_forgotten_is_gone_behind_the_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = machine(tmp_path, "one", monkeypatch)
    work = Workspace.open(copy.root)
    shard = work.write("votes", EMPTY, ["t1"], "claude_code", "2026-11-23")
    stays = work.write("votes", EMPTY, ["t2"], "claude_code", "2026-11-23")
    work.set_live("votes", [stays])
    assert sweep_rewritten_shards(work) == 1
    there = files(tmp_path / "there" / "team")
    assert shard.path not in there
    assert stays.path in there


def test_lines_of_two_machines_are_merged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = machine(tmp_path, "one", monkeypatch)
    two = machine(tmp_path, "two", monkeypatch)
    (one.root / "known").write_text("a\nb\n")
    (two.root / "known").write_text("b\nc\n")
    one.merge_lines("known")
    two.merge_lines("known")
    one.merge_lines("known")
    assert (one.root / "known").read_text() == "a\nb\nc\n"
    assert (two.root / "known").read_text() == "b\nc\na\n"
    assert (tmp_path / "there" / "team" / "known").read_text() == "a\nb\nc\n"


def test_without_a_lock_it_is_read_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = machine(tmp_path, "one", monkeypatch)
    copy.lock = None
    work = Workspace.open(copy.root)
    with pytest.raises(WorkspaceError, match="no ledger is configured; expected a configuration with"):
        work.write("votes", EMPTY, ["t1"], "claude_code", "2026-11-23")


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("gs://bucket/team", "a workspace at gs:// needs a package that is not installed"),
        ("nosuch://bucket/team", "nosuch://bucket/team names no file system that is known"),
    ],
)
def test_a_url_that_cannot_be_used_is_one_line(
    url: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(WorkspaceError, match=said):
        open_working_copy(url)
