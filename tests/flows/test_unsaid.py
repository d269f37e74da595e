"""What fails inside Prefect is known to it by type alone, and to the caller as it was raised."""

import pickle

import pytest

from tracemill.flows.runtime.error_masking import MaskedError, mask_errors, unmask_errors
from tracemill.records.errors import PrivacyError


@mask_errors
def refuse(name: str) -> str:
    """Fails with a message that tells a project."""
    if name:
        raise PrivacyError(f"{name} would go out", "nothing", "leave it out")
    return "well"


def test_an_error_is_hidden_within_and_whole_without() -> None:
    with pytest.raises(MaskedError) as hidden:
        refuse("falcon")
    assert (str(hidden.value), hidden.value.__cause__) == ("PrivacyError", None)
    copy = pickle.dumps(hidden.value)
    assert b"falcon" not in copy
    assert pickle.loads(copy).error is None
    with pytest.raises(PrivacyError, match="falcon would go out"):
        unmask_errors(refuse, "falcon")
    assert unmask_errors(refuse, "") == "well"


def test_an_interrupt_is_no_error() -> None:
    @mask_errors
    def pressed() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pressed()
