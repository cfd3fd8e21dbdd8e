"""Words for the answer of `cost`: which system meets a target most cheaply, and notes on prices and scores.

The package does not load this module: trials need only the words for notes.
"""

from __future__ import annotations

from collections.abc import Sequence

from ironbench import units
from ironbench.model.note import Note
from ironbench.report.cell import ESTIMATE
from ironbench.report.wording.registry import text
from ironbench.words import counted, in_percent, listed


def scope(target: str, work: str) -> str:
    """`Target: 500/s with p99 below 20 ms (tpcb-like)`; empty without a target and records."""
    if target:
        return f"Target: {target} ({work})" if work else f"Target: {target}"
    return f"Work: {work}" if work else ""


def flags(flagged: int, trials: int) -> str:
    """`2 of 3 trials flagged`; empty if no trial is flagged."""
    return f"{flagged} of {counted(trials, 'trial')} flagged" if flagged else ""


def nothing_to_compare() -> str:
    """`No system to compare.`"""
    return "No system to compare."


def unknown_price(system: str) -> str:
    """`The price of one core is unknown.`"""
    return f"The price of {system} is unknown."


def costs(system: str, price: str) -> str:
    """`one core costs 1,200 EUR over 3 years.`"""
    return f"{system} costs {price}."


def cheapest(systems: Sequence[str], price: str, period: str) -> str:
    """`Cheapest system that meets the target: two cores, 1,200 EUR over 3 years.`"""
    each = " each" if len(systems) > 1 else ""
    return f"Cheapest system that meets the target: {listed(systems)}, {price}{each}{period}."


def undecided(system: str) -> str:
    """`one core costs less; whether it meets the target is inconclusive: run more trials.`"""
    return f"{system} costs less; whether it meets the target is inconclusive: run more trials."


def met_without_prices(systems: Sequence[str]) -> str:
    """`Target met by one core, two cores; prices unknown: name a systems file with --systems.`"""
    return f"Target met by {', '.join(systems)}; prices unknown: name a systems file with --systems."


def nearest(systems: Sequence[str], why: Note) -> str:
    """`No system was shown to meet the target. Closest: two cores, p99 response time 24 ms.`"""
    none = "No system was shown to meet the target."
    if len(systems) > 1:
        return f"{none} Closest, with no difference shown between them: {listed(systems)}."
    return f"{none} Closest: {systems[0]}, {text(why)}."


def not_measured_at(rate: float) -> str:
    """`No system was measured at 500/s or more in at least three trials: run each system with --rate and --repeats
    3.`"""
    return (
        f"No system was measured at {units.rate(rate)} or more in at least three trials: run each system with --rate "
        "and --repeats 3."
    )


def difference(system: str, first: str, less: float) -> str:
    """`two cores costs 40% more than one core` `less`: the fraction of the first system's price that is saved."""
    size = f"{in_percent(abs(less))} {'less' if less > 0 else 'more'}" if less else "as much"
    return f"{system} costs {size} {'than' if less else 'as'} {first}"


def without_performance(difference: str) -> str:
    """`two cores costs 40% more than one core; its performance was not measured.`"""
    return f"{difference}; its performance was not measured."


def single_trial(difference: str, system: str) -> str:
    """`two cores costs 40% more than one core; which is faster is inconclusive: one core has only one trial.`"""
    return f"{difference}; which is faster is inconclusive: {system} has only one trial."


def with_performance(difference: str, percent: str, estimate: bool, inconclusive: bool) -> str:
    """`two cores costs 40% more than one core and does 170 to 185% of its work.`"""
    estimated, end = " by estimate" if estimate else "", ": inconclusive" if inconclusive else ""
    return f"{difference} and does {percent}% of its work{estimated}{end}."


def several_servers(system: str, servers: int) -> str:
    """`two nodes: records are taken as the result of all its 2 servers together.`"""
    return f"{system}: records are taken as the result of all its {servers} servers together."


def one_run() -> str:
    """`CIs are 95%. The CI of a score from one run covers only its trials; another run may differ by more. …`"""
    return (
        "CIs are 95%. The CI of a score from one run covers only its trials; another run may differ by more. Repeat "
        "the run to include that."
    )


def rate_is_an_input() -> str:
    """`Throughput per core and per price are left out: in an open loop, the target rate determines throughput.`"""
    return "Throughput per core and per price are left out: in an open loop, the target rate determines throughput."


def estimates() -> str:
    """`~ marks an estimate from the named source, not a measurement.`"""
    return f"{ESTIMATE} marks an estimate from the named source, not a measurement."
