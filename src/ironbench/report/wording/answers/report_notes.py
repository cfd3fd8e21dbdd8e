"""Words for the notes and caveats of a report: how to read its figures, and what was left out."""

from __future__ import annotations

from collections.abc import Sequence

from ironbench.model.lab import Configuration
from ironbench.report.numbers import confidence
from ironbench.report.wording.terms import configuration
from ironbench.words import counted, grouped


def not_measured(cell: Configuration, why: str) -> str:
    """Example with cell='WAL on hdd', why='the device is too small for the data': `WAL on hdd was not measured: the
    device is too small for the data`."""
    return f"{configuration(cell)} was not measured: {why}"


def excluded(what: str) -> str:
    """Example with what='block 3: WAL in memory has no usable trial': `Excluded from the comparison: block 3: WAL in
    memory has no usable trial`."""
    return f"Excluded from the comparison: {what}"


def ratios() -> str:
    """Example: `Ratio: the geometric mean of the ratios of all blocks, where the ratio of a block is the
    configuration's value divided by the baseline's. Comparing within blocks removes changes that affect a whole block,
    such as a gradual change of the machine's speed.`"""
    return (
        "Ratio: the geometric mean of the ratios of all blocks, where the ratio of a block is the "
        "configuration's value divided by the baseline's. Comparing within blocks removes changes that affect a "
        "whole block, such as a gradual change of the machine's speed."
    )


def medians_and_means() -> str:
    """Example: `Throughputs in tables and charts are medians of the trials. The ratio in the answer is the quotient of
    the geometric means that the answer states.`"""
    return (
        "Throughputs in tables and charts are medians of the trials. The ratio in the answer is the quotient of the "
        "geometric means that the answer states."
    )


def equivalence(margin: float) -> str:
    """Example with margin=0.05: `Equivalent: two one-sided tests at 5% each rule out a ratio below 0.952 and a ratio
    above 1.05, so the 90% confidence interval is between these two limits. The confidence interval in the table is
    wider and may extend …`."""
    return (
        f"Equivalent: two one-sided tests at 5% each rule out a ratio below {1 / (1 + margin):.3g} and a ratio "
        f"above {1 + margin:.3g}, so the 90% confidence interval is between these two limits. The confidence "
        "interval in the table is wider and may extend beyond the limits. If there are several interim analyses "
        "or comparisons, the 5% is divided among all of them. Inconclusive: the blocks show neither a difference nor "
        "equivalence."
    )


def minimum_detectable_effect() -> str:
    """Example: `Minimum detectable effect: the smallest difference that this number of blocks detects with 90% power.
    The calculation uses the upper 90% confidence limit of the variation between blocks; with the observed variation
    instead, the effect would be smaller.`"""
    return (
        "Minimum detectable effect: the smallest difference that this number of blocks detects with 90% power. "
        "The calculation uses the upper 90% confidence limit of the variation between blocks; with the observed "
        "variation instead, the effect would be smaller."
    )


def p_values() -> str:
    """Example: `p-values are two-sided and corrected for the number of comparisons.`"""
    return "p-values are two-sided and corrected for the number of comparisons."


def wider_intervals(levels: Sequence[float], usual: float, interim_analyses: int, comparisons: int) -> str:
    """Explains why confidence intervals have a higher level than usual: `Confidence intervals have a level of 97.5%
    instead of 95%, because the 5% chance of a false alarm is divided among 2 interim analyses and 3 comparisons.`

    `levels`: the higher levels, in ascending order.
    """
    among = [f"{interim_analyses} interim analyses"] if interim_analyses > 1 else []
    among += [f"{comparisons} comparisons"] if comparisons > 1 else []
    named = " to ".join(confidence(level) for level in dict.fromkeys((levels[0], levels[-1])))
    return (
        f"Confidence intervals have a level of {named} instead of {confidence(usual)}, because the 5% chance of a "
        f"false alarm is divided among {' and '.join(among) or 'the interim analyses'}."
    )


def power_cut(trials: int, passed: int, unflushed: Sequence[float]) -> str:
    """Example with trials=3, passed=3, unflushed=[12, 40]: `ironbench simulated a power failure after each of 3 trials;
    after the engine's recovery, all checks passed. When the power failed, 12 to 40 writes were unflushed.`

    `unflushed`: the number of writes that could be lost in each power cut. Records of older versions do not contain
    this number.
    """
    after = f"after each of {counted(trials, 'trial')}" if trials > 1 else "after the trial"
    outcome = "all checks passed" if passed == trials else f"all checks passed in {passed} of the trials"
    if trials == 1 and not passed:
        outcome = "a check failed"
    return (
        f"ironbench simulated a power failure {after}; after the engine's recovery, {outcome}.{_unflushed(unflushed)}"
    )


def _unflushed(writes: Sequence[float]) -> str:
    if not writes:
        return ""
    if not max(writes):
        return " When the power failed, no write was unflushed, so the result does not show whether writes can be lost."
    low, high = grouped(min(writes)), grouped(max(writes))
    without = sum(not count for count in writes)
    trials = f", none in {counted(without, 'trial')}" if without else ""
    return f" When the power failed, {low if low == high else f'{low} to {high}'} writes were unflushed{trials}."


def contents(kinds: int, systems: int, trials: int) -> str:
    """Example with kinds=2, systems=3, trials=54: `2 kinds of work, 3 systems, 54 trials; each kind of work has a
    separate part below.`"""
    counts = f"{counted(kinds, 'kind')} of work, {counted(systems, 'system')}, {counted(trials, 'trial')}"
    return f"{counts}; each kind of work has a separate part below."
