"""From configuration to teachers that can be asked."""

from collections.abc import Callable, Mapping, Sequence

from tracemill.records.errors import ConfigError
from tracemill.teachers.client.chat_teacher import ChatTeacher
from tracemill.teachers.client.model_catalogue import Catalogue
from tracemill.teachers.client.transport import NO_KEY, Transport
from tracemill.teachers.core.teacher_protocol import Teacher
from tracemill.teachers.core.teacher_settings import (
    OPENROUTER_URL,
    OPENROUTER_URL_VARIABLE,
    CompatibleSettings,
    OpenRouterSettings,
    RecordedSettings,
    SimulatedSettings,
    TeacherSettings,
)
from tracemill.teachers.offline.recorded_teacher import RecordedTeacher
from tracemill.teachers.offline.simulated_teacher import SimulatedTeacher
from tracemill.teachers.pricing.price_book import PriceBook

TITLE = "tracemill"


def openrouter_url(settings: OpenRouterSettings, environ: Mapping[str, str]) -> str:
    """Where an OpenRouter teacher asks: its own `base_url`, else the environment's, else the API."""
    return (settings.base_url or environ.get(OPENROUTER_URL_VARIABLE) or OPENROUTER_URL).rstrip("/")


def api_key(settings: OpenRouterSettings | CompatibleSettings, environ: Mapping[str, str]) -> str | None:
    """The key from the environment. Raises ConfigError where one is named and not set."""
    if settings.api_key_env is None:
        return None
    key = environ.get(settings.api_key_env, "").strip()
    if not key:
        raise ConfigError(
            f"the teacher {settings.name!r} has no API key",
            f"the environment variable {settings.api_key_env}",
            "set it, or use the simulated teachers",
        )
    if not key.isascii() or not key.isprintable() or " " in key:
        raise ConfigError(
            f"{settings.api_key_env} holds characters that no API key has",
            "printable ASCII without blanks",
            "set it again as the provider shows it",
        )
    return key


def build_teachers(
    settings: Sequence[TeacherSettings],
    environ: Mapping[str, str],
    redact: Callable[[str], str] = str,
    book: PriceBook | None = None,
    to_ask: bool = True,
) -> list[Teacher]:
    """One teacher for each of the settings, in their order; nothing is sent yet.

    Teachers of one server and key share connections and catalogue; `book` keeps what they cost. Where they
    are not `to_ask`, keys are not needed. Raises ConfigError where a key is missing.
    """
    shared: dict[tuple, tuple[Transport, Catalogue]] = {}
    book = book or PriceBook()
    if not to_ask:
        named = {name for one in settings if (name := getattr(one, "api_key_env", None))}
        missing = {name for name in named if not environ.get(name, "").strip()}
        environ = dict(environ) | dict.fromkeys(missing, NO_KEY)
    teachers: list[Teacher] = []
    for one in settings:
        if isinstance(one, SimulatedSettings):
            teachers.append(SimulatedTeacher(one))
        elif isinstance(one, RecordedSettings):
            teachers.append(RecordedTeacher(one, redact))
        else:
            teachers.append(_chat_teacher(one, environ, redact, shared, book))
    return teachers


async def check_all(teachers: Sequence[Teacher]) -> None:
    """Raises TeacherError where one of them cannot answer at all: wrong key, unknown model, no network. Reads
    their prices too, sends no text of a session, and gives their connections back."""
    try:
        for teacher in teachers:
            await teacher.check()
    finally:
        for teacher in teachers:
            await teacher.close()


def _chat_teacher(
    settings: OpenRouterSettings | CompatibleSettings,
    environ: Mapping[str, str],
    redact: Callable[[str], str],
    shared: "dict[tuple, tuple[Transport, Catalogue]]",
    book: PriceBook,
) -> Teacher:
    key = api_key(settings, environ)
    if isinstance(settings, OpenRouterSettings):
        url, headers = openrouter_url(settings, environ), _attribution(settings)
    else:
        url, headers = settings.base_url.rstrip("/"), {}
    place = (url, key, tuple(headers.items()))
    if place not in shared:
        transport = Transport(url, key, headers)
        shared[place] = (transport, Catalogue(transport, isinstance(settings, OpenRouterSettings), book))
    return ChatTeacher(settings, *shared[place], redact, book)


def _attribution(settings: OpenRouterSettings) -> dict[str, str]:
    """Headers that name the application at OpenRouter (https://openrouter.ai/docs/app-attribution)."""
    headers = {"X-OpenRouter-Title": TITLE}
    return headers | {"HTTP-Referer": settings.attribution_url} if settings.attribution_url else headers
