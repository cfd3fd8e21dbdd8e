"""Mathematics of a screen: orthogonal designs free of two-factor interactions, and an error estimated from blocks."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from ironbench.plan import screen
from ironbench.stats import screening


@pytest.mark.parametrize("factors", range(2, screen.MOST_FACTORS + 1))
def test_effects_are_orthogonal_and_free_of_every_interaction_of_two(factors: int) -> None:
    half = screening.design(factors, screen.pairs(factors))
    whole = np.vstack([half, -half])
    assert np.array_equal(whole.T @ whole, len(whole) * np.eye(factors))
    assert (half[0] == -1).all()
    for a, b in itertools.combinations(range(factors), 2):
        assert not (whole.T @ (whole[:, a] * whole[:, b])).any()


def test_a_screen_has_as_few_pairs_as_there_can_be() -> None:
    assert [screen.pairs(count) for count in (2, 3, 8, 9, 12, 13, 24)] == [2, 4, 8, 12, 12, 16, 24]


def differences(signs: np.ndarray, effects: list[float], blocks: int, noise: float, seed: int) -> list:
    dice = np.random.default_rng(seed)
    return [
        (pair, float(signs[pair] @ effects + noise * dice.standard_normal()))
        for _ in range(blocks)
        for pair in range(len(signs))
    ]


def test_effects_and_their_error_are_recovered() -> None:
    signs, truth = screening.design(8, 8), [0.3, -0.2, *[0.0] * 6]
    found = screening.estimates(signs, differences(signs, truth, 400, 0.1, 1))
    assert [one.effect for one in found] == pytest.approx(truth, abs=0.01)
    assert {one.freedom for one in found} == {8 * 399}
    assert found[0].error == pytest.approx(0.1 / math.sqrt(8 * 400), rel=0.05)
    assert found[0].spread == pytest.approx(0.1, rel=0.05)


def test_effects_that_are_there_do_not_blow_up_the_error_of_others() -> None:
    """An error that is estimated from effects assumed to be zero would grow with these effects."""
    signs = screening.design(8, 8)
    errors = [screening.estimates(signs, differences(signs, [size] * 8, 3, 0.05, 2))[0].error for size in (0.0, 1.0)]
    assert errors[0] == pytest.approx(errors[1])


def test_a_pair_that_is_missing_costs_precision_and_nothing_else() -> None:
    signs, truth = screening.design(8, 8), [0.3, *[0.0] * 7]
    whole = differences(signs, truth, 200, 0.1, 3)
    some = [one for place, one in enumerate(whole) if place % 5]
    found = screening.estimates(signs, some)
    assert found[0].effect == pytest.approx(0.3, abs=0.02)
    assert found[0].error > screening.estimates(signs, whole)[0].error
    assert screening.estimates(signs, [one for one in whole if one[0] != 2]) == ()  # eight effects from seven pairs
    assert screening.estimates(signs, whole[:8]) == ()  # one block gives no error estimate
    assert screening.estimates(signs, []) == ()


@pytest.mark.parametrize("factors", [4, 8, 12])
def test_false_alarms_of_all_factors_together_are_five_per_cent(factors: int) -> None:
    signs, alarms, screens = screening.design(factors, screen.pairs(factors)), 0, 2000
    dice = np.random.default_rng(5)
    for _ in range(screens):
        values = dice.standard_normal(3 * len(signs))
        found = screening.estimates(signs, [(place % len(signs), float(v)) for place, v in enumerate(values)])
        alarms += min(one.p for one in found) <= 0.05 / factors
    assert 0.035 < alarms / screens < 0.06


@pytest.mark.parametrize("size", [0.1, -0.1])
def test_an_interaction_is_seen_with_its_sign_and_all_pairs_that_it_may_be(size: float) -> None:
    signs = screening.design(8, 8)
    dice = np.random.default_rng(6)
    both = size * signs[:, 1] * signs[:, 2]  # of the four settings of two factors: two up, two down
    means = 7 + both + 0.01 * dice.standard_normal((3, 8))
    found = screening.interplay(signs, means)
    assert found is not None and found.p < 0.001
    assert (1, 2) in found.strongest and len(found.strongest) == 4
    ratios = dict(zip(found.strongest, found.ratios, strict=True))
    assert ratios[1, 2] == pytest.approx(math.exp(4 * size), rel=0.05)
    for (a, b), ratio in ratios.items():  # each explains the same runs, with their sign
        sign = np.sign(size) * np.sign(float((signs[:, a] * signs[:, b]) @ (signs[:, 1] * signs[:, 2])))
        assert (ratio > 1) == (sign > 0)
    none = screening.interplay(signs, 7 + 0.01 * dice.standard_normal((3, 8)))
    assert none is not None and none.p > 0.01
    assert screening.interplay(signs, means[:1]) is None
