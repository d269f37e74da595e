"""A workspace behind a URL of fsspec, such as `s3://bucket/team`, and its working copy on this machine.

The URL holds the workspace; the folder of the working copy is what every other module reads and writes.
Shards never change and go up as they are written, `live.json` under the lock, and all other files where a
command has something to lose (`push`). An object is whole or not there, as S3 puts it. What a command had not
pushed when it was killed is done again; what was bought is in the ledger.
"""

import fcntl
import hashlib
import os
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, NoReturn

from tracemill.records.errors import WorkspaceError
from tracemill.records.storage.atomic_files import (
    append_private_line,
    open_pending_file,
    read_json_file,
    write_json,
)
from tracemill.records.storage.table_schemas import SCHEMAS

_VERSION_KEYS = ("ETag", "etag", "LastModified", "mtime", "created")
RUN_LOCK = ".run-lock"
"""The file that a run on this machine locks for as long as it writes the workspace."""
_LOCAL = frozenset({".lock", RUN_LOCK})
_POINTERS = frozenset(f"{table}/live.json" for table in SCHEMAS)

Lock = Callable[[str, bool], AbstractContextManager[None]]
"""Holds a lock by its name, for all machines; where it may not wait it raises WorkspaceError."""


@dataclass(slots=True)
class WorkingCopy:
    """The folder `root` on this machine, and the workspace at `url` that it is a copy of."""

    url: str
    root: Path
    lock: Lock | None = None
    """The lock of all machines; without one the workspace can be read alone."""
    host: str = field(default_factory=socket.gethostname)
    """The machine of the command."""
    _index: dict[str, list[Any]] = field(default_factory=dict[str, list[Any]])

    def pull(self) -> None:
        """Make the folder equal to the URL, except for shards, which are downloaded when they are read.

        A folder that a run on this machine is writing stays as it is. Raises WorkspaceError if the URL
        cannot be read.
        """
        with (self.root / RUN_LOCK).open("w") as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return
            self._pull()

    def _pull(self) -> None:
        there, index = self._versions(), self._read_index()
        for name, version in there.items():
            if index.get(name, [None])[0] != version or not (self.root / name).exists():
                self._get(name)
                index[name] = [version, *_stamp(self.root / name)]
        for name in self._files():
            if name not in there:
                (self.root / name).unlink(missing_ok=True)
                index.pop(name, None)
        self._index = {name: each for name, each in index.items() if name in there}
        self._write_index()

    def require_unchanged(self) -> None:
        """Raise WorkspaceError where another machine wrote since the last pull; call it under the lock."""
        seen = {name: each[0] for name, each in self._read_index().items()}
        if self._versions() != seen:
            raise WorkspaceError(
                f"{self.url} was written by another machine while this command started",
                "a workspace that stays as it was read",
                "run the same command again",
            )

    def push(self) -> None:
        """Upload files that changed since the last push or pull, and remove those deleted here.

        The manifest of a release is uploaded last, so that no reader sees an incomplete release. Raises
        WorkspaceError.
        """
        self._index = self._read_index()
        here = sorted(self._files(), key=lambda name: (name.startswith("releases/"), _ends_release(name)))
        changed = [name for name in here if self._index.get(name, [0, 0, 0])[1:] != _stamp(self.root / name)]
        for name in changed:
            self.put(name)
        gone = [name for name in self._index if name not in here]
        self.remove(gone)
        if changed or gone:
            self._write_index()

    def put(self, name: str) -> None:
        """Upload one file of the folder to the URL. Raises WorkspaceError."""
        fs, base = self._storage()
        stamp = _stamp(self.root / name)
        with self._reported("written"):
            fs.put_file(str(self.root / name), f"{base}/{name}")
            fs.invalidate_cache()
            version = _version(fs.info(f"{base}/{name}"))
        if not _is_of_table(name):
            self._index[name] = [version, *stamp]

    def fetch(self, name: str) -> Path:
        """Return the file of a shard, downloaded if the folder lacks it. Raises WorkspaceError."""
        path = self.root / name
        if not path.exists():
            self._get(name)
        return path

    @contextmanager
    def open(self, name: str) -> Iterator[Any]:
        """Open a shard for reading parts of it, without downloading all of it."""
        if (self.root / name).exists():
            with (self.root / name).open("rb") as file:
                yield file
            return
        fs, base = self._storage()
        with self._reported("read"), fs.open(f"{base}/{name}", "rb", cache_type="readahead") as file:
            yield file

    def refresh(self, name: str) -> None:
        """Download one file that other machines may have written; delete it here if it is gone there."""
        data = self._read(name)
        if data is None:
            (self.root / name).unlink(missing_ok=True)
            return
        with open_pending_file((self.root / name).parent) as file:
            file.name = PurePosixPath(name).name
            file.temporary.write_bytes(data)

    def merge_lines(self, name: str) -> None:
        """Merge the lines of an append-only file here and at the URL. The caller holds the lock."""
        path = self.root / name
        here = path.read_text("utf-8").splitlines() if path.exists() else []
        there = (self._read(name) or b"").decode().splitlines()
        if fresh := [line for line in here if line not in set(there)]:
            fs, base = self._storage()
            with self._reported("written"):
                fs.pipe_file(f"{base}/{name}", "".join(f"{line}\n" for line in (*there, *fresh)).encode())
        if missing := [line for line in there if line not in set(here)]:
            append_private_line(path, "".join(f"{line}\n" for line in missing))

    def arrive(self) -> None:
        """Prepare the copy in a worker: on another machine than the command's it is pulled first."""
        if self.is_away:
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.pull()
        _COPIES[self.root] = self

    @property
    def is_away(self) -> bool:
        """Return whether this is another machine than the command's."""
        return self.host != socket.gethostname()

    def remove(self, names: list[str]) -> None:
        """Remove files at the URL; missing ones are skipped. Raises WorkspaceError."""
        fs, base = self._storage()
        for name in names:
            with self._reported("written"), suppress(FileNotFoundError):
                fs.rm_file(f"{base}/{name}")
            self._index.pop(name, None)

    def shards(self, table: str) -> list[str]:
        """Return the names of all shards of a table at the URL, live or not."""
        fs, base = self._storage()
        with self._reported("read"):
            fs.invalidate_cache()
            found = fs.find(f"{base}/{table}")
        names = (path.removeprefix(base).lstrip("/") for path in found)
        return [name for name in names if _is_shard(name)]

    def hold(self, name: str, wait: bool) -> AbstractContextManager[None]:
        """Hold a lock of the workspace over all machines. Raises WorkspaceError without a lock service."""
        if self.lock is None:
            raise WorkspaceError(
                f"{self.url} is written under a lock on PostgreSQL, and no ledger is configured",
                "a configuration with workspace and ledger_url",
            )
        return self.lock(f"{self.url} {name}", wait)

    def _versions(self) -> dict[str, str]:
        """Return the version of each file at the URL that is no shard."""
        fs, base = self._storage()
        with self._reported("read"):
            fs.invalidate_cache()
            found = fs.find(base, detail=True)
        named = {path.removeprefix(base).lstrip("/"): _version(info) for path, info in found.items()}
        return {name: version for name, version in named.items() if not _is_of_table(name)}

    def _read(self, name: str) -> bytes | None:
        fs, base = self._storage()
        with self._reported("read"):
            try:
                return bytes(fs.cat_file(f"{base}/{name}"))
            except FileNotFoundError:
                return None

    def _get(self, name: str) -> None:
        fs, base = self._storage()
        with self._reported("read"), open_pending_file((self.root / name).parent) as file:
            file.name = PurePosixPath(name).name
            fs.get_file(f"{base}/{name}", str(file.temporary))

    def _storage(self) -> tuple[Any, str]:
        return open_storage(self.url)

    @contextmanager
    def _reported(self, done: str) -> Iterator[None]:
        try:
            yield
        except WorkspaceError:
            raise
        except Exception as error:  # each file system has its own
            _unreachable(self.url, done, error)

    def _files(self) -> list[str]:
        """Return the names of the files in the folder that are neither shards nor this machine's own."""
        found = (path for path in self.root.rglob("*") if path.is_file())
        names = (path.relative_to(self.root).as_posix() for path in found)
        return [n for n in names if not (_is_of_table(n) or n in _LOCAL or n.endswith(".tmp") or "/." in n)]

    @property
    def _index_path(self) -> Path:
        """Return the index file beside the folder: each file's version at the URL, local size and time."""
        return self.root.with_suffix(".json")

    def _read_index(self) -> dict[str, list[Any]]:
        with suppress(WorkspaceError):
            value = read_json_file(self._index_path)
            if isinstance(value, dict) and value.get("url") == self.url:
                return dict(value["files"])
        return {}

    def _write_index(self) -> None:
        write_json(self._index_path, {"url": self.url, "files": self._index}, private=True)


