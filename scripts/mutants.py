"""Small faults in the most critical modules, one at a time: how many of them the near tests notice.

    python scripts/mutants.py [MODULE ...] [--most N] [--timeout S] [--seed N]

cosmic-ray (MIT) makes the mutants of a module; of each module `--most` are drawn, the same ones for the same
seed, and each is run against the tests that stand nearest to it. Everything happens in a copy of the checkout
in a temporary folder. What survives is printed with its line. A mutant whose tests take longer than
`--timeout` seconds was noticed.
"""

import argparse
import json
import os
import random
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import MutationSpec, TestOutcome, WorkerOutcome, WorkItem, WorkResult

ROOT = Path(__file__).resolve().parent.parent
NEAR = {
    "teachers/ledger/reservation_queue.py": ("teachers/test_reservation_queue.py",),
    "teachers/ledger/transaction.py": (
        "teachers/test_ledger_batch.py",
        "teachers/test_ledger.py",
        "teachers/test_reservation_queue.py",
    ),
    "teachers/planning/schedule.py": ("teachers/test_schedule.py",),
    "ingesters/claude_code/draft_contexts.py": (
        "ingesters/test_claude_code_pins.py",
        "ingesters/test_claude_code_contexts.py",
        "ingesters/test_claude_code_check.py",
        "ingesters/test_claude_code_recorded_prompt.py",
    ),
    "ingesters/claude_code/prompt_queue.py": (
        "ingesters/test_claude_code_shown.py",
        "ingesters/test_claude_code_pins.py",
    ),
    "normalize/operators/pair_operators.py": ("normalize/test_bounds.py",),
    "agreement/voting/vote.py": ("agreement/test_vote.py",),
    "privacy/redaction/redactor.py": (
        "privacy/test_trace.py",
        "privacy/test_lists.py",
        "privacy/test_env_files.py",
        "privacy/test_projects.py",
        "privacy/test_further.py",
    ),
}
"""The modules, and the tests that stand nearest to each."""

LEFT_BEHIND = (".git", ".venv", "__pycache__", ".*_cache", ".hypothesis", "demo-workspace")
OPERATORS = re.compile(
    r"core/(AddNot|NumberReplacer|ReplaceAndWithOr|ReplaceOrWithAnd|ReplaceTrueWithFalse|ReplaceFalseWithTrue"
    r"|ReplaceBreakWithContinue|ReplaceContinueWithBreak|ReplaceUnaryOperator_Delete_Not|ExceptionReplacer"
    r"|ReplaceBinaryOperator_(Add_Sub|Sub_Add|Mul_Div|Div_Mul|FloorDiv_Mul)|ZeroIterationForLoop"
    r"|ReplaceComparisonOperator_(Is_IsNot|IsNot_Is|(Eq|NotEq|Lt|LtE|Gt|GtE)_(Eq|NotEq|Lt|LtE|Gt|GtE)))"
)
"""The kinds of faults a hand could make. The rest breaks annotations, or is the same to Python."""

NO_FAULT = re.compile(r"(core/ReplaceTrueWithFalse .*\b(slots|frozen|strict)=True.*)|(.* \*,)")
"""Kinds and lines whose mutants no run can tell from what they were."""


def main() -> int:
    """Mutate the modules named, or all; 1 where the tests fail without a mutant."""
    parser = argparse.ArgumentParser(description="Mutants of the most critical modules.")
    parser.add_argument("modules", nargs="*", metavar="MODULE", help=f"of {', '.join(NEAR)}")
    parser.add_argument("--most", type=int, default=60, help="mutants of a module (60)")
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds a mutant may take (120)")
    parser.add_argument("--seed", type=int, default=20261122, help="which mutants are drawn")
    given = parser.parse_args()
    if unknown := sorted(set(given.modules) - NEAR.keys()):
        parser.error(f"{', '.join(unknown)}: none of {', '.join(NEAR)}")
    well = [examine(module, given.most, given.timeout, given.seed) for module in given.modules or NEAR]
    return 0 if all(well) else 1


