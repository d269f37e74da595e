"""Sides: by repository, then instance, then session; remembered, and only ever added to."""

import random
from collections import Counter

from tracemill.flows.release.split_rule import AssignedSplits, SplitUnit, apply_split_rule

SHARES = {"validation": 0.1, "test": 0.1}


def unit(
    session: str, repository: str = "", instance: str = "", rows: int = 1, **changes: object
) -> SplitUnit:
    keys = tuple(
        f"{kind}:{name}" for kind, name in (("r", repository), ("i", instance), ("s", session)) if name
    )
    near = changes.get("near", ())
    assert isinstance(near, tuple)
    return SplitUnit(session, keys, near, rows, bool(changes.get("overlap", False)))


def many(repositories: range) -> list[SplitUnit]:
    coin = random.Random(7)
    return [
        unit(f"{r}-{n}", f"repo-{r}", f"task-{r}-{n % 3}", coin.randrange(1, 6))
        for r in repositories
        for n in range(5)
    ]


def rows_by_side(units: list[SplitUnit], assigned: AssignedSplits) -> Counter[str | None]:
    counted: Counter[str | None] = Counter()
    for each in units:
        counted[assigned.sides[each.trace_id]] += each.rows
    return counted


def test_held_out_sides_get_their_share_in_whole_repositories_whatever_the_order() -> None:
    units = many(range(60))
    assigned = apply_split_rule(units, {}, SHARES)
    rows = rows_by_side(units, assigned)
    assert set(rows) == {"train", "validation", "test"}
    for side in ("validation", "test"):
        assert 0.07 < rows[side] / sum(rows.values()) < 0.16
    for repository in range(60):
        assert len({assigned.sides[f"{repository}-{n}"] for n in range(5)}) == 1
    random.Random(1).shuffle(units)
    assert apply_split_rule(units, {}, SHARES) == assigned


def test_few_repositories_are_all_trained_on() -> None:
    units = many(range(3))
    assert set(apply_split_rule(units, {}, SHARES).sides.values()) == {"train"}


def test_no_side_changes_as_sessions_come_in() -> None:
    coin = random.Random(3)
    known: dict[str, str] = {}
    seen: dict[str, str | None] = {}
    units: list[SplitUnit] = []
    for step in range(1, 13):
        units = [each for each in many(range(step * 5)) if coin.random() < 0.8 or each.trace_id in seen]
        assigned = apply_split_rule(units, known, SHARES)
        assert assigned.by_key.items() >= known.items()
        assert {name: assigned.sides[name] for name in seen} == seen
        known, seen = assigned.by_key, dict(assigned.sides)
    rows = rows_by_side(units, apply_split_rule(units, known, SHARES))
    assert rows["test"] > 0
    assert rows["validation"] > 0


def test_an_instance_holds_sessions_together_where_the_repository_is_not_known() -> None:
    units = [unit("a", instance="x"), unit("b", instance="x"), unit("c", "repo", "x"), unit("d", "repo")]
    known = {"i:x": "test"}
    assert set(apply_split_rule(units, known, SHARES).sides.values()) == {"test"}


def test_tasks_that_are_nearly_the_same_stand_on_one_side() -> None:
    known = {"r:one": "test", "s:a": "test"}
    near = unit("b", "two", near=("s:a",))
    other = unit("c", "two", "its-own")
    assert apply_split_rule([near, other], known, SHARES).sides == {"b": "test", "c": "test"}


def test_what_belongs_to_two_sides_belongs_to_none_and_moves_nobody() -> None:
    known = {"r:one": "test", "s:a": "test", "r:two": "train", "s:b": "train"}
    old = [unit("a", "one"), unit("b", "two")]
    between = unit("c", "two", near=("s:a",))
    free = unit("d", "two")
    assigned = apply_split_rule([*old, between, free], known, SHARES)
    assert assigned.sides == {"a": "test", "b": "train", "c": None, "d": "train"}
    assert "s:c" not in assigned.by_key


def test_sessions_made_of_a_benchmark_and_those_like_them_stand_apart() -> None:
    units = [unit("a", "one", overlap=True), unit("b", "two", near=("s:a",)), unit("c", "one")]
    assigned = apply_split_rule(units, {}, SHARES)
    assert assigned.sides == {"a": "eval_overlap", "b": "eval_overlap", "c": "train"}
    later = [unit("a", "one"), unit("d", "three", near=("s:b",))]
    assert apply_split_rule(later, assigned.by_key, SHARES).sides == {
        "a": "eval_overlap",
        "d": "eval_overlap",
    }


def test_what_was_trained_on_before_it_was_known_stays_until_a_rebuild() -> None:
    known = {"r:one": "train", "s:a": "train"}
    assert apply_split_rule([unit("a", "one", overlap=True)], known, SHARES).sides == {"a": "train"}
    assert apply_split_rule([unit("a", "one", overlap=True)], {}, SHARES).sides == {"a": "eval_overlap"}
