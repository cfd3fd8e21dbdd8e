"""Rates at which the response times of two systems can be compared: percentages of the baseline's peak.

In a closed loop with an equal number of clients, the faster system gets more work, so response times are not measured
under equal load (Schroeder, Wierman and Harchol-Balter, "Open Versus Closed: A Cautionary Tale", NSDI 2006). At a rate
that the baseline can sustain, both systems do the same work.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from ironbench.errors import InputError
from ironbench.model.system import Cell, Load, Setup

PEAK_TRIALS = 3
"""Number of trials of the baseline before the first block. The peak is the median throughput of these trials."""
SHARES = (0.5, 0.7, 0.9)
"""Default fractions of the peak throughput: a light load, a busy system, and a load near the limit."""


def at_shares(peak: float, shares: Sequence[float] = SHARES) -> tuple[float, ...]:
    """Returns the rate in transactions per second at each fraction of `peak`, rounded down to three significant digits.
    Raises InputError.

    `peak`: the median throughput of the baseline's closed-loop trials with the number of clients that the lab declares.
    """
    if not 0 < peak < math.inf:
        raise InputError(
            "peak", f"{peak:g} transactions per second is not a valid throughput", "measure the baseline first"
        )
    wrong = [share for share in shares if not 0 < share < 1]
    if wrong:
        raise InputError(
            "fractions of the peak throughput",
            f"{wrong[0]:g} is not between 0 and 1",
            "use, for example, 0.5, 0.7 and 0.9",
        )
    return tuple(_three_digits(peak * share) for share in shares)


_SHARE = re.compile(r"\s*([0-9]*\.?[0-9]+)\s*%(\s*of\s+(the\s+)?peak)?\s*")


def read(subject: str, asked: float | str | None, numbers: bool = True) -> tuple[float | None, float | None]:
    """Reads `500`, `"70%"` or `"70% of peak"`. Returns a pair of the rate and the fraction of the peak, one of which is
    None. Raises InputError.

    `numbers`: whether an absolute rate is permitted.
    """
    if not isinstance(asked, str):
        return asked, None
    match = _SHARE.fullmatch(asked)
    if match is None:
        hint = 'write for example "70%"' + (", or a number: 500" if numbers else "")
        raise InputError(subject, f"{asked!r} is not a percentage of the peak throughput", hint)
    share = float(match[1]) / 100
    if not 0 < share < 1:
        raise InputError(
            subject, f"{asked.strip()} is not between 0% and 100%", 'use, for example, "50%", "70%" and "90%"'
        )
    return None, share


def closed(cell: Cell) -> Cell:
    """Returns the configuration with a closed loop, for measuring its peak."""
    load = replace(cell.load, rate=None, rate_share=None, warmup_auto=False)
    return replace(cell, load=load)


def wanted(setups: Iterable[Setup]) -> bool:
    """Returns whether any setup has a rate that is a percentage of the peak, so that the peak must be measured."""
    return any(setup.cell.load.rate_share is not None for setup in setups if not setup.skipped)


def at_peak(cell: Cell, peak: float | None) -> Cell:
    """Returns the configuration with an absolute rate in place of a percentage, if the peak is known."""
    load = cell.load
    if load.rate_share is None or peak is None:
        return cell
    return replace(cell, load=replace(load, rate=at_shares(peak, [load.rate_share])[0]))


def open_loop(load: Load) -> bool:
    """Returns whether the load has a target rate, even if its value is not known yet."""
    return load.rate is not None or load.rate_share is not None


def _three_digits(rate: float) -> float:
    unit = 10.0 ** (math.floor(math.log10(rate)) - 2)
    down = math.floor(rate / unit * (1 + 1e-12)) * unit
    return float(f"{down:.3g}")
