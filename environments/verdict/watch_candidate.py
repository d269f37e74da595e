"""Watch what a candidate does while tests run; standard library alone, since tasks carry a copy of this file.

The interpreter raises audit events (https://peps.python.org/pep-0578/) for frames, opened files and started
programs, whatever names the code used to reach them, and a hook cannot be removed. `run_pytest.py` executes
this file with built-ins of its own and outside of `sys.modules`, so that a candidate cannot replace what it
uses.
"""

import _posixsubprocess  # pyright: ignore[reportMissingImports]
import _signal  # pyright: ignore[reportMissingImports]
import functools
import gc
import linecache
import os
import sys
import unittest
from _thread import get_ident
from collections.abc import Callable, Collection, Iterator
from os import fspath, stat
from pathlib import PosixPath
from types import CodeType, FrameType, FunctionType, MethodType
from typing import Any
from unittest.mock import NonCallableMock

Report = Callable[[str, str], None]
"""Receives what a candidate was seen to do, and its place: `file:function`, or `file:class`."""

LOOKS_AT_CALLERS = "looks at its callers"
READS_TESTS = "reads the tests"
WALKS_OBJECTS = "walks the objects of the process"
HIDES_CODE = "hides where code is from"
STARTS_PROGRAMS = "starts programs"
EQUALS_OTHERS = "equals values of other types"
COMPARES_OTHERS = "answers what tests ask of a value"
REPLACES_FUNCTIONS = "replaces functions of Python or of the test framework"

_KINDS = {
    "sys._getframe": LOOKS_AT_CALLERS,
    "sys._current_frames": LOOKS_AT_CALLERS,
    "sys._current_exceptions": LOOKS_AT_CALLERS,
    "sys.settrace": LOOKS_AT_CALLERS,
    "sys.setprofile": LOOKS_AT_CALLERS,
    "sys.monitoring.register_callback": LOOKS_AT_CALLERS,
    "object.__getattr__": LOOKS_AT_CALLERS,
    "object.__setattr__": REPLACES_FUNCTIONS,
    "object.__delattr__": REPLACES_FUNCTIONS,
    "open": READS_TESTS,
    "os.listdir": READS_TESTS,
    "os.scandir": READS_TESTS,
    "gc.get_objects": WALKS_OBJECTS,
    "gc.get_referrers": WALKS_OBJECTS,
    "gc.get_referents": WALKS_OBJECTS,
    "ctypes.dlopen": WALKS_OBJECTS,
    "code.__new__": HIDES_CODE,
    "compile": HIDES_CODE,
    "subprocess.Popen": STARTS_PROGRAMS,
    "os.system": STARTS_PROGRAMS,
    "os.exec": STARTS_PROGRAMS,
    "os.fork": STARTS_PROGRAMS,
    "os.posix_spawn": STARTS_PROGRAMS,
    "_posixsubprocess.fork_exec": STARTS_PROGRAMS,
    "import": STARTS_PROGRAMS,
    "cpython.PyInterpreterState_New": STARTS_PROGRAMS,
}
_FRAMES = ("tb_frame", "gi_frame", "cr_frame", "ag_frame")
_OWN_USE = {
    LOOKS_AT_CALLERS: ("collections", "dataclasses", "enum", "logging", "typing", "warnings", "weakref"),
    STARTS_PROGRAMS: ("platform",),
}
"""Modules of the standard library that do so for purposes of their own."""
_OF_LIBRARY = {"logging": ("_log",), "warnings": ("_showwarnmsg",)}
"""Functions through which it does; others of the same modules may be asked to do it for the candidate."""
_MAKES_CODE = {"compile": "_bootstrap_external", "code.__new__": "types"}
"""Modules that make code under another file's name, as at an import; others do it for the candidate."""
_LISTING = ("_bootstrap_external", "metadata")
"""Modules that list every folder of `sys.path`, the tests' too, to find what is imported or installed."""
_ASKED = (
    *("__lt__", "__le__", "__gt__", "__ge__", "__contains__", "__sub__", "__rsub__"),
    *("startswith", "endswith", "find", "index", "count"),
)
"""Methods by which a test asks something of a value without a look at the whole of it."""
_OF_MOCKS = frozenset(("called", "call_args", "call_args_list", "call_count", "method_calls", "mock_calls"))
_WATCHED_MODULES = {"_pytest", "pytest", "pluggy", *sys.stdlib_module_names}


