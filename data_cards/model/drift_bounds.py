"""Bounds between one release and the next."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


class DriftBounds(BaseModel):
    """How far a release may be from the last one published."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    operations: Annotated[float, Field(ge=0, le=1)] = 0.25
    """Share of rows that would have to be of other operations (total variation)."""
    agreement: Annotated[float, Field(ge=0, le=1)] = 0.15
    """Difference in the share of votes that agree."""
    usd_per_pair: Annotated[float, Field(ge=1)] = 2.0
    """How many times dearer or cheaper a pair."""
    length_ratio: Annotated[float, Field(ge=1)] = 1.5
    """How many times longer or shorter the chosen side, measured by the rejected one."""
