"""Base of the models that people write: values cannot be changed, unknown keys are refused."""

from pydantic import BaseModel, ConfigDict


class FrozenModel(BaseModel):
    """A model that refuses unknown keys, and any change of its values."""

    model_config = ConfigDict(frozen=True, extra="forbid")
