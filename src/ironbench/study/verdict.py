"""Turns the blocks of two cells into a verdict: faster, slower, equivalent, or cannot tell and what it would take.

The order of the questions: is the ratio 1 rejected? Then faster or slower, however small the difference; the finding
says when it is smaller than the margin. Else, is a ratio outside the margin rejected? Then equivalent. Else cannot
tell.

A ratio that itself changes from block to block breaks what the t interval assumes, that blocks are
repeats of one ratio. A verdict then stands only if it holds at both ends of the change, each with its own 95 %
interval; else there is no verdict. Such a change is found by chance in 1 of 100 comparisons, so that hardly a verdict
is lost.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ironbench.model.finding import NOT_AT_BOTH_ENDS, Conclusion, Finding
from ironbench.model.lab import Method
from ironbench.model.note import Note, note
from ironbench.model.record import Record
from ironbench.model.sample import resolution
from ironbench.stats.multiplicity import LEAST_BLOCKS, LEVEL
from ironbench.stats.power import MOST_BLOCKS, blocks_needed, detectable
from ironbench.stats.ratio import Paired, paired
from ironbench.stats.steadiness import LEAST, Change, change
from ironbench.study.looks import Look, at

MOST_ADVISED = 100
"""Blocks; a round of more is no advice: the machine or the trials have to change first."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two cells on one metric, before the verdict."""

    metric: str
    better: str
    """`higher`, `lower` or `neither`."""
    cell: str
    baseline: str
    pairs: Sequence[tuple[int, float, float]]
    """Block, the cell's value, the baseline's, each above 0: of every complete block."""
    warnings: Sequence[Note] = ()
    dropped: Sequence[Note] = ()
    lost: tuple[int, int] = (0, 0)
    """See `Finding.lost`."""
    barred: Note | None = None
    """Why there may be no verdict."""
    change: Change | None = None
    """Of the logarithm of the ratio over the blocks."""


@dataclass(frozen=True, slots=True)
class Holm:
    """The place of a comparison in Holm's order, among those that a lab decides."""

    comparisons: int = 1
    """By how many the level is divided for the test of a difference,"""
    equivalences: int = 1
    """and for the test of equivalence."""
    p: float | None = None
    """The corrected p value where the order raises it."""


ALONE = Holm()


def finding(one: Comparison, method: Method, look: int = 1, holm: Holm = ALONE, decides: bool = True) -> Finding:
    """ValueError for a value that is not above 0."""
    place = at(method, look)
    ratios = tuple((block, value / base) for block, value, base in sorted(one.pairs))
    if not ratios:
        return _nothing(one, method, place, decides)
    result = paired([ratio for _, ratio in ratios], resolution(one.metric))
    level = place.level(LEVEL / holm.comparisons, 2)
    tests = _Tests(method.margin, level, place.level(LEVEL / holm.equivalences, 1))
    low, high = result.interval(level or LEVEL)
    barred, change = one.barred, one.change
    if decides and not barred and one.lost[0] != one.lost[1]:
        barred = _unequal_losses(one)
    judged = decides and not barred
    conclusion = _conclusion(result, one.better, tests) if judged else Conclusion.CANNOT_TELL
    changed = ratio_changed(change, [block for block, _ in ratios]) if change else None
    if change and conclusion is not Conclusion.CANNOT_TELL and not _holds_throughout(conclusion, change, method.margin):
        conclusion, barred = Conclusion.CANNOT_TELL, note(NOT_AT_BOTH_ENDS, change=changed)
    advised = None
    if judged and conclusion is Conclusion.CANNOT_TELL:
        advised = note("find-change") if change else advice(result, one.better, method.margin, place, holm.comparisons)
    cautions = _cautions(result, tests, conclusion)
    p = holm.p if holm.p is not None else min(1.0, result.p_equal() * holm.comparisons)
    return Finding(
        metric=one.metric,
        cell=one.cell,
        baseline=one.baseline,
        ratios=ratios,
        ratio=result.ratio,
        low=low,
        high=high,
        confidence=1 - (level or LEVEL),
        conclusion=conclusion,
        margin=method.margin,
        detectable=detectable(result.spread, result.blocks, level) if result.blocks >= LEAST_BLOCKS else None,
        p=p if decides and result.blocks >= LEAST_BLOCKS else None,
        method=_method(result, place, holm.comparisons, conclusion, tests),
        advice=advised,
        warnings=(*one.warnings, *cautions),
        dropped=tuple(one.dropped),
        decides=decides,
        barred=barred,
        lost=one.lost,
        changed=changed,
        ends=(math.exp(change.before), math.exp(change.after)) if change else None,
    )


