"""Format numbers for the page and the terminal."""


def format_usd(value: float) -> str:
    """Format USD with 0, 2 or 4 decimals by size."""
    if value == 0 or abs(value) >= 100:
        return f"${value:,.0f}"
    return f"${value:,.2f}" if abs(value) >= 1 else f"${value:.4f}"


def format_share(part: float, whole: float = 1.0) -> str:
    """Format a share in whole percent; `-` if `whole` is 0."""
    return f"{part / whole:.0%}" if whole else "-"


def format_number(value: int) -> str:
    """Format a count with thousands separators."""
    return f"{value:,}"


def format_short_number(value: int) -> str:
    """Format a count in three digits, such as 12.3k or 4.56M."""
    for size, sign in ((1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")):
        if value >= size:
            return f"{value / size:.3g}{sign}"
    return str(value)
