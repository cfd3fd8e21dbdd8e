"""Words for the answer of `lead`: hardware and peaks of two machines, and notes on the figures.

The package does not load this module: trials need only the words for notes.
"""

from __future__ import annotations

from collections.abc import Sequence

from ironbench.model.note import Note
from ironbench.report.numbers import NOT_KNOWN, number
from ironbench.report.wording.registry import text
from ironbench.study.subjects import failed_percent


def interleaved() -> str:
    """`The trials of both were interleaved in blocks. The difference applies to these configurations.`"""
    return "The trials of both were interleaved in blocks. The difference applies to these configurations."


def not_interleaved() -> str:
    """`The trials of the two were not interleaved. The difference applies to these machines as configured, …`"""
    return (
        "The trials of the two were not interleaved. The difference applies to these machines as configured, including "
        "the differences listed below."
    )


def no_difference() -> str:
    """`No recorded difference between the two.`"""
    return "No recorded difference between the two."


def geometric_means() -> str:
    """`Values are geometric means of the trials, or of the means of the runs if both sides have several runs. …`"""
    return (
        "Values are geometric means of the trials, or of the means of the runs if both sides have several runs. Ratios "
        "have Welch's 95% CI. `ironbench compare` and `report` use the same ratios; their values are medians."
    )


def single_trial() -> str:
    """`A ratio has no CI if one side has a single trial; it may be chance.`"""
    return "A ratio has no CI if one side has a single trial; it may be chance."


def single_run() -> str:
    """`No verdict, because one side has a single run: the CI covers its trials, not the variation between runs. …`"""
    return (
        "No verdict, because one side has a single run: the CI covers its trials, not the variation between runs. Run "
        "both sides at least three times."
    )


def rows_and_peak() -> str:
    """`Rows use all trials with that number of clients; the peak uses only its confirmation trials.`"""
    return "Rows use all trials with that number of clients; the peak uses only its confirmation trials."


def hardware(
    a: str, b: str, clock: float | None, clock_kind: str, cores: tuple[int | None, int | None] | None, comparable: bool
) -> str:
    """Names the differences in cores and clock frequency; empty if there are none: `Compared with old, new has 1.25x
    the nominal clock frequency, and 16 cores instead of 8.`

    `clock`: B's frequency divided by A's; None if unknown or equal. `cores`: None if equal. `comparable`: whether the
    frequencies are of the same kind.
    """
    has = [f"{number(clock)}x the {clock_kind} clock frequency"] if clock else []
    if cores:
        before, after = (str(count) if count else NOT_KNOWN for count in cores)
        has.append(f"{after} {'core' if cores[1] == 1 else 'cores'} instead of {before}")
    texts = [f"Compared with {a}, {b} has {', and '.join(has)}."] if has else []
    texts += [] if comparable else ["The clock frequencies cannot be compared."]
    return " ".join(texts)


def no_usable_trial(work: str) -> str:
    """`tpcb-like: one side has no usable trial.`"""
    return f"{work}: one side has no usable trial."


def peaks(work: str, parts: Sequence[str], confirmed: bool) -> str:
    """`tpcb-like: throughput at the peak 1.27x (27% higher); response time at the peak 0.79x (21% lower (better)).`

    `parts`: from `ratio`, `failed` and `both_sustained` or `outcomes`.
    """
    fresh = "" if confirmed else " (from the trials that chose the peaks: not confirmed)"
    return f"{work}: {'; '.join(parts)}{fresh}."


def ratio(value: float, outcome: Note) -> str:
    """`1.27x (27% higher)`; without a verdict `inconclusive (0.852x)`"""
    if outcome.code in ("lead", "lead-equal"):
        return f"{number(value)}x ({text(outcome)})"
    return f"{text(outcome)} ({number(value)}x)"


def failed(share: float, units: str, side: str) -> str:
    """`0.2% of the transactions of new failed`"""
    return f"{failed_percent(share)} of the {units} of {side} failed"


def both_sustained() -> str:
    """`both sustained the rate`"""
    return "both sustained the rate"


def outcomes(a: str, of_a: Note, b: str, of_b: Note) -> str:
    """`rate: old sustained and new not sustained; response times are compared only if both sustain it`"""
    sides = f"{a} {text(of_a)} and {b} {text(of_b)}"
    return f"rate: {sides}; response times are compared only if both sustain it"
