"""Beds of a garden, as rectangles on a grid."""


class Bed:
    """A rectangle of cells: left, top, width, height."""

    def __init__(self, name, left, top, width, height):
        self.name = name
        self.left, self.top = left, top
        self.width, self.height = width, height

    def cells(self):
        """Give all cells, row by row."""
        for row in range(self.top, self.top + self.height):
            for column in range(self.left, self.left + self.width):
                yield column, row

    def touches(self, other):
        """Return whether two beds share a cell."""
        right, bottom = self.left + self.width, self.top + self.height
        apart = other.left >= right or other.left + other.width <= self.left
        apart = apart or other.top >= bottom or other.top + other.height <= self.top
        return not apart


class Garden:
    """Beds that do not overlap."""

    def __init__(self, width, height):
        self.width, self.height = width, height
        self.beds = {}

    def add(self, bed):
        """Add a bed; ValueError where it does not fit."""
        if bed.left < 0 or bed.top < 0:
            raise ValueError(f"{bed.name} is outside")
        if bed.left + bed.width > self.width or bed.top + bed.height > self.height:
            raise ValueError(f"{bed.name} is outside")
        for other in self.beds.values():
            if bed.touches(other):
                raise ValueError(f"{bed.name} overlaps {other.name}")
        self.beds[bed.name] = bed

    def free(self):
        """Return how many cells belong to no bed."""
        used = {cell for bed in self.beds.values() for cell in bed.cells()}
        return self.width * self.height - len(used)

    def draw(self):
        """Draw the garden with the first letters of its beds, dots for free cells."""
        rows = [["."] * self.width for _ in range(self.height)]
        for bed in self.beds.values():
            for column, row in bed.cells():
                rows[row][column] = bed.name[0]
        return "\n".join("".join(row) for row in rows)
