"""From the blocks of two cells to a verdict: faster, slower, equivalent, or cannot tell and what it would take.

The order of the questions: is the ratio 1 rejected? Then faster or slower, however small the difference; the finding
says when it is smaller than the margin. Else, is a ratio outside the margin rejected? Then equivalent. Else cannot
tell.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ironbench.analyse.looks import Look, at
from ironbench.model.finding import Conclusion, Finding
from ironbench.model.lab import Method
from ironbench.stats.multiplicity import LEAST_BLOCKS, LEVEL
from ironbench.stats.power import MOST_BLOCKS, blocks_needed, detectable
from ironbench.stats.ratio import Paired, bootstrap, paired
from ironbench.words import counted

MOST_ADVISED = 100
"""Blocks; a round of more is no advice: the machine or the trials have to change first."""


def finding(
    metric: str,
    better: str,
    cell: str,
    baseline: str,
    pairs: Sequence[tuple[int, float, float]],
    method: Method,
    look: int = 1,
    comparisons: int = 1,
    *,
    equivalences: int | None = None,
    p: float | None = None,
    warnings: Sequence[str] = (),
    dropped: Sequence[str] = (),
    decides: bool = True,
    noise: float | None = None,
    barred: str = "",
) -> Finding:
    """`pairs`: (block, the cell's value, the baseline's), each value above 0, of every complete block.

    `comparisons`: by how many the level is divided (Holm's divisor of this one); `equivalences` likewise for the test
    of equivalence. `p`: the corrected p value where Holm's order raises it. `noise`: this machine's noise floor as a
    relative difference. `barred`: why there may be no verdict. ValueError for a value that is not above 0.
    """
    place = at(method, look)
    ratios = tuple((block, value / base) for block, value, base in sorted(pairs))
    if not ratios:
        return _nothing(metric, cell, baseline, method, place, warnings, dropped, decides)
    found = paired([ratio for _, ratio in ratios])
    level = place.level(LEVEL / comparisons, 2)
    level_equal = place.level(LEVEL / (equivalences or comparisons), 1)
    low, high = found.interval(level or LEVEL)
    judged = decides and not barred
    conclusion = _conclusion(found, better, method.margin, level, level_equal) if judged else Conclusion.CANNOT_TELL
    told = conclusion is not Conclusion.CANNOT_TELL
    second = bootstrap([ratio for _, ratio in ratios], level or LEVEL)
    said = [*warnings, *_cautions(found, method.margin, conclusion, level_equal, noise, second, level)]
    return Finding(
        metric,
        cell,
        baseline,
        ratios,
        found.ratio,
        low,
        high,
        1 - (level or LEVEL),
        conclusion,
        method.margin,
        detectable(found.spread, found.blocks, level) if found.blocks >= LEAST_BLOCKS else None,
        (p if p is not None else min(1.0, found.p_equal() * comparisons)) if decides else None,
        _method(found, place, comparisons, conclusion, level_equal),
        "" if told or not judged else advice(found, better, method.margin, place, comparisons),
        tuple(said),
        tuple(dropped),
        decides,
        second,
        barred,
    )


def advice(found: Paired, better: str, margin: float, place: Look, comparisons: int = 1) -> str:
    """What it would take to tell, to be read after "To tell: "; empty where nothing is known about the spread."""
    if better == "neither":
        return "another metric, since this one has no better direction"
    if found.blocks < LEAST_BLOCKS:
        # The spread of so few is hardly known: what it would promise is not worth saying.
        if found.blocks < place.planned[-1] >= LEAST_BLOCKS:
            return f"finish the lab; {place.planned[-1]} blocks are planned, and a verdict needs {LEAST_BLOCKS}"
        return f"a round of {LEAST_BLOCKS} complete blocks at least"
    share = LEVEL / comparisons
    wanted = blocks_needed(margin, found.spread, found.blocks, share, share, LEAST_BLOCKS)
    finds = f"a difference of {_percent(margin)} or more, or that there is none so large, in 9 of 10 cases"
    if wanted is None or wanted > MOST_ADVISED:
        many = f"more than {MOST_BLOCKS if wanted is None else MOST_ADVISED:,}"
        return (
            f"a quieter machine, longer trials or a wider margin, since blocks differ by "
            f"{_percent(math.expm1(found.spread))} from one to the next and to find a difference of {_percent(margin)} "
            f"would take {many} of them"
        )
    if place.number < place.looks and wanted <= place.planned[-1]:
        return f"the {place.planned[-1]} blocks that are planned, which find {finds}"
    return f"a round of {wanted} blocks, which finds {finds}"


def _conclusion(found: Paired, better: str, margin: float, level: float, level_equal: float) -> Conclusion:
    if found.blocks < LEAST_BLOCKS or better == "neither":
        return Conclusion.CANNOT_TELL
    if found.p_equal() <= level:
        return Conclusion.FASTER if (found.mean > 0) == (better == "higher") else Conclusion.SLOWER
    if found.p_apart(margin) <= level_equal:
        return Conclusion.EQUIVALENT
    return Conclusion.CANNOT_TELL


def _cautions(
    found: Paired,
    margin: float,
    conclusion: Conclusion,
    level_equal: float,
    noise: float | None,
    second: tuple[float, float] | None,
    level: float,
) -> list[str]:
    said = []
    if found.blocks < LEAST_BLOCKS:
        said.append(_too_few(found.blocks))
    differs = conclusion in (Conclusion.FASTER, Conclusion.SLOWER)
    if differs and found.p_apart(margin) <= level_equal:
        said.append(f"The difference is real but smaller than the margin of {_percent(margin)} that was declared.")
    if noise is not None and abs(found.mean) <= math.log1p(noise):
        said.append(f"Below this machine's noise floor: A against A showed up to {_percent(noise)}.")
    if second is not None and level > 0:
        low, high = found.interval(level)
        if (low > 1 or high < 1) != (second[0] > 1 or second[1] < 1):
            said.append(
                f"The bootstrap interval ({second[0]:.3f} to {second[1]:.3f}) does not agree with the t interval on "
                "whether 1 lies inside: some blocks are far from the others."
            )
    return said


def _too_few(blocks: int) -> str:
    return f"{counted(blocks, 'complete block')}: a verdict needs {LEAST_BLOCKS} at least."


def _method(found: Paired, place: Look, comparisons: int, conclusion: Conclusion, level_equal: float) -> str:
    words = f"t interval on log ratios of {counted(found.blocks, 'block')}"
    if place.looks > 1:
        words += f", look {place.number} of {place.looks}"
    if place.round > 1:
        words += f", round {place.round} on its own blocks"
    if comparisons > 1:
        words += f", 1 of {comparisons} comparisons (Holm)"
    if conclusion is Conclusion.EQUIVALENT:
        words += f"; equivalent by two one-sided t tests at {100 * level_equal:.2g} % each"
    return words


def _nothing(
    metric: str,
    cell: str,
    baseline: str,
    method: Method,
    place: Look,
    warnings: Sequence[str],
    dropped: Sequence[str],
    decides: bool,
) -> Finding:
    level = place.level(LEVEL, 2) or LEVEL
    return Finding(
        metric, cell, baseline, (), math.nan, 0.0, math.inf, 1 - level, Conclusion.CANNOT_TELL, method.margin,
        None, None, "no complete block", f"{LEAST_BLOCKS} complete blocks at least" if decides else "",
        (*warnings, *((_too_few(0),) if decides else ())), tuple(dropped), decides,
    )  # fmt: skip


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 0.995 else f"{100 * share:.0f} %"
