"""The child process data-juicer lives in: `python -m tracemill.normalize.datajuicer.worker JOB.json`.

It swaps stdout, installs packages while running and writes into the home folder, so it gets a process
and a home of its own. The job names the recipe, the rows (JSON lines) and where the outcome goes; the
outcome is one JSON file, written whole or not at all.
"""

import json
import sys
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from tracemill.normalize.datajuicer import ray_stub
from tracemill.normalize.datajuicer.recipe import INSTALL, load_recipe
from tracemill.records.errors import NormalizeError


def main(job_file: str) -> int:
    """Runs one job; 0 where an outcome was written, be it a failure."""
    job: dict[str, Any] = json.loads(Path(job_file).read_text(encoding="utf-8"))
    try:
        outcome = _run(job)
    except NormalizeError as error:
        outcome = {"failure": str(error)}
    except Exception as error:
        from tracemill.normalize.datajuicer.fork_workers import fork_failure_text

        outcome = {"failure": fork_failure_text(error)}
    _write_whole(Path(job["outcome"]), outcome)
    return 0


def _run(job: dict[str, Any]) -> dict[str, Any]:
    recipe = load_recipe(Path(job["recipe"]))
    ray_stub.install_ray_stub()
    try:
        from tracemill.normalize.datajuicer.fork_workers import judge_in_fork_workers, read_forked_rows
        from tracemill.normalize.datajuicer.run_operators import build_operators, settle
    except ImportError as error:
        said = str(error).splitlines()[0]
        raise NormalizeError(f"data-juicer cannot be imported ({said})", do=INSTALL) from error
    _quieten()
    _load_custom(recipe.custom_operators)
    operators = build_operators(recipe.process)
    if job["rows"] is None:
        return {"kept": [], "dropped": [], "rows_in": []}
    path = Path(job["rows"])
    judged = judge_in_fork_workers(path, job["count"], operators, job["processes"])
    return asdict(settle(operators, recipe.labels, judged, partial(read_forked_rows, path)))


def _quieten() -> None:
    """Errors only, and without the values of variables: they would be text of the rows."""
    from loguru import logger

    logger.remove()
    logger.add(sys.__stderr__ or sys.stderr, level="CRITICAL", backtrace=False, diagnose=False)


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
