"""Words for a screening experiment: which effects it detected, which of these effects later blocks confirmed, and how
it was designed."""

from __future__ import annotations

from collections.abc import Sequence

from ironbench.report.numbers import percent, percent_change, quantity
from ironbench.report.wording.answers.ratios import at_least, metric_words
from ironbench.words import counted, listed

_PAIRS = 4
"""Maximum number of pairs of factors that a sentence names."""


def levels(first: str, last: str) -> str:
    """Formats both values of a factor: `128MB → 2GB`."""
    return f"{first} → {last}"


def better_at(result: str, level: str, risky: bool) -> str:
    """States which value of a factor with an effect is better: `effect detected, off is better, but risks data
    loss`."""
    return f"{result}, {level} is better" + (", but risks data loss" if risky else "")


def incomplete(trials: int, missing: int) -> str:
    """Example with trials=4, missing=20: `The screening experiment is incomplete (4 of 24 trials measured) and has no
    result yet.`"""
    return (
        f"The screening experiment is incomplete ({trials} of {counted(trials + missing, 'trial')} measured) and has "
        "no result yet."
    )


def no_result() -> str:
    """Example: `The screening experiment has no result, because too many trials are not usable. The analysis needs
    pairs of usable trials in which every factor has one value in the first trial and the other value in the second
    trial.`"""
    return (
        "The screening experiment has no result, because too many trials are not usable. The analysis needs pairs of "
        "usable trials in which every factor has one value in the first trial and the other value in the second trial."
    )


def no_effect(metric: str, factors: int, detectable: float) -> str:
    """Example with metric='throughput', factors=7, detectable=0.064: `No effect on throughput was detected for any of
    the 7 factors. An effect of 6.4% or more would have been detected with 90% power.`"""
    return (
        f"No effect on {metric_words(metric)} was detected for any of the {counted(factors, 'factor')}. "
        f"{_would_be_detected(detectable)}"
    )


def no_effect_of(factors: Sequence[str], detectable: float) -> str:
    """Example with factors=('jit', 'work_mem'), detectable=0.064: `No effect was detected for jit and work_mem. An
    effect of 6.4% or more would have been detected with 90% power.`"""
    return f"No effect was detected for {listed(factors)}. {_would_be_detected(detectable)}"


def _would_be_detected(detectable: float) -> str:
    return f"An effect of {at_least(detectable)} would have been detected with 90% power."


def supported(changes: Sequence[str], losses: Sequence[str]) -> str:
    """Recommends the changes to the baseline that the trials support, and states which data may be lost with them: `The
    trials support one change to the baseline: wal_compression=lz4.` Other values, which were not measured, may be even
    better."""
    if not changes:
        return "The trials do not support any change to the baseline."
    what = "one change" if len(changes) == 1 else f"{len(changes)} changes"
    return f"The trials support {what} to the baseline: {listed(changes)}.{''.join(f' {text}.' for text in losses)}"


def contradicted(factor: str, better: str) -> str:
    """Example with factor='jit', better='off': `The results for jit contradict each other: off was better in the
    screening experiment, on average over all settings of the other factors, but the later blocks show the opposite in
    comparison with the baseline. Either the effect of jit depends on other settings, or one of the two results is
    chance, so the trials support neither value.`"""
    return (
        f"The results for {factor} contradict each other: {better} was better in the screening experiment, on average "
        "over all settings of the other factors, but the later blocks show the opposite in comparison with the "
        f"baseline. Either the effect of {factor} depends on other settings, or one of the two results is chance, so "
        "the trials support neither value."
    )


def not_confirmed(factor: str, first: str, last: str, metric: str, ratio: float, low: float, high: float) -> str:
    """Example with factor='jit', first='on', last='off', metric='throughput', ratio=1.081, low=1.032, high=1.13: `In
    the screening experiment, averaged over all settings of the other factors, jit=off instead of on changed throughput
    by +8.1% (+3.2% to +13%). The comparison with the baseline does not confirm this change.`"""
    return (
        f"In the screening experiment, averaged over all settings of the other factors, {factor}={last} instead of "
        f"{first} "
        f"changed {metric_words(metric)} by {percent_change(ratio)} ({percent_change(low)} to "
        f"{percent_change(high)}). The comparison with the baseline does not confirm this change."
    )


def interaction(p: float, pairs: Sequence[tuple[str, float]]) -> str:
    """Example with p=0.003, pairs=[('jit and work_mem', 1.12), ('a', 1.12), ('b', 1.12), ('c', 1.12)]: `Two factors
    interact (p-value 0.003): the effect of both changes together differs from the product of their separate effects.
    Possible pairs, each with the ratio of the joint effect to this product: jit and work_mem (1.12x) or a (1.12x) or b
    (1.12x) or c (1.12x).`"""
    known = [f"{pair} ({quantity(factor, 'ratio')})" for pair, factor in pairs[:_PAIRS]]
    more = len(pairs) - len(known)
    which = " or ".join(known) + (f" or {counted(more, 'other pair')}" if more > 0 else "")
    return (
        f"Two factors interact (p-value {quantity(p, 'p')}): the effect of both changes together differs from the "
        "product of their separate effects. Possible pairs, each with the ratio of the joint effect to this product: "
        f"{which}."
    )


def interaction_caveat() -> str:
    """Example: `A screening experiment cannot determine which of these pairs interacts. A lab that varies the two
    factors of one pair with `design = "full"` can.`"""
    return (
        "A screening experiment cannot determine which of these pairs interacts. A lab that varies the two factors of "
        'one pair with `design = "full"` can.'
    )


def method(runs: int, factors: int, blocks: int, spread: float | None, freedom: int) -> str:
    """Explains how the screening experiment was designed, and how to read its figures: `16 runs of a fractional
    factorial design of 7 factors (Plackett and Burman, folded over: resolution IV) in 2 blocks. …`

    `spread`: the standard deviation between blocks, or None if it is unknown. `freedom`: its degrees of freedom.
    """
    noise = ""
    if spread is not None:
        noise = (
            f" The standard error is estimated from the variation between blocks (SD {percent(spread)}, {freedom} "
            "degrees of freedom), without the assumption that some effects are zero."
        )
    return (
        f"{counted(runs, 'run')} of a fractional factorial design of {factors} factors (Plackett and Burman, "
        f"folded over: resolution IV) in {counted(blocks, 'block')}. Each run was measured next to the run in which "
        "every factor has the other value. The effect of a factor is the ratio of the metric at the factor's last "
        "value to the metric at its first value, on average over all settings of the other factors. Interactions of "
        "two factors do not bias the effect. Confidence intervals are corrected for the number of factors (Holm's "
        f"correction).{noise}\n\nThe screening experiment only selects the values that the later blocks compare with "
        "the baseline, because the largest of many noisy effects look larger than they are. Values between the two "
        "screened values of a factor were not measured."
    )
