"""Keep data-juicer from installing packages while it runs, also under its own commands.

data-juicer 1.6 installs what it misses at the first use of a name of it (`LazyLoader._install_package`), and
it refers to names of ray and torch in every run, also in those that use neither.
"""

import importlib.util
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace
from typing import Any, NoReturn, TypeVar

from data_juicer.utils import model_utils
from data_juicer.utils.lazy_loader import LazyLoader

T = TypeVar("T")


class _Name(type):
    """A class whose every attribute is a class of the same kind."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _named(name)


def never_install() -> None:
    """Make every attempt to install raise ImportError, and put stand-ins in place of a missing ray and a
    missing torch. Doing it twice changes nothing."""
    LazyLoader._install_package = classmethod(_refuse)  # pyright: ignore[reportAttributeAccessIssue]
    if _is_missing("ray"):
        ray = _module("ray")
        ray.__dict__["remote"] = _unchanged
        ray.__dict__["data"] = _module("ray.data")
    if _is_missing("torch"):  # wanted at the end of every operator, to free the memory of GPUs
        model_utils.__dict__["torch"] = SimpleNamespace(cuda=SimpleNamespace(empty_cache=lambda: None))


def _refuse(_loader: type, package_spec: str, pip_args: object = None) -> NoReturn:
    raise ImportError(
        f"{package_spec} is not installed, and tracemill lets data-juicer install nothing while it runs; "
        f"run `pip install {package_spec}` or leave out the operator that needs it"
    )


def _is_missing(name: str) -> bool:
    return name not in sys.modules and importlib.util.find_spec(name) is None


def _module(name: str) -> ModuleType:
    """A module whose every name is an empty class: all that is asked of ray while no Ray executor runs."""
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
