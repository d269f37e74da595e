"""Which share of the correct pairs the gate finds for which share of the USD, on recorded tables.

    TRACEMILL_MULTITEACHER=FOLDER python benchmarks/gate.py [--half test] [--seeds 20] [--voters any]

The folder holds `intercode_sql.jsonl.gz` and `intercode_bash.jsonl.gz`. Counted are draws whose teachers are
at least as strong as the student, on one half of the tasks; an offline-trained gate
learns from the other half.
"""

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

from flows.evaluation_gate_figures import gate_draws, gate_figures

TABLES = ("intercode_sql", "intercode_bash")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--half", choices=("all", "tune", "test"), default="test")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--voters", choices=("any", "two"), default="any")
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--tables", nargs="+", default=TABLES)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    folder = os.environ.get("TRACEMILL_MULTITEACHER")
    if not folder:
        sys.exit("TRACEMILL_MULTITEACHER is not set: name the folder with the tables")
    found: dict[str, Any] = {}
    for table in given.tables:
        voters = "any family" if given.voters == "any" else "two families"
        draws = gate_draws(Path(folder) / f"{table}.jsonl.gz", given.half, voters, given.draws)
        found[table] = gate_figures(draws, given.seeds)
        _say(table, found[table])
    if given.json:
        given.json.write_text(json.dumps(found, indent=1))


def _say(table: str, found: dict[str, Any]) -> None:
    shares = "  ".join(f"{share:5.0%}" for share in found["shares"])
    print(
        f"\n{table}: {found['draws']} draws, {found['seeds']} seeds\n"
        f"{'':12}{shares}   area  of gap  USD at 90/95 %"
    )
    for name in ("random", "first_k", "after_error", "voi", "offline", "oracle"):
        row = found[name]
        recalls = "  ".join(f"{recall:5.2f}" for recall in row["recall"])
        print(f"{name:12}{recalls}  {row['area']:5.3f}  {row['of_gap']:6.3f}  {row['usd_at_recall']}")
    print("voi, 95 % over tasks:", found["voi"]["recall_interval"])
    print("totals at 30 % of the USD:", found["totals"], flush=True)


if __name__ == "__main__":
    main()
