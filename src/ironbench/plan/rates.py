"""Rates at which two systems can be compared: shares of the baseline's peak.

In a closed loop at equal clients the faster system is given more work, so response times there are not at the same load
(Schroeder, Wierman and Harchol-Balter, "Open Versus Closed: A Cautionary Tale", NSDI 2006). At a rate that the baseline
can sustain both do the same work.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ironbench.errors import InputError

SHARES = (0.5, 0.7, 0.9)
"""Lightly loaded, busy, near the limit."""


def at_shares(peak: float, shares: Sequence[float] = SHARES) -> tuple[float, ...]:
    """Transactions per second at each share of `peak`, to three digits, never above the share. InputError.

    `peak`: the baseline's highest throughput, as confirmation trials report it; that of the sweep which chose it would
    be too high.
    """
    if not 0 < peak < math.inf:
        raise InputError("peak", f"{peak:g} transactions per second is no throughput", "measure the baseline first")
    wrong = [share for share in shares if not 0 < share < 1]
    if wrong:
        raise InputError("shares of the peak", f"{wrong[0]:g} is not between 0 and 1", "0.5, 0.7 and 0.9 are usual")
    return tuple(_three_digits(peak * share) for share in shares)


def _three_digits(rate: float) -> float:
    unit = 10.0 ** (math.floor(math.log10(rate)) - 2)
    down = math.floor(rate / unit * (1 + 1e-12)) * unit
    return float(f"{down:.3g}")
