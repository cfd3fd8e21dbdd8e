"""Words for the answer of `cost`: comparisons of work per price, the cheapest system that meets a target, and
explanations of prices and scores."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ironbench import units
from ironbench.model.cost import CostRange
from ironbench.model.note import Note
from ironbench.report.cell import CONFIDENCE, ESTIMATE
from ironbench.report.numbers import confidence
from ironbench.report.wording.answers.ratios import change_bounds
from ironbench.report.wording.registry import text
from ironbench.report.wording.values import CI, is_multiple, sized
from ironbench.words import counted, in_percent, listed


def scope(target: str, work: str) -> str:
    """Example: `Target: 500/s with p99 below 20 ms (tpcb-like)`; empty without a target and records."""
    if target:
        return f"Target: {target} ({work})" if work else f"Target: {target}"
    return f"Work: {work}" if work else ""


def flags(flagged: int, trials: int) -> str:
    """Example with flagged=2, trials=3: `2 of 3 trials flagged`.

    Returns an empty text if no trial is flagged.
    """
    return f"{flagged} of {counted(trials, 'trial')} flagged" if flagged else ""


def nothing_to_compare() -> str:
    """Example: `There is no system to compare.`"""
    return "There is no system to compare."


def unknown_price(system: str) -> str:
    """Example with system='one core': `The price of one core is unknown.`"""
    return f"The price of {system} is unknown."


def costs(system: str, price: str) -> str:
    """Example with system='one core', price='1,200 EUR over 3 years': `one core costs 1,200 EUR over 3 years.`"""
    return f"{system} costs {price}."


def most_work(best: str, other: str, ratio: str, currency: str, only_two: bool) -> str:
    """Example with best='old', other='new', ratio='76% more (95% CI 19% to 161%)', currency='USD', only_two=True: `old
    gives more work per USD than new: 76% more (95% CI 19% to 161%).`

    `ratio`: a text from `more`. If there are more than two systems, the sentence is `old gives the most work per USD.
    Compared with new, …`
    """
    if only_two:
        return f"{best} gives more work per {currency} than {other}: {ratio}."
    return (
        f"{best} gives the most work per {currency}. Compared with the second-best system, {other}, {best} gives "
        f"{ratio}."
    )


def tied(marked: Sequence[str], names: Sequence[str], ratios: Sequence[str], currency: str) -> str:
    """Example with marked=['old', 'new'], names=['old', 'new'], ratios=['12% less (95% CI −30% to +8.2%)'],
    currency='USD': `No difference shown: old and new are tied for the most work per USD. Compared with old, new gives
    12% less (95% CI −30% to +8.2%).`

    `marked`: the systems' names with their number of flagged trials. `ratios`: a text from `more` for each system
    except the first, which compares it with the first system.
    """
    others = "; ".join(f"{name} gives {ratio}" for name, ratio in zip(names[1:], ratios, strict=False))
    return (
        f"No difference shown: {listed(list(marked))} are tied for the most work per {currency}. Compared with "
        f"{names[0]}, {others}."
    )


def gives_less(name: str, other: str, ratio: str, currency: str) -> str:
    """Example with name='new', other='old', ratio='43% less (95% CI 16% to 62%)', currency='USD': `new gives less work
    per USD than old: 43% less (95% CI 16% to 62%).`"""
    return f"{name} gives less work per {currency} than {other}: {ratio}."


def not_ranked(reasons: Mapping[str, Sequence[str]], currency: str, alone: bool) -> str:
    """Example with reasons={'inconclusive: only one trial': ['new']}, currency='USD', alone=True: `No verdict on work
    per USD. Not ranked: new (inconclusive: only one trial).`

    `reasons`: maps each reason to the systems that are not ranked for this reason. `alone`: whether there is no ranking
    before this sentence.
    """
    each = "; ".join(f"{listed(list(names))} ({reason})" for reason, names in reasons.items())
    return (
        f"{'No verdict on' if alone else 'Not ranked by'} work per {currency}{'. Not ranked' if alone else ''}: {each}."
    )


def only_one_trial() -> str:
    """Example: `inconclusive: only one trial`."""
    return "inconclusive: only one trial"


def other_hardware() -> str:
    """Example: `the hardware in the records differs from the hardware in the systems file`."""
    return "the hardware in the records differs from the hardware in the systems file"


def no_score() -> str:
    """Example: `performance was not measured`."""
    return "performance was not measured"


def more(ratio: CostRange, estimate: bool, runs_known: bool) -> str:
    """Examples: `76% more (95% CI 19% to 161%)`, `20% to 30% more by estimate`, `43% less`.

    `runs_known`: whether the confidence interval includes the variation between runs.
    """
    ending = " by estimate" if estimate else ""
    if not ratio.bounded:
        return f"{_amount(ratio.centre or 1.0)} (no confidence interval, because one side has only one trial)"
    if ratio.centre is None:
        if math.isclose(ratio.low, ratio.high):
            return f"{_amount(ratio.low)}{ending}"
        return f"{_span(ratio)}{ending}"
    amount = _amount(ratio.centre)
    if math.isclose(ratio.low, ratio.high):
        return f"{amount}{ending}"
    cover = "" if runs_known else ", without the variation between runs"
    return f"{amount} ({CI} {change_bounds(ratio.low, ratio.high, ratio.centre)}{cover}){ending}"


def _amount(value: float) -> str:
    return "as much" if math.isclose(value, 1) else sized(value, "more", "less", "as much")


def _span(ratio: CostRange) -> str:
    middle = math.sqrt(ratio.low * ratio.high)
    words = change_bounds(ratio.low, ratio.high, middle)
    if ratio.low < 1 < ratio.high:
        return words
    if is_multiple(middle):
        return f"{words} as much"
    return f"{words} {'more' if middle > 1 else 'less'}"


def cost_and_work(name: str, other: str, less: float, ratio: str, inconclusive: bool) -> str:
    """Example with name='new', other='old', less=0.5, ratio='15% less (95% CI −42% to +26%)', inconclusive=True: `new
    costs 50% less than old. Work compared with old: 15% less (95% CI −42% to +26%), which is inconclusive.`

    `less`: the fraction by which the system costs less than the other, negative if the system costs more. `ratio`: a
    text from `more`, or an empty text if the work of one of the systems was not measured.
    """
    difference = f"{in_percent(abs(less))} {'less' if less > 0 else 'more'}" if less else "as much"
    sentence = f"{name} costs {difference} {'than' if less else 'as'} {other}"
    if not ratio:
        return f"{sentence}."
    return f"{sentence}. Work compared with {other}: {ratio}{', which is inconclusive' if inconclusive else ''}."


def cheapest(names: Sequence[str], price: str, period: str, undecided: Sequence[str], unmeasured: Sequence[str]) -> str:
    """Example with names=['new'], price='3,400 USD', period=' over 3 years', undecided=['old'], unmeasured=['same']:
    `Inconclusive, because cheaper systems may also meet the target: old (inconclusive) and same (not measured).
    Cheapest system that was shown to meet the target: new, 3,400 USD over 3 years.`

    `period`: a text such as ` over 3 years`, or an empty text. `undecided` and `unmeasured`: cheaper systems that may
    also meet the target. The systems in `unmeasured` were not measured.
    """
    named = f"{listed(list(names))}, {price}{' each' if len(names) > 1 else ''}{period}"
    cheaper = open_cheaper(undecided, unmeasured)
    if not cheaper:
        return f"Cheapest system that meets the target: {named}."
    return (
        f"Inconclusive, because cheaper systems may also meet the target: {cheaper}. Cheapest system that was shown to "
        f"meet the target: {named}."
    )


def open_cheaper(undecided: Sequence[str], unmeasured: Sequence[str]) -> str:
    """Example with undecided=('old',), unmeasured=('same',): `old (inconclusive) and same (not measured)`.

    Returns an empty text if there are no such systems.
    """
    names = [f"{name} (inconclusive)" for name in undecided] + [f"{name} (not measured)" for name in unmeasured]
    return listed(names) if names else ""


def decide_cheaper(undecided: Sequence[str], unmeasured: Sequence[str], rate: float) -> str:
    """Example with undecided=('old',), unmeasured=('same',), rate=500: `To decide, run more trials of old with `--rate
    500`, and run same with `--repeats 3` and `--rate 500` or a higher rate.`

    `rate`: the target's rate. Systems with inconclusive trials should run at exactly this rate, because at a higher
    rate they may miss a target that they meet.
    """
    steps = [f"run more trials of {listed(list(undecided))} with `--rate {rate:.15g}`"] if undecided else []
    if unmeasured:
        steps.append(f"run {listed(list(unmeasured))} with `--repeats 3` and `--rate {rate:.15g}` or a higher rate")
    return f"To decide, {', and '.join(steps)}."


def met_without_prices(systems: Sequence[str]) -> str:
    """Example with systems=('one core', 'two cores'): `Systems that meet the target: one core, two cores. The prices of
    these systems are unknown: give a systems file that contains prices with `--systems FILE`.`"""
    return (
        f"Systems that meet the target: {', '.join(systems)}. The prices of these systems are unknown: give "
        "a systems file that contains prices with `--systems FILE`."
    )


def nearest(systems: Sequence[str], why: Note) -> str:
    """Example with systems=['two cores'], why=note('target-missed', rate=500.0, centre_s=0.024, bound_s=0.026,
    limit_s=0.02): `No system was shown to meet the target. The system that came closest is two cores: missed with 24 ms
    at 500/s (upper confidence limit 26 ms), 1.20x the limit.`"""
    none = "No system was shown to meet the target."
    if len(systems) > 1:
        return f"{none} These systems came closest, with no difference shown between them: {listed(systems)}."
    return f"{none} The system that came closest is {systems[0]}: {text(why)}."


def not_measured_at(rate: float) -> str:
    """Example with rate=500: `No system has at least three trials at 500/s or a higher rate: run each system with
    `--rate 500 --repeats 3`.`"""
    return (
        f"No system has at least three trials at {units.rate(rate)} or a higher rate: run each system with "
        f"`--rate {rate:.15g} --repeats 3`."
    )


def several_servers(system: str, servers: int) -> str:
    """Example with system='two nodes', servers=2: `two nodes: the records are assumed to be the result of all 2 servers
    of this system together.`"""
    return f"{system}: the records are assumed to be the result of all {servers} servers of this system together."


def geometric_means() -> str:
    """Example: `Scores are geometric means of the trials. If there are several runs, scores are geometric means of the
    runs' means. Each score has a 95% CI. Ratios have Welch's 95% CI, as in `ironbench lead`; systems are tied if the CI
    of their ratio contains 1.`"""
    return (
        "Scores are geometric means of the trials. If there are several runs, scores are geometric means of the runs' "
        "means. "
        f"Each score has a {CI}. Ratios have Welch's {CI}, as in `ironbench lead`; systems are tied if the CI "
        "of their ratio contains 1."
    )


def one_run() -> str:
    """Example: `All CIs have a level of 95%. The CI of a score from one run covers only the trials of that run, and the
    score of another run may be outside this CI. Repeat the run to include the variation between runs.`"""
    return (
        f"All CIs have a level of {confidence(CONFIDENCE)}. The CI of a score from one run covers only the trials of "
        "that run, and the score of another run may be outside this CI. Repeat the run to include the variation "
        "between runs."
    )


def rate_is_an_input() -> str:
    """Example: `Throughput per core and per price are left out: in an open loop, the target rate determines
    throughput.`"""
    return "Throughput per core and per price are left out: in an open loop, the target rate determines throughput."


def estimates() -> str:
    """Example: `The sign ≈ marks an estimate from the named source, not a measured value.`"""
    return f"The sign {ESTIMATE} marks an estimate from the named source, not a measured value."
