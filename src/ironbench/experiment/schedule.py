"""What a lab does next: the rest of a stage, a look at the findings, another stage, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from ironbench.analyse import claims, findings, looks
from ironbench.errors import FailureError
from ironbench.model.lab import Lab, Stage
from ironbench.model.record import Record
from ironbench.model.system import Trial
from ironbench.plan import blocks as planned
from ironbench.plan import same_load
from ironbench.record import progress
from ironbench.record.labs import LabDirectory


def _always(trials: int) -> bool:
    return True


def next_trial(
    directory: LabDirectory,
    records: Sequence[Record],
    forgiven: Collection[str] = (),
    holds: Callable[[int], bool] = _always,
) -> Trial | None:
    """The next trial in the planned order; declares the next stage when one is over and left something open.

    `holds`: whether the budget holds so many trials more; it ends a lab at a look only, whatever the look showed.
    """
    while True:
        declared = directory.declared()
        waiting = progress.missing([trial for one in declared for trial in one.trials], records, forgiven)
        if waiting:
            return waiting[0]
        lab, number = directory.lab(), len(declared)
        if number and decided(lab, records, number):
            return None
        stage = next(stage for stage in lab.method.stages if stage.number == number + 1)
        trials = tuple(trial for trial in lab.trials if trial.stage == stage.number)
        if number and not holds(len(trials)):
            return None
        directory.declare(stage, trials)


def decided(lab: Lab, records: Sequence[Record], stage: int) -> bool:
    """Whether the findings after a stage end the lab: there is no other look, or every comparison has its verdict and
    every claim its answer, but for those of cells that no later stage measures."""
    look = looks.at(lab.method, stage)
    if look.number == look.looks:
        return True
    found = findings.findings(records, lab, stage, others=())
    later = {trial.cell.name for trial in lab.trials if trial.stage > stage}
    able = [one for one in found if later.issuperset((one.cell, one.baseline))]
    awaited = any(
        one.outcome is claims.Outcome.UNDECIDED and later.issuperset(one.claim.cells)
        for one in claims.judged(lab.claims, found)
    )
    return looks.decided(able, look.number, look.looks) and not awaited


def more(directory: LabDirectory, blocks: int) -> None:
    """Declares another round after a lab that is over: its cells in its order, rated ones in the first blocks.

    What was planned beyond is not measured.
    """
    lab, declared = directory.lab(), directory.declared()
    first = 1 + max(trial.block for one in declared for trial in one.trials)
    stage = Stage(len(declared) + 1, blocks, added=True)
    cells, rated = ([one.cell for one in setups if not one.skipped] for setups in (lab.setups, lab.rated))
    method, at_rates = lab.method, same_load.in_blocks(blocks)
    directory.declare(stage, planned.trials(cells, (stage,), method.seed, method.order, rated, at_rates, first))


def refuse_futile(lab: Lab, fresh: Sequence[Record]) -> None:
    """FailureError when nothing at all succeeded for as long as a whole block takes: the rest would fail alike."""
    enough = progress.TRIES * sum(not setup.skipped for setup in lab.setups)
    if len(fresh) >= enough and not any(record.status.comparable for record in fresh[-enough:]):
        raise FailureError(
            f"lab {lab.name}",
            f"the last {enough} trials failed, the last one: {fresh[-1].cause}",
            "mend the cause, then `ironbench lab resume` goes on",
        )