def _unequal_losses(one: Comparison) -> Note:
    sides = ((one.cell, one.lost[0]), (one.baseline, one.lost[1]))
    return note("unequal-losses", lost=tuple((name, blocks) for name, blocks in sides if blocks))


def advice(result: Paired, better: str, margin: float, place: Look, comparisons: int = 1) -> Note:
    """What it would take to decide."""
    if better == "neither":
        return note("choose-other-metric")
    if result.blocks < LEAST_BLOCKS:
        # The spread of so few is hardly known: what it would promise is not worth saying.
        if result.blocks < place.planned[-1] >= LEAST_BLOCKS:
            return note("finish-lab", planned=place.planned[-1], least=LEAST_BLOCKS)
        return note("least-blocks", least=LEAST_BLOCKS)
    share = LEVEL / comparisons
    wanted = blocks_needed(margin, result.spread, result.blocks, share, share, LEAST_BLOCKS)
    if wanted is None or wanted > MOST_ADVISED:
        more_than = MOST_BLOCKS if wanted is None else MOST_ADVISED
        return note("reduce-variation", variation=math.expm1(result.spread), margin=margin, more_than=more_than)
    if place.number < place.looks and _enough_at_the_end(result, margin, place, share):
        return note("planned-blocks", blocks=place.planned[-1], margin=margin)
    return note("another-round", blocks=wanted, margin=margin)


def _enough_at_the_end(result: Paired, margin: float, place: Look, share: float) -> bool:
    """Whether the blocks that are planned do, at the level that earlier looks leave to the last one."""
    last = replace(place, number=place.looks)
    levels = last.level(share, 2), last.level(share, 1)
    wanted = blocks_needed(margin, result.spread, result.blocks, *levels, LEAST_BLOCKS)
    return wanted is not None and wanted <= place.planned[-1]


@dataclass(frozen=True, slots=True)
class _Tests:
    """What a ratio is held against."""

    margin: float
    level: float
    """Of the test of a difference, two-sided,"""
    level_equal: float
    """and of each of the two one-sided tests of equivalence."""


def _conclusion(result: Paired, better: str, tests: _Tests) -> Conclusion:
    if result.blocks < LEAST_BLOCKS or better == "neither":
        return Conclusion.CANNOT_TELL
    if result.p_equal() <= tests.level:
        return Conclusion.FASTER if (result.mean > 0) == (better == "higher") else Conclusion.SLOWER
    if result.p_apart(tests.margin) <= tests.level_equal:
        return Conclusion.EQUIVALENT
    return Conclusion.CANNOT_TELL


def _holds_throughout(conclusion: Conclusion, change: Change, margin: float) -> bool:
    """Whether both ends of the change, each with its interval, bear the verdict that their mean got."""
    ends = change.interval(LEVEL)
    if conclusion is Conclusion.EQUIVALENT:
        return all(-math.log1p(margin) <= low and high <= math.log1p(margin) for low, high in ends)
    return all(low > 0 for low, _ in ends) or all(high < 0 for _, high in ends)


def _cautions(result: Paired, tests: _Tests, conclusion: Conclusion) -> list[Note]:
    notes = []
    if result.blocks < LEAST_BLOCKS:
        notes.append(_too_few(result.blocks))
    differs = conclusion in (Conclusion.FASTER, Conclusion.SLOWER)
    if differs and result.p_apart(tests.margin) <= tests.level_equal:
        notes.append(note("below-margin", margin=tests.margin))
    return notes


