"""A lean process writes and reads nested tables without numpy, which stays there for whoever wants it."""

import subprocess
import sys
from pathlib import Path

_RUN = """
import sys
from pathlib import Path
from tracemill.flows.runtime.lean_imports import lean_imports
with lean_imports():
    import pyarrow as pa, pyarrow.parquet as pq
    from tracemill.records.storage.table_schemas import TRACES
    from tracemill.records.trace import Context, Step, Trace
    from tracemill.records.message import Message, ToolCall
    from tracemill.records.storage.trace_rows import traces_from_table, traces_to_table
    said = (Message("user", "hi", is_error=None), Message("assistant", "", (ToolCall("a", "b", "{}"),)))
    trace = Trace("t", "claude_code", "d", "h", (Context(0, said, (Step(0, 1),)),))
    pq.write_table(traces_to_table([trace]), sys.argv[1])
    print("numpy" in sys.modules, end=" ")
    assert traces_from_table(pq.read_table(sys.argv[1])) == [trace]
import numpy
print(int(numpy.arange(3).sum()))
"""


def test_tables_need_no_numpy_and_numpy_stays_there(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _RUN, str(tmp_path / "t.parquet")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("False 3\n", "")
