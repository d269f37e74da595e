"""The description of a training method: the rows it reads, its defaults, its options and its trainer."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

SettingValues = Mapping[str, Any]


def _accept_all(settings: SettingValues) -> None:
    """Accept all settings."""


def _reads_rows(settings: SettingValues) -> bool:
    """Read the rows of the release, whatever the settings are."""
    return True


@dataclass(frozen=True, slots=True)
class TrainingMethod:
    """A training method, as the registry holds it.

    `make_trainer` is `module:function` and is imported in the training process, so it may import torch. The
    function takes the arguments described in `train/trl/trainers.py` and returns a transformers trainer.
    Nothing else here may import torch: settings are read where it is not installed.
    """

    name: str
    make_trainer: str
    config: str = "dpo"
    """Config of a release whose rows it reads."""
    columns: tuple[str, ...] = ("prompt", "chosen", "rejected", "tools")
    """Columns that these rows must have, `prompt` and `tools` among them."""
    reads_rows: Callable[[SettingValues], bool] = _reads_rows
    """Returns whether, with these values of `[training]`, rows of the release are read at all."""
    evaluates: bool = True
    """Its trainer measures on the split `validation`."""
    weighted: bool = False
    """Its trainer counts rows by their column `weight`, if `use_weights` is on and the config has it."""
    language_model: bool = True
    """It makes a model that writes, which can be compared on held-out pairs."""
    packed: bool = False
    """Its trainer packs rows, where `packing` is "prefix"."""
    defaults: SettingValues = field(default_factory=dict[str, Any])
    """Defaults of keys of `[training]` that differ from the table. `gamma` and `nll_weight` are settings of a
    method only if it names them here."""
    options: SettingValues = field(default_factory=dict[str, Any])
    """Keys of `[training.options]` with their defaults: settings that no other method has."""
    check: Callable[[SettingValues], None] = _accept_all
    """Raises ValueError, with one line of text, for values of `[training]` that the method refuses."""
    packages: tuple[str, ...] = ("torch", "transformers", "trl")
    """Modules that must be installed; checked before a training begins."""

    def trainer_of(self) -> Callable[..., Any]:
        """Import `make_trainer`; call it in the training process only."""
        module, _, name = self.make_trainer.partition(":")
        return getattr(import_module(module), name)
