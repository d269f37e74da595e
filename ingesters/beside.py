"""The files that are read with a source though they lie beside it, and may come or change later.

| source | beside it |
|---|---|
| run of SWE-agent or mini-swe-agent | the verdicts of an evaluation, next to it and one folder above |
| subagent of Claude Code | the session that called it, and the file that says how deep it is |
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path

from ingesters.claude_code_parents import session_folder
from ingesters.verdicts import NAMES


def beside(path: Path, dialect: str | None) -> str:
    """A digest of size and time of what lies beside a source now; empty where nothing does."""
    found = []
    for file in _files(path, dialect):
        try:
            status = file.stat()
        except OSError:
            continue
        found.append(f"{file.name} {status.st_size} {status.st_mtime_ns}")
    return hashlib.blake2b("\0".join(found).encode(), digest_size=8).hexdigest() if found else ""


def _files(path: Path, dialect: str | None) -> Iterator[Path]:
    if dialect in ("swe_agent", "mini_swe_agent"):
        yield from (folder / name for folder in (path.parent, path.parent.parent) for name in NAMES)
    elif dialect == "claude_code" and (above := session_folder(path)) is not None:
        yield from (above.with_name(f"{above.name}{suffix}") for suffix in (".jsonl", ".jsonl.gz"))
        yield path.with_name(f"{path.name.partition('.')[0]}.meta.json")
