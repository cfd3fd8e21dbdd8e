"""The end of a warm-up is found where it is, and not found where it cannot be."""

from __future__ import annotations

import random

from ironbench.stats.steadiness import BATCH, LEAST_BATCHES, STILL_CHANGING, TOO_SHORT, warm_up

BUCKET_S = 0.1


def series(warm: int, steady: int, seed: int = 1) -> list[float]:
    """Returns a throughput that rises to 1000 over `warm` buckets and stays there."""
    dice = random.Random(seed)
    return [dice.gauss(300 + 700 * n / warm, 20) for n in range(warm)] + [dice.gauss(1000, 20) for _ in range(steady)]


def test_the_end_of_a_ramp_is_found_within_a_second() -> None:
    found = warm_up(series(50, 250), BUCKET_S)
    assert found.seconds is not None
    assert abs(found.seconds - 5.0) <= 1.0


def test_a_steady_series_needs_next_to_no_warm_up() -> None:
    spans = [warm_up(series(0, 300, seed), BUCKET_S).seconds for seed in range(20)]
    assert sum(span is not None and span < 3 for span in spans) >= 18


def test_a_series_that_never_settles_is_not_assessable() -> None:
    found = warm_up(series(300, 0), BUCKET_S)
    assert found.seconds is None
    assert found.reason == STILL_CHANGING


def test_too_few_batches_are_not_assessable() -> None:
    found = warm_up(series(10, LEAST_BATCHES * BATCH - 11), BUCKET_S)
    assert found.seconds is None
    assert found.reason == TOO_SHORT


def test_the_statistic_is_that_of_the_paper() -> None:
    """Compared with the definition, term by term."""
    values = series(40, 240, 3)
    means = [sum(values[n : n + BATCH]) / BATCH for n in range(0, len(values), BATCH)]

    def statistic(dropped: int) -> float:
        rest = means[dropped:]
        centre = sum(rest) / len(rest)
        return sum((one - centre) ** 2 for one in rest) / len(rest) ** 2

    least = min(range(len(means) - 5), key=statistic)
    assert warm_up(values, BUCKET_S).seconds == round(least * BATCH * BUCKET_S, 3)
