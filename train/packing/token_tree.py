"""Build trees of token ids, in which rows that begin alike share the nodes of their common prefix."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]

_SHARED = 2
"""A row joins the tree of its neighbour if they share at least 1 / 2 of the shorter one."""


@dataclass(frozen=True, slots=True)
class TokenTree:
    """A tree of token ids, its nodes in depth-first order.

    `paths` has an entry for every row of the tree: by the number of the row, the nodes of its tokens from the
    root. The subtree of node k is the nodes k to `ends[k] - 1`, so k is an ancestor of q, or q itself, where
    k <= q < ends[k].
    """

    ids: Ids
    """Token of each node."""
    depths: Ids
    """Ancestors of each node, which is its position in every row that has it."""
    ends: Ids
    counts: Ids
    """Rows that have each node."""
    paths: dict[int, Ids]

    def __len__(self) -> int:
        """Return the number of nodes."""
        return len(self.ids)


def sort_by_tokens(rows: Sequence[Ids]) -> list[int]:
    """Return the indices of the rows sorted by their ids, so that rows with equal prefixes are neighbours."""
    keys = [row.astype(">u4").tobytes() for row in rows]
    return sorted(range(len(rows)), key=lambda number: keys[number])


def build_trees(rows: Sequence[Ids], max_tokens: int) -> list[TokenTree]:
    """Return trees of at most `max_tokens` nodes that hold every row once.

    The path of a row is never cut: one that is longer than `max_tokens` is a tree of its own.
    """
    trees: list[TokenTree] = []
    members: list[tuple[int, int]] = []
    size, before = 0, np.empty(0, np.int64)
    for number in sort_by_tokens(rows):
        row = rows[number]
        shared = _common_prefix(before, row)
        joins = shared * _SHARED >= min(len(before), len(row)) and size + len(row) - shared <= max_tokens
        if members and not joins:
            trees.append(_build_tree(rows, members))
            members, size = [], 0
        if not members:
            shared = 0
        members.append((number, shared))
        size, before = size + len(row) - shared, row
    return [*trees, _build_tree(rows, members)] if members else trees


def _common_prefix(one: Ids, other: Ids) -> int:
    length = min(len(one), len(other))
    differ = one[:length] != other[:length]
    return int(differ.argmax()) if differ.any() else length


def _build_tree(rows: Sequence[Ids], members: Sequence[tuple[int, int]]) -> TokenTree:
    """Build a tree of sorted rows; each comes with the length of its common prefix with the one before."""
    size = sum(len(rows[number]) - shared for number, shared in members)
    ids, depths, ends, counts = (np.zeros(size, np.int64) for _ in range(4))
    paths: dict[int, Ids] = {}
    path, begin = np.empty(0, np.int64), 0
    for number, shared in members:
        row = rows[number]
        end = begin + len(row) - shared
        path = np.concatenate([path[:shared], np.arange(begin, end)])
        ids[begin:end], depths[begin:end] = row[shared:], np.arange(shared, len(row))
        ends[path], counts[path] = end, counts[path] + 1
        paths[number], begin = path, end
    return TokenTree(ids, depths, ends, counts, paths)
