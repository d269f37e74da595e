"""Numbers as the letters of a spreadsheet's columns."""


def to_letters(number):
    """Return the letters of a column: 1 is A, 27 is AA."""
    found = ""
    while number > 0:
        number, place = divmod(number - 1, 26)
        found = chr(ord("A") + place) + found
    return found


def from_letters(text):
    """Return the number of a column."""
    number = 0
    for letter in text:
        number = number * 26 + ord(letter) - ord("A") + 1
    return number


def is_column(text):
    """Return whether a text names a column."""
    return text.isalpha() and text.isupper()
