"""The child process data-juicer lives in: `python -m tracemill.normalize.datajuicer.worker JOB.json`.

It swaps stdout and writes into the home folder, so it gets a process and a home of its own. The job names
the recipe, the rows (JSON lines) and where the outcome goes; the outcome is one JSON file, written whole or
not at all.
"""

import json
import sys
import traceback
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tracemill.normalize.datajuicer.recipe import INSTALL, load_recipe
from tracemill.records.errors import NormalizeError


def main(job_file: str) -> int:
    """Run one job; 0 where an outcome was written, be it a failure."""
    job: dict[str, Any] = json.loads(Path(job_file).read_text(encoding="utf-8"))
    try:
        outcome = _run(job)
    except NormalizeError as error:
        outcome = {"failure": str(error)}
    except Exception as error:  # in words: its text may hold a row, its place does not
        frame = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(frame.filename).name}:{frame.lineno}"
        outcome = {"failure": f"data-juicer failed with {type(error).__name__} at {where}"}
    _write_whole(Path(job["outcome"]), outcome)
    return 0


def _run(job: dict[str, Any]) -> dict[str, Any]:
    recipe = load_recipe(Path(job["recipe"]))
    try:
        from tracemill.normalize.datajuicer.run_operators import build_operators, run_operators
    except ImportError as error:
        said = str(error).splitlines()[0]
        raise NormalizeError(f"data-juicer cannot be imported ({said})", do=INSTALL) from error
    _quieten()
    _load_custom(recipe.custom_operators)
    recipe = recipe.of_actions() if job["actions"] else recipe
    operators = build_operators(recipe.process)
    if job["rows"] is None:
        return {"kept": [], "dropped": [], "rows_in": []}
    return asdict(run_operators(operators, recipe.labels, Path(job["rows"]), job["count"]))


def _quieten() -> None:
    """Errors only, and without the values of variables: they would be text of the rows."""
    from datasets import disable_progress_bars
    from loguru import logger

    logger.remove()
    logger.add(sys.__stderr__ or sys.stderr, level="CRITICAL", backtrace=False, diagnose=False)
    disable_progress_bars()


def _load_custom(paths: tuple[Path, ...]) -> None:
    if not paths:
        return
    from data_juicer.config.config import load_custom_operators

    try:
        load_custom_operators([str(path) for path in paths])
    except Exception as error:
        raise NormalizeError(f"operators of the recipe cannot be loaded ({error})") from error


def _write_whole(path: Path, outcome: dict[str, Any]) -> None:
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(outcome), encoding="utf-8")
    temporary.replace(path)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
