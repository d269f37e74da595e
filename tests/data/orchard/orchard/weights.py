"""Weights with units."""

from dataclasses import dataclass

GRAMS = {"g": 1, "kg": 1000, "t": 1_000_000}


@dataclass(frozen=True)
class Weight:
    """A weight in whole grams."""

    grams: int

    def __add__(self, other):
        """Add two weights."""
        if not isinstance(other, Weight):
            return NotImplemented
        total = self.grams + other.grams
        return Weight(total)

    def split(self, parts):
        """Split into whole parts; the first ones take the rest."""
        if parts < 1:
            raise ValueError("at least one part")
        share, rest = divmod(self.grams, parts)
        return [Weight(share + (place < rest)) for place in range(parts)]

    def __str__(self):
        """Write with the largest unit that gives a whole number."""
        for unit in ("t", "kg"):
            if self.grams and self.grams % GRAMS[unit] == 0:
                return f"{self.grams // GRAMS[unit]} {unit}"
        return f"{self.grams} g"


def parse_weight(text):
    """Read a weight such as `2.5 kg`."""
    number, _, unit = text.strip().partition(" ")
    if unit not in GRAMS:
        raise ValueError(f"unknown unit: {unit}")
    grams = float(number) * GRAMS[unit]
    return Weight(round(grams))


def heaviest(weights):
    """Return the heaviest of some weights, None of none."""
    best = None
    for weight in weights:
        if best is None or weight.grams > best.grams:
            best = weight
    return best
