"""Registries: named values of one kind, our own and those of installed packages.

A package adds a value by an entry point whose group is that of the registry:

    [project.entry-points."tracemill.ingesters"]
    my_agent = "my_package.tracemill:FORMAT"

Values are imported when they are first used, so that a registry costs nothing to import.
"""

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from tracemill.records.errors import ConfigError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")


class NotImported(ConfigError):
    """A package gives a value that cannot be imported."""


class Registry(Generic[T]):
    """Values of one kind by name.

    `kind` says in errors what is looked for, `group` names the entry points, `own` has `module:attribute` of
    each value that comes with tracemill. Ours come first, in the order they are given; those of packages
    follow by name, and may not take the name of another. `fits` says of a name and what a package gives under
    it whether that is such a value, and `wanted` in words what would be. Where `passed_over` is given, a
    value that cannot be imported ends no walk through all of them: it is told once, and the others follow.
    """

    def __init__(
        self,
        kind: str,
        group: str,
        own: Mapping[str, str],
        *,
        fits: Callable[[str, Any], bool],
        wanted: str,
        passed_over: Callable[[ConfigError], None] | None = None,
    ) -> None:
        self.kind, self.group = kind, group
        self._own = dict(own)
        self._fits, self._wanted, self._passed_over = fits, wanted, passed_over
        self._broken: set[str] = set()
        self._points: dict[str, EntryPoint] | None = None
        self._loaded: dict[str, T] = {}

    def names(self) -> tuple[str, ...]:
        """Return every name, ours first. Raises ConfigError where two packages give one name, or one gives
        ours."""
        return (*self._own, *self._of_packages())

    def get(self, name: str) -> T:
        """Return the value of a name. Raises ConfigError for a name that nobody gives, for a package whose
        value cannot be imported, and for one that gives something else."""
        if name not in self._loaded:
            value = self._load(name)
            if not self._fits(name, value):
                raise ConfigError(
                    f"the {self.kind} {name!r} is none",
                    self._wanted,
                    "update or remove the package that gives it",
                )
            self._loaded[name] = value
        return self._loaded[name]

    def __iter__(self) -> Iterator[T]:
        """Give every value, ours first: packages are looked for only once those are used up."""
        for name in self._own:
            yield self.get(name)
        for name in self._of_packages():
            if name in self._broken:
                continue
            try:
                value = self.get(name)
            except NotImported as error:
                if self._passed_over is None:
                    raise
                self._broken.add(name)
                self._passed_over(error)
                continue
            yield value

    @property
    def broken(self) -> frozenset[str]:
        """Names whose value could not be imported and was passed over."""
        return frozenset(self._broken)

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
            raise NotImported(
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
