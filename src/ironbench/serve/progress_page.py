"""The progress of a running lab: the answer so far, what each comparison still needs, blocks and trials."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from ironbench.errors import FailureError
from ironbench.model.finding import Finding
from ironbench.model.lab import Lab
from ironbench.model.note import MISSING
from ironbench.model.purpose import Purpose
from ironbench.model.record import Record, Status
from ironbench.records import progress
from ironbench.records.labs import LabDirectory
from ironbench.report import wording
from ironbench.report.numbers import quantity
from ironbench.report.theme import STATUS_SIGNS
from ironbench.serve.answers import changes
from ironbench.serve.page import address, part
from ironbench.words import counted, in_percent

if TYPE_CHECKING:
    from ironbench.report.charts.base import Chart, Table

_PARTS = "progress.html"
_MOST_COMPARISONS = 4
_SHARE = 0.003
"""Maximum fraction of one CPU that the progress of open pages may use."""
_MOST_LABS = 50
"""Maximum number of labs whose progress is cached."""
_MOST_STEPS = 40
"""Maximum number of blocks that the chart shows."""


Steps = dict[int, tuple[tuple[int, int], Sequence[Finding]]]
"""Maps the number of each block to the findings after this block. The pair before the findings contains the number of
records and the stage from which they were computed."""


@dataclass(frozen=True, slots=True)
class LabProgress:
    """The parts of the page as HTML, by element id, and the specification of the chart."""

    parts: dict[str, str]
    charts: dict[str, dict[str, Any]] = field(default_factory=dict)


class ProgressCache:
    """A cache of the progress of labs."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[tuple[int, int], LabProgress]] = {}
        self._steps: dict[str, Steps] = {}
        self._next_s: dict[str, float] = {}
        """For each lab, the earliest time (monotonic clock) at which its progress is computed again for an open
        page."""
        self._lock = threading.Lock()

    def cached(self, directory: LabDirectory) -> tuple[tuple[int, int], LabProgress] | None:
        """Returns the same as `of` with `at_once=False` if the result is cached; otherwise None. Never waits."""
        name = directory.path.name
        known = self._kept.get(name)
        if known is None or (time.monotonic() >= self._next_s.get(name, 0.0) and known[0] != changes(directory)):
            return None
        return known

    def of(self, directory: LabDirectory, at_once: bool = True) -> tuple[tuple[int, int], LabProgress]:
        """Returns a pair: a state that changes whenever the progress of the lab changes, and the progress itself.
        Raises InputError if the lab cannot be read, and FailureError if its records do not match its plan.

        `at_once`: whether the progress is computed immediately if it has changed. If this is false, the result may be
        half a minute old, or older for a large lab. Open pages use this, so that they take little CPU time from the
        trials.
        """
        name, state = directory.path.name, changes(directory)
        with self._lock:
            known = self._kept.get(name)
            soon = at_once or time.monotonic() >= self._next_s.get(name, 0.0)
            if known is None or (known[0] != state and soon):
                while len(self._kept) >= _MOST_LABS and name not in self._kept:
                    oldest = next(iter(self._kept))
                    del self._kept[oldest]
                    self._steps.pop(oldest, None)
                    self._next_s.pop(oldest, None)
                began_s = time.thread_time()
                known = self._kept[name] = state, _made(directory, self._steps.setdefault(name, {}))
                self._next_s[name] = time.monotonic() + (time.thread_time() - began_s) / _SHARE
            return known


def _made(directory: LabDirectory, steps: Steps) -> LabProgress:
    from ironbench.report import studies as labs
    from ironbench.report.answer import answer
    from ironbench.report.document import caveats

    lab, records = directory.lab(), directory.records()
    measured = [record for record in records if record.purpose == Purpose.LAB]
    strip = _strip(directory.path.name, lab, measured)
    whole = _of_whole_blocks(lab, measured)
    if not any(record.status.comparable for record in whole):
        words = "No trial has finished yet." if not records else "No complete block yet."
        return LabProgress(
            {"answer": part(_PARTS, "nothing", words), "needs": "", "strip": strip, "trial": _waits(records)}
        )
    try:
        study = labs.study(directory, whole)
    except (KeyError, ValueError, ArithmeticError) as error:  # e.g. a record of an earlier plan
        raise FailureError(f"lab {directory.path.name}", f"the records do not match the plan ({error})") from error
    known = caveats(replace(study, warnings=tuple(one for one in study.warnings if one.code != MISSING)))
    chart = _chart(lab, measured, steps)
    parts = {
        "answer": part(_PARTS, "answer", answer(study), known),
        "needs": part(_PARTS, "needs", _needs(study, max(1, len(directory.declared()))), chart),
        "strip": strip,
        "trial": _waits(records),
    }
    return LabProgress(parts, {f"so-far-chart-{chart.id}": chart.embedded} if chart else {})