def examine(module: str, most: int, timeout: float, seed: int) -> bool:
    """Print what became of the mutants of a module; False where its tests fail without one."""
    with tempfile.TemporaryDirectory(prefix="tracemill-mutants-") as folder:
        copy = Path(folder) / "checkout"
        shutil.copytree(ROOT, copy, symlinks=True, ignore=shutil.ignore_patterns(*LEFT_BEHIND))
        test = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
        test += [f"tests/{name}" for name in NEAR[module]]
        began = time.monotonic()
        plain = subprocess.run(
            test, cwd=copy, env=environment(copy), capture_output=True, text=True, check=False
        )
        if plain.returncode:
            print(f"{module}: its tests fail without a mutant\n{plain.stdout[-2000:]}", flush=True)
            return False
        print(f"{module}: tests take {time.monotonic() - began:.0f} s", flush=True)
        config, session = Path(folder) / "mutants.toml", Path(folder) / "mutants.sqlite"
        config.write_text(settings(module, shlex.join(test), timeout))
        cosmic_ray(copy, "init", str(config), str(session))
        drawn, there = draw(session, (copy / module).read_text(), most, seed)
        cosmic_ray(copy, "exec", str(config), str(session))
        tell(module, copy, session, drawn, there)
    return True


def settings(module: str, command: str, timeout: float) -> str:
    """Build the configuration of cosmic-ray, where JSON's texts are TOML's."""
    return "\n".join(
        (
            "[cosmic-ray]",
            f"module-path = {json.dumps(module)}",
            f"timeout = {timeout}",
            f"test-command = {json.dumps(command)}",
            "[cosmic-ray.distributor]",
            'name = "local"',
        )
    )


def environment(copy: Path) -> dict[str, str]:
    """Return the variables under which the copy is what is imported, by child processes too."""
    return dict(os.environ) | {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}


def cosmic_ray(copy: Path, *arguments: str) -> None:
    """Run a command of cosmic-ray in the copy."""
    command = [sys.executable, "-m", "cosmic_ray.cli", *arguments]
    subprocess.run(command, cwd=copy, env=environment(copy), check=True)


def draw(session: Path, text: str, most: int, seed: int) -> tuple[list[WorkItem], int]:
    """Leave a sample of the mutants to be run; return it, and how many there are of the wanted kinds."""
    with use_db(session, WorkDB.Mode.open) as database:
        items = list(database.work_items)
        wanted = sorted((item for item in items if is_wanted(item, text.splitlines())), key=place)
        drawn = random.Random(seed).sample(wanted, min(most, len(wanted)))
        left = {item.job_id for item in drawn}
        passed_over = WorkResult(worker_outcome=WorkerOutcome.SKIPPED)
        database.set_multiple_results([i.job_id for i in items if i.job_id not in left], passed_over)
    return sorted(drawn, key=place), len(wanted)


def is_wanted(item: WorkItem, lines: Sequence[str]) -> bool:
    """Return whether a mutant is a fault that a test could notice."""
    kind, line = fault(item).operator_name, lines[fault(item).start_pos[0] - 1].strip()
    return OPERATORS.fullmatch(kind) is not None and NO_FAULT.fullmatch(f"{kind} {line}") is None


def fault(item: WorkItem) -> MutationSpec:
    """Return the one mutation of a mutant."""
    return item.mutations[0]


def place(item: WorkItem) -> tuple[tuple[int, int], str, int]:
    """Return where a mutant stands, and which of those there it is."""
    one = fault(item)
    return one.start_pos, one.operator_name, one.occurrence


def tell(module: str, copy: Path, session: Path, drawn: Sequence[WorkItem], there: int) -> None:
    """Print the figures of a module and the lines of what survived."""
    with use_db(session, WorkDB.Mode.open) as database:
        results = dict(database.results)
    outcomes = [results[item.job_id].test_outcome for item in drawn]
    killed, survived = (outcomes.count(each) for each in (TestOutcome.KILLED, TestOutcome.SURVIVED))
    print(f"{module}: {len(drawn)} of {there} mutants, {killed} killed, {survived} survived", flush=True)
    if others := len(drawn) - killed - survived:
        print(f"  {others} could not be run")
    lines = (copy / module).read_text().splitlines()
    for item, outcome in zip(drawn, outcomes, strict=True):
        if outcome is TestOutcome.SURVIVED:
            line, kind = fault(item).start_pos[0], fault(item).operator_name.removeprefix("core/")
            print(f"  line {line}, {kind}: {lines[line - 1].strip()}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
