"""What a trial is measured for."""

from __future__ import annotations

from enum import StrEnum


class Purpose(StrEnum):
    """Written into records by its value."""

    SWEEP = "sweep"
    """Of a run: chooses the peak."""
    CONFIRMATION = "confirmation"
    """Of a run: reports the peak that was chosen."""
    LAB = "lab"
    """Of a lab: paired by block."""
    PILOT = "pilot"
    """Decides a warm-up."""
    PEAK = "peak"
    """Decides the rates that are given as shares."""
    SEARCH = "search"
    """Of a lab: chooses the load of a cell."""
    OBSERVED = "observed"
    """Of a lab by slices: shows where a difference comes from, which slices cannot."""
    REHEARSAL = "rehearsal"
    """Warms up what is measured then; has no record."""


AUXILIARY = (Purpose.PILOT, Purpose.PEAK, Purpose.SEARCH, Purpose.OBSERVED)
"""Purposes of trials that enter no result: they decide how a lab is measured, or explain what it found."""
