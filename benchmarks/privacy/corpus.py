"""The corpus: secrets and personal data of many kinds, planted in many settings, built from a seed.

The kinds are split in two halves by a hash of their names: rules are tuned on one, `tune`, and judged on
the other, `report`.
"""

import hashlib
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import kinds_further
import kinds_generic
import kinds_personal
import kinds_services
import kinds_vendors
import surroundings
from shapes import Maker, template

SEED = 20_261_121
_VENDOR_TABLES = (
    kinds_vendors.CLOUD,
    kinds_vendors.GIT_HOSTS,
    kinds_vendors.MODELS,
    kinds_vendors.REGISTRIES,
    kinds_services.CHAT,
    kinds_services.PAYMENT,
    kinds_services.WORK,
    kinds_services.WATCH,
    kinds_services.URLS,
    kinds_further.SERVICES,
)


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of private value: how to make one, and where it can stand.

    `category` is `secret` or `personal`, `shape` is `value`, `line` or `block`, `variable` the name it is
    usually kept under. `by_sight` kinds are known without any word around them.
    """

    name: str
    category: str
    shape: str
    variable: str
    by_sight: bool
    make: Maker

    @property
    def half(self) -> str:
        """`tune` or `report`, by a hash of the name."""
        return ("tune", "report")[hashlib.blake2b(f"{self.category}/{self.name}".encode()).digest()[0] % 2]


@dataclass(frozen=True, slots=True)
class Plant:
    """One planted value: the text it stands in and the parts that must not survive in it."""

    kind: Kind
    setting: str
    keyword: bool
    text: str
    parts: tuple[str, ...]


def kinds() -> list[Kind]:
    """Every kind of the corpus, each name once."""
    found = [
        Kind(name, "secret", "value", variable, True, template(text))
        for table in _VENDOR_TABLES
        for name, variable, text in table
    ]
    found += [Kind(n, "secret", "value", v, False, template(t)) for n, v, t in kinds_generic.NAMED]
    found += [Kind(n, "secret", "value", v, True, make) for n, v, make in kinds_generic.VALUES]
    found += [Kind(n, "secret", "line", "", True, make) for n, make in kinds_generic.LINE_MAKERS]
    found += [Kind(n, "secret", "line", "", True, template(t)) for n, t in kinds_further.LINES]
    found += [Kind(n, "secret", "line", "", True, make) for n, make in kinds_further.DISGUISED]
    found += [Kind(n, "secret", "block", "", True, make) for n, make in kinds_generic.BLOCKS]
    found += [Kind(n, "personal", "value", v, True, make) for n, v, make in kinds_personal.VALUES]
    found += [Kind(n, "personal", "line", "", True, make) for n, make in kinds_personal.LINES]
    found += [Kind(n, "personal", "line", "", True, make) for n, make in kinds_further.PEOPLE]
    return found


def plants(seed: int = SEED, per_kind: int | None = None, only: Iterable[Kind] | None = None) -> list[Plant]:
    """Return the corpus: every kind in every setting that fits it, with and without a descriptive name.

    With `per_kind`, that many of each kind, drawn from the seed.
    """
    return [plant for kind in only or kinds() for plant in _of_kind(kind, seed, per_kind)]


def nameless(seed: int = SEED) -> list[Plant]:
    """Return kinds without a format, planted without a descriptive name.

    They cannot be told from hashes and ids and are reported separately.
    """
    return [
        _plant(kind, setting, False, seed)
        for kind in kinds()
        if not kind.by_sight
        for setting in surroundings.VALUE_SETTINGS
    ]


def _of_kind(kind: Kind, seed: int, per_kind: int | None) -> list[Plant]:
    places = list(_places(kind))
    if per_kind is not None and per_kind < len(places):
        places = random.Random(f"{seed} {kind.name} places").sample(places, per_kind)
    return [_plant(kind, setting, keyword, seed) for setting, keyword in places]


def _places(kind: Kind) -> Iterator[tuple[str, bool]]:
    if kind.shape != "value":
        settings = surroundings.LINE_SETTINGS if kind.shape == "line" else surroundings.BLOCK_SETTINGS
        yield from ((setting, True) for setting in settings)
        return
    for setting in surroundings.VALUE_SETTINGS:
        yield setting, True
        if kind.by_sight:
            yield setting, False


def _plant(kind: Kind, setting: str, keyword: bool, seed: int) -> Plant:
    rng = random.Random(f"{seed} {kind.name} {setting} {keyword}")
    made = kind.make(rng)
    tables = {
        "value": surroundings.VALUE_SETTINGS,
        "line": surroundings.LINE_SETTINGS,
        "block": surroundings.BLOCK_SETTINGS,
    }
    name = kind.variable if keyword else surroundings.neutral(rng)
    return Plant(kind, setting, keyword, tables[kind.shape][setting](rng, name, made.text), made.parts)
