"""The Universal Scalability Law: reproduces a published fit to all printed digits, and simulates the coverage of the
confidence intervals."""

from __future__ import annotations

import numpy as np

from bench.figures import at_least, equal, said
from ironbench.stats.scalability import fitted
from ironbench.stats.usl import Usl

SPECSDM91 = ((1, 64.9), (18, 995.9), (36, 1652.4), (72, 1853.2), (108, 1828.9), (144, 1775.0), (216, 1702.2))
"""Gunther 2007; data and results as in the R package `usl`."""
TRUE = Usl(0.05, 0.001, 500.0)
DESIGNS = (((1, 2, 4, 8, 16, 32, 64), 1), ((1, 2, 4, 8, 12, 16, 20), 3), ((1, 2, 4, 8, 16, 32, 64), 6))
SWEEPS, SPREAD = 300, 0.04
QUANTITIES = ("alpha", "beta", "gamma", "peak_clients", "peak_throughput")
HELD = 0.91
"""Three standard deviations of a proportion of 300 below 95%."""


def main() -> None:
    published()
    coverage()


def published() -> None:
    fit = fitted([(float(n), x) for n, x in SPECSDM91], proportional=False)
    assert fit is not None
    curve = fit.curve
    rows = (
        ("α", f"{curve.alpha:.7f}", "0.0277285"),
        ("β", f"{curve.beta:.8f}", "0.00010437"),
        ("γ", f"{curve.gamma:.4f}", "89.9952"),
        ("clients at the peak", f"{curve.peak_clients:.2f}", "96.52"),
        ("throughput at the peak", f"{curve.peak_throughput:.1f}", "1883.9"),
        ("asymptote", f"{curve.asymptote:.1f}", "3245.6"),
        ("clients at the knee", f"{curve.knee:.2f}", "36.06"),
        ("throughput at the knee", f"{curve.at(curve.knee):.1f}", "1542.4"),
        ("residual error", f"{fit.residual_error:.1f}", "82.8"),
    )
    for name, found, printed in rows:
        said(f"published USL fit, {name}", float(found), equal(float(printed), printed), found)


def coverage() -> None:
    """Fraction of simulated sweeps whose 95% confidence intervals contain the truth; trials vary by 4% of their
    throughput."""
    dice = np.random.default_rng(1)
    for clients, repeats in DESIGNS:
        held = dict.fromkeys(QUANTITIES, 0)
        for _ in range(SWEEPS):
            points = [(n, TRUE.at(n) * (1 + SPREAD * dice.standard_normal())) for n in clients for _ in range(repeats)]
            fit = fitted(points)
            assert fit is not None
            for name in QUANTITIES:
                estimate = getattr(fit, name)
                held[name] += estimate.low <= getattr(TRUE, name) <= estimate.high
        shares = {name: count / SWEEPS for name, count in held.items()}
        design = f"{len(clients)} numbers of clients to {clients[-1]}, {repeats} each"
        for name, share in shares.items():
            said(f"coverage of {name}, {design}", share, at_least(HELD), f"{share:.3f}")
