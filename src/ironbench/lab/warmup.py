"""Chooses the warm-up of a configuration from a pilot trial, before any trial that counts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from ironbench.model.note import note
from ironbench.model.purpose import Purpose
from ironbench.model.record import Record
from ironbench.model.system import Cell, Trial
from ironbench.model.trial_notes import NO_NOTES, TrialNotes
from ironbench.plan.blocks import PILOT_S
from ironbench.records import Store
from ironbench.records.progress import TRIES, failed
from ironbench.stats import steadiness

BUCKET_S = 0.1
"""Bucket width of a trial's timeline, in seconds."""
PILOT_FAILED, PILOT_DAMAGED = "pilot failed", "pilot damaged"
"""Reasons why the warm-up could not be determined. `steadiness.warm_up` has further reasons."""


def missing(cells: Iterable[Cell], records: Sequence[Record], forgiven: Collection[str] = ()) -> Trial | None:
    """Returns the next pilot to measure. Returns None if every configuration has a successful pilot or too many failed
    ones. `forgiven`: ids of failed pilots to ignore. A failed pilot is not ignored if its configuration already has
    trials, because these had another warm-up.
    """
    for cell in cells:
        tries = _pilots(cell, records)
        of_blocks = (one for one in records if one.purpose == Purpose.LAB and one.cell.name == cell.name)
        begun = any(one.status.comparable for one in of_blocks)
        lost = [one for one in failed(tries) if begun or one.id not in forgiven]
        done = any(one.status.comparable for one in tries) or len(lost) >= TRIES
        if cell.load.warmup_auto and not done:
            return pilot(cell, len(tries) + 1)
    return None


def pilot(cell: Cell, attempt: int = 1) -> Trial:
    """Returns the pilot trial of a configuration. The pilot has the configuration's load and no warm-up, and is long
    enough to determine the warm-up."""
    load = replace(cell.load, duration_s=PILOT_S, transactions=None, warmup_s=0.0)
    return Trial(replace(cell, load=load), 0, Purpose.PILOT, attempt=attempt)


def applied(
    trial: Trial, records: Sequence[Record], store: Store, piloted: Cell | None = None
) -> tuple[Trial, TrialNotes]:
    """Returns the trial with the warm-up that the pilot determined, and a note about this for the trial's record. The
    trial is unchanged if its warm-up is declared. `piloted`: the configuration whose pilot is used, if it is not the
    trial's own.
    """
    cell = piloted or trial.cell
    if trial.purpose == Purpose.PILOT or not cell.load.warmup_auto:
        return trial, NO_NOTES
    warmup_s, notes = _determined(cell, records, store)
    load = replace(trial.cell.load, warmup_s=warmup_s)
    return replace(trial, cell=replace(trial.cell, load=load)), notes


def _determined(cell: Cell, records: Sequence[Record], store: Store) -> tuple[float, TrialNotes]:
    """Returns the warm-up in seconds that the configuration's pilot determined, and a note about it. If the pilot could
    not determine it, returns the usual warm-up and a warning."""
    usable = [record for record in _pilots(cell, records) if record.status.comparable]
    timeline = store.timeline(usable[-1].id) if usable else {}
    if "transactions" in timeline:
        found = steadiness.warm_up(timeline["transactions"], BUCKET_S)
        if found.seconds is not None:
            text = f"{found.seconds:g} s, computed by MSER-5 from the pilot trial {usable[-1].id}"
            return found.seconds, TrialNotes({"warm-up": text})
        reason = found.reason
    else:
        reason = PILOT_DAMAGED if usable else PILOT_FAILED
    usual_s = cell.load.warmup_s
    warning = note("warm-up-not-assessed", reason=reason, warmup_s=usual_s)
    return usual_s, TrialNotes({"warm-up": f"{usual_s:g} s, not assessed"}, (warning,))


def _pilots(cell: Cell, records: Sequence[Record]) -> list[Record]:
    return [record for record in records if record.purpose == Purpose.PILOT and record.cell.name == cell.name]
