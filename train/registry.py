"""The registry of training methods.

Packages add a method by an entry point of the group `tracemill.training_methods`.
"""

from tracemill.records.registry import Registry
from tracemill.train.method import TrainingMethod

TRAINING_METHODS: Registry[TrainingMethod] = Registry(
    "training method",
    "tracemill.training_methods",
    {
        "sft": "tracemill.train.methods:SFT",
        "dpo": "tracemill.train.methods:DPO",
        "simpo": "tracemill.train.methods:SIMPO",
        "kto": "tracemill.train.methods:KTO",
        "prm": "tracemill.train.methods:PRM",
        "composer": "tracemill.train.methods:COMPOSER",
    },
    fits=lambda name, method: isinstance(method, TrainingMethod) and method.name == name,
    expected="a TrainingMethod of that name",
)
