"""What the slices of one system in one block say of its value: how precise it is, and how they depend on each other."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np


def autocorrelation(values: Sequence[float]) -> float:
    """Of lag 1: Box, Jenkins and Reinsel, "Time Series Analysis", 3rd edition, 2.1.5. 0 where nothing varies, or of
    fewer than three."""
    deviations = np.asarray(values, dtype=float) - np.mean(values) if len(values) > 2 else np.zeros(1)
    whole = float(deviations @ deviations)
    return float(deviations[1:] @ deviations[:-1]) / whole if whole > 0 else 0.0


def figures(rates: Sequence[float]) -> dict[str, float]:
    """Metrics of a record made of slices with these rates: their number, how their logarithms vary, and what their mean
    may be off by chance alone, one slice following another."""
    found = {"slices": float(len(rates))}
    if len(rates) < 3 or min(rates) <= 0:
        return found
    logs = [math.log(rate) for rate in rates]
    spread, r = float(np.std(logs, ddof=1)), autocorrelation(logs)
    # The effective number of observations of an autoregressive series of order 1 (Bayley and Hammersley, "The
    # 'effective' number of independent observations in an autocorrelated time series", JRSS Suppl. 8, 1946).
    longer = max(1.0, (1 + r) / (1 - r)) if r < 1 else float(len(rates))
    error = spread * math.sqrt(longer / len(rates))
    return found | {"slice_spread": spread, "slice_autocorrelation": r, "slice_error": error}
