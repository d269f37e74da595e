"""Days of the year as (month, day), and seasons that may pass over its end."""

DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def day_of_year(month, day):
    """Return the number of a day in a year of 365 days, from 1."""
    if not 1 <= month <= 12 or not 1 <= day <= DAYS[month - 1]:
        raise ValueError(f"no such day: {month}-{day}")
    before = sum(DAYS[: month - 1])
    return before + day


def date_of(number):
    """Return (month, day) of a day of the year."""
    left = number
    for month, days in enumerate(DAYS, 1):
        if left <= days:
            return month, left
        left -= days
    raise ValueError(f"no such day: {number}")


class Season:
    """Days from one to another, both included; it may begin in one year and end in the next."""

    def __init__(self, name, start, end):
        self.name = name
        self.start = day_of_year(*start)
        self.end = day_of_year(*end)

    def __contains__(self, date):
        """Return whether a date is in the season."""
        day = day_of_year(*date)
        if self.start <= self.end:
            return self.start <= day <= self.end
        return day >= self.start or day <= self.end

    def __len__(self):
        """Return its days."""
        if self.start <= self.end:
            return self.end - self.start + 1
        return 365 - self.start + 1 + self.end

    def overlap(self, other):
        """Return how many days two seasons share."""
        mine = {date_of(day) for day in range(1, 366) if date_of(day) in self}
        shared = [date for date in mine if date in other]
        return len(shared)