class CandidateWatch:
    """A watch over code of a repository; everything else, but code without a file, is trusted.

    `libraries` are folders of the interpreter and of installed packages, `tests` the folder of the tests.
    """

    def __init__(self, repository: str, tests: str, libraries: Collection[str], report: Report) -> None:
        """Find the tests' files, which are known by device and inode under any name."""
        self._repository, self._tests = f"{repository}/", f"{tests}/"
        self._libraries = (*(f"{each}/" for each in libraries), "<frozen ")
        self._report = report
        self._watching: set[int] = set()
        self._sources = [*_python_files(tests)]
        self._files = {_identity(path) for path in self._sources}
        self._classes: set[type] = set()
        self._functions: dict[tuple[str, str], FunctionType | type] = {}
        self._of_tests: dict[type, dict[str, FunctionType | type]] = {}

    def start(self) -> None:
        """Watch from now on."""
        self._hide_sources()
        self._hide_frames()
        self._hear_programs()
        self._watch_instances()
        self._functions = _functions()
        sys.addaudithook(self._heard)

    def look(self) -> None:
        """Look for functions that are replaced or added, and watch the equality of new classes."""
        for name, new in _functions().items():
            if new is not self._functions.get(name):
                is_known = name in self._functions
                for each in [new] if isinstance(new, FunctionType) else [*vars(new).values()]:
                    is_function = isinstance(each, FunctionType) and self._is_candidate(each)
                    if is_function and (is_known or not _is_generated(each)):
                        self._report(REPLACES_FUNCTIONS, self._named(each.__code__))
        for owner in _classes_of(self._tests):
            now = {name: _kind(value) for name, value in [*vars(owner).items()]}
            before = self._of_tests.setdefault(owner, now)
            for name, new in now.items():
                is_function = isinstance(new, FunctionType) and self._is_candidate(new)
                if new is not before.get(name) and is_function:
                    self._report(REPLACES_FUNCTIONS, self._named(new.__code__))
        self._watch_comparisons()

    def _heard(self, event: str, arguments: tuple[Any, ...]) -> None:
        kind = _KINDS.get(event)
        if kind is None or get_ident() in self._watching:
            return
        collects = self._stop_hearing()
        try:
            if self._matters(event, arguments) and (place := self._place(event, kind)):
                self._report(kind, place)
        finally:
            self._hear_again(collects)

    def _stop_hearing(self) -> bool:
        """Hear nothing of this thread, which runs the watch's own code: no finalizer of the candidate runs.

        Returns whether garbage was collected until now.
        """
        collects = gc.isenabled()
        gc.disable()
        self._watching.add(get_ident())
        return collects

    def _hear_again(self, collects: bool) -> None:
        self._watching.discard(get_ident())
        if collects:
            gc.enable()

    def _matters(self, event: str, arguments: tuple[Any, ...]) -> bool:
        """Return whether the arguments of an event are of interest, before the slower look at its callers."""
        if event == "object.__getattr__":
            owner, name = arguments  # which `sys.audit` may make up: no attribute of another class is read
            return name in _FRAMES or (name == "__code__" and _is_function_of(owner, self._tests))
        if event == "object.__setattr__":  # its code or defaults change; the function stays the same
            return _is_function_of(arguments[0], self._tests, *self._libraries)
        if event in ("open", "os.listdir", "os.scandir"):
            return _identity(arguments[0] if arguments[0] is not None else ".") in self._files
        if event == "import":  # the module was imported before; once more it has functions of its own
            return arguments[0] == "_posixsubprocess"
        if event == "compile":
            filename = arguments[1]
            return type(filename) is str and filename.startswith((*self._libraries, self._tests))
        return True

    def _place(self, event: str, kind: str) -> str:
        """Return file and function of the candidate that caused an event, "" if other code did.

        The standard library may stand between them, as `traceback` does for `walk_stack`.
        """
        frame: FrameType | None = sys._getframe(2)
        between: list[str] = []
        called: list[str] = []
        while frame is not None and frame.f_code.co_filename.startswith(self._libraries):
            if not between and _is_installed(frame.f_code.co_filename):
                return ""
            between.append(_module(frame.f_code.co_filename))
            called.append(frame.f_code.co_name)
            frame = frame.f_back
        if _is_own_use(event, kind, between, called):
            return ""
        if frame is None:
            return "a thread:run" if between[-1:] == ["threading"] else ""
        return "" if frame.f_code.co_filename.startswith(self._tests) else self._named(frame.f_code)

    def _named(self, code: CodeType, name: str = "") -> str:
        """Return the place of code: its path relative to the repository, colon, its name or the one given."""
        inside = code.co_filename.startswith(self._repository)
        file = code.co_filename[len(self._repository) :] if inside else "code without a file"
        return f"{file}:{name or code.co_name}"

    def _hide_sources(self) -> None:
        """Let nobody print lines of tests, as a traceback of an error in a test's function does."""
        for path in self._sources:
            linecache.cache[path] = (0, None, [], path)

    def _hide_frames(self) -> None:
        """Give functions that are called at a signal no frame; no event tells of it."""
        original = _signal.signal

        def signal(number: Any, handler: Any) -> Any:
            if not callable(handler) or isinstance(handler, int) or handler is _signal.default_int_handler:
                return original(number, handler)

            def call(number: int, frame: FrameType | None) -> Any:
                was_unheard = get_ident() in self._watching
                self._watching.discard(get_ident())
                try:
                    return handler(number, None)
                finally:
                    if was_unheard:
                        self._watching.add(get_ident())

            return original(number, call)

        setattr(_signal, "signal", signal)  # noqa: B010 # the type checker knows another one

    def _hear_programs(self) -> None:
        """Raise an event where a program is started by the function below `subprocess`, which raises none."""
        original = _posixsubprocess.fork_exec

        def fork_exec(*arguments: Any) -> Any:
            sys.audit("_posixsubprocess.fork_exec")
            return original(*arguments)

        for module in [*sys.modules.values()]:
            for name in ("fork_exec", "_fork_exec"):
                if vars(module).get(name) is original:
                    setattr(module, name, fork_exec)

    def _watch_instances(self) -> None:
        """Report a candidate that sets a method of a test, of its item or of a mock on the object itself."""
        from _pytest.nodes import Node

        for owner in (unittest.TestCase, Node, NonCallableMock):
            type.__setattr__(owner, "__setattr__", self._set_attribute(owner))

    def _set_attribute(self, owner: type) -> Callable[[Any, str, Any], None]:
        """Return `__setattr__` of a class that reports."""
        original = type.__getattribute__(owner, "__setattr__")
        is_mock = owner is NonCallableMock  # which counts its calls when the candidate calls it

        def set_attribute(this: Any, name: str, value: Any) -> None:
            collects = self._stop_hearing()
            is_counted = is_mock and name in _OF_MOCKS
            if is_counted or _is_method(type(this), name):
                is_own = is_mock and sys._getframe(1).f_code.co_filename.startswith(self._libraries)
                if not is_own and (place := self._place("object.__setattr__", REPLACES_FUNCTIONS)):
                    self._report(REPLACES_FUNCTIONS, place)
            self._hear_again(collects)
            original(this, name, value)

        return set_attribute

    def _watch_comparisons(self) -> None:
        """Watch how the candidate's classes compare an object with values of other types."""
        for owner in _subclasses(object, set()):
            if owner in self._classes:
                continue
            self._classes.add(owner)
            for name in ("__eq__", "__ne__", *_ASKED):
                method = owner.__dict__.get(name)
                if isinstance(method, FunctionType) and self._is_candidate(method):
                    type.__setattr__(owner, name, self._watched(owner, name, method))
                elif (
                    method is not None
                    and name not in _ASKED
                    and not _is_method_of(owner, method)
                    and (file := self._file_of(owner))
                ):
                    self._report(EQUALS_OTHERS, f"{file}:{owner.__name__}")  # an object in place of a method

    def _file_of(self, owner: type) -> str:
        """Return the file of the repository that a class says it is of, "" if it is of none."""
        file = str(getattr(sys.modules.get(owner.__module__), "__file__", None))
        return file[len(self._repository) :] if file.startswith(self._repository) else ""

    def _is_candidate(self, function: FunctionType) -> bool:
        filename = function.__code__.co_filename
        if filename == "<string>" and "__class__" in function.__code__.co_names[:1]:
            return False  # of a dataclass: equal to its own class alone
        return not filename.startswith((*self._libraries, self._tests))

    def _watched(self, owner: type, name: str, method: FunctionType) -> Callable[..., Any]:
        """Return a method that reports when tests ask it about a value of another type.

        Of an equality this matters where it takes the value for equal; of the others, whatever it answers.
        """
        place, is_equality = self._named(method.__code__, owner.__name__), name not in _ASKED

        @functools.wraps(method)
        def compare(this: Any, *given: Any, **named: Any) -> Any:
            found = method(this, *given, **named)
            is_answer = found is not NotImplemented
            if is_equality:
                is_answer = found is False if name == "__ne__" else _is_true(found)
            if is_answer and given and not _are_related(owner, type(given[0])):
                collects = self._stop_hearing()
                caller = sys._getframe(1).f_code.co_filename
                self._hear_again(collects)
                if caller.startswith((*self._libraries, self._tests)):
                    self._report(EQUALS_OTHERS if is_equality else COMPARES_OTHERS, place)
            return found

        return compare