def _too_few(blocks: int) -> Note:
    return note("too-few-blocks", blocks=blocks, least=LEAST_BLOCKS)


def _method(result: Paired, place: Look, comparisons: int, conclusion: Conclusion, tests: _Tests) -> Note:
    return note(
        "t-interval",
        blocks=result.blocks,
        look=place.number,
        looks=place.looks,
        round=place.round,
        comparisons=comparisons,
        equivalence_level=tests.level_equal if conclusion is Conclusion.EQUIVALENT else None,
    )


def _nothing(one: Comparison, method: Method, place: Look, decides: bool) -> Finding:
    level = place.level(LEVEL, 2) or LEVEL
    return Finding(
        metric=one.metric,
        cell=one.cell,
        baseline=one.baseline,
        ratios=(),
        ratio=math.nan,
        low=0.0,
        high=math.inf,
        confidence=1 - level,
        conclusion=Conclusion.CANNOT_TELL,
        margin=method.margin,
        detectable=None,
        p=None,
        method=note("no-complete-block"),
        advice=note("least-blocks", least=LEAST_BLOCKS) if decides else None,
        warnings=(*one.warnings, *((_too_few(0),) if decides else ())),
        dropped=tuple(one.dropped),
        decides=decides,
    )


# Changes over the blocks: of the machine, which the pairing cancels, or of the ratio, which it does not.
# `stats.steadiness` finds drifts and steps. The machine's drift per trial is the slope of a straight line with a level
# for each cell, by least squares, compared with the residual scatter (Draper and Smith, "Applied Regression Analysis",
# Wiley 1998, chapters 1 and 14).

_STEEP = 1.5
"""Drift from trial to trial over noise. Beyond it up to 8 % of A/A labs of 6 blocks end in faster or slower and not
5 %: by `python -m bench verdicts`, which simulates it."""
_WORTH_SAYING = 0.02
"""Smaller relative changes are not reported."""


def drift_warnings(
    metric: str, pairs: Sequence[tuple[int, float, float]], trials: Sequence[Record]
) -> tuple[Note, ...]:
    """What changed on both sides alike.

    `pairs`: (block, value, baseline's value) in order; `trials`: those that the values are of.
    """
    if len(pairs) < LEAST:
        return ()
    levels = [(math.log(value) + math.log(base)) / 2 for _, value, base in pairs]
    blocks = [block for block, _, _ in pairs]
    notes = []
    shift = change(levels)
    # Where the ratio changed, the mean of both sides did because of one of them.
    if shift and _worth(shift) and ratio_change(pairs) is None:
        block = None if shift.kind == "drift" else blocks[shift.place] + 1
        notes.append(note("both-changed", metric=metric, change=math.expm1(shift.after - shift.before), block=block))
    if _steep(metric, trials):
        notes.append(note("machine-drifts"))
    return tuple(notes)


def ratio_change(pairs: Sequence[tuple[int, float, float]]) -> Change | None:
    """How the logarithm of the ratio itself changed over the blocks; None where it may be chance, or is negligible.

    `pairs` as of `drift_warnings`.
    """
    shift = change([math.log(value / base) for _, value, base in pairs])
    return shift if shift and _worth(shift) else None


def ratio_changed(shift: Change, blocks: Sequence[int]) -> Note:
    """`blocks`: their 0-based numbers, in order."""
    block = None if shift.kind == "drift" else blocks[shift.place] + 1
    return note("ratio-changed", before=math.exp(shift.before), after=math.exp(shift.after), block=block)


def _worth(shift: Change) -> bool:
    return abs(shift.after - shift.before) >= math.log1p(_WORTH_SAYING)


def _steep(metric: str, trials: Sequence[Record]) -> bool:
    """Whether a straight line over the trials in order of start climbs more between neighbours than they scatter.

    Never where systems stood side by side: those of a block are no neighbours in time, and a drift meets them alike.
    """
    if any(record.turns_since for record in trials):
        return False
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
