"""The purpose of a trial."""

from __future__ import annotations

from enum import StrEnum


class Purpose(StrEnum):
    """The purpose of a trial, as stored in records."""

    SWEEP = "sweep"
    """In a run: a trial that determines the peak."""
    CONFIRMATION = "confirmation"
    """In a run: a trial that measures the peak again for the report."""
    LAB = "lab"
    """In a lab: a trial that is compared with the other trials of its block."""
    PILOT = "pilot"
    """A pilot that determines the warm-up."""
    PEAK = "peak"
    """A trial that determines the peak throughput, from which rates given as percentages are computed."""
    SEARCH = "search"
    """In a lab: a trial of the search that chooses the load of a configuration."""
    OBSERVED = "observed"
    """In a lab with slices: a whole trial with observers, which helps to explain differences, because slices have no
    observers."""
    REHEARSAL = "rehearsal"
    """A trial that warms up the system for the next one; it gets no record."""


AUXILIARY = (Purpose.PILOT, Purpose.PEAK, Purpose.SEARCH, Purpose.OBSERVED)
"""Purposes of trials that are not part of any result. Such trials determine how a lab is measured, or explain its
findings."""
