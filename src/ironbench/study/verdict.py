"""Computes the verdict on two configurations from their blocks: faster, slower, equivalent, or inconclusive with
advice. If a ratio of 1 is rejected, the verdict is faster or slower. This is so even for a small difference; if it is
smaller than the margin, a note is added. If a ratio of 1 is not rejected, but ratios outside the margin are, the
verdict is equivalent. Otherwise, the verdict is inconclusive.

The t interval assumes that all blocks are repeats of the same ratio. If the ratio changes during the lab, this is not
the case. The ratios at the start and at the end of the change then have separate 95% intervals. If the verdict is not
true for both intervals, there is no verdict. In only 1 of 100 comparisons is such a change detected by chance, so few
verdicts are lost.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ironbench.catalogue import better
from ironbench.model.finding import NOT_AT_BOTH_ENDS, Conclusion, Finding
from ironbench.model.lab import Method
from ironbench.model.note import Note, note
from ironbench.model.record import Record
from ironbench.model.sample import resolution
from ironbench.stats.multiplicity import LEAST_BLOCKS, LEVEL
from ironbench.stats.power import MOST_BLOCKS, blocks_needed, detectable
from ironbench.stats.ratio import PairedRatios, paired
from ironbench.stats.steadiness import LEAST, Change, change
from ironbench.study.interim import InterimAnalysis, analysis_after

MOST_ADVISED = 100
"""Maximum number of blocks that the advice recommends. If more blocks are needed, a quieter machine or longer trials
are better."""


@dataclass(frozen=True, slots=True)
class Holm:
    """Result of Holm's correction for one comparison. The correction covers all comparisons for which the lab has
    verdicts."""

    comparisons: int = 1
    """Divisor of alpha for the test of a difference."""
    equivalences: int = 1
    """Divisor of alpha for the test of equivalence."""
    p: float | None = None
    """P value after Holm's correction, or None for a comparison that is tested by itself."""


ALONE = Holm()


def of_blocks(
    metric: str, cell: str, baseline: str, pairs: Sequence[tuple[int, float, float]], **facts: Any
) -> Finding:
    """Returns the finding of these blocks, which has no ratio and no verdict yet. `pairs`: (block, configuration's
    value, baseline's value) of every complete block. `facts`: other fields of the finding."""
    ratios = tuple((block, value / base) for block, value, base in sorted(pairs))
    return Finding(math.nan, 0.0, math.inf, metric, cell, baseline, ratios, **facts)


def judged(one: Finding, method: Method, stage: int = 1, holm: Holm = ALONE, change: Change | None = None) -> Finding:
    """Adds the ratio, its confidence interval and the verdict to the finding of some blocks. Raises ValueError if a
    ratio is not positive. `change`: how the logarithm of the ratio changed over the blocks."""
    place = analysis_after(method, stage)
    if not one.ratios:
        advised = one.advice or (note("least-blocks", least=LEAST_BLOCKS) if one.decides else None)
        return replace(
            one,
            confidence=1 - (place.level(LEVEL, 2) or LEVEL),
            margin=method.margin,
            advice=advised,
            warnings=(*one.warnings, *((_too_few(0),) if one.decides else ())),
        )
    result = paired([ratio for _, ratio in one.ratios], resolution(one.metric))
    level = place.level(LEVEL / holm.comparisons, 2)
    tests = _Tests(method.margin, level, place.level(LEVEL / holm.equivalences, 1))
    low, high = result.interval(level or LEVEL)
    decides = one.decides and not one.barred
    direction = better(one.metric)
    conclusion = _conclusion(result, direction, tests) if decides else Conclusion.CANNOT_TELL
    changed = ratio_changed(change, [block for block, _ in one.ratios]) if change else None
    barred, advised = one.barred, one.advice
    if change and conclusion is not Conclusion.CANNOT_TELL and not _holds_throughout(conclusion, change, method.margin):
        conclusion, barred = Conclusion.CANNOT_TELL, note(NOT_AT_BOTH_ENDS, change=changed)
    if advised is None and decides and conclusion is Conclusion.CANNOT_TELL:
        advised = note("find-change") if change else advice(result, direction, method.margin, place, holm.comparisons)
    p = holm.p if holm.p is not None else min(1.0, result.p_equal() * holm.comparisons)
    return replace(
        one,
        ratio=result.ratio,
        low=low,
        high=high,
        confidence=1 - (level or LEVEL),
        conclusion=conclusion,
        margin=method.margin,
        detectable=detectable(result.spread, result.blocks, level) if result.blocks >= LEAST_BLOCKS else None,
        p=p if one.decides and result.blocks >= LEAST_BLOCKS else None,
        method=_method(result, place, holm.comparisons, conclusion, tests),
        advice=advised,
        warnings=(*one.warnings, *_caveats(result, tests, conclusion)),
        barred=barred,
        changed=changed,
        ends=(math.exp(change.before), math.exp(change.after)) if change else None,
    )


