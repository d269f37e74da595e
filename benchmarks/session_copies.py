"""Copy recorded sessions under new ids, so that no copy is taken for a duplicate.

    python benchmarks/session_copies.py SOURCE TARGET MB          a folder of copies, of about MB
    python benchmarks/session_copies.py SOURCE TARGET MB --one    one session, its records repeated

Session ids, uuids, message, request and call ids are replaced, in their links as well; everything else,
the length of almost every line included, stays as recorded. A file that names no session is known by what
was said and when: there one frequent word and the microseconds of all times are replaced as well. Prints one
JSON object on what was made.
"""

import argparse
import hashlib
import json
import re
from itertools import count
from pathlib import Path

_IDS = re.compile(
    rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
    rb"|\b(?:msg|req|toolu|call|chatcmpl)[_-][A-Za-z0-9_-]{8,}"
)
_NAMED = re.compile(
    rb'("(?:sessionId|session_id|instance_id|traj_id|trajectory_id|conversation_id)"\s*:\s*")([^"\\]+)"'
)
_ROOT = re.compile(rb'("parentUuid"\s*:\s*)null')
_UUID = re.compile(rb'"uuid"\s*:\s*"([^"]+)"')
_WORD = re.compile(rb"(?<= )that(?= )")
_MICROSECONDS = re.compile(rb'(?<=\d\d:\d\d\.)\d{6}(?=")')
_SUFFIXES = (".jsonl", ".json", ".traj")


def renamed(data: bytes, salt: str) -> bytes:
    """Replace every id by one derived from the id and the salt."""
    fresh = {old: _fresh(old, salt) for old in set(_IDS.findall(data))}
    data = _IDS.sub(lambda found: fresh[found.group()], data)
    tail = salt.encode()
    data, named = _NAMED.subn(lambda found: b'%s%s-%s"' % (found.group(1), found.group(2), tail), data)
    return data if named else _MICROSECONDS.sub(tail.rjust(6, b"0"), _WORD.sub(tail.rjust(4, b"0"), data))


def _fresh(old: bytes, salt: str) -> bytes:
    """Return an id of the same shape and length."""
    digits = hashlib.shake_128(salt.encode() + old).hexdigest(len(old)).encode()
    if b"-" in old[:9]:
        return b"-".join(digits[a:b] for a, b in ((0, 8), (8, 12), (12, 16), (16, 20), (20, 32)))
    head = re.match(rb"[a-z]+[_-]", old)
    assert head is not None
    return (head.group() + digits)[: len(old)]


def sources(folder: Path) -> list[Path]:
    """Return the session files of a folder, in order."""
    return sorted(path for path in folder.rglob("*") if path.suffix in _SUFFIXES and path.is_file())


def many(folder: Path, target: Path, mb: float) -> dict[str, float]:
    """Write copies of all files, repeatedly, up to `mb` megabytes."""
    size = files = largest = 0
    originals = [(path, path.read_bytes()) for path in sources(folder)]
    if not originals:
        raise SystemExit(f"{folder} holds no sessions")
    for copy in count():
        place = target / f"copy{copy:05}"
        for path, data in originals:
            if size >= mb * 1e6:
                return {"mb": size / 1e6, "files": files, "copies": copy, "largest_mb": largest / 1e6}
            made = place / path.relative_to(folder)
            made.parent.mkdir(parents=True, exist_ok=True)
            size += made.write_bytes(renamed(data, f"c{copy}"))
            largest = max(largest, len(data))
            files += 1
    raise AssertionError


def one(folder: Path, target: Path, mb: float) -> dict[str, float]:
    """Write one session that repeats the records of the largest file; each round continues the last."""
    path = max(sources(folder), key=lambda path: path.stat().st_size)
    data = path.read_bytes().rstrip(b"\n") + b"\n"
    session = _NAMED.search(data)
    target.mkdir(parents=True, exist_ok=True)
    made, size, last = target / "one.jsonl", 0, b""
    with made.open("wb") as out:
        for copy in count():
            if size >= mb * 1e6:
                break
            again = renamed(data, f"r{copy}")
            if session is not None:
                again = _NAMED.sub(lambda found: found.group(1) + session.group(2) + b'"', again)
            if last:
                again = _ROOT.sub(b'\\1"' + last + b'"', again, count=1)
            last = _UUID.findall(again)[-1]
            size += out.write(again)
    return {"mb": size / 1e6, "files": 1, "copies": copy, "largest_mb": size / 1e6}


def main() -> None:
    """Make what the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("mb", type=float)
    parser.add_argument("--one", action="store_true")
    given = parser.parse_args()
    print(json.dumps((one if given.one else many)(given.source, given.target, given.mb)))


if __name__ == "__main__":
    main()
