"""How many pairs have an opposite, and when that is said."""

from plain_pairs import plain_pair

from tracemill.flows.release.label_rows import ReleaseLabels
from tracemill.pairs.directions import count_opposed, direction_warnings
from tracemill.records.pair import DPOPair


def _pairs(*kinds: tuple[str, str, int]) -> list[DPOPair]:
    return [
        plain_pair(number, chosen_operation=chosen, rejected_operation=rejected)
        for chosen, rejected, count in kinds
        for number in range(count)
    ]


def test_pairs_that_prefer_the_opposite_are_counted() -> None:
    assert count_opposed(_pairs(("read", "edit", 5), ("edit", "read", 3), ("edit", "edit", 9))) == (6, 8)
    assert count_opposed(_pairs(("read", "edit", 5), ("edit", "run", 3))) == (0, 8)
    assert count_opposed([]) == (0, 0)


def test_a_warning_needs_enough_pairs_of_which_most_have_an_opposite() -> None:
    many = _pairs(("read", "edit", 25), ("edit", "read", 15), ("run_test", "finish", 15))
    (sentence,) = direction_warnings(many)
    assert sentence.startswith("30 of 55 pairs with two kinds of action have an opposite: ")
    assert ReleaseLabels(warnings=("one",)).figures({}, many).warnings == ("one", sentence)
    assert direction_warnings(_pairs(("read", "edit", 30), ("edit", "read", 10))) == ()
    assert direction_warnings(_pairs(("read", "edit", 19), ("edit", "read", 19))) == ()
