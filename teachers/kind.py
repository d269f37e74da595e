"""Define what a teacher type is: its settings, and the function that builds a teacher."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from tracemill.teachers.core.api_keys import api_key
from tracemill.teachers.core.teacher_protocol import Teacher
from tracemill.teachers.core.teacher_settings import BaseTeacherSettings
from tracemill.teachers.pricing.price_book import PriceBook

S = TypeVar("S", bound=BaseTeacherSettings)


@dataclass(frozen=True, slots=True)
class TeacherContext:
    """Shared parts that the teachers of one run are built with.

    `redact` is applied to every text of an answer before it is stored, `book` keeps prices. `shared` is empty
    at first; builders put shared objects there, such as connections to one server, under a key of their own.
    """

    environ: Mapping[str, str]
    redact: Callable[[str], str] = str
    book: PriceBook = field(default_factory=PriceBook)
    shared: dict[tuple[Any, ...], Any] = field(default_factory=dict[tuple[Any, ...], Any], repr=False)

    def api_key(self, settings: BaseTeacherSettings) -> str | None:
        """Return the key of a teacher, None if it needs none. Raises ConfigError if it is not set."""
        return api_key(settings, self.environ)


@dataclass(frozen=True, slots=True)
class TeacherKind(Generic[S]):
    """A teacher type, registered under the `type` of its entries in `[[teachers]]`.

    `settings` is the model of an entry; its `type` has that name as default. `build` makes a teacher and
    sends nothing. Import large packages inside it: settings are also read by commands without teachers.
    """

    settings: type[S]
    build: Callable[[S, TeacherContext], Teacher]

    @property
    def name(self) -> str:
        """Return the `type` of its entries in `[[teachers]]`."""
        return self.settings.model_fields["type"].default
