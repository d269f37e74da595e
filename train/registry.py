"""The one list of training methods.

A method of a package is added by an entry point of the group `tracemill.training_methods`.
"""

from tracemill.records.errors import ConfigError
from tracemill.records.registry import Registry
from tracemill.train.method import TrainingMethod

TRAINING_METHODS: Registry[TrainingMethod] = Registry(
    "training method",
    "tracemill.training_methods",
    {"dpo": "tracemill.train.methods:DPO", "simpo": "tracemill.train.methods:SIMPO"},
)


def training_method(name: str) -> TrainingMethod:
    """Return the method of a name. Raises ConfigError where there is none, or where a package gives
    something else under it."""
    method = TRAINING_METHODS.get(name)
    if not isinstance(method, TrainingMethod) or method.name != name:
        raise ConfigError(
            f"the training method {name!r} is none",
            f"a TrainingMethod of the name {name!r}",
            "update or remove the package that gives it",
        )
    return method
