"""The noise floor of a machine: what A against A looks like on it."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from ironbench.analyse.findings import findings
from ironbench.analyse.subjects import work_name
from ironbench.model.finding import Finding
from ironbench.model.lab import Lab
from ironbench.model.noise import Noise
from ironbench.model.record import Record
from ironbench.stats.multiplicity import LEAST_BLOCKS


def floors(records: Sequence[Record], lab: Lab) -> tuple[Noise, ...]:
    """A floor for every whole metric of a lab whose two cells are the same; none below six complete blocks.

    The interval is Student's t on log ratios (`stats.ratio`); its far end is the largest difference that these blocks
    do not exclude although there is none.
    """
    found = findings(records, lab, max((record.stage for record in records), default=1))
    usable = [record for record in records if record.status.comparable]
    return tuple(_floor(one, usable, lab) for one in found if one.blocks >= LEAST_BLOCKS and one.low > 0)


def _floor(found: Finding, records: Sequence[Record], lab: Lab) -> Noise:
    setup = lab.setups[0]
    return Noise(
        machine=records[0].machine,
        work=work_name(setup.choice),
        metric=found.metric,
        blocks=found.blocks,
        spread=statistics.stdev(math.log(ratio) for _, ratio in found.ratios),
        floor=max(found.high, 1 / found.low) - 1,
        measured_at=min(record.started_at for record in records),
        trial_s=statistics.fmean(record.elapsed_s for record in records),
    )