def open_storage(url: str) -> tuple[Any, str]:
    """Return the file system of a URL and the path in it.

    Raises WorkspaceError if a package that it needs is not installed, or the URL names nothing known.
    """
    import fsspec

    folders = {"auto_mkdir": True} if url.startswith("file://") else {}
    try:
        fs, path = fsspec.url_to_fs(url, **folders)
    except ImportError:
        raise WorkspaceError(
            f"a workspace at {url.partition('://')[0]}:// needs a package that is not installed",
            "the extra `cluster`",
            "pip install 'tracemill[cluster]'",
        ) from None
    except ValueError:
        raise WorkspaceError(
            f"{url} names no file system that is known", "a folder, or a URL such as s3://BUCKET/PREFIX"
        ) from None
    return fs, str(path).rstrip("/")


def _unreachable(url: str, done: str, error: Exception) -> NoReturn:
    raise WorkspaceError(
        f"the workspace {url} cannot be {done} ({type(error).__name__})",
        "a bucket that exists, credentials for it, and a network",
        "check the URL and the variables of the file system, such as AWS_ENDPOINT_URL",
    ) from None


def _version(info: Mapping[str, Any]) -> str:
    """Return a value that changes with an object's content."""
    tag = next((info[name] for name in _VERSION_KEYS if name in info), "")
    return f"{info.get('size')} {tag}"


