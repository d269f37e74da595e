"""A command whose streams are closed, as some schedulers do, does its work and writes into no file."""

import subprocess
import sys
from pathlib import Path

import pytest

CODE = """
import os, sys
from tracemill.cli.main import _open_closed_streams
_open_closed_streams()
number = os.open({path!r}, os.O_WRONLY | os.O_CREAT)
print("out"), print("err", file=sys.stderr)
sys.stdout.flush()
sys.exit(number if not (sys.stdin.isatty() or sys.stdin.read()) else 99)
"""


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_opened_before_any_file_is(tmp_path: Path, closed: str) -> None:
    code = CODE.format(path=str(tmp_path / "ledger"))
    done = subprocess.run(
        ["sh", "-c", f'exec "$0" -c "$1" {closed}', sys.executable, code],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, (tmp_path / "ledger").read_text()) == (3, "")
