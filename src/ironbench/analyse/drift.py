"""What changed from block to block: the machine, which blocks cancel, or the ratio itself, which they do not.

Drifts and steps are found as `stats.steadiness` does. How steeply the machine drifts from trial to trial is the slope
of a straight line with a level for each cell, by least squares (Draper and Smith, "Applied Regression Analysis", Wiley
1998, chapters 1 and 14), beside the scatter that it leaves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ironbench.model.record import Record
from ironbench.stats.steadiness import LEAST, Change, change

_STEEP = 1.5
"""Drift from trial to trial over noise. Beyond it up to 8 % of A/A labs of 6 blocks end in faster or slower and not
5 %: by `python -m bench verdicts`, which simulates it."""
_WORTH_SAYING = 0.02
"""Relative change below which nothing is said."""


def cautions(metric: str, pairs: Sequence[tuple[int, float, float]], trials: Sequence[Record]) -> tuple[str, ...]:
    """One sentence each. `pairs`: (block, value, baseline's value) in order; `trials`: those that the values are of."""
    if len(pairs) < LEAST:
        return ()
    ratios = [math.log(value / base) for _, value, base in pairs]
    levels = [(math.log(value) + math.log(base)) / 2 for _, value, base in pairs]
    blocks = [block for block, _, _ in pairs]
    said = []
    found = change(ratios)
    if found and _worth(found):
        said.append(f"The ratio itself {_changed(found, blocks)}: one ratio does not stand for all blocks.")
    found = change(levels)
    if found and _worth(found):
        percent = 100 * math.expm1(found.after - found.before)
        where = "" if found.kind == "drift" else f" from block {blocks[found.place] + 1} on"
        verb = "drifted" if found.kind == "drift" else "changed"
        said.append(
            f"{metric} of both cells {verb} by {percent:+.0f} %{where}; ratios within blocks cancel most of it."
        )
    if _steep(metric, trials):
        said.append(
            "The machine drifts from trial to trial by more than its noise: a false alarm is likelier than 5 %, up to "
            "10 %."
        )
    return tuple(said)


def _worth(found: Change) -> bool:
    return abs(found.after - found.before) >= math.log1p(_WORTH_SAYING)


def _changed(found: Change, blocks: Sequence[int]) -> str:
    ends = f"{math.exp(found.before):.2f} to {math.exp(found.after):.2f}"
    if found.kind == "drift":
        return f"drifted from {ends}"
    return f"changed from {ends} at block {blocks[found.place] + 1}"


def _steep(metric: str, trials: Sequence[Record]) -> bool:
    """Whether a straight line over the trials in order of start climbs more between neighbours than they scatter."""
    # By block first: times of day go back when somebody sets the clock during a lab.
    ranked = sorted(trials, key=lambda record: (record.block, record.started_at))
    if len(ranked) < 2 * LEAST:
        return False
    logs = np.log([record.metrics[metric] for record in ranked])
    names = {record.cell.name for record in ranked}
    cells = [[float(record.cell.name == name) for record in ranked] for name in sorted(names)]
    design = np.column_stack([*cells, np.arange(len(ranked), dtype=np.float64)])
    fitted, *_ = np.linalg.lstsq(design, logs, rcond=None)
    left = logs - design @ fitted
    noise = math.sqrt(float(left @ left) / (len(ranked) - design.shape[1]))
    return abs(float(fitted[-1])) > max(_STEEP * noise, math.log1p(_WORTH_SAYING) / len(ranked))
