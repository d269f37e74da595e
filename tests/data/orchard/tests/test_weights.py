import pytest

from orchard.weights import Weight, heaviest, parse_weight


def test_weights_add():
    assert Weight(250) + Weight(750) == Weight(1000)
    with pytest.raises(TypeError):
        Weight(1) + 2


def test_a_split_gives_the_rest_to_the_first():
    assert [each.grams for each in Weight(10).split(3)] == [4, 3, 3]
    assert [each.grams for each in Weight(9).split(3)] == [3, 3, 3]


def test_no_parts_are_refused():
    with pytest.raises(ValueError):
        Weight(10).split(0)


@pytest.mark.parametrize(
    ("grams", "text"), [(0, "0 g"), (999, "999 g"), (2000, "2 kg"), (2500, "2500 g"), (3_000_000, "3 t")]
)
def test_text(grams, text):
    assert str(Weight(grams)) == text


@pytest.mark.parametrize(
    ("text", "grams"), [("2 kg", 2000), (" 2.5 kg ", 2500), ("7 g", 7), ("0.001 t", 1000)]
)
def test_parse(text, grams):
    assert parse_weight(text).grams == grams


def test_an_unknown_unit_is_refused():
    with pytest.raises(ValueError):
        parse_weight("2 lb")


def test_heaviest():
    assert heaviest([Weight(2), Weight(5), Weight(3)]).grams == 5
    assert heaviest([]) is None
