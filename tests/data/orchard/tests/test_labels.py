import pytest

from orchard.labels import label, roman, slug, wrap


@pytest.mark.parametrize(("number", "text"), [(1, "I"), (4, "IV"), (9, "IX"), (14, "XIV"), (39, "XXXIX")])
def test_roman(number, text):
    assert roman(number) == text


def test_out_of_range():
    with pytest.raises(ValueError):
        roman(40)


def test_slug():
    assert slug("Black Currant, 2nd!") == "black-currant-2nd"


def test_wrap():
    assert wrap("red and white currants", 8) == ["red and", "white", "currants"]
    assert wrap("", 8) == []


def test_label():
    assert label("black currant", 2024) == ["   Black", "  Currant", " No. XXXVI"]
