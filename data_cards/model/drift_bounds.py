"""Bounds between one release and the next."""

from typing import Annotated

from pydantic import Field

from tracemill.records.frozen_model import FrozenModel


class DriftBounds(FrozenModel):
    """Bounds on the drift of a release from the last one published."""

    operations: Annotated[float, Field(ge=0, le=1)] = 0.25
    """Total variation distance between the shares of operations."""
    agreement: Annotated[float, Field(ge=0, le=1)] = 0.15
    """Difference between the shares of agreeing votes."""
    usd_per_pair: Annotated[float, Field(ge=1)] = 2.0
    """Ratio of USD per pair."""
    length_ratio: Annotated[float, Field(ge=1)] = 1.5
    """Ratio of the length of chosen by rejected sides."""
