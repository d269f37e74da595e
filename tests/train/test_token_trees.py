"""Rows as trees of tokens: every row is a path, every common prefix is there once."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracemill.train.packing.token_tree import TokenTree, build_trees, sort_by_tokens

TOKENS = st.lists(st.integers(0, 2), min_size=1, max_size=12)


def trees_of(rows: list[list[int]], max_tokens: int = 1000) -> list[TokenTree]:
    return build_trees([np.array(row, np.int64) for row in rows], max_tokens)


def prefixes(rows: list[list[int]]) -> int:
    return len({tuple(row[: length + 1]) for row in rows for length in range(len(row))})


@given(st.lists(TOKENS, min_size=1, max_size=16), st.integers(1, 40))
def test_a_path_is_its_row_and_sees_itself_alone(rows: list[list[int]], max_tokens: int) -> None:
    trees = trees_of(rows, max_tokens)
    assert sorted(number for tree in trees for number in tree.paths) == list(range(len(rows)))
    for tree in trees:
        members = [rows[number] for number in tree.paths]
        assert len(tree) == prefixes(members)
        assert len(tree) <= max_tokens or len(members) == 1
        for number, path in tree.paths.items():
            assert tree.ids[path].tolist() == rows[number]
            assert tree.depths[path].tolist() == list(range(len(rows[number])))
            for node in path:
                seen = [k for k in range(len(tree)) if k <= node < tree.ends[k]]
                assert seen == [k for k in path if k <= node]
        assert tree.counts.sum() == sum(map(len, members))


def test_a_trace_is_one_tree_and_another_trace_another() -> None:
    trace = [5, 5, 5, 5, 1, 2, 3, 4]
    rows = [
        [*trace[:4], 9],
        [*trace[:4], 8],
        [*trace[:6], 9],
        [*trace, 9],
        [*trace, 8],
        [7] * 9,
        [7] * 9 + [6],
    ]
    first, second = trees_of(rows)
    assert (set(first.paths), len(first)) == ({0, 1, 2, 3, 4}, 8 + 5)
    assert (set(second.paths), len(second)) == ({5, 6}, 10)
    assert first.counts.max() == 5


def test_a_tree_that_is_too_large_is_cut_between_rows() -> None:
    rows = [[1] * 10 + [number] * 5 for number in range(2, 8)]
    assert [len(tree) for tree in trees_of(rows)] == [40]
    cut = trees_of(rows, 21)
    assert [(len(tree), len(tree.paths)) for tree in cut] == [(20, 2)] * 3
    assert [(len(tree), len(tree.paths)) for tree in trees_of(rows, 3)] == [(15, 1)] * 6


def test_rows_that_share_little_are_not_joined() -> None:
    """A mask of both would be larger than two masks."""
    rows = [[1] * 4 + [2] * 6, [1] * 4 + [3] * 6]
    assert [len(tree) for tree in trees_of(rows)] == [10, 10]
    assert [len(tree) for tree in trees_of([[1] * 5 + [2] * 5, [1] * 5 + [3] * 5])] == [15]


@pytest.mark.parametrize("largest", [255, 256, 70_000])
def test_neighbours_are_those_of_the_order_of_ids(largest: int) -> None:
    rows = [[largest, 1], [1, largest], [1, 2, 3], [largest], [1, 2]]
    order = sort_by_tokens([np.array(row, np.int64) for row in rows])
    assert [rows[number] for number in order] == sorted(rows)
