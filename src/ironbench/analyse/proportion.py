"""Intervals of a proportion that was sampled."""

from __future__ import annotations

import math

Z95 = 1.959963984540054
"""97.5 % quantile of the normal distribution."""


def wilson(share: float, n: float, z: float = Z95) -> tuple[float, float]:
    """The score interval of a share seen in `n` independent observations; (0, 1) without any.

    Wilson, Probable inference, the law of succession, and statistical inference, JASA 22 (1927), 209–212. It holds at
    shares near 0 and 1 and for few observations, where share ± z·s does not (Brown, Cai, DasGupta, Statistical Science
    16 (2001), 101–133). `n` need not be whole: an effective number takes its place where observations resemble each
    other (Kish, Survey Sampling, 1965).
    """
    if n <= 0:
        return 0.0, 1.0
    z2 = z * z / n
    centre = (share + z2 / 2) / (1 + z2)
    half = z / (1 + z2) * math.sqrt(share * (1 - share) / n + z2 / (4 * n))
    return max(0.0, centre - half), min(1.0, centre + half)
