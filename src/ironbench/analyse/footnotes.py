"""What a reader of a run's tables must know."""

from __future__ import annotations

from collections.abc import Sequence

from ironbench.analyse.subjects import counted_in
from ironbench.model.purpose import Purpose
from ironbench.model.record import Record
from ironbench.model.sample import IN_TABLES, too_few
from ironbench.words import in_percent

SEARCH = "search"
"""Condition of confirmation trials after a search: its answer in words."""
LIMITS = "search limits"


def footnotes(records: Sequence[Record]) -> tuple[str, ...]:
    few = too_few([one for one in records if one.status.comparable], counted_in(records)[1], IN_TABLES)
    notes = [few] if few else []
    loads = [record.cell.load for record in records]
    one, many = counted_in(records)
    if any(load.rate is None for load in loads):
        notes.append(
            f"Closed loop: each client waits for its answer before it sends the next {one}, so response time is "
            "service time; a slow server is asked less often, which hides waiting that real users would feel."
        )
    if any(load.rate is not None for load in loads):
        notes.append(
            f"Open loop: response time counts from the moment a {one} was due, service time from the moment it was "
            f"sent; {many} that were due but never began are counted apart."
        )
    if any(record.purpose == Purpose.CONFIRMATION for record in records):
        answers = dict.fromkeys(r.conditions[SEARCH] for r in records if SEARCH in r.conditions)
        notes += [f"The search found: {answer}." for answer in answers]
        kinds = {"peak" if load.rate is None else "rate" for load in loads}
        notes += [
            f"The {what} was chosen on the sweep and measured again on fresh confirmation trials, because the best of "
            "several noisy numbers is too high by nature."
            for what in sorted(kinds)
        ]
    if any(record.budget.emulation > 0 for record in records):
        most = max(record.budget.emulation for record in records)
        notes.append(
            "Emulated devices: results hold for the model, not for a real drive. "
            f"Emulation took up to {in_percent(most)} of the CPU time."
        )
    return tuple(notes)