def advice(result: PairedRatios, better: str, margin: float, place: InterimAnalysis, comparisons: int = 1) -> Note:
    """Returns the advice on how to decide an inconclusive comparison."""
    if better == "neither":
        return note("choose-other-metric")
    if result.blocks < LEAST_BLOCKS:
        # So few blocks hardly show the variation. The number of required blocks is therefore not predicted.
        if result.blocks < place.planned[-1] >= LEAST_BLOCKS:
            return note("finish-lab", planned=place.planned[-1], least=LEAST_BLOCKS)
        return note("least-blocks", least=LEAST_BLOCKS)
    share = LEVEL / comparisons
    wanted = blocks_needed(margin, result.spread, result.blocks, share, share, LEAST_BLOCKS)
    if wanted is None or wanted > MOST_ADVISED:
        more_than = MOST_BLOCKS if wanted is None else MOST_ADVISED
        return note("reduce-variation", variation=math.expm1(result.spread), margin=margin, more_than=more_than)
    if place.number < place.analyses and _enough_at_the_end(result, margin, place, share):
        return note("planned-blocks", blocks=place.planned[-1], margin=margin)
    return note("another-round", blocks=wanted, margin=margin)


def _enough_at_the_end(result: PairedRatios, margin: float, place: InterimAnalysis, share: float) -> bool:
    """Returns whether the planned blocks are enough for a verdict at the last analysis, with the alpha that is left for
    it."""
    last = replace(place, number=place.analyses)
    levels = last.level(share, 2), last.level(share, 1)
    wanted = blocks_needed(margin, result.spread, result.blocks, *levels, LEAST_BLOCKS)
    return wanted is not None and wanted <= place.planned[-1]


@dataclass(frozen=True, slots=True)
class _Tests:
    """Margin and alpha levels of the tests of a ratio."""

    margin: float
    level: float
    """Alpha of the two-sided test of a difference."""
    level_equal: float
    """Alpha of each of the two one-sided tests of equivalence."""


def _conclusion(result: PairedRatios, better: str, tests: _Tests) -> Conclusion:
    if result.blocks < LEAST_BLOCKS or better == "neither":
        return Conclusion.CANNOT_TELL
    if result.p_equal() <= tests.level:
        return Conclusion.FASTER if (result.mean > 0) == (better == "higher") else Conclusion.SLOWER
    if result.p_apart(tests.margin) <= tests.level_equal:
        return Conclusion.EQUIVALENT
    return Conclusion.CANNOT_TELL


def _holds_throughout(conclusion: Conclusion, change: Change, margin: float) -> bool:
    """Returns whether the verdict on the mean is also true at both ends of the change, each with its confidence
    interval."""
    ends = change.interval(LEVEL)
    if conclusion is Conclusion.EQUIVALENT:
        return all(-math.log1p(margin) <= low and high <= math.log1p(margin) for low, high in ends)
    return all(low > 0 for low, _ in ends) or all(high < 0 for _, high in ends)


