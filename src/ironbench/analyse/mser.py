"""When a trial became steady: MSER-5.

White, "An effective truncation heuristic for bias reduction in simulation output", Simulation 69 (1997) 323-334;
White, Cobb and Spratt, "A comparison of five steady-state truncation heuristics for simulation", Proceedings of the
2000 Winter Simulation Conference, 755-760. Observations are averaged in batches of five; dropping the first d of k
batches leaves the statistic sum over j > d of (Z_j - mean)² / (k - d)², and the d that makes it least is the end of the
warm-up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

BATCH = 5
LEAST_BATCHES = 50
"""With fewer nothing is assessed: the statistic is then too noisy to stand on."""
_TAIL = 5
"""The last batches are no candidates: the statistic of very few batches is small by chance."""


@dataclass(frozen=True, slots=True)
class Steady:
    """From when on a series is steady, or why that cannot be said."""

    seconds: float | None
    """From its beginning; None: not assessable."""
    reason: str = ""


def warm_up(values: Sequence[float] | np.ndarray[Any, Any], bucket_s: float) -> Steady:
    """`values`: one for each bucket of `bucket_s` from the start of the load on, none left out."""
    batches = len(values) // BATCH
    if batches < LEAST_BATCHES:
        return Steady(None, f"{batches} batches of {BATCH} buckets are fewer than {LEAST_BATCHES}")
    means = np.asarray(values, dtype=float)[: batches * BATCH].reshape(batches, BATCH).mean(axis=1)
    left = np.arange(batches, 0, -1)
    sums, squares = (np.cumsum(part[::-1])[::-1] for part in (means, means**2))
    statistic = np.maximum(squares - sums**2 / left, 0.0) / left.astype(float) ** 2
    dropped = int(np.argmin(statistic[: batches - _TAIL]))
    if dropped > batches / 2:
        return Steady(None, "it was still changing in the second half of the pilot")
    return Steady(round(dropped * BATCH * bucket_s, 3))
