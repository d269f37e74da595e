"""A ledger on a PostgreSQL server: encryption, sockets, many at once, a server that goes away."""

import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from postgres_server import PASSWORD, USER, Server, serving

from tracemill.records.errors import LedgerError
from tracemill.teachers.ledger.entries import PlannedCall, Reservation, Settlement
from tracemill.teachers.ledger.ledger import Ledger

pytestmark = pytest.mark.slow


def opened(url: str) -> str:
    """What came of opening: the backend, or the one line."""
    try:
        with Ledger(url) as ledger:
            ledger.open_run("run", 100)
            return ledger.backend
    except LedgerError as error:
        return "A PASSWORD WAS PRINTED" if PASSWORD in str(error) else str(error)


def test_the_options_of_a_url_are_those_of_libpq(postgres: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    url = postgres.new_database()
    name = url.rpartition("/")[2]
    assert opened(url + "?sslmode=disable") == "postgresql"
    assert "the server has no encryption" in opened(url + "?sslmode=require")
    assert (
        opened(f"postgres://{USER}:{PASSWORD}@:{postgres.port}/{name}?host={postgres.folder}") == "postgresql"
    )
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    monkeypatch.setenv("PGUSER", USER)
    assert opened(f"postgresql://127.0.0.1:{postgres.port}/{name}") == "postgresql"
    assert "no database of that name" in opened(f"postgresql://127.0.0.1:{postgres.port}/nowhere")


def test_a_certificate_is_checked_where_the_url_says_so(postgres: Server, tmp_path: Path) -> None:
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    program = shutil.which("openssl")
    assert program is not None
    command = f"{program} req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=ledger"
    command += f" -addext subjectAltName=IP:127.0.0.1 -keyout {key} -out {cert}"
    subprocess.run(command.split(), check=True, capture_output=True)
    with serving((cert.read_text(), key.read_text())) as server:
        url = server.new_database()
        assert opened(url + "?sslmode=require") == "postgresql"
        assert "its certificate is not valid" in opened(url + "?sslmode=verify-full")
        assert opened(f"{url}?sslmode=verify-full&sslrootcert={cert}") == "postgresql"
        other = url.replace("127.0.0.1", "localhost")
        assert "its certificate is not valid" in opened(f"{other}?sslmode=verify-full&sslrootcert={cert}")


def test_a_user_without_rights_and_a_user_with_few(postgres: Server) -> None:
    url = postgres.new_database()
    connection = postgres.connect()
    connection.run("DROP ROLE IF EXISTS guest")
    connection.run(f"CREATE ROLE guest LOGIN PASSWORD '{PASSWORD}'")
    connection.close()
    assert "the user lacks permission to create" in opened(url.replace(f"//{USER}:", "//guest:"))


def test_many_processes_may_make_the_tables_at_once(postgres: Server) -> None:
    url = postgres.new_database()
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(opened, [url] * 8)) == ["postgresql"] * 8


def test_any_text_and_any_amount_comes_back_as_it_was(postgres: Server) -> None:
    reply = '{"a": "\\u0000 \\\\ \\" \' :v %s {} äß🦊", "b": "\\ud83e"}'
    with Ledger(postgres.new_database()) as ledger:
        ledger.open_run("r:%s'\"", 10**15)
        wishes = [PlannedCall("r:%s'\"", f"t{n}\\", "s", "x" * 500, f"k{n}", 10**14 + n) for n in range(3)]
        grants = ledger.apply(intents=wishes)[1]
        held = [grant for grant in grants if isinstance(grant, Reservation)]
        assert (
            ledger.apply([Settlement(each, each.amount_nanousd - 1, reply) for each in held])[0] == [True] * 3
        )
        assert dict(ledger.texts()) == dict.fromkeys(("k0", "k1", "k2"), reply)
        assert ledger.spent("r:%s'\"").settled_nanousd == 3 * 10**14 + 3 - 3


@pytest.mark.usefixtures("postgres")
def test_a_server_that_went_away_is_an_error_and_its_book_is_whole_when_it_is_back() -> None:
    with serving() as server, Ledger(server.new_database()) as ledger:
        ledger.open_run("run", 100)
        grant = ledger.reserve(PlannedCall("run", "t", "t:0:0", "x", "a", 60))
        assert isinstance(grant, Reservation)
        server.stop()
        server.begin()
        assert ledger.settle(grant, 30, "{}")  # by a new connection
        server.stop()
        with pytest.raises(LedgerError, match="could not be written: Connection refused"):
            ledger.reserve(PlannedCall("run", "t", "t:0:0", "x", "b", 60))
        server.begin()
        spent = ledger.spent("run")
        assert (spent.settled_nanousd, spent.reserved_nanousd, spent.calls) == (30, 0, 1)
