"""Tell what is wrong with a configuration, in the words of its file."""

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, get_args

from pydantic import BaseModel, ValidationError

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_MOST_FAULTS = 3
_RENAMED = {
    "sources.idle_minutes": "sources.min_age_minutes",
    "replay.ask_again": "replay.reredact",
    "gate.fraction": "gate.share",
    "release.accept": "release.allow_findings",
}
"""New names of keys that older configurations hold."""


def describe_faults(error: ValidationError, settings: type[BaseModel]) -> str:
    """Describe the first three faults as `where: fault (found X)`, and count the others."""
    faults = error.errors(include_url=False)
    said = "; ".join(_describe_fault(fault, settings) for fault in faults[:_MOST_FAULTS])
    return said if len(faults) <= _MOST_FAULTS else f"{said} (and {len(faults) - _MOST_FAULTS} more)"


def _describe_fault(fault: "ErrorDetails", settings: type[BaseModel]) -> str:
    where = ".".join(str(part) for part in fault["loc"]) or "top level"
    if fault["type"] == "extra_forbidden":
        *place, key = fault["loc"]
        if new := _RENAMED.get(where):
            do = f"it is {new!r} now"
        elif near := get_close_matches(str(key), _keys_at(place, settings), 1):
            do = f"did you mean {near[0]!r}?"
        else:
            do = "remove it or see docs/configuration.md"
        return f"unknown key {where!r}; {do}"
    if fault["type"] in ("model_type", "model_attributes_type"):
        return f"{where}: expected a table, [{where}]"
    text = f"{where}: {fault['msg'].removeprefix('Value error, ')}"
    found = fault.get("input")
    return f"{text} (found {found!r})" if isinstance(found, str | int | float | bool) else text


def _keys_at(place: Sequence[str | int], settings: type[BaseModel]) -> set[str]:
    """Return the keys that the tables at a place of the file may have."""
    models = {settings}
    for part in place:
        fields = [model.model_fields[str(part)] for model in models if str(part) in model.model_fields]
        if fields:  # else the index of a list, or the name of a kind
            models = {each for field in fields for each in models_in(field.annotation)}
    return {key for model in models for key in model.model_fields}


def models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """Yield the models in an annotation."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for each in get_args(annotation):
        yield from models_in(each)
