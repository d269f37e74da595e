"""Caps: which rows stay, which go and why, whatever the order they come in."""

import random
from collections import Counter
from dataclasses import replace
from typing import Any

from tracemill.pairs.caps import CappedRow, PairCaps, apply_caps, rank_of
from tracemill.records.message import Message
from tracemill.records.pair import DPOPair

OVER_TWO = "over the limit of 2 pairs of one action type per session"
NONE = PairCaps(0, 0, 0.0, 0.0, 0.0, 0)
CELL = replace(NONE, cell_share=0.25)


def pair(trace: str, step: int, chosen: str = "edit", rejected: str = "run", **changes: Any) -> DPOPair:
    values: dict[str, Any] = {
        "label_source": "hindsight",
        "state_messages": (),
        "tools": (),
        "chosen": (Message("assistant", "x"),),
        "rejected": (Message("assistant", "y"),),
        "source": "openhands",
        "harness": "openhands",
        "presentation": "p1",
        "student_model": None,
        "student_family": "unknown",
        "n_teachers_agreeing": 2,
    }
    return DPOPair(
        step_id=f"{trace}:0:{step}", chosen_operation=chosen, rejected_operation=rejected, **values | changes
    )


def left(pairs: list[DPOPair], caps: PairCaps) -> list[DPOPair]:
    gone = {each.row for each in apply_caps(pairs, caps)[0]}
    return [pair for row, pair in enumerate(pairs) if row not in gone]


def test_without_caps_and_up_to_the_floor_everything_stays() -> None:
    pairs = [pair("t", step) for step in range(50)]
    assert left(pairs, NONE) == pairs
    caps = PairCaps(per_trace=8)
    assert left(pairs, caps) == pairs
    assert len(left([*pairs, pair("t", 50)], caps)) == 50
    assert len(left([*pairs, pair("t", 50)], PairCaps())) == 51


def test_of_pairs_that_were_paid_for_the_defaults_take_few() -> None:
    """As many pairs a repository and a kind as real sessions gave with teachers that often read: long traces,
    two repositories with half of the rows, 17 of 20 chosen sides that read. Two rows of a class in a trace
    would leave a tenth of them."""
    repositories = (558, 514, 217, 192, 158, 148, 137, 78, 42, 30, 24, 20, 14, 10, 8, 6, 4, 3, 2, 1)
    rejected = ("edit", "run", "read", "search", "vcs", "finish", "create", "plan", "run_test", "list", "ask")
    draw = random.Random(0)
    paid = [
        pair(
            f"r{place}-{n // 60}",
            n,
            "read" if draw.random() < 0.85 else draw.choice(("vcs", "run", "edit")),
            draw.choice(rejected),
            repository=f"r{place}",
            label_source="teachers",
        )
        for place, count in enumerate(repositories)
        for n in range(count)
    ]
    assert len(paid) == 2_166
    for share in (1.0, 0.3, 0.1):
        some = draw.sample(paid, int(len(paid) * share))
        assert len(some) - len(left(some, PairCaps())) <= 0.15 * len(some)
    assert len(left(paid, PairCaps(per_trace=8, per_operation=2))) < 0.15 * len(paid)


def test_caps_on_shares_drop_the_worst_of_the_paid_pairs_and_few_of_them() -> None:
    alike = [
        pair("t", step, "read", "run", label_source="teachers", n_teachers_agreeing=2 + step % 2)
        for step in range(200)
    ]
    unpaid = [pair("u", step, "read", "run") for step in range(100)]
    for caps in (replace(NONE, cell_share=0.25), replace(NONE, deciding_share=0.5)):
        pairs = [*alike, *unpaid, *(pair("v", step) for step in range(10)), pair("w", 0, "list", "run")]
        gone = {each.row for each in apply_caps(pairs, caps)[0]}
        paid = sorted(row for row in gone if row < 200)
        assert len(paid) == 30
        assert {alike[row].n_teachers_agreeing for row in paid} == {2}
        assert len(gone) > 60
    everything = {each.row for each in apply_caps(alike, replace(NONE, per_trace=2))[0]}
    assert len(everything) == 198


def test_a_trace_has_at_most_so_many_rows_and_so_many_of_a_class() -> None:
    operations = ("edit", "run", "read", "search", "list", "finish")
    pairs = [pair(f"t{n}", step, operations[step % 6]) for n in range(3) for step in range(30)]
    caps = PairCaps(per_trace=8, per_operation=2, repository_share=0, cell_share=0, deciding_share=0, floor=0)
    kept = left(pairs, caps)
    assert Counter(each.step_id.split(":")[0] for each in kept) == {"t0": 8, "t1": 8, "t2": 8}
    by_class = Counter((each.step_id.split(":")[0], each.chosen_operation) for each in kept)
    assert max(by_class.values()) == 2
    gone, counts = apply_caps(pairs, caps)
    assert [(c.cap, c.rows_in, c.dropped) for c in counts[:2]] == [
        ("operation_cap", 90, 54),
        ("trace_cap", 36, 12),
    ]
    assert {each.reason for each in gone} == {
        "over the limit of 2 pairs of one action type per session",
        "over the limit of 8 pairs per session",
    }
    assert len(gone) + len(kept) == 90


