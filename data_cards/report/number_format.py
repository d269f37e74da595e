"""Figures of a report as people read them, on the page and on a terminal."""


def format_usd(value: float) -> str:
    """USD with as many digits as say something."""
    if value == 0 or abs(value) >= 100:
        return f"${value:,.0f}"
    return f"${value:,.2f}" if abs(value) >= 1 else f"${value:.4f}"


def format_share(part: float, whole: float = 1.0) -> str:
    """A share in whole percent; `-` of nothing."""
    return f"{part / whole:.0%}" if whole else "-"


def format_number(value: int) -> str:
    """A count with thousands set apart."""
    return f"{value:,}"


def format_short_number(value: int) -> str:
    """A large count in three digits: 12.3k, 4.56M."""
    for size, sign in ((1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")):
        if value >= size:
            return f"{value / size:.3g}{sign}"
    return str(value)
