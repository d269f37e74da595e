"""Orders of crops: lines, prices and a bill."""

from orchard.weights import Weight, parse_weight


class Order:
    """Lines of a crop, a weight and a price in cents per kilogram."""

    def __init__(self):
        self.lines = []

    def add(self, crop, weight, cents_per_kg):
        """Add a line; a weight may be text."""
        if isinstance(weight, str):
            weight = parse_weight(weight)
        self.lines.append((crop, weight, cents_per_kg))
        return self

    def weight(self):
        """Return the weight of all lines."""
        total = Weight(0)
        for _, weight, _ in self.lines:
            total = total + weight
        return total

    def cents(self, discount=0):
        """Return the price of all lines in cents, rounded half up, less a discount in percent."""
        whole = sum(weight.grams * price for _, weight, price in self.lines)
        reduced = whole * (100 - discount)
        return (reduced + 50_000) // 100_000

    def merged(self):
        """Return an order with the lines of one crop and price put together, in order of crops."""
        sums = {}
        for crop, weight, price in self.lines:
            key = crop, price
            sums[key] = sums.get(key, Weight(0)) + weight
        order = Order()
        for (crop, price), weight in sorted(sums.items(), key=lambda item: item[0]):
            order.add(crop, weight, price)
        return order

    def bill(self):
        """Write the order, a line each, and the sum below."""
        lines = [f"{crop:<10} {str(weight):>8}" for crop, weight, _ in self.lines]
        euros, cents = divmod(self.cents(), 100)
        lines.append(f"{'sum':<10} {euros:>5}.{cents:02}")
        return "\n".join(lines)
