import pytest

from orchard.beds import Bed, Garden


def garden():
    made = Garden(6, 3)
    made.add(Bed("kale", 0, 0, 2, 2))
    made.add(Bed("peas", 3, 1, 3, 2))
    return made


def test_cells_are_given_row_by_row():
    assert list(Bed("a", 1, 2, 2, 2).cells()) == [(1, 2), (2, 2), (1, 3), (2, 3)]


def test_beds_touch():
    assert Bed("a", 0, 0, 2, 2).touches(Bed("b", 1, 1, 2, 2)) is True
    assert Bed("a", 0, 0, 2, 2).touches(Bed("b", 2, 0, 2, 2)) is False


def test_free_cells():
    assert garden().free() == 8


def test_a_drawing():
    assert garden().draw() == "kk....\nkk.ppp\n...ppp"


@pytest.mark.parametrize("bed", [Bed("x", -1, 0, 1, 1), Bed("x", 5, 0, 2, 1), Bed("x", 1, 1, 1, 1)])
def test_what_does_not_fit_is_refused(bed):
    with pytest.raises(ValueError):
        garden().add(bed)
