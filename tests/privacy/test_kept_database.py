"""A compiled database comes back from the disk as it was, or is made anew."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import hyperscan
import pytest

from tracemill.privacy.redaction.hyperscan_cache import hyperscan_cache_folder, load_cached_hyperscan
from tracemill.privacy.redaction.prefilter import Prefilter, Probe

EXPRESSIONS, FLAGS = (b"ab+c", b"x[0-9]"), (hyperscan.HS_FLAG_SINGLEMATCH, 0)
OTHERS = (b"x2", *EXPRESSIONS[1:])


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "tracemill"


def matched(database: hyperscan.Database, text: bytes = b"..abbc.x1.x2") -> set[tuple[int, int]]:
    """Which expressions matched, and where that ended."""
    found: set[tuple[int, int]] = set()
    database.scan(text, lambda number, start, end, flags, context: found.add((number, end)))
    return found


WANTED = {(0, 6), (1, 9), (1, 12)}


def test_the_second_time_it_is_read_and_finds_the_same(cache: Path) -> None:
    assert matched(load_cached_hyperscan("rules", EXPRESSIONS, FLAGS)) == WANTED
    (file,) = cache.iterdir()
    first = file.stat()
    assert first.st_mode & 0o777 == 0o600
    assert matched(load_cached_hyperscan("rules", EXPRESSIONS, FLAGS)) == WANTED
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (first.st_ino, first.st_mtime_ns)


def _cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-1])


def _changed(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)


def _emptied(file: Path) -> None:
    file.write_bytes(b"")


def _opened(file: Path) -> None:
    file.chmod(0o620)  # another could have written it


@pytest.mark.parametrize("harm", [_cut, _changed, _emptied, _opened])
def test_a_file_that_is_not_as_it_was_written_is_made_anew(cache: Path, harm: Callable[[Path], None]) -> None:
    load_cached_hyperscan("rules", EXPRESSIONS, FLAGS)
    (file,) = cache.iterdir()
    whole, before = file.read_bytes(), file.stat().st_ino
    harm(file)
    assert matched(load_cached_hyperscan("rules", EXPRESSIONS, FLAGS)) == WANTED
    (file,) = cache.iterdir()
    assert len(file.read_bytes()) == len(whole)
    assert file.stat().st_ino != before
    assert file.stat().st_mode & 0o777 == 0o600


def test_other_expressions_take_the_place_of_those_before(cache: Path) -> None:
    load_cached_hyperscan("rules", EXPRESSIONS, FLAGS)
    (before,) = cache.iterdir()
    assert matched(load_cached_hyperscan("rules", OTHERS, FLAGS)) == {(0, 12), (1, 9), (1, 12)}
    (now,) = cache.iterdir()
    assert now.name != before.name
    assert matched(load_cached_hyperscan("rules", EXPRESSIONS, (0, 0))) == WANTED
    (last,) = cache.iterdir()
    assert last.name not in (now.name, before.name)


def test_databases_for_several_purposes_lie_side_by_side(cache: Path) -> None:
    load_cached_hyperscan("rules", EXPRESSIONS, FLAGS)
    load_cached_hyperscan("outputs", OTHERS, FLAGS)
    written = {file.name: file.stat().st_mtime_ns for file in cache.iterdir()}
    assert len(written) == 2
    assert matched(load_cached_hyperscan("rules", EXPRESSIONS, FLAGS)) == WANTED
    assert matched(load_cached_hyperscan("outputs", OTHERS, FLAGS)) == {(0, 12), (1, 9), (1, 12)}
    assert {file.name: file.stat().st_mtime_ns for file in cache.iterdir()} == written


def test_every_database_of_one_redaction_is_kept(cache: Path) -> None:
    script = (
        "from tracemill.privacy.redaction import detectors, secret_outputs\n"
        "detectors.Detectors(detectors.KnownValues()).needs('1\\tPASSWORD=x\\n2\\ty')\n"
        "secret_outputs._is_triggered('cat .env')"
    )
    kept = []
    for _ in range(2):
        subprocess.run([sys.executable, "-c", script], check=True)
        kept.append({file.name: file.stat().st_mtime_ns for file in cache.iterdir()})
    assert len(kept[0]) >= 2
    assert kept[0] == kept[1]


def test_where_nothing_can_be_kept_it_is_compiled(cache: Path) -> None:
    cache.write_text("a file")
    assert matched(load_cached_hyperscan("rules", EXPRESSIONS, FLAGS)) == WANTED
    assert cache.read_text() == "a file"


def test_a_relative_cache_folder_counts_for_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "some/where")
    assert hyperscan_cache_folder() == Path.home() / ".cache" / "tracemill"


def test_probes_of_known_values_are_never_kept(cache: Path) -> None:
    assert Prefilter([Probe("my-secret", 1)]).bits(b"my-secret", []) == 1
    assert not cache.exists()
    assert Prefilter([Probe("ab+c", 2)], kept_as="rules").bits(b"abbc", []) == 2
    assert len(list(cache.iterdir())) == 1
