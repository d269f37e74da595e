"""Read tokens and cost from the metrics of an OpenHands run."""

from collections.abc import Iterator, Mapping
from math import inf
from typing import Any


def read_metrics_usage(metrics: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield response id and token counts of each response that the metrics list."""
    listed = metrics.get("token_usages")
    for item in listed if isinstance(listed, list) else ():
        if isinstance(item, dict) and item.get("response_id"):
            yield str(item["response_id"]), item


def cost_note(cost_usd: float) -> dict[str, int]:
    """Return the reported cost of a run as a note of its trace, in millionths of a dollar."""
    return {"reported_cost_micro_usd": round(cost_usd * 1e6)} if 0 < cost_usd * 1e6 < inf else {}