def _of_whole_blocks(lab: Lab, records: Sequence[Record]) -> Sequence[Record]:
    """Returns the records of finished blocks."""
    last = max((record.block for record in records), default=0)
    under_way = progress.missing([trial for trial in lab.trials if trial.block == last], records)
    return [record for record in records if record.block < last] if under_way else records


def _needs(study: Any, stage: int) -> Table | None:
    """Returns a table that shows for each comparison what it still needs for a verdict. Returns None if nothing was
    compared. `stage`: number of the last stage that has started."""
    from ironbench.report.cell import count
    from ironbench.report.charts.base import Table
    from ironbench.report.finding_tables import interval_cell, ratio_cell, verdict

    of_look = [trial.block for trial in study.lab.trials if trial.stage <= stage]
    # A verdict is final only at an interim analysis. Until then, further blocks may change it.
    rest = f"the interim analysis after block {max(of_look) + 1}" if study.missing and of_look else "nothing: decided"
    rows = tuple(
        (
            wording.terms.comparison(finding),
            count(finding.blocks),
            ratio_cell(finding),
            interval_cell(finding),
            verdict(finding),
            wording.text(needed) if (needed := finding.advice or finding.barred) else rest,
        )
        for finding in study.findings
        if finding.ratios
    )
    return Table(("comparison", "blocks", "ratio", "CI", "so far", "still needed"), rows) if rows else None


def _chart(lab: Lab, records: Sequence[Record], known_steps: Steps) -> Chart | None:
    """Returns a chart of the confidence intervals after each block. `known_steps`: a cache of the findings by block."""
    from ironbench.report.charts.narrowing import narrowing
    from ironbench.study.findings import declared, findings

    stages = list(accumulate(stage.blocks for stage in lab.method.stages))
    last = max(record.block for record in records)
    wanted = [(cell, baseline) for cell, baseline, _ in declared(lab)][:_MOST_COMPARISONS]
    steps: dict[tuple[str, str], list[Any]] = {pair: [] for pair in wanted}
    for block in range(max(0, last - _MOST_STEPS), last + 1):
        seen = [record for record in records if record.block <= block]
        stage = max((record.stage for record in seen), default=1)
        state = len(seen), stage
        if block not in known_steps or known_steps[block][0] != state:
            known_steps[block] = state, findings(seen, lab, stage, others=())
        for one in known_steps[block][1]:
            known = steps.get((one.cell, one.baseline))
            if known is not None and one.ratios and (not known or one.blocks > known[-1].blocks):
                known.append(one)
    return narrowing({wording.terms.comparison(found[0]): found for found in steps.values() if found}, stages)


def _strip(name: str, lab: Lab, records: Sequence[Record]) -> str:
    """Renders a chart of trials, with a row for each configuration, and in the row a mark for each trial that ran or is
    planned."""
    places = progress.by_place(records)
    blocks = sorted({trial.block for trial in lab.trials} | {block for _, block in places})
    cells = list(dict.fromkeys([setup.cell.name for setup in lab.all_setups if not setup.skipped]))
    planned = {(trial.cell.name, trial.block) for trial in lab.trials}
    rows = []
    for cell in cells:
        wanted = [block for block in blocks if (cell, block) in planned or (cell, block) in places]
        rows.append((cell, [_mark(name, cell, block, places.get((cell, block), [])) for block in wanted]))
    return part(_PARTS, "strip", counted(progress.measured(records), "trial"), len(planned), rows)


def _mark(name: str, cell: str, block: int, found: Sequence[Record]) -> dict[str, str]:
    """Returns the fields of the mark for a trial. `found`: the records of the trial, empty if the trial has not run
    yet."""
    where = f"{cell}, block {block + 1}"
    if not found:
        return {"words": where, "record": ""}
    last = next((one for one in found if one.status.comparable), found[-1])
    throughput = last.metrics.get("throughput")
    rate = f", {quantity(throughput, '/s')}" if throughput is not None and last.status.comparable else ""
    again = f" (attempt {last.attempt})" if last.attempt > 1 else ""
    why = f": {cause}" if (cause := wording.cause(last)) else ""
    return {
        "words": f"{where}{again}: {last.status.word}{rate}{why}",
        "record": address(f"/lab/{name}/record/{last.id}"),
        "status": last.status.value,
        "sign": STATUS_SIGNS[last.status],
    }


def _waits(records: Sequence[Record]) -> str:
    """Renders the five longest waits of the last finished trial. Returns "" if there are none."""
    last = next((one for one in reversed(records) if one.status is not Status.CUT_SHORT), None)
    shares = {
        name.partition("=")[2].rstrip("}"): value
        for name, value in (last.metrics if last else {}).items()
        if name.startswith("wait_share{event=")
    }
    if not shares or last is None:
        return ""
    most = sorted(shares.items(), key=lambda one: -one[1])[:5]
    words = ", ".join(f"{event} {in_percent(share)}" for event, share in most)
    return part(_PARTS, "waits", last.cell.name, words)
