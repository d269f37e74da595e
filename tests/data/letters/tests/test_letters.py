import pytest
from letters import from_letters, is_column, to_letters


@pytest.mark.parametrize(("number", "text"), [(1, "A"), (26, "Z"), (27, "AA"), (52, "AZ"), (703, "AAA")])
def test_letters_of_a_number(number, text):
    assert to_letters(number) == text


def test_letters_of_a_row():
    assert [to_letters(each) for each in (28, 29, 30)] == ["AB", "AC", "AD"]


def test_letters_of_a_large_number():
    assert to_letters(18278) == "ZZZ"


def test_numbers():
    assert from_letters("B") == 2
    assert from_letters("BA") == 53


def test_columns():
    assert is_column("AB")
    assert not is_column("a1")
