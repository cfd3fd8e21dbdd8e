"""How long a cell takes to become steady: a pilot trial of each, before any trial that counts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from ironbench.model.note import note
from ironbench.model.purpose import Purpose
from ironbench.model.record import Record
from ironbench.model.system import Cell, Load, Trial
from ironbench.model.trial_notes import NO_NOTES, TrialNotes
from ironbench.plan.blocks import PILOT_S
from ironbench.records import Store
from ironbench.records.progress import TRIES, failed
from ironbench.stats import steadiness

BUCKET_S = 0.1
"""Of a trial's timeline."""
PILOT_FAILED, PILOT_DAMAGED = "pilot failed", "pilot damaged"
"""Why a warm-up could not be assessed, besides the reasons of `steadiness.warm_up`."""


@dataclass(frozen=True, slots=True)
class Warmup:
    """What a pilot decided."""

    seconds: float
    prepared: TrialNotes


def missing(cells: Iterable[Cell], records: Sequence[Record], forgiven: Collection[str] = ()) -> Trial | None:
    """The next pilot to be measured; None when every cell that wants one has had it or failed as often as it may.

    `forgiven`: ids of failed ones that do not count, where no trial of their cell has another warm-up already.
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
    """The cell's load, long enough for a decision, from its very beginning."""
    load = replace(cell.load, duration_s=PILOT_S, transactions=None, warmup_s=0.0)
    return Trial(replace(cell, load=load), 0, Purpose.PILOT, attempt=attempt)


def decided(cell: Cell, records: Sequence[Record], store: Store) -> Warmup | None:
    """The warm-up of a cell by its pilot; None where the cell declares it itself."""
    if not cell.load.warmup_auto:
        return None
    usable = [record for record in _pilots(cell, records) if record.status.comparable]
    if not usable:
        return _default(cell.load, PILOT_FAILED)
    timeline = store.timeline(usable[-1].id)
    if "transactions" not in timeline:
        return _default(cell.load, PILOT_DAMAGED)
    found = steadiness.warm_up(timeline["transactions"], BUCKET_S)
    if found.seconds is None:
        return _default(cell.load, found.reason)
    text = f"{found.seconds:g} s, by MSER-5 of the pilot {usable[-1].id}"
    return Warmup(found.seconds, TrialNotes({"warm-up": text}))


def applied(
    trial: Trial, records: Sequence[Record], store: Store, piloted: Cell | None = None
) -> tuple[Trial, TrialNotes]:
    """The trial with the warm-up that its cell's pilot decided, and what its record says of that.

    `piloted`: the cell whose pilot it was, where that is another.
    """
    warmup = None if trial.purpose == Purpose.PILOT else decided(piloted or trial.cell, records, store)
    if warmup is None:
        return trial, NO_NOTES
    load = replace(trial.cell.load, warmup_s=warmup.seconds)
    return replace(trial, cell=replace(trial.cell, load=load)), warmup.prepared


def _default(load: Load, reason: str) -> Warmup:
    conditions = {"warm-up": f"{load.warmup_s:g} s, not assessed"}
    unknown = note("warm-up-not-assessed", reason=reason, warmup_s=load.warmup_s)
    return Warmup(load.warmup_s, TrialNotes(conditions, (unknown,)))


def _pilots(cell: Cell, records: Sequence[Record]) -> list[Record]:
    return [record for record in records if record.purpose == Purpose.PILOT and record.cell.name == cell.name]
