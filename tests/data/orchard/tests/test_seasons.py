import pytest

from orchard.seasons import Season, date_of, day_of_year

WINTER = Season("winter", (12, 1), (2, 28))
SUMMER = Season("summer", (6, 1), (8, 31))


@pytest.mark.parametrize(
    ("date", "number"), [((1, 1), 1), ((2, 2), 33), ((7, 4), 185), ((10, 15), 288), ((12, 31), 365)]
)
def test_day_of_year(date, number):
    assert day_of_year(*date) == number


@pytest.mark.parametrize("date", [(0, 1), (13, 1), (2, 29), (4, 31)])
def test_no_such_day(date):
    with pytest.raises(ValueError):
        day_of_year(*date)


def test_dates_and_days_are_inverse():
    assert [day_of_year(*date_of(day)) for day in (1, 59, 60, 365)] == [1, 59, 60, 365]
    with pytest.raises(ValueError):
        date_of(366)


def test_a_season_holds_its_days():
    assert ((7, 4) in SUMMER) is True
    assert ((9, 1) in SUMMER) is False


def test_a_season_passes_over_the_end_of_the_year():
    assert ((1, 15) in WINTER) is True
    assert ((3, 1) in WINTER) is False


def test_lengths():
    assert len(SUMMER) == 92
    assert len(WINTER) == 90


def test_overlap():
    assert SUMMER.overlap(Season("july", (7, 1), (7, 31))) == 31
    assert SUMMER.overlap(WINTER) == 0
