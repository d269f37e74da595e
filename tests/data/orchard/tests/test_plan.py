import pytest

from orchard.plan import family, harvest, rotation_errors, sowings


@pytest.mark.parametrize(
    ("crop", "found"), [("pea", "legume"), (" Beans", "legume"), ("Kale", "brassica"), ("fig", "other")]
)
def test_family(crop, found):
    assert family(crop) == found


def test_rotation():
    assert rotation_errors([["pea", "kale"], ["beans", "carrot"], ["carrot", "carrot"]]) == [
        (1, "beans"),
        (2, "carrot"),
    ]
    assert rotation_errors([["fig"], ["fig"]]) == []


def test_sowings():
    assert sowings((3, 1), (3, 31), 14) == [(3, 1), (3, 15), (3, 29)]
    with pytest.raises(ValueError):
        sowings((3, 1), (3, 31), 0)


def test_harvest():
    assert harvest((3, 1), 31) == (4, 1)
    assert harvest((12, 1), 62) == (2, 1)
