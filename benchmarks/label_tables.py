"""Every figure of `docs/label_tables.md`, by `tracemill evaluate` on the tables of a folder.

    python benchmarks/label_tables.py FOLDER --reports reports [--bfcl bfcl.jsonl.gz] [--jobs 2] [--out PAGE]

A report that is in `--reports` already is not made again. The page says with which options each was made.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from label_page import sections

from tracemill.agreement.voting.vote import VOTE_VERSION

PAGE = Path(__file__).resolve().parent.parent / "docs" / "label_tables.md"
LABELS, GATE = ("--gate-seeds", "0"), ("--half", "test", "--rule", "default k=2", "--gate-seeds")
SPREAD = ("--prices", "spread")


@dataclass(frozen=True, slots=True)
class Run:
    """One report: its heading, the table's file and the options."""

    title: str
    table: str
    options: tuple[str, ...]

    @property
    def key(self) -> str:
        """A folder's name."""
        return self.title.lower().replace(", ", "-").replace(" ", "_")


def runs(bfcl: Path | None) -> list[Run]:
    """Return the runs of the page, in order."""
    found: list[Run] = []
    for name, table, samples in (("SQL", "intercode_sql", "50"), ("bash", "intercode_bash", "200")):
        file = f"{table}.jsonl.gz"
        for half in ("all", "tune", "test"):
            part = f"{half} tasks" if half == "all" else f"{half} half"
            found.append(Run(f"{name}, {part}", file, (*LABELS, "--half", half, "--samples", samples)))
        seeds = "1" if name == "SQL" else "20"
        found.append(Run(f"{name}, gate, one price", file, (*GATE, seeds, "--samples", samples)))
        found.append(Run(f"{name}, gate, spread", file, (*GATE, seeds, "--samples", samples, *SPREAD)))
    java = ("--runs", "msb_swe_agent_full_trajs.jsonl.gz")
    found.append(Run("Java", "msb_swe_agent.jsonl.gz", (*LABELS, *java)))
    found.append(Run("MINT", "mint_alfworld.jsonl.gz", LABELS))
    if bfcl is not None:
        found.append(Run("BFCL, all tasks", str(bfcl), (*LABELS, "--samples", "50")))
        gate = (*GATE, "1", "--draws", "60", "--samples", "20", *SPREAD)
        found.append(Run("BFCL, gate, spread", str(bfcl), gate))
    return found


def report(run: Run, folder: Path, reports: Path) -> dict[str, Any]:
    """Read the report of a run, or make it if it does not exist."""
    out = reports / run.key
    if not list(out.glob("*.json")):
        command = [
            sys.executable,
            "-c",
            "from tracemill.cli.main import main; main()",
            "evaluate",
            str(folder / run.table),
        ]
        options = [str(folder / each) if each.endswith(".gz") else each for each in run.options]
        subprocess.run([*command, *options, "--out", str(out)], check=True, stdout=subprocess.DEVNULL)
    return json.loads(next(out.glob("*.json")).read_bytes())


def page(made: Sequence[tuple[Run, Mapping[str, Any]]]) -> str:
    """Build the page of reports."""
    lines = [
        "# Tables of label quality",
        "",
        "Made by `python benchmarks/label_tables.py FOLDER --reports REPORTS`; how to read them, and what",
        "they say, is in [label_quality.md](label_quality.md).",
        "",
        f"These figures are of version {VOTE_VERSION} of the vote.",
        "",
    ]
    for run, found in made:
        about, draws = found["table"], found["draws"]
        options = " ".join(f'"{each}"' if " " in each else each for each in run.options)
        lines += [f"## {run.title}", "", f"`tracemill evaluate {Path(run.table).name} {options}`", ""]
        lines += [
            f"{about['states']:,} states, {about['tasks']:,} tasks, {about['actions']:,} actions of"
            f" {len(about['models'])} models; {draws['taken']:,} of {draws['all']:,} draws,"
            f" {draws['stronger']} with teachers at least as strong.",
            "",
        ]
        lines += sections(found)
    return "\n".join(lines).rstrip() + "\n"


def main() -> None:
    """Make missing reports and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--reports", type=Path, required=True)
    parser.add_argument("--bfcl", type=Path)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=PAGE)
    given = parser.parse_args()
    wanted = runs(given.bfcl)
    with ThreadPoolExecutor(given.jobs) as pool:
        found = list(pool.map(lambda run: report(run, given.folder, given.reports), wanted))
    given.out.write_text(page(list(zip(wanted, found, strict=True))))


if __name__ == "__main__":
    main()