def _is_generated(function: FunctionType) -> bool:
    """Return whether a function has no file but names of Python's own, as of a dataclass or a named tuple."""
    module = str(function.__globals__.get("__name__"))
    is_own = _is_watched(module) or module.startswith("namedtuple_")
    return is_own and function.__code__.co_filename.startswith("<")


def _is_function_of(owner: object, *folders: str) -> bool:
    """Return whether an object is a function whose code lies in one of some folders."""
    return type(owner) is FunctionType and owner.__code__.co_filename.startswith(folders)


def _is_method(owner: type, name: str) -> bool:
    """Return whether a class or one of its bases has a function of a name."""
    return any(isinstance(vars(each).get(name), FunctionType) for each in owner.__mro__)


def _is_method_of(owner: type, method: Any) -> bool:
    """Return whether a method is a function, or that of a built-in class which the owner derives from."""
    return isinstance(method, FunctionType) or getattr(method, "__objclass__", None) in owner.__mro__


def _is_own_use(event: str, kind: str, modules: list[str], called: list[str]) -> bool:
    """Return whether the standard library did something for itself; its callers are innermost first."""
    if not modules:
        return False
    if event == "object.__getattr__":
        return modules[0] not in ("base_tasks", "tasks") and called != ["walk_tb"]
    if event in _MAKES_CODE:
        return modules[0] == _MAKES_CODE[event]
    if kind == REPLACES_FUNCTIONS:
        return "<module>" in called  # a module of the library that is imported
    if event in ("os.listdir", "os.scandir") and modules[0] in _LISTING:
        return True
    asked = modules[:1] if kind == LOOKS_AT_CALLERS else modules
    own_use = _OWN_USE.get(kind, ())
    return any(
        each in own_use and (each not in _OF_LIBRARY or any(name in called for name in _OF_LIBRARY[each]))
        for each in asked
    )


