"""Registries: named values of one kind, those of tracemill and those of installed packages.

A package adds a value by an entry point whose group is that of the registry:

    [project.entry-points."tracemill.ingesters"]
    my_agent = "my_package.tracemill:FORMAT"

Values are imported when they are first used.
"""

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from tracemill.records.errors import ConfigError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")


class NotImported(ConfigError):
    """A package names a value that cannot be imported."""


class Registry(Generic[T]):
    """Values of one kind by name.

    `kind` names the kind in errors, `group` is the group of the entry points, `own` maps names to
    `module:attribute` for the values of tracemill. These come first, in their order; those of packages
    follow by name, and names must be unique. `fits` checks a package's value, and `expected` describes a
    valid one. With `on_import_error`, iteration reports a value that cannot be imported once and continues.
    """

    def __init__(
        self,
        kind: str,
        group: str,
        own: Mapping[str, str],
        *,
        fits: Callable[[str, Any], bool],
        expected: str,
        on_import_error: Callable[[ConfigError], None] | None = None,
    ) -> None:
        self.kind, self.group = kind, group
        self._own = dict(own)
        self._fits, self._expected, self._on_import_error = fits, expected, on_import_error
        self._broken: set[str] = set()
        self._points: dict[str, EntryPoint] | None = None
        self._loaded: dict[str, T] = {}

    def names(self) -> tuple[str, ...]:
        """Return every name, those of tracemill first. Raises ConfigError if two values share a name."""
        return (*self._own, *self._of_packages())

    def get(self, name: str) -> T:
        """Return the value of a name.

        Raises ConfigError for an unknown name, and for a package's value that cannot be imported or is of
        another kind.
        """
        if name not in self._loaded:
            value = self._load(name)
            if not self._fits(name, value):
                raise ConfigError(
                    f"the {self.kind} {name!r} of a package is not valid",
                    self._expected,
                    "update or remove the package that gives it",
                )
            self._loaded[name] = value
        return self._loaded[name]

    def own(self) -> Iterator[T]:
        """Yield tracemill's values."""
        for name in self._own:
            yield self.get(name)

    def __iter__(self) -> Iterator[T]:
        """Yield every value, those of tracemill first; packages are searched only after them."""
        yield from self.own()
        for name in self._of_packages():
            if name in self._broken:
                continue
            try:
                value = self.get(name)
            except NotImported as error:
                if self._on_import_error is None:
                    raise
                self._broken.add(name)
                self._on_import_error(error)
                continue
            yield value

    @property
    def broken(self) -> frozenset[str]:
        """Return the names whose value could not be imported."""
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
        except Exception as error:  # importing a package may raise anything
            raise NotImported(
                f"the {self.kind} {name!r} of {_package(point)} cannot be imported ({type(error).__name__})",
                f"a value at {point.value}",
                "update or remove that package",
            ) from error

    def _of_packages(self) -> "Mapping[str, EntryPoint]":
        if self._points is None:
            from importlib.metadata import entry_points

            points: dict[str, EntryPoint] = {}
            for point in sorted(
                set(entry_points(group=self.group)), key=lambda each: (each.name, each.value)
            ):
                other = points.get(point.name)
                if point.name in self._own or other is not None:
                    by = _package(other) if other else "tracemill"
                    raise ConfigError(
                        f"{_package(point)} and {by} both give a {self.kind} {point.name!r}",
                        "unique names",
                        "remove one of the packages",
                    )
                points[point.name] = point
            self._points = points
        return self._points


def _package(point: "EntryPoint") -> str:
    return point.dist.name if point.dist is not None else point.value
