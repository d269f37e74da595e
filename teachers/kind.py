"""What a type of teachers is to tracemill: its settings, and what makes a teacher of them."""

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
    """What the teachers of one run are built with.

    `environ` is the environment, `redact` is applied to every text an answer holds before it is kept, `book`
    keeps prices. `shared` is empty at first: what teachers of one run share, such as the connections to one
    server, is put there by whoever builds the first of them, under a key of its own.
    """

    environ: Mapping[str, str]
    redact: Callable[[str], str] = str
    book: PriceBook = field(default_factory=PriceBook)
    shared: dict[tuple[Any, ...], Any] = field(default_factory=dict[tuple[Any, ...], Any], repr=False)

    def api_key(self, settings: BaseTeacherSettings) -> str | None:
        """Return the key of a teacher. Raises ConfigError where one is wanted and not set."""
        return api_key(settings, self.environ)


@dataclass(frozen=True, slots=True)
class TeacherKind(Generic[S]):
    """One type of teachers, as the registry holds it under the name that `type` has in `[[teachers]]`.

    `settings` is the model of an entry; its `type` has that name as default. `build` makes a teacher and
    sends nothing. Import what is large inside of it: the settings are read by commands that ask nobody.
    """

    settings: type[S]
    build: Callable[[S, TeacherContext], Teacher]

    @property
    def name(self) -> str:
        """The `type` of an entry of `[[teachers]]`."""
        return self.settings.model_fields["type"].default
