"""Which of the known noise floors a finding may quote."""

from __future__ import annotations

from collections.abc import Sequence

from ironbench.analyse.subjects import work_name
from ironbench.model.noise import Noise
from ironbench.model.record import Record


def highest(known: Sequence[Noise], metric: str, records: Sequence[Record]) -> Noise | None:
    """The highest floor of the records' own machines and work, for one metric; None where none was measured.

    Not of any other work: how far two runs of the same lie apart depends on what they do as much as on the machine.
    """
    measured = [one for one in known if one.metric == metric]
    if not measured:
        return None
    here = {(record.machine, work_name(record.choice)) for record in records}
    return max((one for one in measured if (one.machine, one.work) in here), key=lambda one: one.floor, default=None)
