"""Build teachers from their settings."""

from collections.abc import Callable, Mapping, Sequence

from tracemill.teachers.client.transport import NO_KEY
from tracemill.teachers.core.teacher_protocol import Teacher
from tracemill.teachers.core.teacher_settings import BaseTeacherSettings
from tracemill.teachers.kind import TeacherContext
from tracemill.teachers.pricing.price_book import PriceBook
from tracemill.teachers.registry import TEACHERS


def build_teachers(
    settings: Sequence[BaseTeacherSettings],
    environ: Mapping[str, str],
    redact: Callable[[str], str] = str,
    book: PriceBook | None = None,
    to_ask: bool = True,
) -> list[Teacher]:
    """Build one teacher for each of the settings, in order; nothing is sent yet.

    Teachers of one server and key share connections and catalogue; `book` keeps prices. Without `to_ask` no
    keys are needed. Raises ConfigError if a key is missing.
    """
    if not to_ask:
        named = {name for one in settings if (name := one.key_variable())}
        missing = {name for name in named if not environ.get(name, "").strip()}
        environ = dict(environ) | dict.fromkeys(missing, NO_KEY)
    context = TeacherContext(environ, redact, book or PriceBook())
    return [TEACHERS.get(one.type).build(one, context) for one in settings]


async def check_all(teachers: Sequence[Teacher]) -> None:
    """Raise TeacherError if a teacher cannot answer: wrong key, unknown model, no network.

    Prices are read too, no session text is sent, and the connections are closed.
    """
    try:
        for teacher in teachers:
            await teacher.check()
    finally:
        for teacher in teachers:
            await teacher.close()
