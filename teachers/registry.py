"""List the teacher types.

A package adds a type by an entry point of the group `tracemill.teachers`.
"""

from typing import Annotated, Any

from pydantic import BeforeValidator, SerializeAsAny

from tracemill.records.errors import ConfigError
from tracemill.records.registry import Registry
from tracemill.teachers.core.teacher_settings import BaseTeacherSettings
from tracemill.teachers.kind import TeacherKind

TEACHERS: Registry[TeacherKind[Any]] = Registry(
    "teacher type",
    "tracemill.teachers",
    {
        "openrouter": "tracemill.teachers.client.chat_kinds:OPENROUTER",
        "openai_compatible": "tracemill.teachers.client.chat_kinds:OPENAI_COMPATIBLE",
        "simulated": "tracemill.teachers.offline.offline_kinds:SIMULATED",
        "recorded": "tracemill.teachers.offline.offline_kinds:RECORDED",
        "handwritten": "tracemill.teachers.offline.offline_kinds:HANDWRITTEN",
    },
    fits=lambda name, kind: isinstance(kind, TeacherKind) and kind.name == name,
    expected="a TeacherKind whose settings have that name as their `type`",
)


def _settings_of_its_type(entry: Any) -> BaseTeacherSettings:
    if isinstance(entry, BaseTeacherSettings):
        return entry
    if not isinstance(entry, dict):
        raise ValueError("a teacher must be a table with `type` and `model`")
    name = entry.get("type")
    try:
        if not isinstance(name, str):
            raise ConfigError("a teacher has no `type`", f"one of {', '.join(TEACHERS.names())}")
        kind = TEACHERS.get(name)
    except ConfigError as error:
        raise ValueError(str(error)) from error
    return kind.settings.model_validate(entry)


TeacherSettings = Annotated[SerializeAsAny[BaseTeacherSettings], BeforeValidator(_settings_of_its_type)]
"""An entry of `[[teachers]]`: the settings of its `type`, which is looked up in the registry."""