def _stamp(path: Path) -> list[int]:
    state = path.stat()
    return [state.st_size, state.st_mtime_ns]


def _is_shard(name: str) -> bool:
    return name.endswith(".parquet") and name.partition("/")[0] in SCHEMAS


def _is_of_table(name: str) -> bool:
    """Return whether a file is a shard or a table's list of live shards, which are transferred separately."""
    return _is_shard(name) or name in _POINTERS


def _ends_release(name: str) -> bool:
    return name.startswith("releases/") and name.endswith("manifest.json")


_COPIES: dict[Path, WorkingCopy] = {}


def is_url(given: str) -> bool:
    """Return whether a workspace is given by a URL."""
    return "://" in given


def open_working_copy(url: str) -> WorkingCopy:
    """Return the working copy of a URL on this machine, equal to it now.

    Raises WorkspaceError if the URL cannot be read.
    """
    url = url.rstrip("/")
    name = hashlib.blake2b(url.encode(), digest_size=12).hexdigest()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser())
    copy = WorkingCopy(url, cache / "tracemill" / "workspaces" / name)
    copy.root.mkdir(mode=0o700, parents=True, exist_ok=True)
    copy.pull()
    _COPIES[copy.root] = copy
    return copy


def working_copy_at(root: Path) -> WorkingCopy | None:
    """Return the working copy whose folder is `root`, None for a workspace that is a folder alone."""
    return _COPIES.get(root)
