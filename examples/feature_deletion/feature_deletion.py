"""Make tasks of a small library, verify them, let three scripted agents work on them, read their sessions.

    python examples/feature_deletion/feature_deletion.py [FOLDER]

It needs bubblewrap (`apt install bubblewrap`) and no network, and takes about a minute.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
LIBRARY = HERE.parent.parent / "tests" / "data" / "orchard"


def main() -> None:
    """Run the commands, each printed before what it says."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp(prefix="feature-deletion-"))
    folder.mkdir(parents=True, exist_ok=True)
    tracemill(folder, "env", "make", LIBRARY, "--licence", "MIT", "--most", 2, "--restorations", 0)
    tracemill(folder, "env", "verify", "tasks")
    sessions = []
    for policy in ("wrong", "plausible", "right"):
        sessions.append(f"sessions-{policy}")
        options = ["--policy", f"scripted_policies:{policy}", "--model", policy, "--out", sessions[-1]]
        tracemill(folder, "env", "run", "tasks", *options, "--at-once", 2)
    tracemill(folder, "ingest", *sessions, "--min-age", 0, "--workspace", "workspace")
    print(f"\nAll of it is in {folder}: a task is a folder in tasks, a session a file in sessions-*.")


def tracemill(folder: Path, *arguments: object) -> None:
    """Run tracemill in a folder, with the policies of this one in reach."""
    given = [str(each) for each in arguments]
    print(f"\n$ tracemill {' '.join(given)}", flush=True)
    path = os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])])
    program = Path(sys.executable).with_name("tracemill")
    subprocess.run([program, *given], cwd=folder, env={**os.environ, "PYTHONPATH": path}, check=True)


if __name__ == "__main__":
    main()
