"""Adds blocks to a lab whose gate is inconclusive, if the gate's policy allows time for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from statistics import median

from ironbench import units
from ironbench.lab import schedule
from ironbench.model.purpose import Purpose
from ironbench.model.record import Record
from ironbench.printer import Printer
from ironbench.records import progress
from ironbench.records.labs import LabDirectory
from ironbench.stats.multiplicity import LEAST_BLOCKS
from ironbench.study import gate
from ironbench.study.findings import declared
from ironbench.words import counted


@dataclass(frozen=True, slots=True)
class Policy:
    """How to proceed if a gate is inconclusive."""

    undecided: str
    """The result of a gate that stays inconclusive: an entry of `study.gate.POLICIES`."""
    more_s: float = 0.0
    """Seconds for additional blocks before the gate is decided."""


def adds_blocks(
    policy: Policy,
    directory: LabDirectory,
    records: Sequence[Record],
    elapsed_s: float,
    judge: Callable[[], gate.Gate],
    printer: Printer,
) -> bool:
    """Adds a round of blocks if the gate is inconclusive. The round has as many blocks as fit in the policy's time.
    `judge`: a function that judges the lab in its current state. The function is slow, so it is called only if
    necessary.
    """
    if not policy.more_s or progress.interrupted(records) or not declared(directory.lab()):
        return False
    judged = judge()
    if judged.outcome is not gate.GateOutcome.INCONCLUSIVE or judged.study.missing:
        return False
    if not any(gate.has_better(one.finding.metric) for one in judged.comparisons):
        return False
    a_block_s = _a_block_s(records) or elapsed_s
    blocks = int(policy.more_s / a_block_s)
    if blocks < LEAST_BLOCKS:
        needed = units.span(LEAST_BLOCKS * a_block_s)
        printer.say(
            f"the gate is inconclusive, and {LEAST_BLOCKS} more blocks would take {needed}, longer than "
            "--undecided allows"
        )
        return False
    printer.say(
        f"the gate is inconclusive; ironbench now measures {counted(blocks, 'more block')}, which are judged separately"
    )
    schedule.add_round(directory, blocks)
    return True


def _a_block_s(records: Sequence[Record]) -> float:
    """Returns the median time in seconds from the start of a block to the start of the next block. Loading, searches
    and pauses of the lab are rare, so they do not affect the median."""
    began: dict[int, float] = {}
    for record in records:
        if record.purpose == Purpose.LAB:
            at_s = datetime.fromisoformat(record.started_at).timestamp()
            began[record.block] = min(at_s, began.get(record.block, at_s))
    times = sorted(began.values())
    return median(later - earlier for earlier, later in pairwise(times)) if len(times) > 1 else 0.0
