"""A package index: real source distributions for the tests that want some."""

import os

import httpx
import pytest

ABSENT = "no package index can be reached"


def require() -> None:
    """Skip the test where the index does not answer at all."""
    index = os.environ.get("PIP_INDEX_URL", "https://pypi.org/simple/").rstrip("/")
    try:
        httpx.head(f"{index}/inflection/", follow_redirects=True, timeout=30)
    except httpx.TransportError:
        pytest.skip(ABSENT)
