"""The JSON schema of a run configuration, by which editors complete and check it."""

import ast
import inspect
from collections.abc import Iterator
from itertools import pairwise
from textwrap import dedent
from typing import Any

from pydantic import BaseModel

from tracemill.flows.config.config_faults import models_in
from tracemill.flows.config.run_settings import RunSettings
from tracemill.records.errors import ConfigError
from tracemill.teachers.registry import TEACHERS

SCHEMA_FILE = "tracemill.schema.json"
"""Name of the schema beside a configuration."""
_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_ANY_TEACHER = "BaseTeacherSettings"


def config_schema() -> dict[str, Any]:
    """Return the JSON schema of a run configuration, with the teacher types of installed packages.

    Descriptions are the docstrings of the settings. Checks that need Python (a glob, a known training
    method, a cap if there are teachers) are not in it.
    """
    schema = _of_model(RunSettings)
    definitions = schema["$defs"]
    kinds = []
    for name in TEACHERS.names():
        try:
            settings = TEACHERS.get(name).settings
        except ConfigError:  # of a package that cannot be imported: a run that asks for it says so
            continue
        own = _of_model(settings)
        definitions |= own.pop("$defs", {})
        own["properties"]["type"] = {"const": name, "description": f"A teacher of the type `{name}`."}
        own["required"] = ["type", *own.get("required", ())]
        definitions[f"{name}-teacher"] = own
        kinds.append({"$ref": f"#/$defs/{name}-teacher"})
    definitions[_ANY_TEACHER] = {"oneOf": kinds}
    return {"$schema": _DRAFT, "title": "tracemill run configuration", **schema}


def _of_model(model: type[BaseModel]) -> dict[str, Any]:
    schema = model.model_json_schema()
    texts = {each.__name__: _field_docstrings(each) for each in _models(model)}
    for name, part in ((model.__name__, schema), *schema.get("$defs", {}).items()):
        part.pop("title", None)
        part["description"] = " ".join(part.get("description", "").split())
        for key, value in part.get("properties", {}).items():
            part["properties"][key] = _plain(value, texts[name].get(key))
    return schema


def _plain(value: dict[str, Any], said: str | None) -> dict[str, Any]:
    """Return a property without null, which TOML cannot express, and without its redundant title."""
    kinds = [kind for kind in value.get("anyOf", ()) if kind != {"type": "null"}]
    plain = {key: each for key, each in value.items() if key not in ("title", "anyOf")}
    if len(kinds) == 1:
        plain |= kinds[0]
    elif kinds:
        plain["anyOf"] = kinds
    if plain.get("default", ...) is None or "$ref" in plain:
        plain.pop("default", None)
    if said and "description" not in plain:
        plain["description"] = said
    return plain


def _models(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """Yield a model and those of its tables."""
    yield model
    for field in model.model_fields.values():
        for kind in models_in(field.annotation):
            yield from _models(kind)


def _field_docstrings(model: type[BaseModel]) -> dict[str, str]:
    """Return the docstrings of a model's settings, by field."""
    found: dict[str, str] = {}
    for base in reversed(model.__mro__):
        if not issubclass(base, BaseModel) or base is BaseModel:
            continue
        tree = ast.parse(dedent(inspect.getsource(base)))
        body = next(node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)).body
        for node, after in pairwise(body):
            match node, after:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    found[name] = " ".join(text.split())
    return found
