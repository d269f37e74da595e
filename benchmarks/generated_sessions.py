"""Write generated sessions of every format, so that their ingest can be measured without recorded ones.

    python benchmarks/generated_sessions.py TARGET MB     a folder for each format, of about MB

Each session is the same work, as each format keeps it: a request, then 60 answers with a thought, a text and
a call, and results of 200 to 30,000 characters, 4,500 on average. Every sixth call edits a file.
"""

import argparse
from collections.abc import Callable
from pathlib import Path

from generated_agents import claude_code, cline, cline_session, codex, cursor, gemini_cli, opencode, pi
from generated_runs import atif, inspect_ai, mini_swe_agent, openhands, otel, sts, swe_agent, swe_gym
from generated_work import Work, make_work

Writer = Callable[[Path, Work], None]
WRITERS: dict[str, Writer] = {
    each.__name__: each
    for each in (
        *(claude_code, codex, pi, gemini_cli, cline, cline_session, cursor, opencode, inspect_ai, atif),
        *(otel, sts, openhands, swe_agent, mini_swe_agent, swe_gym),
    )
}


def write_sessions(name: str, folder: Path, mb: float) -> float:
    """Write sessions of a format until they take so many MB; return the MB that were written."""
    folder.mkdir(parents=True)
    made = 0.0
    number = 0
    while made < mb:
        number += 1
        WRITERS[name](folder, make_work(number))
        made = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6
    return made


def main() -> None:
    """Write what the arguments ask for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("target", type=Path)
    parser.add_argument("mb", type=float)
    given = parser.parse_args()
    for name in WRITERS:
        print(name, f"{write_sessions(name, given.target / name, given.mb):.1f} MB")


if __name__ == "__main__":
    main()
