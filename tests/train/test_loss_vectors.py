"""Our losses on the stored inputs of other implementations: value and gradient of every case."""

import os
from collections import Counter
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-all")

from loss_vectors import FOLDER, compare  # noqa: E402

VECTORS = os.environ.get(FOLDER)
pytestmark = [
    pytest.mark.slow,  # as all that needs PyTorch
    pytest.mark.skipif(not VECTORS, reason=f"{FOLDER} names no folder"),
]
OUTPUTS = {
    "opsd_generalized_jsd": 600,
    "opsd_generalized_jsd_token_clip": 680,
    "trl_gkd_generalized_jsd": 600,
    "taid_compute_loss": 136,
    "taid_divergences": 96,
    "taid_update_t": 192,
    "sdpo_self_distillation_loss": 728,
    "trl_sdpo_divergence": 112,
    "prime_rl_losses": 288,
    "trl_cpo_simpo": 336,
    "trl_grpo_compute_loss": 1200,
}
"""Arrays of each set: value and gradient of each case that is of one of our losses."""


def test_values_and_gradients_are_those_of_the_stored_vectors() -> None:
    found = list(compare(Path(VECTORS or "")))
    assert Counter(each.vectors for each in found) == OUTPUTS
    off = [each for each in found if not each.within and not each.rounding]
    assert [(each.vectors, each.case, each.output, each.error) for each in off] == []
    rounding = {(each.vectors, each.fn) for each in found if each.rounding}
    assert rounding <= {
        ("opsd_generalized_jsd_token_clip", "generalized_jsd_loss"),  # clipped entries that cancel
        ("taid_compute_loss", "TAID.compute_loss"),  # the gradient at t = 0
    }
    assert sum(each.rounding for each in found) < 15
