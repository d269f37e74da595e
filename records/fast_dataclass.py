"""Frozen dataclasses that are made by the ten thousand."""

from dataclasses import MISSING, fields
from typing import Any, TypeVar

T = TypeVar("T")


def quick_init(cls: type[T]) -> type[T]:
    """The frozen dataclass with slots, its `__init__` writing each slot by itself instead of asking for
    `object.__setattr__` each time, which takes twice as long. It stays frozen for everyone else.
    Raises TypeError for a class with a default factory or a field that is no plain argument."""
    scope: dict[str, Any] = {}
    arguments: list[str] = []
    for item in fields(cls):  # type: ignore[arg-type]
        if item.default_factory is not MISSING or not item.init or item.kw_only:
            raise TypeError(f"{cls.__name__}.{item.name} is no plain field")
        scope[f"_set_{item.name}"] = cls.__dict__[item.name].__set__
        if item.default is MISSING:
            arguments.append(item.name)
        else:
            scope[f"_default_{item.name}"] = item.default
            arguments.append(f"{item.name}=_default_{item.name}")
    lines = [f"    _set_{item.name}(self, {item.name})" for item in fields(cls)]  # type: ignore[arg-type]
    exec("\n".join([f"def __init__(self, {', '.join(arguments)}):", *lines]), scope)
    made = scope["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    made.__annotations__ = dict(cls.__init__.__annotations__)
    cls.__init__ = made
    return cls
