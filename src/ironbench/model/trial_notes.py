"""Notes that become part of a record: conditions of a trial, and warnings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ironbench.model.commands import CommandRun
from ironbench.model.note import Note


@dataclass(frozen=True, slots=True)
class TrialNotes:
    """Conditions that were established and verified for a trial, and warnings for the reader."""

    conditions: Mapping[str, str] = field(default_factory=dict)
    """See `Record.conditions`."""
    warnings: tuple[Note, ...] = ()
    commands: tuple[CommandRun, ...] = ()
    """See `Record.commands`."""
    output: str = ""
    """Output of the commands in `commands`."""
    search_result: Note | None = None
    """See `Record.search_result`."""

    def merge(self, conditions: Mapping[str, str], warnings: Sequence[Note] = ()) -> TrialNotes:
        """Returns these notes with the given conditions and warnings added."""
        merged = {**self.conditions, **conditions}
        return replace(self, conditions=merged, warnings=(*self.warnings, *warnings))


NO_NOTES = TrialNotes()
