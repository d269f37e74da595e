"""Return the version of tracemill and, in a git checkout, its commit."""

import subprocess
from contextlib import suppress
from importlib.resources import files
from pathlib import Path

from tracemill.records.version import __version__

_SHOWN = 12  # characters of a commit
_ROOT = Path(str(files("tracemill"))).parent


def code_version(root: Path = _ROOT) -> dict[str, str | None]:
    """Return version and commit of the code below `root`; the commit is None if it is not a checkout."""
    commit = None
    if (root / ".git").exists():
        command = ["git", "-C", str(root), "rev-parse", "HEAD"]
        with suppress(OSError, subprocess.CalledProcessError):
            commit = subprocess.run(command, capture_output=True, text=True, check=True).stdout[:_SHOWN]
    return {"tracemill": __version__, "commit": commit}
