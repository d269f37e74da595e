"""Labels for jars and beds."""

ROMAN = ((10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I"))


def roman(number):
    """Write a number from 1 to 39 in Roman numerals."""
    if not 1 <= number <= 39:
        raise ValueError(f"out of range: {number}")
    text = ""
    for value, letters in ROMAN:
        while number >= value:
            text += letters
            number -= value
    return text


def slug(text):
    """Return a text in lower case with dashes for everything that is no letter or digit."""
    found = "".join(letter if letter.isalnum() else " " for letter in text.lower())
    return "-".join(found.split())


def wrap(text, width):
    """Wrap words to lines of at most a width; a longer word has a line of its own."""
    lines, line = [], ""
    for word in text.split():
        if line and len(line) + 1 + len(word) > width:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}".strip()
    return [*lines, line] if line else lines


def label(crop, year, width=12):
    """Return the lines of a label: name wrapped, vintage below."""
    lines = wrap(crop.title(), width)
    lines.append(f"No. {roman(year % 39 + 1)}")
    return [line.center(width).rstrip() for line in lines]
