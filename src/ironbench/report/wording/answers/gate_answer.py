"""Words for the result of a gate: the decision, and for slower comparisons, what changed."""

from __future__ import annotations

from ironbench.model.finding import Finding, Noise
from ironbench.report.numbers import confidence, quantity
from ironbench.report.wording.answers.ratios import change, confidence_interval
from ironbench.report.wording.verdicts import slowdowns
from ironbench.study.gate import GatedComparison
from ironbench.study.slower import Cause, NewStatement, RepeatedStatement, SlowerStatement
from ironbench.words import counted, in_percent, listed

_STEPS = 3
"""Maximum number of plan steps that a sentence names."""
CAVEAT = "Caveat:"
"""Label before a caveat in documents that have no heading for caveats."""


def scope(comparisons: int, margin: float) -> str:
    """Example with comparisons=3, margin=0.02: `3 comparisons; allowed slowdown: 2%.`"""
    return f"{counted(comparisons, 'comparison')}; allowed slowdown: {in_percent(margin)}."


def failed(margin: float, slower: int, comparisons: int, refuted: int) -> str:
    """Example with margin=0.05, slower=2, comparisons=5, refuted=1: `FAIL: slower by more than the margin of 5% in 2 of
    5 comparisons; 1 expectation refuted.`"""
    number = f" in {slower} of {comparisons} comparisons" if comparisons > 1 else ""
    parts = [f"slower by more than the margin of {in_percent(margin)}{number}"] if slower else []
    parts += [f"{counted(refuted, 'expectation')} refuted"] if refuted else []
    return f"FAIL: {'; '.join(parts)}."


def not_slower(margin: float) -> str:
    """Example with margin=0.02: `PASS: no comparison is slower by more than the margin of 2%.`"""
    return f"PASS: no comparison is slower by more than the margin of {in_percent(margin)}."


def slowdown_range(one: GatedComparison) -> str:
    """Formats a slowdown as both ends of its confidence interval: `between 9% faster and 24% slower (95% CI, 6 paired
    repeats)`."""
    finding, known = one.finding, one.why.values
    ends = slowdowns(known["least"], known["most"], known["higher_is_better"])
    return f"{ends} ({confidence(finding.confidence)} CI, {counted(finding.blocks, 'paired repeat')})"


def inconclusive(
    margin: float, only: GatedComparison | None, comparisons: int, undecided: int, policy: str, lost: bool
) -> str:
    """Example: `INCONCLUSIVE: between 9% faster and 24% slower (95% CI, 6 paired repeats), so a slowdown by more than
    the margin of 5% is neither shown nor ruled out; with --undecided fail, the gate fails.`

    `only`: the only comparison of the gate, if its confidence interval is too wide. Otherwise None. `comparisons`: the
    number of inconclusive comparisons. `undecided`: the number of inconclusive claims. `lost`: whether one side of a
    comparison lost more blocks than the other. The gate then fails with every policy.
    """
    neither = f"a slowdown by more than the margin of {in_percent(margin)} is neither shown nor ruled out"
    parts = [f"{slowdown_range(only)}, so {neither}" if only else neither] if comparisons else []
    parts += [f"{counted(undecided, 'expectation')} inconclusive"] if undecided else []
    end = f"with `--undecided {policy}`, the gate {'fails' if policy == 'fail' else 'passes'}"
    if lost:
        end = "one side lost more blocks than the other, so the gate fails"
    return f"INCONCLUSIVE: {'; '.join(parts)}; {end}."


def size(finding: Finding) -> str:
    """Formats the size of a change: `3.1% slower (95% CI 2.2% to 4.0%, 12 paired repeats)`."""
    known = f"{confidence_interval(finding)}, {counted(finding.blocks, 'paired repeat')}"
    return f"{change(finding.ratio, finding.metric)} ({known})"


def cause(one: Cause) -> str:
    """Names a likely cause of a slowdown: `largest increase: this statement takes 9.0 ms on average instead of 3.0 ms
    (+200%): select …`"""
    if isinstance(one, SlowerStatement):
        before, after = quantity(one.before_s, "s"), quantity(one.after_s, "s")
        grown = in_percent(one.after_s / one.before_s - 1)
        replaced = f", which replaces {one.replaced}" if one.replaced else ""
        return (
            f"largest increase: this statement takes {after} on average instead of {before} (+{grown}): "
            f"{one.text}{replaced}"
        )
    if isinstance(one, RepeatedStatement):
        often = f"{quantity(one.after, '1')} times per transaction instead of {quantity(one.before, '1')}"
        return (
            f"largest increase: this statement runs {often} and takes {quantity(one.after_s, 's')} each time: "
            f"{one.text}"
        )
    if isinstance(one, NewStatement):
        return (
            f"new statement, which the baseline does not run and which takes {quantity(one.after_s, 's')}: {one.text}"
        )
    more, less = (listed(steps[:_STEPS]) for steps in (one.more, one.less))
    steps = f"{more} instead of {less}" if more and less else f"added: {more}" if more else f"removed: {less}"
    return f"the query plan changed ({steps}): {one.statement}"


def noise(known: Noise | None) -> str:
    """Example: `Run-to-run variation of this machine: two runs differ by up to 1.8% (…).`"""
    if known is None:
        return "The run-to-run variation of this machine is unknown: measure it with `ironbench lab noise`."
    return f"Run-to-run variation of this machine: two runs differ by up to {in_percent(known.floor)} ({known.source})."
