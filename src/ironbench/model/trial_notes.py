"""Notes of a record: conditions that were established for a trial, and warnings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ironbench.model.commands import CommandRun
from ironbench.model.note import Note


@dataclass(frozen=True, slots=True)
class TrialNotes:
    """Conditions that were established and verified, and warnings for the reader."""

    conditions: Mapping[str, str] = field(default_factory=dict)
    """As in `Record.conditions`."""
    warnings: tuple[Note, ...] = ()
    commands: tuple[CommandRun, ...] = ()
    """As in `Record.commands`."""
    output: str = ""
    """What these commands wrote."""
    search_result: Note | None = None
    """As in `Record.search_result`."""

    def merge(self, conditions: Mapping[str, str], warnings: Sequence[Note] = ()) -> TrialNotes:
        """These notes and those of the next step."""
        merged = {**self.conditions, **conditions}
        return replace(self, conditions=merged, warnings=(*self.warnings, *warnings))


NO_NOTES = TrialNotes()
