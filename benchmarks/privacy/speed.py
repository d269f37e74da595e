"""Speed: redaction alone on one core, and reading with redaction as a whole process."""

import importlib.util
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from corpus import Plant
from tools import Tool

from tracemill.ingesters.discover import discover

_BENCHMARKS = Path(__file__).resolve().parent.parent
EXAMPLES = _BENCHMARKS.parent / "examples" / "sessions" / "claude_code"
_EVERY = 40_000
"""Characters of ordinary text for each planted value."""


def dense(outputs: Sequence[str], plants: Sequence[Plant], seed: int) -> list[str]:
    """Return outputs and logs full of digests and ids, with a private value every 40 kB."""
    rng = random.Random(f"{seed} speed")
    texts = [*outputs, *(p.text for p in rng.sample(list(plants), sum(map(len, outputs)) // _EVERY))]
    rng.shuffle(texts)
    return texts


def redaction(tool: Tool, texts: Sequence[str], runs: int) -> float:
    """MB/s of one core, the median of `runs`."""
    assert tool.run is not None
    size = sum(len(text.encode("utf-8", "surrogatepass")) for text in texts) / 1e6
    return size / statistics.median(tool.run(texts, [False] * len(texts)).seconds for _ in range(runs))


def _session_copies():
    spec = importlib.util.spec_from_file_location("session_copies", _BENCHMARKS / "session_copies.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _cpu_of(command: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


_IN_MEMORY = """
import sys
from pathlib import Path
from tracemill.ingesters.discover import discover
from tracemill.ingesters.read_source import SourceReading
from tracemill.privacy.redaction.redactor import Redactor
redactor = Redactor(key=b"benchmark")
for source in discover([Path(each) for each in sys.argv[1:]]):
    for trace in SourceReading(source):
        redactor.redact_trace(trace)
"""


def whole_process(real: Path | None, runs: int, megabytes: float) -> dict[str, float]:
    """Return the median MB/s of CPU time of whole processes, including their start.

    It measures reading and redacting alone, and `tracemill ingest`, which also writes the traces. The
    sessions are those below `real`, or copies of the examples under new ids.
    """
    with tempfile.TemporaryDirectory() as folder:
        if real is None:
            sessions = Path(folder) / "sessions"
            sessions.mkdir()
            _session_copies().many(EXAMPLES, sessions, megabytes)
        else:
            sessions = real
        paths = [str(s.path) for s in discover([sessions]) if s.dialect and s.dialect != "unreadable"]
        size = sum(s.bytes for s in discover(paths)) / 1e6
        script = Path(sys.executable).parent / "tracemill"
        alone, command = [], []
        for run in range(runs):
            alone.append(_cpu_of([sys.executable, "-c", _IN_MEMORY, *paths]))
            out = Path(folder) / f"w{run}"
            command.append(_cpu_of([str(script), "ingest", *paths, "--workspace", str(out), "--json"]))
            shutil.rmtree(out)
    return {
        "megabytes": size,
        "ingest_and_redact_mb_s": size / statistics.median(alone),
        "command_mb_s": size / statistics.median(command),
    }
