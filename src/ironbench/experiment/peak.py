"""The baseline's peak, measured before the blocks of a lab whose rates are shares of it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from statistics import median

from ironbench.errors import FailureError
from ironbench.model.lab import Lab
from ironbench.model.prepared import NOTHING, Prepared
from ironbench.model.record import Record, Status
from ironbench.model.system import Trial
from ironbench.plan import rates
from ironbench.record.labs import LabDirectory, Peak
from ironbench.record.progress import TRIES

PEAK = "peak"


def missing(directory: LabDirectory, records: Sequence[Record], forgiven: Collection[str] = ()) -> Trial | None:
    """The next trial of the peak; None when no rate is a share of it, or it is known, which is then kept.

    FailureError when one failed as often as it is tried.
    """
    lab = directory.lab()
    if not rates.wanted(lab.all_setups) or directory.peak() is not None:
        return None
    cell, usable = rates.closed(lab.setup(lab.baseline).cell), []
    for number in range(rates.PEAK_TRIALS):
        tries = [record for record in records if record.purpose == PEAK and record.block == number]
        done = [record for record in tries if record.status.comparable]
        if not done:
            _refuse_failed(lab, [record for record in tries if record.id not in forgiven])
            return Trial(cell, number, PEAK, attempt=1 + max((record.attempt for record in tries), default=0))
        usable.append(done[0])
    throughput = median(record.metrics["throughput"] for record in usable)
    directory.keep_peak(Peak(throughput, tuple(record.id for record in usable)))
    return None


def said(trial: Trial, directory: LabDirectory) -> Prepared:
    """What the record of a trial shall say of its rate."""
    peak, load = directory.peak(), trial.cell.load
    if peak is None or load.rate is None or load.rate_share is None:
        return NOTHING
    text = (
        f"{load.rate:g}/s, {load.rate_share * 100:g} % of {peak.throughput:.4g}/s, "
        f"the median of {len(peak.trials)} closed-loop trials of {directory.lab().baseline}"
    )
    return Prepared({"rate": text})


def _refuse_failed(lab: Lab, tries: Sequence[Record]) -> None:
    failed = [record for record in tries if record.status in (Status.FAILED, Status.VOIDED)]
    if len(failed) >= TRIES:
        raise FailureError(
            f"lab {lab.name}",
            f"the peak of {lab.baseline} could not be measured: {failed[-1].cause}",
            "mend the cause and begin the lab anew, or write rates as numbers",
        )
