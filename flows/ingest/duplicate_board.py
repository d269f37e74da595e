"""How full each trace is that was read (`trace_inventory.trace_fullness`, above all its steps), told by the
processes of one ingest to each other.

A session may stand in two shards: the earlier copy stays unless the later one is fuller. Processes that read
shards side by side say so in one file as they go, so that most know in time. Who does not is found out by
whoever puts the shards in order, and its shard is read again: what is told here saves work and decides
nothing.
"""

import os
from contextlib import suppress
from pathlib import Path
from typing import Self

from tracemill.records.storage.shard_file import Shard

_AT_ONCE = 1 << 16


class ReadBefore(Exception):
    """A trace of this shard turns out to be in an earlier one. `written` are the files made until then."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[Shard] = []


class SharedFullness(dict[str, int]):
    """The fullness of the traces read so far, for the process that reads shard number `shard`: what is given,
    its own, and what others tell of earlier shards in the file `board`.

    `known` holds what it was asked for and could say at first. With `strict`, asking or telling raises
    ReadBefore once that was too little.
    """

    def __init__(self, given: dict[str, int], board: Path, shard: int, strict: bool) -> None:
        super().__init__(given)
        self.known: dict[str, int | None] = {}
        self._shard = shard
        self._strict = strict
        self._file = os.open(board, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        self._at = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._file)

    def get(self, trace_id: str, default: int | None = None) -> int | None:  # type: ignore[override]
        """The fullness of the fullest copy read before, None where there is none."""
        self._listen()
        fullness = super().get(trace_id, default)
        self.known.setdefault(trace_id, fullness)
        return fullness

    def __setitem__(self, trace_id: str, fullness: int) -> None:
        super().__setitem__(trace_id, fullness)
        with suppress(OSError):  # a full disk: others will not know in time
            os.write(self._file, f"{self._shard} {trace_id} {fullness}\n".encode())

    def _listen(self) -> None:
        """Take in whole lines that came since."""
        while data := os.pread(self._file, _AT_ONCE, self._at):
            end = data.rfind(b"\n") + 1
            for line in data[:end].decode().splitlines():
                shard, trace_id, fullness = line.split(" ")
                if int(shard) < self._shard:
                    self._learn(trace_id, int(fullness))
            self._at += end
            if len(data) < _AT_ONCE:
                return

    def _learn(self, trace_id: str, fullness: int) -> None:
        if self._strict and trace_id in self.known and fullness > (self.known[trace_id] or 0):
            raise ReadBefore
        if fullness > super().get(trace_id, 0):
            super().__setitem__(trace_id, fullness)
