"""A stand-in for ray in the child process, where ray is not installed.

data-juicer 1.6.1 refers to names of ray while `data_juicer.core` is imported, also for runs that never
use ray, and without ray it downloads it (200 MB) there and then. Names are all it needs as long as no
Ray executor runs: every name here is an empty class.
"""

import importlib.util
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, TypeVar

T = TypeVar("T")


class _Name(type):
    """A class whose every attribute is a class of the same kind."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _named(name)


def install_ray_stub() -> bool:
    """Puts the stand-in in place of a missing ray; False where ray itself is there."""
    if "ray" in sys.modules or importlib.util.find_spec("ray") is not None:
        return False
    ray = _module("ray")
    ray.__dict__["remote"] = _unchanged
    ray.__dict__["data"] = _module("ray.data")
    return True


def _module(name: str) -> ModuleType:
    module = ModuleType(name, __doc__)
    module.__spec__ = ModuleSpec(name, None, is_package=True)
    module.__path__ = []
    module.__dict__["__getattr__"] = _named
    sys.modules[name] = module
    return module


def _named(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return _Name(name, (), {"__init__": lambda self, *args, **kwargs: None})


def _unchanged(decorated: T) -> T:
    return decorated