def _module(filename: str) -> str:
    """Return the last part of a module's name by its file, which code cannot choose as it can its globals."""
    folder, _, file = filename.rstrip(">").rpartition("/")
    name = file.removesuffix(".py").rpartition(".")[2]
    return folder.rpartition("/")[2] if name == "__init__" else name


def _is_installed(filename: str) -> bool:
    """Return whether a file is of an installed package; those of the test framework know its frames."""
    return ("-packages/" in filename or "/packages/" in filename) and "/_pytest/" not in filename


def _is_true(found: Any) -> bool:
    """Return whether a comparison says that it is equal; any object but a bool, an int and None does.

    An object is not asked, since it might answer otherwise the next time.
    """
    return (
        found is not None
        and found is not NotImplemented
        and found is not False
        and not (type(found) is int and found == 0)
    )


def _are_related(one: type, other: type) -> bool:
    """Return whether one type derives from the other; a text and its subclass are not related."""
    return one in other.__mro__ or (other.__module__ != "builtins" and other in one.__mro__)


def _subclasses(kind: type, seen: set[type]) -> Iterator[type]:
    for each in type.__subclasses__(kind):
        if each not in seen:
            seen.add(each)
            yield each
            yield from _subclasses(each, seen)


def _classes_of(folder: str) -> Iterator[type]:
    """Yield the classes of the modules below a folder."""
    for module in [*sys.modules.values()]:
        if str(getattr(module, "__file__", None)).startswith(folder):
            for value in [*vars(module).values()]:
                if isinstance(value, type) and value.__module__ == module.__name__:
                    yield value


