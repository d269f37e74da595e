"""Pairs through a recipe: what stays, what goes and why."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracemill.normalize.datajuicer.recipe import Recipe, check_available, load_recipe
from tracemill.normalize.datajuicer.start_child import TIMEOUT_S, Rows, run_worker
from tracemill.normalize.operators.operator_rows import RAISED, dump_operator_row, to_row
from tracemill.records.errors import NormalizeError
from tracemill.records.pair import DPOPair, DroppedPair, NormalizedDPOPair


@dataclass(frozen=True, slots=True)
class OperatorCount:
    """What one operator of the recipe was given and dropped; `errors` are those of the dropped rows
    that made it raise."""

    operator: str
    rows_in: int
    dropped: int
    errors: int


@dataclass(frozen=True, slots=True)
class Normalized:
    """What a recipe left of the pairs, in their order.

    `counts` has an entry for each operator, in the order of the recipe, also for those that dropped
    nothing. `recipe` names the recipe as on each kept pair, `fingerprint` is the whole of it.
    """

    kept: list[NormalizedDPOPair]
    dropped: list[DroppedPair]
    counts: tuple[OperatorCount, ...]
    recipe: str
    fingerprint: str


class DJNormalizer:
    """Runs pairs through a data-juicer recipe, in a child process of its own.

    `recipe` is a YAML file, the one that ships with tracemill where None. `cache_dir` keeps the child's
    home and caches between runs; without it they lie in a temporary folder and go away. `processes` share
    the rows, one for each core where None; the outcome is the same for any number.
    """

    def __init__(
        self,
        recipe: Path | None = None,
        cache_dir: Path | None = None,
        timeout_s: float = TIMEOUT_S,
        processes: int | None = None,
    ) -> None:
        self._path = recipe
        self._cache_dir = cache_dir
        self._timeout_s = timeout_s
        self._processes = processes

    def check(self) -> Recipe:
        """The recipe, checked by data-juicer itself (about 5 s), before anything is spent on pairs.

        Raises NormalizeError where data-juicer is missing, the recipe cannot be read, or one of its
        operators, arguments or fields is unknown.
        """
        check_available()
        recipe = load_recipe(self._path)
        with self._folder() as (folder, home):
            run_worker(recipe.path, None, folder, home, self._timeout_s)
        return recipe

    def normalize(self, pairs: Sequence[DPOPair]) -> Normalized:
        """Every pair once, kept or dropped. Without pairs no process is started.

        The states of the pairs are never read. Raises NormalizeError as `check` does, and where the
        process dies or its figures do not add up.
        """
        check_available()
        recipe = load_recipe(self._path)
        if not pairs:
            counts = tuple(OperatorCount(label, 0, 0, 0) for label in recipe.labels)
            return Normalized([], [], counts, recipe.name, recipe.fingerprint)
        with self._folder() as (folder, home):
            texts = _write_rows(folder / "rows.jsonl", pairs)
            rows = Rows(folder / "rows.jsonl", len(pairs), self._processes)
            outcome = run_worker(recipe.path, rows, folder, home, self._timeout_s)
        _check_sum(outcome, len(pairs))
        made = _assemble(recipe, pairs, texts, outcome)
        _check_operators(made.counts, outcome["dropped"])
        return made

    @contextmanager
    def _folder(self) -> Iterator[tuple[Path, Path]]:
        with tempfile.TemporaryDirectory(prefix="tracemill-normalize-", ignore_cleanup_errors=True) as name:
            folder = Path(name)
            yield folder, (self._cache_dir or folder / "home").resolve()


def _write_rows(path: Path, pairs: Sequence[DPOPair]) -> list[tuple[str, str]]:
    """The rows of the pairs, a line each; gives the texts of both sides."""
    texts: list[tuple[str, str]] = []
    with path.open("wb") as lines:
        for index, pair in enumerate(pairs):
            row = to_row(index, pair)
            texts.append((row["chosen"], row["rejected"]))
            lines.write(dump_operator_row(row))
    return texts


def _check_sum(outcome: Mapping[str, Any], rows: int) -> None:
    kept, dropped = outcome["kept"], [drop["row"] for drop in outcome["dropped"]]
    if sorted([*kept, *dropped]) != list(range(rows)):
        raise NormalizeError(
            f"{rows} rows went in, {len(kept)} kept and {len(dropped)} dropped came out",
            "every row once, kept or dropped",
        )


def _check_operators(counts: Sequence[OperatorCount], dropped: Sequence[Mapping[str, Any]]) -> None:
    """One row that makes an operator raise is that row's fault; if every row does, it is the recipe's."""
    for each in counts:
        if 1 < each.rows_in == each.errors:
            error = next(drop["value"] for drop in dropped if drop["operator"] == each.operator)
            raise NormalizeError(
                f"{each.operator} raised {error} on each of its {each.rows_in} rows",
                "an operator that can read the rows of the recipe",
                "look at its arguments, such as text_key, in the recipe",
            )


def _assemble(
    recipe: Recipe, pairs: Sequence[DPOPair], texts: Sequence[tuple[str, str]], outcome: Mapping[str, Any]
) -> Normalized:
    kept = [
        NormalizedDPOPair(pairs[row], chosen, rejected, recipe.name)
        for row in sorted(outcome["kept"])
        for chosen, rejected in [texts[row]]
    ]
    dropped = [
        DroppedPair(pairs[drop["row"]], chosen, rejected, drop["operator"], drop["reason"], drop["value"])
        for drop in sorted(outcome["dropped"], key=lambda drop: drop["row"])
        for chosen, rejected in [texts[drop["row"]]]
    ]
    counts = tuple(
        _count(label, rows_in, outcome["dropped"])
        for label, rows_in in zip(recipe.labels, outcome["rows_in"], strict=True)
    )
    return Normalized(kept, dropped, counts, recipe.name, recipe.fingerprint)


def _count(label: str, rows_in: int, drops: Sequence[Mapping[str, Any]]) -> OperatorCount:
    mine = [drop for drop in drops if drop["operator"] == label]
    errors = sum(1 for drop in mine if drop["reason"] == RAISED)
    return OperatorCount(label, rows_in, len(mine), errors)
