"""Rewards of votes, against values worked out by hand."""

from dataclasses import replace

import pytest

from tracemill.agreement.voting.consensus_reward import ConsensusShape, consensus_reward
from tracemill.records.pair import Vote


def votes(*keys: str) -> list[Vote]:
    """Votes of the teachers `t0`, `t1`, ..."""
    return [
        Vote(f"t{n}", f"f{n}", 0, True, "", key, "edit", key == "student", 0.0, f"r{n}")
        for n, key in enumerate(keys)
    ]


@pytest.mark.parametrize(
    ("shape", "keys", "reward"),
    [
        ("plurality", ("student", "student", "a"), 1.0),
        ("plurality", ("student", "a", "b"), 1.0),  # nobody has more
        ("plurality", ("student", "a", "a"), 0.0),
        ("plurality", ("a", "b", "c"), 0.0),
        ("weighted", ("student", "student", "a"), 2 / 3),
        ("weighted", ("a", "b"), 0.0),
        ("variance_weighted", ("student", "student"), 1.0),  # v = 0
        ("variance_weighted", ("student", "student", "a"), 2 / 3 * (1 - 4 / 9)),  # v = 2/9 + 2/9
        ("variance_weighted", ("student", "a", "b", "c"), 1 / 4 * (1 - 3 / 4)),  # v = 4 x 3/16
    ],
)
def test_a_shape_rewards_what_teachers_also_did(
    shape: ConsensusShape, keys: tuple[str, ...], reward: float
) -> None:
    assert consensus_reward(votes(*keys), shape) == pytest.approx(reward)


def test_weights_count_teachers_as_much_as_they_say() -> None:
    given, weights = votes("student", "a", "a"), {"t0": 3.0, "t2": 0.0}
    assert consensus_reward(given, "weighted", weights) == pytest.approx(3 / 4)
    assert consensus_reward(given, "variance_weighted", weights) == pytest.approx(3 / 4 * (1 - 2 * 3 / 16))
    assert consensus_reward(given, "plurality", weights) == 0.0  # counts votes, not weights


def test_a_score_is_the_one_with_the_least_weighted_squares() -> None:
    scores, weights = {"t0": 0.2, "t1": 0.8, "t2": 0.5}, {"t0": 2.0}
    reward = consensus_reward([], "score_regression", weights, scores)
    assert reward == pytest.approx((2 * 0.2 + 0.8 + 0.5) / 4)

    def squares(r: float) -> float:
        return sum(weights.get(name, 1.0) * (score - r) ** 2 for name, score in scores.items())

    assert reward is not None
    assert all(squares(reward) < squares(reward + step) for step in (-0.01, 0.01))


def test_what_does_not_count_has_no_reward() -> None:
    away = [replace(vote, counted=False) for vote in votes("student", "student")]
    assert consensus_reward([*away, *votes("a")], "weighted") == 0.0
    assert consensus_reward(away, "weighted") is None
    assert consensus_reward(away, "plurality") is None
    assert consensus_reward(votes("student"), "weighted", {"t0": 0.0}) is None
    assert consensus_reward(votes("student"), "score_regression") is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"shape": "majority"}, "shape is 'majority'; it must be one of plurality, weighted"),
        ({"teacher_weights": {"t0": -1.0}}, r"The weight of t0 is -1\.0; it must be 0 or more"),
        (
            {"shape": "score_regression", "scores": {"t0": float("nan")}},
            "The score of t0 is nan; it must be finite",
        ),
    ],
)
def test_what_cannot_be_used_is_one_sentence(given: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        consensus_reward(votes("student"), **given)  # type: ignore[arg-type]
