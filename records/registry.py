"""Registries: named values of one kind, our own and those of installed packages.

A package adds a value by an entry point whose group is that of the registry:

    [project.entry-points."tracemill.ingesters"]
    my_agent = "my_package.tracemill:FORMAT"

Values are imported when they are first used, so that a registry costs nothing to import.
"""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Generic, TypeVar

from tracemill.records.errors import ConfigError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")


class Registry(Generic[T]):
    """Values of one kind by name.

    `kind` says in errors what is looked for, `group` names the entry points, `own` has `module:attribute` of
    each value that comes with tracemill. Ours come first, in the order they are given; those of packages
    follow by name, and may not take the name of another.
    """

    def __init__(self, kind: str, group: str, own: Mapping[str, str]) -> None:
        self.kind, self.group = kind, group
        self._own = dict(own)
        self._added: dict[str, T] = {}
        self._points: dict[str, EntryPoint] | None = None
        self._loaded: dict[str, T] = {}

    def add(self, name: str, value: T) -> None:
        """Add a value for this process, as a script or a test does. Raises ConfigError for a name that is
        taken."""
        if name in self.names():
            raise ConfigError(f"the {self.kind} {name!r} is there already", "a name of its own")
        self._added[name] = value

    def names(self) -> tuple[str, ...]:
        """Return every name, ours first. Raises ConfigError where two packages give one name, or one gives
        ours."""
        return (*self._own, *self._added, *self._of_packages())

    def get(self, name: str) -> T:
        """Return the value of a name. Raises ConfigError for a name that nobody gives, and for a package
        whose value cannot be imported."""
        if name in self._added:
            return self._added[name]
        if name not in self._loaded:
            self._loaded[name] = self._load(name)
        return self._loaded[name]

    def __iter__(self) -> Iterator[T]:
        """Give every value, ours first: packages are looked for only once those are used up."""
        for name in (*self._own, *self._added):
            yield self.get(name)
        for name in self._of_packages():
            yield self.get(name)

    def __contains__(self, name: object) -> bool:
        return name in self.names()

    def _load(self, name: str) -> T:
        if name in self._own:
            module, _, attribute = self._own[name].partition(":")
            return getattr(import_module(module), attribute)
        point = self._of_packages().get(name)
        if point is None:
            raise ConfigError(f"there is no {self.kind} {name!r}", ", ".join(self.names()))
        try:
            return point.load()
        except Exception as error:  # whatever somebody else's module raises
            raise ConfigError(
                f"the {self.kind} {name!r} of {_package(point)} cannot be imported ({type(error).__name__})",
                f"a value at {point.value}",
                "update or remove that package",
            ) from error

    def _of_packages(self) -> "Mapping[str, EntryPoint]":
        if self._points is None:
            from importlib.metadata import entry_points  # 20 to 60 ms, wanted where packages are looked for

            found: dict[str, EntryPoint] = {}
            for point in sorted(set(entry_points(group=self.group)), key=lambda one: (one.name, one.value)):
                other = found.get(point.name)
                if point.name in self._own or other is not None:
                    by = _package(other) if other else "tracemill"
                    raise ConfigError(
                        f"{_package(point)} gives a {self.kind} {point.name!r}, as {by} does",
                        "one of each name",
                        "remove one of the packages",
                    )
                found[point.name] = point
            self._points = found
        return self._points


def _package(point: "EntryPoint") -> str:
    return point.dist.name if point.dist is not None else point.value
