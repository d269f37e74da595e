"""What a method of training is to tracemill: the rows it reads, its defaults, its options, and what makes its
trainer."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

Given = Mapping[str, Any]


def _anything(settings: Given) -> None:
    """Take all settings."""


@dataclass(frozen=True, slots=True)
class TrainingMethod:
    """One method of training, as the registry holds it.

    `make_trainer` is `module:function`, imported in the process that trains: it may import torch. The
    function gets what `train/trl/trainers.py` describes and returns a trainer of transformers. Nothing else
    here may import torch: settings are read where it is not installed.
    """

    name: str
    make_trainer: str
    config: str = "dpo"
    """The config of a release whose rows it reads."""
    columns: tuple[str, ...] = ("prompt", "chosen", "rejected", "tools")
    """The columns that these rows must have; `prompt` and `tools` among them."""
    defaults: Given = field(default_factory=dict[str, Any])
    """Keys of `[training]` that have another default than in the table. `gamma` and `nll_weight` are settings
    of a method only where it names them here."""
    options: Given = field(default_factory=dict[str, Any])
    """Keys of `[training.options]` with their defaults: settings that no other method has."""
    check: Callable[[Given], None] = _anything
    """Raises ValueError, in one line, for settings (all of `[training]`) that the method cannot have."""
    packages: tuple[str, ...] = ("torch", "transformers", "trl")
    """Modules that must be there, said before a training begins."""

    def trainer_of(self) -> Callable[..., Any]:
        """Import `make_trainer`; for the process that trains."""
        module, _, name = self.make_trainer.partition(":")
        return getattr(import_module(module), name)