def _caveats(result: PairedRatios, tests: _Tests, conclusion: Conclusion) -> list[Note]:
    notes = []
    if result.blocks < LEAST_BLOCKS:
        notes.append(_too_few(result.blocks))
    differs = conclusion in (Conclusion.FASTER, Conclusion.SLOWER)
    if differs and result.p_apart(tests.margin) <= tests.level_equal:
        notes.append(note("below-margin", margin=tests.margin))
    return notes


def _too_few(blocks: int) -> Note:
    return note("too-few-blocks", blocks=blocks, least=LEAST_BLOCKS)


def _method(
    result: PairedRatios, place: InterimAnalysis, comparisons: int, conclusion: Conclusion, tests: _Tests
) -> Note:
    return note(
        "t-interval",
        blocks=result.blocks,
        look=place.number,
        looks=place.analyses,
        round=place.round,
        comparisons=comparisons,
        equivalence_level=tests.level_equal if conclusion is Conclusion.EQUIVALENT else None,
    )


# Values may change over the blocks for two reasons. If the machine changes, pairing cancels the change. If the ratio
# changes, pairing does not. `stats.steadiness` detects drifts and steps. To measure the machine's drift, a straight
# line with an intercept for each configuration is fitted by least squares. The slope is the drift per trial, which is
# compared with the residual variation (Draper and Smith, "Applied Regression Analysis", Wiley 1998, chapters 1 and 14).

_STEEP = 1.5
"""Maximum ratio of the drift between consecutive trials to the noise. With more drift, up to 8% of A/A labs with 6
blocks end with a verdict of faster or slower, and not 5% (simulated by `python -m bench verdicts`)."""
_WORTH_SAYING = 0.02
"""Minimum relative change that is reported."""


def drift_warnings(
    metric: str, pairs: Sequence[tuple[int, float, float]], trials: Sequence[Record]
) -> tuple[Note, ...]:
    """Returns notes on changes of the machine, which affected both sides equally.

    `pairs`: (block, value, baseline's value), in order of blocks. `trials`: the trials from which the values are.
    """
    if len(pairs) < LEAST:
        return ()
    levels = [(math.log(value) + math.log(base)) / 2 for _, value, base in pairs]
    blocks = [block for block, _, _ in pairs]
    notes = []
    shift = change(levels)
    # If the ratio changed, at least one side changed. The mean of both sides then also changes, and no second note is
    # needed.
    if shift and _worth(shift) and ratio_change([value / base for _, value, base in pairs]) is None:
        block = None if shift.kind == "drift" else blocks[shift.place] + 1
        notes.append(note("both-changed", metric=metric, change=math.expm1(shift.after - shift.before), block=block))
    if _steep(metric, trials):
        notes.append(note("machine-drifts"))
    return tuple(notes)


def ratio_change(ratios: Sequence[float]) -> Change | None:
    """Returns the change of the ratio's logarithm over the blocks. Returns None if the change is insignificant or
    negligible. `ratios`: the ratios of the blocks, in order."""
    shift = change([math.log(ratio) for ratio in ratios])
    return shift if shift and _worth(shift) else None


def ratio_changed(shift: Change, blocks: Sequence[int]) -> Note:
    """Describes a change of the ratio. `blocks`: 0-based block numbers, in order."""
    block = None if shift.kind == "drift" else blocks[shift.place] + 1
    return note("ratio-changed", before=math.exp(shift.before), after=math.exp(shift.after), block=block)


def _worth(shift: Change) -> bool:
    return abs(shift.after - shift.before) >= math.log1p(_WORTH_SAYING)


def _steep(metric: str, trials: Sequence[Record]) -> bool:
    """Returns whether the linear drift between consecutive trials is too large compared with their variation. Returns
    False for interleaved systems. Such systems are measured at the same time, so a drift affects all of them equally.
    """
    if any(record.turns_since for record in trials):
        return False
    # Trials are sorted by block first, because the clock may be set back during a lab.
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
