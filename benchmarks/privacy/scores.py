"""Scores: recall on the planted corpus, false alarms on ordinary text."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from corpus import Plant
from judging import Change, changes, found, is_large_base64, is_really_there

HALVES = ("tune", "report")
CATEGORIES = ("secret", "personal")
PERSONAL_TYPES = frozenset(
    ("EMAIL", "IP", "MAC", "PHONE", "HOST", "USER", "PERSON", "CARD", "CREDIT_CARD", "IBAN", "SSN")
)


@dataclass(slots=True)
class Recall:
    """Planted values and how many of them were found, by kind."""

    kinds: dict[str, tuple[str, str]] = field(default_factory=dict)
    planted: Counter[str] = field(default_factory=Counter)
    found: Counter[str] = field(default_factory=Counter)
    missed: list[Plant] = field(default_factory=list)

    def of(self, half: str, category: str) -> float | None:
        """Return the share of values found in one half of one category."""
        names = [n for n, place in self.kinds.items() if place == (half, category)]
        planted = sum(self.planted[n] for n in names)
        return sum(self.found[n] for n in names) / planted if planted else None

    def mean_of_kinds(self, half: str, category: str) -> float | None:
        """Return the mean over kinds of the share found, in one half of one category."""
        shares = [self.found[n] / self.planted[n] for n, at in self.kinds.items() if at == (half, category)]
        return sum(shares) / len(shares) if shares else None

    def by_kind(self, half: str) -> dict[str, float]:
        """Return the share found of each kind of a half."""
        return {n: self.found[n] / self.planted[n] for n, place in self.kinds.items() if place[0] == half}

    def bare(self, half: str) -> float | None:
        """Return the share found of secrets without a descriptive name beside them."""
        return self._bare.get(half)

    _bare: dict[str, float] = field(default_factory=dict)


def recall(plants: Sequence[Plant], redacted: Sequence[str]) -> Recall:
    """Compute recall from the corpus and the redacted texts."""
    score = Recall()
    bare: dict[str, list[bool]] = {}
    for plant, text in zip(plants, redacted, strict=True):
        kind, ok = plant.kind, found(plant.parts, text)
        score.kinds[kind.name] = (kind.half, kind.category)
        score.planted[kind.name] += 1
        score.found[kind.name] += ok
        if not ok:
            score.missed.append(plant)
        if not plant.keyword and kind.category == "secret":
            bare.setdefault(kind.half, []).append(ok)
    score._bare = {half: sum(each) / len(each) for half, each in bare.items()}
    return score


@dataclass(slots=True)
class Alarms:
    """Redactions in ordinary text.

    They are false ones, those of addresses, signed names and home folders that are really there, and
    shortened base64, which is wanted.
    """

    megabytes: float
    false_ones: list[Change] = field(default_factory=list)
    real: int = 0
    blobs: int = 0

    @property
    def per_mb(self) -> float:
        """False alarms per MB, every type."""
        return len(self.false_ones) / self.megabytes

    def types(self) -> dict[str, int]:
        """Return false alarms by the type that the placeholder names."""
        return dict(Counter(change.type for change in self.false_ones).most_common())

    @property
    def secret_per_mb(self) -> float:
        """False alarms per MB that claim a secret, not a person."""
        return sum(c.type not in PERSONAL_TYPES for c in self.false_ones) / self.megabytes


def alarms(texts: Sequence[str], redacted: Sequence[str]) -> Alarms:
    """Count the redactions in texts that hold nothing private but addresses and home folders."""
    score = Alarms(sum(len(text.encode("utf-8", "surrogatepass")) for text in texts) / 1e6)
    for before, after in zip(texts, redacted, strict=True):
        for change in changes(before, after):
            if is_really_there(change):
                score.real += 1
            elif is_large_base64(change):
                score.blobs += 1
            else:
                score.false_ones.append(change)
    return score