def _functions() -> dict[tuple[str, str], FunctionType | type]:
    """Return functions and classes of Python and the test framework by name, and types of other objects."""
    found: dict[tuple[str, str], FunctionType | type] = {}
    for module_name, module in [*sys.modules.items()]:
        if not _is_watched(module_name):
            continue
        found[module_name, ""] = type(module)
        for name, value in [*vars(module).items()]:
            found[module_name, name] = _kind(value)
            is_own = value.__module__ == module_name if isinstance(value, type) else _is_plain(value)
            attributes = getattr(value, "__dict__", {}) if is_own else {}
            found |= {(f"{module_name}.{name}", each): _kind(attributes[each]) for each in [*attributes]}
    return found


def _is_watched(module: str) -> bool:
    return module.partition(".")[0] in _WATCHED_MODULES


def _is_plain(value: Any) -> bool:
    """Return whether a value is an object of a class of Python or the test framework, but no module."""
    module = type(value).__module__
    return type(module) is str and module != "builtins" and _is_watched(module)


def _kind(value: Any) -> FunctionType | type:
    """Return a function or a class as it is, the function of a method, the type of any other object."""
    if isinstance(value, classmethod | staticmethod | MethodType):
        value = value.__func__
    return value if isinstance(value, FunctionType | type) else type(value)


def _identity(path: Any) -> tuple[int, int] | None:
    """Return device and inode of a file by any of its names; None if there is none.

    A path of the candidate's own class is not asked for its text, since it would run code unseen.
    """
    if type(path) not in (str, bytes, int, PosixPath):
        return None
    try:
        found = stat(path if isinstance(path, int) else fspath(path))  # noqa: PTH116 # it may be a number
    except (OSError, TypeError, ValueError):
        return None
    return found.st_dev, found.st_ino


def _python_files(folder: str) -> Iterator[str]:
    """Yield a folder, the Python files below it, and the folders that hold them."""
    yield folder
    for each, _, files in os.walk(folder):
        found = [f"{each}/{file}" for file in files if file.endswith(".py")]
        yield from [each, *found] if found else []
