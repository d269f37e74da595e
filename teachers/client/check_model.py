"""Check by its catalogue entry that a model can be asked, before any money is spent."""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from tracemill.records.errors import TeacherError
from tracemill.teachers.core.teacher_settings import OpenRouterTeacherSettings
from tracemill.teachers.pricing.model_info import ModelCard, read_model_info_of_endpoints


def check_model_entry(models: Mapping[str, Mapping[str, Any]], model: str, server: str) -> Mapping[str, Any]:
    """Return a model's entry in a server's list. Raises TeacherError if it has none."""
    entry = models.get(model)
    if entry is None:
        like = get_close_matches(model, models, 3)
        raise TeacherError(
            f"{server} has no model {model!r}",
            f"a model id from its list{', such as ' + ' or '.join(like) if like else ''}",
            "correct `model` of the teacher",
        )
    return entry


def card_found(
    entry: Mapping[str, Any], endpoints: Sequence[Mapping[str, Any]], settings: OpenRouterTeacherSettings
) -> ModelCard:
    """Return the card of a teacher's model.

    Raises TeacherError if the pinned provider does not serve it, or its prices cannot be read.
    """
    model, provider = settings.model, settings.provider
    try:
        card = read_model_info_of_endpoints(entry, endpoints, provider)
    except ValueError:
        raise TeacherError(
            f"the prices of {model!r} cannot be read", "a price per token", "set `prices`"
        ) from None
    if card is None:
        tags = sorted({str(each.get("tag") or each.get("provider_name")) for each in endpoints})
        raise TeacherError(
            f"{provider!r} does not serve {model!r}", f"one of {', '.join(tags)}", "correct `provider`"
        )
    return card


def require_usable(card: ModelCard, settings: OpenRouterTeacherSettings) -> None:
    """Raise TeacherError if the model does not fit the settings.

    It must call tools, fit an answer of `max_tokens`, and support the reasoning asked for.
    """
    model, reasoning = settings.model, settings.reasoning
    if not card.supports_field("tools"):
        raise TeacherError(f"{model!r} cannot call tools", "a model that can", "choose another teacher")
    wanted = card.room(settings)
    longest = min(n for n in (card.context_tokens, card.max_answer_tokens, wanted) if n)
    if longest < wanted or longest == card.context_tokens:
        room = " with `reasoning_room`" if settings.reasoning_room else ""
        raise TeacherError(
            f"{model!r} answers at most {longest:,} tokens and `max_tokens`{room} is {wanted:,}",
            "an answer that fits the model beside its prompt",
            "lower `max_tokens` of the teacher",
        )
    if not reasoning.to_wire():
        return
    if not card.supports_field("reasoning"):
        raise TeacherError(f"{model!r} does not support `reasoning`", "none", "remove it from the teacher")
    if card.reasoning_mandatory and (reasoning.enabled is False or reasoning.effort == "none"):
        raise TeacherError(f"{model!r} always reasons", "`reasoning` that is on", "leave it out")
    if card.efforts and reasoning.effort not in (None, *card.efforts):
        raise TeacherError(
            f"{model!r} does not support the effort {reasoning.effort!r}",
            f"one of {', '.join(card.efforts)}",
            "correct `reasoning.effort`",
        )
