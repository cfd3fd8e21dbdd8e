"""Trials before the blocks: they decide a warm-up or the rates, and enter no finding."""

from __future__ import annotations

from collections.abc import Sequence

from ironbench.model.lab import Lab
from ironbench.model.system import Setup
from ironbench.plan import rates

PILOT_S = 30.0
"""60 batches of 5 buckets of 100 ms: MSER-5 needs 50, and looks for the end of the warm-up in the first half."""


def piloted(setups: Sequence[Setup]) -> list[Setup]:
    """Those whose warm-up a pilot decides; a rated cell has the warm-up of the cell that it is."""
    return [setup for setup in setups if setup.cell.load.warmup_auto and not setup.of and not setup.skipped]


def peaks(setups: Sequence[Setup]) -> int:
    """How many trials find the baseline's peak: none where no rate is a share of it."""
    return rates.PEAK_TRIALS if rates.wanted(setups) else 0


def count(lab: Lab) -> int:
    """Trials that a lab needs before its first block."""
    return peaks(lab.all_setups) + len(piloted(lab.setups))
