"""Draw a stratified sample, the same for the same set, seed and size.

Each stratum gets its share of the sample, rounded down or up: proportional allocation, so that the
sample looks like the whole. The seats left over by rounding down go to strata by sequential Poisson
sampling with permanent random numbers (Ohlsson 1998, Journal of Official Statistics 14(2)): the
smallest ratio of a stratum's own random number to its remainder wins, so that small strata have a fair
chance, and a set that grows a little keeps nearly all of its sample. Within a stratum the sessions with
the smallest hashes are taken. No order of files or rows goes into it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, get_args

from tracemill.flows.sources.watermark_records import StratumFields
from tracemill.records.identity import digest

StratumField = Literal["repository", "outcome", "model", "length"]
BY: tuple[StratumField, ...] = get_args(StratumField)
_HASH_BITS = 64
Stratum = tuple[str, ...]


class SampleCandidate(NamedTuple):
    """A session that may be drawn: its key, and its stratum."""

    key: str
    stratum: Stratum


@dataclass(frozen=True, slots=True)
class SampleOptions:
    """Options of a sample: its size, its seed, and the fields it is stratified by."""

    max_traces: int
    seed: int = 0
    by: tuple[StratumField, ...] = BY


@dataclass(frozen=True, slots=True)
class DrawnSample:
    """The keys that were drawn, and for each stratum the number of candidates and of drawn sessions."""

    order: SampleOptions
    taken: frozenset[str]
    strata: Mapping[Stratum, tuple[int, int]] = field(default_factory=dict)

    @property
    def candidates(self) -> int:
        """Return the number of candidates."""
        return sum(total for total, _ in self.strata.values())

    def to_json(self) -> dict[str, Any]:
        """Return the counts of the draw for a manifest, the largest stratum first."""
        rows = sorted(self.strata.items(), key=lambda item: (-item[1][0], item[0]))
        return {
            "max_traces": self.order.max_traces,
            "seed": self.order.seed,
            "by": list(self.order.by),
            "candidates": self.candidates,
            "taken": len(self.taken),
            "strata": [
                dict(zip(self.order.by, names, strict=True)) | {"total": total, "taken": taken}
                for names, (total, taken) in rows
            ],
        }


def stratum_of_facts(facts: StratumFields, by: Iterable[str]) -> Stratum:
    """Return the stratum of a session with these fields; an unknown field is an empty text."""
    named = {"repository": facts.repository, "outcome": facts.outcome, "model": facts.model}
    named["length"] = stratum_length_bucket(facts.steps)
    return tuple(named[name] for name in by)


def stratum_length_bucket(steps: int | None) -> str:
    """Return the size class of a number of steps; classes double: `1`, `2`, `3-4`, `5-8`, and so on."""
    if steps is None:
        return ""
    if steps <= 2:
        return str(steps)
    upper = 1 << (steps - 1).bit_length()
    return f"{upper // 2 + 1}-{upper}"


def draw_stratified_sample(candidates: Iterable[SampleCandidate], order: SampleOptions) -> DrawnSample:
    """Draw the sample; return all candidates if there are no more than are wanted.

    Keys are unique.
    """
    strata: dict[Stratum, list[str]] = {}
    for candidate in candidates:
        strata.setdefault(candidate.stratum, []).append(candidate.key)
    seats = seats_per_stratum(
        {name: len(keys) for name, keys in strata.items()}, order.max_traces, order.seed
    )
    taken: set[str] = set()
    for name, keys in strata.items():
        keys.sort(key=lambda key: (_number(order.seed, "session", key), key))
        taken.update(keys[: seats[name]])
    counted = {name: (len(keys), seats[name]) for name, keys in strata.items()}
    return DrawnSample(order, frozenset(taken), counted)


def seats_per_stratum(sizes: Mapping[Stratum, int], wanted: int, seed: int) -> dict[Stratum, int]:
    """Return the number of sessions to draw from each stratum.

    It is the stratum's exact share rounded down or up; together they are `wanted`, or all sessions if there
    are fewer.
    """
    total = sum(sizes.values())
    if wanted >= total:
        return dict(sizes)
    seats = {name: wanted * size // total for name, size in sizes.items()}
    remainders = {name: rest for name, size in sizes.items() if (rest := wanted * size % total)}

    def turn(name: Stratum) -> tuple[float, Stratum]:
        return _number(seed, "stratum", *name) / remainders[name], name

    for name in sorted(remainders, key=turn)[: wanted - sum(seats.values())]:
        seats[name] += 1
    return seats


def _number(seed: int, *parts: str) -> int:
    """Return a random number of 64 bits that depends on its arguments alone."""
    return int(digest("sample", str(seed), *parts, size=_HASH_BITS // 8), 16)
