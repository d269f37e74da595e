"""Run pairs and single actions through a data-juicer recipe."""

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from tracemill.normalize.datajuicer.recipe import Recipe, check_available, load_recipe
from tracemill.normalize.datajuicer.start_child import TIMEOUT_S, OperatorProcess, RowsFile
from tracemill.normalize.operators.operator_rows import RAISED, dump_operator_row, to_action_row, to_row
from tracemill.records.action_row import ActionRow, DroppedAction
from tracemill.records.errors import NormalizeError
from tracemill.records.pair import DPOPair, DroppedPair, NormalizedDPOPair

K = TypeVar("K")
D = TypeVar("D")
_VERDICT = ("operator", "reason", "value")


@dataclass(frozen=True, slots=True)
class OperatorCount:
    """Rows that one operator was given and dropped; `errors` counts dropped rows that made it raise."""

    operator: str
    rows_in: int
    dropped: int
    errors: int


@dataclass(frozen=True)
class NormalizedRows(Generic[K, D]):
    """Rows that a recipe kept and dropped, in their order.

    `counts` has an entry for each operator, in the order of the recipe; of single actions only those of the
    operators that read fields of the chosen side and no others. `recipe` is its name as on each kept pair,
    `fingerprint` the full fingerprint.
    """

    kept: list[K]
    dropped: list[D]
    counts: tuple[OperatorCount, ...]
    recipe: str
    fingerprint: str


NormalizedPairs = NormalizedRows[NormalizedDPOPair, DroppedPair]
NormalizedActions = NormalizedRows[ActionRow, DroppedAction]


class DJNormalizer:
    """A normalizer that runs pairs and single actions through a data-juicer recipe, in a child process.

    A process takes seconds to start, so `with normalizer.process():` keeps one for all that is done inside.
    `recipe` is a YAML file, by default the one that ships with tracemill. `cache_dir` keeps the home and
    caches of the child between runs; by default they are temporary.
    """

    def __init__(
        self, recipe: Path | None = None, cache_dir: Path | None = None, timeout_s: float = TIMEOUT_S
    ) -> None:
        self._path = recipe
        self._cache_dir = cache_dir
        self._timeout_s = timeout_s
        self._kept: OperatorProcess | None = None

    @contextmanager
    def process(self) -> Iterator[OperatorProcess]:
        """Keep a process for all that is normalised in the block. The first job starts it."""
        if self._kept is not None:
            yield self._kept
            return
        with tempfile.TemporaryDirectory(prefix="tracemill-normalize-", ignore_cleanup_errors=True) as name:
            home = (self._cache_dir or Path(name) / "home").resolve()
            self._kept = OperatorProcess(Path(name), home, self._timeout_s)
            try:
                yield self._kept
            finally:
                self._kept.close()
                self._kept = None

    def check(self) -> Recipe:
        """Return the recipe after data-juicer has checked it (about 3 s).

        Raises NormalizeError if data-juicer is missing, the recipe cannot be read, or one of its operators,
        arguments or fields is unknown.
        """
        check_available()
        recipe = load_recipe(self._path)
        with self.process() as process:
            process.run(recipe.path, None)
        return recipe

    def normalize(self, pairs: Sequence[DPOPair]) -> NormalizedPairs:
        """Return every pair once, kept or dropped; without pairs no process is started.

        `state_messages` are not read. Raises NormalizeError as `check` does, and if the process dies or
        returns wrong counts.
        """
        check_available()
        recipe, texts = load_recipe(self._path), list[tuple[str, str]]()

        def rows() -> Iterator[dict[str, Any]]:
            for index, pair in enumerate(pairs):
                row = to_row(index, pair)
                texts.append((row["chosen"], row["rejected"]))
                yield row

        kept, dropped, counts = self._run(recipe, rows(), len(pairs), actions=False)
        return NormalizedPairs(
            [NormalizedDPOPair(pairs[row], *texts[row], recipe.name) for row in kept],
            [
                DroppedPair(pairs[each["row"]], *texts[each["row"]], *map(each.__getitem__, _VERDICT))
                for each in dropped
            ],
            counts,
            recipe.name,
            recipe.fingerprint,
        )

    def normalize_actions(self, actions: Sequence[ActionRow]) -> NormalizedActions:
        """Return every action once, kept or dropped; without actions no process is started.

        Only operators that read fields of the chosen side alone judge them. Raises as `normalize` does.
        """
        check_available()
        whole = load_recipe(self._path)
        rows = (to_action_row(index, action) for index, action in enumerate(actions))
        kept, dropped, counts = self._run(whole.of_actions(), rows, len(actions), actions=True)
        return NormalizedActions(
            [actions[row] for row in kept],
            [DroppedAction(actions[each["row"]], *map(each.__getitem__, _VERDICT)) for each in dropped],
            counts,
            whole.name,
            whole.fingerprint,
        )

    def _run(
        self, recipe: Recipe, rows: Iterable[dict[str, Any]], count: int, actions: bool
    ) -> tuple[list[int], list[dict[str, Any]], tuple[OperatorCount, ...]]:
        """Return the numbers of kept rows, the dropped rows in their order, and a count for each operator."""
        if not count or not recipe.process:
            return list(range(count)), [], tuple(OperatorCount(label, 0, 0, 0) for label in recipe.labels)
        with self.process() as process:
            path = process.folder / "rows.jsonl"
            with path.open("wb") as lines:
                lines.writelines(map(dump_operator_row, rows))
            outcome = process.run(recipe.path, RowsFile(path, count, actions))
        _check_every_row_once(outcome, count)
        counts = tuple(
            _count(label, rows_in, outcome["dropped"])
            for label, rows_in in zip(recipe.labels, outcome["rows_in"], strict=True)
        )
        _check_operators(counts, outcome["dropped"])
        return outcome["kept"], outcome["dropped"], counts


def _check_every_row_once(outcome: Mapping[str, Any], rows: int) -> None:
    kept, dropped = outcome["kept"], [drop["row"] for drop in outcome["dropped"]]
    if sorted([*kept, *dropped]) != list(range(rows)):
        raise NormalizeError(
            f"{rows} rows went in, {len(kept)} kept and {len(dropped)} dropped came out",
            "every row once, kept or dropped",
        )


def _check_operators(counts: Sequence[OperatorCount], dropped: Sequence[Mapping[str, Any]]) -> None:
    """Raise NormalizeError if an operator raised on every row: then the recipe is at fault."""
    for each in counts:
        if 1 < each.rows_in == each.errors:
            error = next(drop["value"] for drop in dropped if drop["operator"] == each.operator)
            raise NormalizeError(
                f"{each.operator} raised {error} on each of its {each.rows_in} rows",
                "an operator that can read the rows of the recipe",
                "look at its arguments, such as text_key, in the recipe",
            )


def _count(label: str, rows_in: int, drops: Sequence[Mapping[str, Any]]) -> OperatorCount:
    reasons = [drop["reason"] for drop in drops if drop["operator"] == label]
    return OperatorCount(label, rows_in, len(reasons), reasons.count(RAISED))
