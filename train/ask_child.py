"""Ask a question of a module in a child process with PyTorch, and read its answer."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from tracemill.records.errors import TrainingError
from tracemill.records.storage.atomic_files import write_json

_QUESTION, _ANSWER, _REFUSED = "question.json", "answer.json", "refused"


def ask_child(module: str, question: BaseModel, environment: Mapping[str, str]) -> dict[str, Any]:
    """Run `python -m module FOLDER` on a request and return its answer.

    Raises TrainingError with the child's error, or if it ends without an answer.
    """
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / _QUESTION).write_text(question.model_dump_json(), encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-P", "-m", module, folder],
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        try:
            answer: dict[str, Any] = json.loads((Path(folder) / _ANSWER).read_bytes())
        except OSError:
            raise TrainingError(
                f"measuring models ended with code {done.returncode}", "figures", "call it again"
            ) from None
    if (why := answer.get(_REFUSED)) is not None:
        raise TrainingError(why)
    return answer


def answer_parent(
    folder: Path, answer: Callable[[str], BaseModel], describe: Callable[[Exception], str]
) -> int:
    """Answer the request in the folder, or write the reason for none, and return 0."""
    try:
        made = answer((folder / _QUESTION).read_text(encoding="utf-8")).model_dump()
    except TrainingError as error:
        made = {_REFUSED: str(error)}
    except Exception as error:
        made = {_REFUSED: describe(error)}
    write_json(folder / _ANSWER, made)
    return 0
