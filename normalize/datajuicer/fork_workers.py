"""A file of rows, judged by several processes that are forked once data-juicer is imported.

Importing this module imports data-juicer: only the worker does.
"""

import multiprocessing
import os
import pickle
import sys
import threading
import traceback
from collections.abc import Collection, Iterator, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from tracemill.normalize.datajuicer.run_operators import BATCH_ROWS, Judged, Row, run_operators_on_batch
from tracemill.normalize.operators.operator_rows import load_row
from tracemill.records.errors import NormalizeError

_PROCESSES = 8
"""At the most: each takes about 0.1 GB."""


def read_forked_rows(path: Path, wanted: Collection[int]) -> list[Row]:
    """The rows of a file whose numbers are wanted."""
    with path.open("rb") as lines:
        return [row for row in map(load_row, lines) if row["row"] in wanted]


def judge_in_fork_workers(
    path: Path, count: int, operators: Sequence[Any], processes: int | None = None
) -> Judged:
    """What operators say of each of the `count` rows of a file. The rows go out in the same batches however
    many processes there are, by default one for each core. Where one of them dies, so does this one, in the
    same way. Raises NormalizeError where one fails."""
    wanted = processes or min(_cores(), _PROCESSES)
    shares = min(wanted, -(-count // BATCH_ROWS)) if sys.platform == "linux" else 1
    reader, writer = multiprocessing.Pipe(duplex=False)
    context = multiprocessing.get_context("fork" if shares > 1 else None)
    helpers: dict[Path, Any] = {}
    for share in range(1, shares):
        part = path.with_suffix(f".{share}")
        ends = (reader, writer)
        helpers[part] = context.Process(
            target=_help, args=(path, operators, share, shares, part, ends), daemon=True
        )
        helpers[part].start()
    judged = _judge_share(path, operators, 0, shares)
    for part, helper in helpers.items():
        helper.join()
        _require_end(helper.exitcode)
        judged.add(_taken(part))
    return judged


def _judge_share(path: Path, operators: Sequence[Any], share: int, shares: int) -> Judged:
    judged = Judged()
    for batch in _batches(path, share, shares):
        judged.add(run_operators_on_batch(operators, batch))
    return judged


def _batches(path: Path, share: int, shares: int) -> Iterator[list[Row]]:
    """Every so many-th batch of the rows of a file."""
    batch: list[Row] = []
    with path.open("rb") as lines:
        for number, line in enumerate(lines):
            if number // BATCH_ROWS % shares == share:
                batch.append(load_row(line))
                if len(batch) == BATCH_ROWS:
                    yield batch
                    batch = []
    if batch:
        yield batch


def _help(
    path: Path,
    operators: Sequence[Any],
    share: int,
    shares: int,
    part: Path,
    ends: tuple[Connection, Connection],
) -> None:
    """What a helper does. It ends with the process that started it, however that ends."""
    reader, writer = ends
    writer.close()
    threading.Thread(target=_end_with, args=(reader,), daemon=True).start()
    try:
        said: Judged | str = _judge_share(path, operators, share, shares)
    except Exception as error:
        said = fork_failure_text(error)
    part.write_bytes(pickle.dumps(said))


def _end_with(reader: Connection) -> None:
    try:
        reader.recv_bytes()
    except EOFError:
        os._exit(1)


def _require_end(code: int | None) -> None:
    if code is not None and code < 0:
        os.kill(os.getpid(), -code)
    elif code:
        os._exit(code)


def _taken(part: Path) -> Judged:
    said: Judged | str = pickle.loads(part.read_bytes())
    part.unlink()
    if isinstance(said, str):
        raise NormalizeError(said)
    return said


def fork_failure_text(error: Exception) -> str:
    """An error in words: its text may hold a row, its place does not."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{Path(frame.filename).name}:{frame.lineno}"
    return f"data-juicer failed with {type(error).__name__} at {where}"


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
