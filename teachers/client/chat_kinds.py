"""Register the teacher types that use the chat-completions API."""

from collections.abc import Mapping

from tracemill.teachers.core.teacher_protocol import Teacher
from tracemill.teachers.core.teacher_settings import CompatibleTeacherSettings, OpenRouterTeacherSettings
from tracemill.teachers.kind import TeacherContext, TeacherKind

TITLE = "tracemill"


def _openrouter(settings: OpenRouterTeacherSettings, context: TeacherContext) -> Teacher:
    return _chat_teacher(settings, context, settings.sends_to(context.environ), _attribution(settings))


def _compatible(settings: CompatibleTeacherSettings, context: TeacherContext) -> Teacher:
    return _chat_teacher(settings, context, settings.base_url.rstrip("/"), {})


def _chat_teacher(
    settings: OpenRouterTeacherSettings | CompatibleTeacherSettings,
    context: TeacherContext,
    url: str,
    headers: Mapping[str, str],
) -> Teacher:
    """Build a teacher; teachers of one server and key share connections and catalogue."""
    from tracemill.teachers.client.chat_teacher import ChatTeacher
    from tracemill.teachers.client.model_catalogue import ModelCatalogue
    from tracemill.teachers.client.transport import Transport

    key = context.api_key(settings)
    place = ("chat", url, key, tuple(headers.items()))
    if place not in context.shared:
        transport = Transport(url, key, headers)
        key_page = isinstance(settings, OpenRouterTeacherSettings)
        context.shared[place] = (transport, ModelCatalogue(transport, key_page, context.book))
    transport, catalogue = context.shared[place]
    return ChatTeacher(settings, transport, catalogue, context.redact, context.book)


def _attribution(settings: OpenRouterTeacherSettings) -> dict[str, str]:
    """Return headers that name the application (https://openrouter.ai/docs/app-attribution)."""
    headers = {"X-OpenRouter-Title": TITLE}
    return headers | {"HTTP-Referer": settings.attribution_url} if settings.attribution_url else headers


OPENROUTER = TeacherKind(OpenRouterTeacherSettings, _openrouter)
OPENAI_COMPATIBLE = TeacherKind(CompatibleTeacherSettings, _compatible)
