"""The process that runs data-juicer: `python -m tracemill.normalize.datajuicer.worker`.

data-juicer replaces stdout and writes into the home folder, so it has its own process and home. A job is a
line of stdin; it names the recipe, the rows (JSON lines) and the outcome, one JSON file that is written whole
or not at all.
"""

import json
import os
import sys
import traceback
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

from tracemill.normalize.datajuicer.recipe import INSTALL, load_recipe
from tracemill.records.errors import NormalizeError
from tracemill.records.storage.atomic_files import write_json


def main() -> int:
    """Run each job of stdin, write its outcome (which may be a failure), and report it by an empty line."""
    with os.fdopen(os.dup(1), "w") as answers:
        os.dup2(2, 1)
        for line in sys.stdin:
            job: dict[str, Any] = json.loads(line)
            write_json(Path(job["outcome"]), _outcome_of(job))
            print(file=answers, flush=True)
    return 0


def _outcome_of(job: dict[str, Any]) -> dict[str, Any]:
    try:
        return _run(job)
    except NormalizeError as error:
        return {"failure": str(error)}
    except Exception as error:  # its text may hold a row, so name only type and place
        frame = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(frame.filename).name}:{frame.lineno}"
        return {"failure": f"data-juicer failed with {type(error).__name__} at {where}"}


def _run(job: dict[str, Any]) -> dict[str, Any]:
    recipe = load_recipe(Path(job["recipe"]))
    try:
        from tracemill.normalize.datajuicer.run_operators import build_operators, run_operators
    except ImportError as error:
        first_line = str(error).splitlines()[0]
        raise NormalizeError(f"data-juicer cannot be imported ({first_line})", do=INSTALL) from error
    _silence_logs()
    _load_custom(recipe.custom_operators)
    recipe = recipe.of_actions() if job["actions"] else recipe
    operators = build_operators(recipe.process)
    if job["rows"] is None:
        return {"kept": [], "dropped": [], "rows_in": []}
    return asdict(run_operators(operators, recipe.labels, Path(job["rows"]), job["count"]))


def _silence_logs() -> None:
    """Log critical errors only, without values of variables, which are text of the rows."""
    from datasets import disable_progress_bars
    from loguru import logger

    logger.remove()
    logger.add(sys.__stderr__ or sys.stderr, level="CRITICAL", backtrace=False, diagnose=False)
    disable_progress_bars()


@cache
def _load_custom(paths: tuple[Path, ...]) -> None:
    """Load operators once: data-juicer refuses to register a name twice."""
    if not paths:
        return
    from data_juicer.config.config import load_custom_operators

    try:
        load_custom_operators([str(path) for path in paths])
    except Exception as error:
        raise NormalizeError(f"operators of the recipe cannot be loaded ({error})") from error


if __name__ == "__main__":
    sys.exit(main())
