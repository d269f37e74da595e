"""Keep data-juicer from installing packages while it runs, also under its own commands.

data-juicer 1.6 installs a missing package when a name of it is first used (`LazyLoader._install_package`),
and every run uses names of ray and torch, even if it needs neither.
"""

import importlib.util
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace
from typing import Any, NoReturn, TypeVar

from data_juicer.utils import model_utils
from data_juicer.utils.lazy_loader import LazyLoader

T = TypeVar("T")


class _StubMeta(type):
    """A metaclass whose classes have every attribute: another such class."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _stub_class(name)


def never_install() -> None:
    """Make every attempt to install raise ImportError, and replace a missing ray or torch by a stub.

    A second call changes nothing.
    """
    LazyLoader._install_package = classmethod(_refuse)  # pyright: ignore[reportAttributeAccessIssue]
    if _is_missing("ray"):
        ray = _module("ray")
        ray.__dict__["remote"] = _identity
        ray.__dict__["data"] = _module("ray.data")
    if _is_missing("torch"):  # used after every operator to free GPU memory
        model_utils.__dict__["torch"] = SimpleNamespace(cuda=SimpleNamespace(empty_cache=lambda: None))


def _refuse(_loader: type, package_spec: str, pip_args: object = None) -> NoReturn:
    raise ImportError(
        f"{package_spec} is not installed, and tracemill lets data-juicer install nothing while it runs; "
        f"run `pip install {package_spec}` or leave out the operator that needs it"
    )


def _is_missing(name: str) -> bool:
    return name not in sys.modules and importlib.util.find_spec(name) is None


def _module(name: str) -> ModuleType:
    """Build a module whose every name is an empty class, which is enough for code that runs without Ray."""
    module = ModuleType(name, __doc__)
    module.__spec__ = ModuleSpec(name, None, is_package=True)
    module.__path__ = []
    module.__dict__["__getattr__"] = _stub_class
    sys.modules[name] = module
    return module


def _stub_class(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return _StubMeta(name, (), {"__init__": lambda self, *args, **kwargs: None})


def _identity(decorated: T) -> T:
    return decorated
