"""What is sown when: rotation of crop families, and successive sowings."""

from orchard.seasons import date_of, day_of_year

FAMILIES = {"pea": "legume", "bean": "legume", "cabbage": "brassica", "kale": "brassica", "carrot": "root"}


def family(crop):
    """Return the family of a crop, `other` for an unknown one."""
    name = crop.strip().lower()
    if name.endswith("s") and name[:-1] in FAMILIES:
        name = name[:-1]
    return FAMILIES.get(name, "other")


def rotation_errors(years):
    """Return (year, crop) where a crop follows one of its family; years are lists of crops by bed."""
    errors = []
    for number in range(1, len(years)):
        for before, after in zip(years[number - 1], years[number]):
            if family(before) == family(after) != "other":
                errors.append((number, after))
    return errors


def sowings(start, end, every):
    """Return dates from start to end, every so many days."""
    if every < 1:
        raise ValueError("every day at most")
    first, last = day_of_year(*start), day_of_year(*end)
    return [date_of(day) for day in range(first, last + 1, every)]


def harvest(sown, days):
    """Return the date so many days after another, in the next year where it passes the end."""
    day = day_of_year(*sown) + days
    while day > 365:
        day -= 365
    return date_of(day)
