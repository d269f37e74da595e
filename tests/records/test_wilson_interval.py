"""The interval of a proportion against published figures."""

import pytest

from tracemill.records.wilson_interval import wilson_interval


def test_it_is_the_score_interval() -> None:
    assert wilson_interval(81, 263) == pytest.approx((0.2553, 0.3662), abs=1e-4)
    assert wilson_interval(45, 50) == pytest.approx((0.78640, 0.95652), abs=1e-4)
    assert wilson_interval(0, 50) == pytest.approx((0.0, 0.07135), abs=1e-4)
    assert wilson_interval(50, 50) == pytest.approx((0.92865, 1.0), abs=1e-4)
    assert wilson_interval(0, 0) == (0.0, 1.0)
