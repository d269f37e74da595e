"""A real PostgreSQL for tests: a cluster of its own in a temporary folder, gone afterwards.

Where it is not installed the tests that want it are not run; the summary says so, and how to have them
run. With TRACEMILL_WANT_POSTGRES set they fail instead.
"""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from pg8000.native import Connection, DatabaseError, InterfaceError

WANTED = "TRACEMILL_WANT_POSTGRES"
ABSENT = "PostgreSQL is not installed (Debian: apt-get install postgresql)"
USER = "tracemill"
PASSWORD = "s3cret-of-the-ledger"


def binaries() -> Path | None:
    """The folder of `initdb` and `postgres`, the newest version's; None where there is none."""
    on_path = shutil.which("initdb")
    if on_path and (Path(on_path).parent / "postgres").exists():
        return Path(on_path).parent
    found = Path("/usr/lib/postgresql").glob("*/bin/initdb")
    newest = max(found, key=lambda path: float(path.parent.parent.name), default=None)
    return None if newest is None else newest.parent


def _owner() -> str | None:
    """Who runs the server: it refuses root. None: whoever runs the tests."""
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


class Server:
    """A server on loopback."""

    def __init__(self, folder: Path, owner: str | None, given: Sequence[str]) -> None:
        self.folder = folder
        self._owner = owner
        self._numbers = count()
        self._databases: list[str] = []
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        programs = binaries()
        assert programs is not None, ABSENT
        self._command = [str(programs / "postgres"), "-D", str(folder / "data"), "-p", str(self.port)]
        self._command += [part for option in given for part in ("-c", option)]

    def begin(self) -> None:
        """Starts it, and waits until it answers."""
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdout=log, stderr=log, user=self._owner, cwd=self.folder
            )
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and self._process.poll() is None:
            try:
                self.connect().close()
            except (InterfaceError, DatabaseError):
                time.sleep(0.05)
            else:
                return
        raise RuntimeError(f"PostgreSQL did not start: {(self.folder / 'log').read_text()[-1000:]}")

    def stop(self) -> None:
        """Stops it; whoever is connected is sent away."""
        self._process.send_signal(signal.SIGINT)
        self._process.wait(timeout=60)

    def url(self, database: str = "postgres", password: str = PASSWORD) -> str:
        """The URL of a database of it."""
        return f"postgresql://{USER}:{password}@127.0.0.1:{self.port}/{database}"

    def connect(self) -> Connection:
        """A connection of the server's own administrator."""
        return Connection(USER, "127.0.0.1", "postgres", self.port, PASSWORD)

    def new_database(self) -> str:
        """The URL of an empty database."""
        name = f"ledger{next(self._numbers)}"
        connection = self.connect()
        connection.run(f"CREATE DATABASE {name}")
        connection.close()
        self._databases.append(name)
        return self.url(name)

    def drop_databases(self) -> None:
        """Drop every database it made, also those that somebody is still connected to."""
        connection = self.connect()
        while self._databases:
            connection.run(f"DROP DATABASE {self._databases.pop()} WITH (FORCE)")
        connection.close()


@contextmanager
def serving(certificate: tuple[str, str] | None = None) -> Iterator[Server]:
    """A server with a password, and with encryption where it has a certificate and its key (PEM). `fsync`
    is off: it is as quick as the tests want, and a crash of the machine ends them anyway."""
    programs, owner = binaries(), _owner()
    assert programs is not None, ABSENT
    folder = Path(tempfile.mkdtemp(prefix="tracemill-pg-"))
    try:
        files = {"password": PASSWORD} | dict(zip(("cert", "key"), certificate or (), strict=False))
        for name, content in files.items():
            (folder / name).write_text(content)
            (folder / name).chmod(0o600)
        for path in (folder, *folder.iterdir()):
            shutil.chown(path, owner or os.geteuid())
        cluster = ["-D", str(folder / "data")]
        _run([str(programs / "initdb"), *cluster, *_HOW, f"--pwfile={folder / 'password'}"], owner, folder)
        given = [
            "fsync=off",
            "min_wal_size=32MB",
            "max_wal_size=64MB",
            "listen_addresses=127.0.0.1",
            f"unix_socket_directories={folder}",
        ]
        if certificate is not None:
            given += ["ssl=on", f"ssl_cert_file={folder / 'cert'}", f"ssl_key_file={folder / 'key'}"]
        server = Server(folder, owner, given)
        server.begin()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


_HOW = (f"--username={USER}", "--auth=scram-sha-256", "--encoding=UTF8", "--no-locale", "--no-sync")


def _run(command: list[str], owner: str | None, folder: Path) -> None:
    done = subprocess.run(command, user=owner, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
