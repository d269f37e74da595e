"""Read a server's catalogue entry of a model: price, context length, abilities.

The pages are `GET /models` and `GET /models/{author}/{slug}/endpoints` of
https://openrouter.ai/docs/api-reference; other OpenAI-compatible servers give the id alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tracemill.records.reply import TeacherUsage
from tracemill.teachers.core.price import Price, highest_price, price_of_catalogue
from tracemill.teachers.core.teacher_settings import BaseTeacherSettings

_PRICED = ("prompt", "completion", "request", "internal_reasoning", "input_cache_read", "input_cache_write")
_KEPT = ("id", "canonical_slug", "context_length", "top_provider", "supported_parameters", "reasoning")
_KEPT += ("expiration_date", "tag", "provider_name", "max_completion_tokens", "max_prompt_tokens")


@dataclass(frozen=True, slots=True)
class ModelCard:
    """A model at one provider, or at any that serves it; None means unknown.

    `snapshot` is the dated model that the id currently means, `context_tokens` the maximum tokens of prompt
    and answer together, `parameters` the request fields the model supports.
    """

    price: Price
    snapshot: str | None = None
    context_tokens: int | None = None
    max_answer_tokens: int | None = None
    parameters: frozenset[str] | None = None
    reasoning_mandatory: bool = False
    reasons: bool = False
    efforts: tuple[str, ...] = ()
    by_provider: Mapping[str, tuple[Price, ...]] = field(default_factory=dict[str, tuple[Price, ...]])
    """Prices by provider tag, and by name in lower case."""

    @property
    def priced(self) -> bool:
        """Return whether it has a known price other than 0."""
        return any((self.price.prompt, self.price.completion, self.price.request))

    def least_nanousd(self, provider: str | None, usage: TeacherUsage) -> int:
        """Return the least that a provider can charge for these tokens, in nano-USD.

        For an unknown provider the highest prices count.
        """
        prices = self.by_provider.get((provider or "").lower(), (self.price,))
        tokens = usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens, usage.cache_write_tokens
        return min(price.least_nanousd(*tokens) for price in prices)

    def room(self, settings: BaseTeacherSettings) -> int:
        """Return the most tokens of an answer, reasoning included.

        An unset `reasoning_room` is limited to what the model can answer and to a quarter of its context.
        """
        room = settings.reasoning_tokens(self.reasons)
        if settings.reasoning_room is None:
            most = [self.max_answer_tokens, self.context_tokens and self.context_tokens // 4]
            room = min([room, *(max(each - settings.max_tokens, 0) for each in most if each)])
        return settings.max_tokens + room

    def supports_field(self, parameter: str) -> bool:
        """Return whether the model supports a request field; True if unknown."""
        return self.parameters is None or parameter in self.parameters


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def as_mapping(value: object) -> Mapping[str, Any]:
    """Return a JSON object, an empty one for any other value."""
    return value if isinstance(value, dict) else {}


def read_model_info(entry: Mapping[str, Any]) -> ModelCard:
    """Return the card of an entry of `GET /models` or of one endpoint.

    Raises ValueError where its prices cannot be read.
    """
    parameters, reasoning = entry.get("supported_parameters"), as_mapping(entry.get("reasoning"))
    longest = entry.get("max_completion_tokens") or as_mapping(entry.get("top_provider")).get(
        "max_completion_tokens"
    )
    slug = entry.get("canonical_slug")
    return ModelCard(
        price=price_of_catalogue(entry),
        snapshot=slug if isinstance(slug, str) else None,
        context_tokens=_whole(entry.get("context_length")),
        max_answer_tokens=_whole(longest),
        parameters=frozenset(map(str, parameters)) if isinstance(parameters, list) else None,
        reasoning_mandatory=reasoning.get("mandatory") is True,
        reasons=bool(reasoning),
        efforts=tuple(map(str, reasoning.get("supported_efforts") or ())),
    )


def serves(endpoint: Mapping[str, Any], provider: str) -> bool:
    """Return whether an endpoint belongs to a provider, by tag (`deepinfra/fp4`, `deepinfra`) or name."""
    tag, wanted = str(endpoint.get("tag") or "").lower(), provider.lower()
    return wanted in (tag, tag.partition("/")[0], str(endpoint.get("provider_name") or "").lower())


def read_model_info_of_endpoints(
    entry: Mapping[str, Any], endpoints: Sequence[Mapping[str, Any]], provider: str | None
) -> ModelCard | None:
    """Return the card of a model as these endpoints serve it; None if none is `provider`'s.

    It has the highest price, the longest context and every ability among them. Raises ValueError where prices
    cannot be read.
    """
    listed = read_model_info(entry)
    fitting = [e for e in endpoints if provider is None or serves(e, provider)]
    if not fitting:
        return None if provider is not None and endpoints else listed
    cards = [read_model_info(e) for e in fitting]
    able = [card for card in cards if card.supports_field("tools")] or cards
    named = [card.parameters for card in able if card.parameters is not None]
    return ModelCard(
        price=highest_price([card.price for card in able]),
        snapshot=listed.snapshot,
        context_tokens=max((c.context_tokens or 0 for c in able), default=0) or listed.context_tokens,
        max_answer_tokens=max((c.max_answer_tokens or 0 for c in able), default=0)
        or listed.max_answer_tokens,
        parameters=frozenset().union(*named) if len(named) == len(able) else listed.parameters,
        reasoning_mandatory=listed.reasoning_mandatory,
        reasons=listed.reasons,
        efforts=listed.efforts,
        by_provider=_by_provider(fitting),
    )


def _by_provider(endpoints: Sequence[Mapping[str, Any]]) -> dict[str, tuple[Price, ...]]:
    found: dict[str, tuple[Price, ...]] = {}
    for endpoint in endpoints:
        tag, price = str(endpoint.get("tag") or "").lower(), price_of_catalogue(endpoint)
        for name in {tag, tag.partition("/")[0], str(endpoint.get("provider_name") or "").lower()} - {""}:
            found[name] = (*found.get(name, ()), price)
    return found


def fields_to_keep_of_model_info(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a catalogue entry to store: those that `ModelCard` is built from."""
    found = {key: entry[key] for key in _KEPT if entry.get(key) is not None}
    pricing = as_mapping(entry.get("pricing"))
    priced = {key: pricing[key] for key in (*_PRICED, "overrides") if pricing.get(key)}
    return found | {"pricing": priced}


def diff_model_info(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return the changes between two stored entries of a model: prices and snapshot."""
    found: list[str] = []
    old, new = as_mapping(before.get("pricing")), as_mapping(now.get("pricing"))
    for name in (*_PRICED, "overrides"):
        if _amount(old.get(name)) != _amount(new.get(name)):
            was, is_now = _format_price(name, old.get(name)), _format_price(name, new.get(name))
            found.append(f"{name.replace('_', ' ')} price {was} -> {is_now}")
    if before.get("canonical_slug") != now.get("canonical_slug"):
        found.append(f"snapshot {before.get('canonical_slug')} -> {now.get('canonical_slug')}")
    return found


def _amount(value: object) -> object:
    try:
        return float(str(value))
    except ValueError:
        return value or 0.0


def _format_price(name: str, value: object) -> str:
    """Return a price per token as USD per million, one per request as it is."""
    amount = _amount(value)
    if not isinstance(amount, float):
        return "other hours or lengths"
    return f"${amount:g}" if name == "request" else f"${amount * 1e6:g} per million"
