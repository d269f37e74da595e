"""A training is given what it needs of the environment, and no credential."""

import pytest

from tracemill.train.child_environment import child_environment
from tracemill.train.training_settings import TrainingSettings

GIVEN = (
    *("PATH", "HOME", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "XDG_CACHE_HOME", "PYTHONPATH", "no_proxy"),
    *("CUDA_VISIBLE_DEVICES", "NCCL_DEBUG", "HIP_VISIBLE_DEVICES", "OMP_NUM_THREADS", "TORCH_HOME"),
    *("PYTORCH_CUDA_ALLOC_CONF", "HF_HOME", "HF_ENDPOINT", "HTTPS_PROXY", "SSL_CERT_FILE", "MASTER_PORT"),
)
KEPT_OUT = (
    *("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_API_KEY", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"),
    *("AWS_PROFILE", "GITHUB_TOKEN", "GH_TOKEN", "OPENROUTER_API_KEY", "PGPASSWORD", "SSH_AUTH_SOCK"),
    *("WANDB_API_KEY", "DATABASE_URL", "PREFECT_API_URL", "KUBECONFIG", "TORCH_AUTH_TOKEN", "hf_token"),
)


@pytest.mark.parametrize("name", GIVEN)
def test_what_training_needs_is_given(name: str) -> None:
    assert child_environment({name: "v"}) == {name: "v"}


@pytest.mark.parametrize("name", KEPT_OUT)
def test_credentials_and_the_rest_are_not_unless_they_are_named(name: str) -> None:
    assert child_environment({name: "v"}) == {}
    assert child_environment({name: "v", "OTHER": "w"}, [name]) == {name: "v"}


def test_the_names_are_no_part_of_what_decides_a_checkpoint() -> None:
    plain, named = (TrainingSettings(model="m", environment=names) for names in ((), ("HF_TOKEN",)))
    assert plain.fingerprint() == named.fingerprint()