def test_the_best_rows_stay() -> None:
    pairs = [
        pair("t", 0),
        pair("t", 1, n_teachers_agreeing=3),
        pair("t", 2, n_teachers_agreeing=0, verified="lookahead", label_source="hindsight"),
        pair("t", 3, n_teachers_agreeing=2, verified="lookahead"),
        pair("t", 4, n_teachers_agreeing=0, verified="outcome", label_source="siblings"),
        pair("t", 5, n_teachers_agreeing=2, verified="execution"),
    ]
    best = sorted(pairs, key=rank_of)
    assert [each.step_id[-1] for each in best[:3]] == ["5", "3", "1"]
    assert {each.step_id[-1] for each in best[3:5]} == {"0", "2"}
    assert [each.step_id[-1] for each in left(pairs, replace(NONE, per_operation=2))] == ["3", "5"]
    gone = apply_caps(pairs, replace(NONE, per_operation=2))[0]
    assert gone[-1] == CappedRow(
        4, "operation_cap", "over the limit of 2 pairs of one action type per session", 6
    )


def test_a_share_of_rows_is_at_least_two_even_parts() -> None:
    repositories = {"a/a": 400, **{f"o/r{n}": 6 for n in range(100)}}
    pairs = [
        pair(f"{name}-{n}", 0, repository=name) for name, count in repositories.items() for n in range(count)
    ]
    kept = Counter(each.repository for each in left(pairs, replace(NONE, repository_share=0.03)))
    assert kept["a/a"] == 30  # of 1,000 rows
    assert {kept[name] for name in repositories if name != "a/a"} == {6}
    few = [pair(f"{name}-{n}", 0, project=name) for name in "abcd" for n in range(100 if name == "a" else 20)]
    kept = Counter(each.project for each in left(few, replace(NONE, repository_share=0.03)))
    assert kept == {"a": 80, "b": 20, "c": 20, "d": 20}  # half of 160 rows
    alone = [pair(f"t{n}", 0, repository="a/a") for n in range(200)]
    unknown = [pair(f"u{n}", 0) for n in range(200)]
    assert len(left(alone + unknown, replace(NONE, repository_share=0.03))) == 400


def test_a_kind_of_choice_has_at_most_its_share() -> None:
    cells = [("read", "edit"), *((f"c{n}", "run") for n in range(9))]
    pairs = [
        pair(f"{chosen}-{n}", 0, chosen, rejected)
        for chosen, rejected in cells
        for n in range(310 if chosen == "read" else 10)
    ]
    kept = Counter(each.chosen_operation for each in left(pairs, CELL))
    assert kept["read"] == 100
    assert sum(kept.values()) == 190
    assert len(left(pairs, replace(CELL, floor=150))) == 190
    assert len(left(pairs, replace(CELL, floor=250))) == 250


def test_rows_that_decide_nothing_make_room_for_those_that_do() -> None:
    kinds = [("edit", "edit")] * 20 + [("search", "finish")] * 7 + [("read", "run_test")] * 3
    plain = [("search", "search"), ("create", "run"), ("read", "list")] * 30
    pairs = [pair(f"t{n}", 0, *sides) for n, sides in enumerate([*kinds, *plain])]
    caps = replace(NONE, deciding_share=0.3)
    gone, counts = apply_caps(pairs, caps)
    assert (counts[-1].cap, counts[-1].rows_in, counts[-1].dropped) == ("deciding_cap", 120, 20)
    assert {each.reason for each in gone} == {"over the limit of 70 pairs that neither edit, test nor finish"}
    assert min(each.row for each in gone) >= 30  # 30 of 100 rows decide something
    best = max(rank_of(pairs[row]) for row in range(30, 120) if row not in {each.row for each in gone})
    assert all(rank_of(pairs[each.row]) > best for each in gone)
    assert len(left(pairs, replace(caps, deciding_share=0.2))) == 120
    assert len(left(pairs, replace(caps, floor=110))) == 110


def test_a_set_in_which_hardly_anything_decides_keeps_a_third_of_its_rows() -> None:
    plain = [pair(f"t{n}", 0, "read", "search") for n in range(200)]
    caps = replace(NONE, deciding_share=0.3)
    assert left(plain, caps) == plain
    kept = left([*plain, pair("u", 0, "edit", "read")], caps)
    assert len(kept) == 67
    assert kept[-1].chosen_operation == "edit"


def test_the_order_of_the_rows_does_not_matter() -> None:
    pairs = [
        pair(
            f"t{n % 5}", n, ("edit", "read", "run")[n % 3], repository=f"r{n % 4}", n_teachers_agreeing=n % 4
        )
        for n in range(200)
    ]
    caps = PairCaps(per_trace=8, per_operation=2, floor=12)
    kept = {each.pair_id for each in left(pairs, caps)}
    for seed in range(5):
        random.Random(seed).shuffle(pairs)
        assert {each.pair_id for each in left(pairs, caps)} == kept
