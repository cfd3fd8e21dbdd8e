"""The purpose of a trial."""

from __future__ import annotations

from enum import StrEnum


class Purpose(StrEnum):
    """The purpose of a trial, as stored in records."""

    SWEEP = "sweep"
    """In a run: finds the peak."""
    CONFIRMATION = "confirmation"
    """In a run: measures the peak again for the report."""
    LAB = "lab"
    """In a lab: is compared with the other trials of its block."""
    PILOT = "pilot"
    """Determines the warm-up."""
    PEAK = "peak"
    """Determines the peak, from which rates given as percentages are computed."""
    SEARCH = "search"
    """In a lab: chooses the load of a configuration."""
    OBSERVED = "observed"
    """In a lab by slices: explains a difference with observers, which slices cannot have."""
    REHEARSAL = "rehearsal"
    """Warms up the system for the next trial; gets no record."""


AUXILIARY = (Purpose.PILOT, Purpose.PEAK, Purpose.SEARCH, Purpose.OBSERVED)
"""Purposes of trials that are not part of any result: they determine how a lab is measured, or explain its findings."""
