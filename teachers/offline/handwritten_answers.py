"""Read answers that a person wrote for the steps of recorded sessions.

A folder holds a YAML file a session: `session` is its trace id, `steps` has by number of the step the
choices there. A choice is what is done (`does`: calls as `tool: {arguments}`, none for a bare text) and who
does it (`by`: what each of them says, by the part of its model id behind the last slash). Steps are those of
the first context. A step or a teacher that is not there has no answer.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
import yaml
from pydantic import ValidationError

from tracemill.records.errors import TeacherError
from tracemill.records.frozen_model import FrozenModel
from tracemill.records.identity import StepId, digest
from tracemill.records.message import Action, ToolCall

_EXPECTED = "a YAML file a session, with `session` and `steps`"


class _Choice(FrozenModel):
    does: tuple[dict[str, dict[str, Any]], ...] = ()
    by: dict[str, str]


class _Session(FrozenModel):
    session: str
    steps: dict[int, tuple[_Choice, ...]]


def read_handwritten(folder: Path) -> tuple[dict[str, Mapping[str, Action]], str]:
    """Return the actions by step id and teacher, and a digest of all files.

    Raises TeacherError if the folder has no such file, or one cannot be read.
    """
    found: dict[str, Mapping[str, Action]] = {}
    texts: list[str] = []
    for path in sorted(folder.glob("*.yaml")):
        texts.append(_text(path))
        given = _session(path, texts[-1])
        for number, choices in given.steps.items():
            step_id = str(StepId(given.session, 0, number))
            found[step_id] = {
                teacher: Action(said, _calls(step_id, choice))
                for choice in choices
                for teacher, said in choice.by.items()
            }
    if not found:
        raise TeacherError(f"{folder} has no answers written by hand", _EXPECTED, "correct `path`")
    return found, digest(*texts, size=8)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TeacherError(f"{path} cannot be read ({error})", _EXPECTED) from None


def _session(path: Path, text: str) -> _Session:
    try:
        return _Session.model_validate(yaml.load(text, Loader=yaml.CSafeLoader))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark else ""
        raise TeacherError(f"{path}{where} is not valid YAML", _EXPECTED) from None
    except ValidationError as error:
        place = ".".join(map(str, error.errors(include_url=False)[0]["loc"])) or "the file"
        raise TeacherError(f"{path}: {place} is not valid", _EXPECTED) from None


def _calls(step_id: str, choice: _Choice) -> tuple[ToolCall, ...]:
    calls = [each for given in choice.does for each in given.items()]
    return tuple(
        ToolCall(
            f"call_{digest(step_id, *choice.by, str(place), size=6)}", name, orjson.dumps(arguments).decode()
        )
        for place, (name, arguments) in enumerate(calls)
    )
