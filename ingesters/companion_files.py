"""The files that are read with a source though they lie beside it, and may come or change later.

| source | beside it |
|---|---|
| run of SWE-agent or mini-swe-agent | the verdicts of an evaluation, next to it and one folder above |
| subagent of Claude Code | the session that called it, and the file that says how deep it is |
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path

from tracemill.ingesters.common.eval_verdicts import around, there


def beside(path: Path, dialect: str | None) -> str:
    """A digest of size and time of what lies beside a source now; empty where nothing does."""
    found = []
    for place in _files(path, dialect):
        try:
            file = there(place)
            if file is not None:
                status = file.stat()
                found.append(f"{file.name} {status.st_size} {status.st_mtime_ns}")
        except OSError:
            continue
    return hashlib.blake2b("\0".join(found).encode(), digest_size=8).hexdigest() if found else ""


def _files(path: Path, dialect: str | None) -> Iterator[str]:
    if dialect in ("swe_agent", "mini_swe_agent"):
        yield from around(path)
    elif dialect == "claude_code":
        from tracemill.ingesters.claude_code.subagent_parents import session_folder

        if (above := session_folder(path)) is not None:
            yield from (f"{above}{suffix}" for suffix in (".jsonl", ".jsonl.gz"))
            yield f"{path.parent}/{path.name.partition('.')[0]}.meta.json"
