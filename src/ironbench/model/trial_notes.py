"""Notes of a record: conditions that were established for a trial, and warnings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ironbench.model.record import Warning


@dataclass(frozen=True, slots=True)
class TrialNotes:
    """Conditions that were established and verified, and warnings for the reader."""

    conditions: Mapping[str, str] = field(default_factory=dict)
    """As in `Record.conditions`."""
    warnings: tuple[Warning, ...] = ()

    def merge(self, conditions: Mapping[str, str], warnings: Sequence[Warning] = ()) -> TrialNotes:
        """These notes and those of the next step."""
        return TrialNotes({**self.conditions, **conditions}, (*self.warnings, *warnings))


NO_NOTES = TrialNotes()
